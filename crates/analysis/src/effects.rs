//! A model at work on the samples: what it says, the loss without a head or with it alone, the gradient of its gate.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use data::metrics::{ACCURACY, LOSS, Scores};
use kernels::cross_entropy;
use model::{Call, CallError, Decoder};
use runs::{Config, Tensors};

use crate::{
    contexts::Contexts,
    samples::{DeviceSamples, Samples},
};

/// A model and what its attentions give on the samples.
pub struct Probe {
    /// What the model scores on the samples.
    pub scores: Scores,
    /// `[B][H][L][L]` for each layer of the decoder.
    pub maps: Vec<Vec<f32>>,
    /// `[B][H][Ls][Ls]` for each layer of the encoder.
    pub encoder_maps: Vec<Vec<f32>>,
    /// `[B][H][L][Ls]` for each layer.
    pub cross_maps: Vec<Vec<f32>>,
    /// `[layers][H]`: share of each head in what its attention writes.
    output_shares: Vec<Vec<f64>>,
    /// `[layers][H]`.
    importance: Vec<Vec<f64>>,
    /// `[H, L, K]` for each layer: what takes the place of a removed head's context.
    means: Vec<Tensor<3>>,
    /// In evaluation mode.
    model: Decoder,
    /// On the device without autodiff.
    samples: DeviceSamples,
    device: Device,
    heads: usize,
}

impl Probe {
    /// Runs `model`, which is that of `config` with `weights` and lives on `device` with autodiff, on the samples. At least
    /// one position must be scored.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub fn new(
        model: Decoder,
        config: &Config,
        weights: &Tensors,
        samples: &Samples,
        device: &Device,
    ) -> Result<Self, CallError> {
        let [layers, heads] = [config.model.layers, config.model.heads];
        let importance = importance(&model, [layers, heads], samples, &device.clone().autodiff())?;
        let model = model.valid();
        let on_device = DeviceSamples::new(&samples.batch, device);
        let call = Call { maps: true, contexts: true, ..on_device.call() };
        let output = model.forward(on_device.tokens.clone(), call)?;
        let (_, targets) = samples.batch.scored_positions();
        let guesses = output.logits.clone().argmax(1).into_data();
        let right = guesses.iter::<i64>().zip(&targets).filter(|&(guess, &target)| guess == i64::from(target)).count();
        // Computed as the losses without a head are, which return no maps: what differs is the head alone, to the last bit.
        let logits = model.forward(on_device.tokens.clone(), on_device.call())?.logits;
        let loss = mean(&host(cross_entropy(logits, on_device.targets.clone())));
        let contexts: Vec<Contexts> = output
            .contexts
            .into_iter()
            .map(|contexts| Contexts { shape: contexts.dims(), values: host(contexts) })
            .collect();
        let mean_on_device = |contexts: &Contexts| {
            let [_, h, l, k] = contexts.shape;
            Tensor::from_data(TensorData::new(contexts.mean(&samples.batch.padding), [h, l, k]), device)
        };
        let on_host = |maps: Vec<Tensor<4>>| maps.into_iter().map(host).collect();
        let shares = |(layer, contexts): (usize, &Contexts)| {
            let output = weights.get(&format!("blocks.{layer}.attention.output.weight"));
            output.map_or(vec![], |output| {
                contexts.output_shares(&output.values, config.model.d_model, &samples.batch.padding)
            })
        };
        let scores = Scores::default().with(&LOSS, loss).with(&ACCURACY, right as f64 / targets.len() as f64);
        Ok(Self {
            scores,
            maps: on_host(output.maps),
            encoder_maps: on_host(output.encoder_maps),
            cross_maps: on_host(output.cross_maps),
            means: contexts.iter().map(mean_on_device).collect(),
            output_shares: contexts.iter().enumerate().map(shares).collect(),
            importance,
            heads,
            model,
            samples: on_device,
            device: device.clone(),
        })
    }

    /// `[H]`: rise of the loss when a head's context in `layer` of the decoder is replaced by its mean over the samples at each
    /// position, in nats.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub fn removal(&self, layer: usize) -> Result<Vec<f64>, CallError> {
        (0..self.heads).map(|head| self.rise(layer, |other| other != head)).collect()
    }

    /// `[H]`: rise of the loss when the contexts of all other heads of `layer` are.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub fn alone(&self, layer: usize) -> Result<Vec<f64>, CallError> {
        (0..self.heads).map(|head| self.rise(layer, |other| other == head)).collect()
    }

    /// `[H]`: the share of each head in what the attention of `layer` writes; empty where its projection is unknown.
    pub fn output_shares(&self, layer: usize) -> Vec<f64> {
        self.output_shares.get(layer).cloned().unwrap_or_default()
    }

    /// `[H]`: the mean over samples of |∂ loss / ∂ gate| in `layer` at gate 1, the loss being a sample's mean, in nats.
    pub fn importance(&self, layer: usize) -> &[f64] {
        self.importance.get(layer).map_or(&[], Vec::as_slice)
    }

    /// How much the loss rises when only some heads of `layer` are kept.
    fn rise(&self, layer: usize, is_kept: impl Fn(usize) -> bool) -> Result<f64, CallError> {
        let gate = |other: usize, head: usize| if other != layer || is_kept(head) { 1.0f32 } else { 0.0 };
        let gates: Vec<Tensor<2>> = (0..self.means.len())
            .map(|other| {
                let numbers: Vec<f32> = (0..self.heads).map(|head| gate(other, head)).collect();
                Tensor::from_data(TensorData::new(numbers, [1, self.heads]), &self.device)
            })
            .collect();
        let call = Call { gates: Some(&gates), replacements: Some(&self.means), ..self.samples.call() };
        let logits = self.model.forward(self.samples.tokens.clone(), call)?.logits;
        Ok(mean(&host(cross_entropy(logits, self.samples.targets.clone()))) - self.scores.number(&LOSS))
    }
}

/// `[layers][H]`: the mean over samples of |∂ loss / ∂ gate| at gate 1, the loss being a sample's mean over its scored
/// positions (Michel 2019, section 4.1). `model` lives on `device` with autodiff. A sample in which nothing is scored is left
/// out.
///
/// # Errors
/// Samples that the model can't take.
fn importance(
    model: &Decoder,
    [layers, heads]: [usize; 2],
    samples: &Samples,
    device: &Device,
) -> Result<Vec<Vec<f64>>, CallError> {
    if layers == 0 {
        return Ok(vec![]); // and no gate to take a gradient of
    }
    let (b, l) = (samples.batch.batch, samples.batch.len);
    let (positions, _) = samples.batch.scored_positions();
    let mut scored_of = vec![0usize; b];
    positions.iter().for_each(|&position| scored_of[position as usize / l] += 1);
    let weights: Vec<f32> = positions.iter().map(|&position| 1.0 / scored_of[position as usize / l] as f32).collect();
    let weights = Tensor::<1>::from_data(TensorData::new(weights, [positions.len()]), device);

    let on_device = DeviceSamples::new(&samples.batch, device);
    let gates: Vec<Tensor<2>> = (0..layers).map(|_| Tensor::ones([b, heads], device).require_grad()).collect();
    let call = Call { gates: Some(&gates), ..on_device.call() };
    let logits = model.forward(on_device.tokens.clone(), call)?.logits;
    // The gates of a sample act on its own loss alone, so the gradient of the sum is that of each.
    let gradients = (cross_entropy(logits, on_device.targets.clone()) * weights).sum().backward();
    let counted = scored_of.iter().filter(|&&scored| scored > 0).count() as f64;
    let of_layer = |gates: &Tensor<2>| {
        let gradient = gates.grad(&gradients).map_or(vec![0.0; b * heads], host); // [B][H]
        let of_head =
            |h: usize| gradient.iter().skip(h).step_by(heads).map(|&slope| f64::from(slope).abs()).sum::<f64>();
        (0..heads).map(|h| of_head(h) / counted).collect()
    };
    Ok(gates.iter().map(of_layer).collect())
}

/// The numbers of a tensor, row-major.
fn host<const N: usize>(tensor: Tensor<N>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64
}
