//! AdamW (Loshchilov 2019, algorithm 2) as PyTorch computes it, with clipping of the global gradient norm.
//!
//! All parameters are one flat tensor here: an update is one pass whatever the number of layers, the global norm is one sum,
//! and the state is saved by parameter path. (Burn's AdamW keys its state by random ids, and its clipping is
//! per tensor.)

use std::collections::BTreeMap;

use architecture::HostTensor;
use burn::tensor::{Device, Gradients, Tensor, TensorData};
use kernels::adamw::{self, Flat, ROW, Update};
use model::Decoder;
use model::parameters::{self, LoadError, ParameterShape};
use runs::TrainConfig;

/// AdamW's settings and its state for one model.
pub struct AdamW {
    places: Vec<ParameterShape>,
    /// Number of parameters, without padding.
    count: usize,
    flat: Flat,
    settings: Settings,
}

#[derive(Clone, Copy)]
struct Settings {
    weight_decay: f64,
    beta1: f64,
    beta2: f64,
    eps: f64,
    clip_norm: f64,
}

/// The gradient of every parameter, flat.
#[derive(Clone)]
pub struct FlatGradient(Tensor<1>);

impl FlatGradient {
    /// Takes the model's gradients out of `gradients`.
    pub fn take(model: &Decoder, gradients: &mut Gradients) -> Self {
        Self(concatenate(parameters::flat_gradients(model, gradients)))
    }

    /// The sum of two, for accumulation over micro-batches.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// Every entry on the host, in the order of [`parameters::of`], then the padding.
    pub fn to_host(&self) -> Vec<f32> {
        parameters::host_values(self.0.clone())
    }

    /// The global L2 norm over all parameters.
    pub fn norm(&self) -> f64 {
        adamw::norm(&self.0)
    }
}

impl AdamW {
    /// A fresh state for `model`.
    pub fn new(config: &TrainConfig, model: &Decoder) -> Self {
        let places = parameters::of(model);
        let parameters = concatenate(parameters::flat_parameters(model));
        let zeros = parameters.zeros_like();
        Self {
            count: places.iter().map(ParameterShape::count).sum(),
            places,
            flat: Flat { first_moment: zeros.clone(), second_moment: zeros, parameters },
            settings: Settings {
                weight_decay: config.weight_decay,
                beta1: config.beta1,
                beta2: config.beta2,
                eps: config.eps,
                clip_norm: config.clip_norm,
            },
        }
    }

    /// One update; `step` counts from 1, `norm` is the gradient's. Gives the model with its new parameters.
    pub fn step(&mut self, model: Decoder, gradient: FlatGradient, norm: f64, lr: f64, step: u64) -> Decoder {
        let Settings { weight_decay, beta1, beta2, eps, clip_norm } = self.settings;
        let clip = clip_norm / (norm + 1e-6);
        let gradient_scale = if clip_norm > 0.0 && clip < 1.0 { clip } else { 1.0 };
        let update = Update { gradient_scale, lr, beta1, beta2, epsilon: eps, weight_decay, step };
        let old = std::mem::replace(&mut self.flat, empty(&gradient.0.device()));
        self.flat = adamw::step(old, gradient.0, update);
        parameters::replace_parameters(model, self.split(&self.flat.parameters))
    }

    /// Both moments on the host, by parameter path.
    pub fn to_host(&self) -> BTreeMap<String, HostTensor> {
        let mut state = BTreeMap::new();
        for (name, moment) in [("first_moment", &self.flat.first_moment), ("second_moment", &self.flat.second_moment)] {
            let values = parameters::host_values(moment.clone());
            let mut start = 0;
            for place in &self.places {
                let values = values[start..start + place.count()].to_vec();
                state.insert(format!("{}.{name}", place.path), HostTensor { shape: place.shape.clone(), values });
                start += place.count();
            }
        }
        state
    }

    /// Puts back what [`AdamW::to_host`] gave; `model` must already hold its own parameters.
    ///
    /// # Errors
    /// Names the first moment that is missing or has another shape.
    pub fn from_host(
        config: &TrainConfig,
        model: &Decoder,
        state: &BTreeMap<String, HostTensor>,
    ) -> Result<Self, LoadError> {
        let mut optimiser = Self::new(config, model);
        let device = optimiser.flat.parameters.device();
        optimiser.flat.first_moment = moment(&optimiser.places, state, "first_moment", &device)?;
        optimiser.flat.second_moment = moment(&optimiser.places, state, "second_moment", &device)?;
        Ok(optimiser)
    }

    fn split(&self, flat: &Tensor<1>) -> Vec<Tensor<1>> {
        let mut sizes: Vec<usize> = self.places.iter().map(ParameterShape::count).collect();
        sizes.push(flat.dims()[0] - self.count);
        let mut parts = flat.clone().split_with_sizes(sizes, 0);
        parts.truncate(self.places.len());
        parts
    }
}

/// Nothing, in the place of what an update takes: what nobody else holds is updated in place.
fn empty(device: &Device) -> Flat {
    let nothing = Tensor::empty([0], device);
    Flat { parameters: nothing.clone(), first_moment: nothing.clone(), second_moment: nothing }
}

fn moment(
    places: &[ParameterShape],
    state: &BTreeMap<String, HostTensor>,
    name: &str,
    device: &Device,
) -> Result<Tensor<1>, LoadError> {
    let mut parts = Vec::with_capacity(places.len());
    for place in places {
        let (path, expected) = (format!("{}.{name}", place.path), place.shape.clone());
        match state.get(&path) {
            Some(tensor) if tensor.shape == expected => {
                parts.push(Tensor::from_data(TensorData::new(tensor.values.clone(), [place.count()]), device));
            }
            Some(tensor) => return Err(LoadError::Shape { path, found: tensor.shape.clone(), expected }),
            None => return Err(LoadError::Missing { path, shape: expected }),
        }
    }
    Ok(concatenate(parts))
}

/// One after the other, padded with zeros to whole rows.
fn concatenate(mut parts: Vec<Tensor<1>>) -> Tensor<1> {
    let count: usize = parts.iter().map(|part| part.dims()[0]).sum();
    let device = parts[0].device();
    parts.push(Tensor::zeros([count.next_multiple_of(ROW).max(ROW) - count], &device));
    parts.retain(|part| part.dims()[0] > 0);
    Tensor::cat(parts, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use architecture::{Dims, ModelConfig, Norm, Positions};

    fn decoder() -> Decoder {
        let (positions, norm) = (Positions::None, Norm::None);
        let config = ModelConfig { d_model: 1, heads: 1, layers: 0, positions, norm, ..Default::default() };
        // Two embeddings, a weight and a bias.
        Decoder::new(&config, Dims::of_tokens(2, 1, 1), 0, &Device::flex().autodiff()).unwrap()
    }

    fn flat(values: [f64; 4]) -> Tensor<1> {
        concatenate(vec![Tensor::from_data(TensorData::new(values.map(|x| x as f32).to_vec(), [4]), &Device::flex())])
    }

    /// p = torch.tensor([0.5, -1.0, 2.0, 0.1], dtype=torch.float64, requires_grad=True)
    /// optimiser = torch.optim.AdamW([p], lr=1e-2, betas=(0.9, 0.98), eps=1e-8, weight_decay=0.1)
    /// for step in range(1, 11):
    ///     p.grad = torch.tensor([math.sin(step + i) * 10.0**-i for i in range(4)], dtype=torch.float64)
    ///     torch.nn.utils.clip_grad_norm_([p], 0.5); optimiser.step()
    /// print(p.tolist())
    #[test]
    fn ten_steps_follow_pytorch() {
        let expected =
            [0.458_688_752_691_455_7, -0.999_196_167_928_271_4, 1.997_182_767_091_494_6, 0.138_004_869_024_300_96];
        let config = TrainConfig { weight_decay: 0.1, clip_norm: 0.5, beta2: 0.98, ..Default::default() };
        let model = decoder();
        let start = flat([0.5, -1.0, 2.0, 0.1]);
        let parts = start.split_with_sizes(vec![2, 1, 1, ROW - 4], 0).into_iter().take(3).collect();
        let mut model = parameters::replace_parameters(model, parts);
        let mut optimiser = AdamW::new(&config, &model);
        for step in 1..=10 {
            // Saved and read back on the way, as a resumed run has it.
            optimiser = AdamW::from_host(&config, &model, &optimiser.to_host()).unwrap();
            let gradient = [0, 1, 2, 3].map(|i| f64::from(step + i).sin() * 10f64.powi(-i));
            let gradient = FlatGradient(flat(gradient));
            let norm = gradient.norm();
            model = optimiser.step(model, gradient, norm, 1e-2, step as u64);
        }
        let found: Vec<f32> =
            parameters::flat_parameters(&model).into_iter().flat_map(parameters::host_values).collect();
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn a_foreign_state_is_refused_by_name() {
        let (config, model) = (TrainConfig::default(), decoder());
        let mut state = AdamW::new(&config, &model).to_host();
        state.insert("logits.bias.second_moment".into(), HostTensor { shape: vec![2], values: vec![0.0; 2] });
        let error = AdamW::from_host(&config, &model, &state).err().unwrap().to_string();
        assert!(error.contains("logits.bias.second_moment") && error.contains("[2]"), "{error}");
        state.remove("token.weight.first_moment");
        let error = AdamW::from_host(&config, &model, &state).err().unwrap();
        assert!(matches!(error, LoadError::Missing { .. }), "{error}");
    }
}
