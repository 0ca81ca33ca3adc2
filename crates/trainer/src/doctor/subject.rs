//! What is examined: a program's model on a device.

use std::collections::BTreeMap;

use architecture::{HostTensor, ModelConfig, ModelError};
use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use model::parameters::{self, LoadError};
use model::trace::Node;
use model::{Call, CallError, Decoder, Dropout, Input, Source, Trace};
use runs::Config;
use thiserror::Error;

use super::program::Program;
use crate::training::batch::{self, DeviceBatch, Tally, input};
use crate::training::optimiser::AdamW;

/// A model that can't be examined.
#[derive(Debug, Error)]
pub enum SubjectError {
    /// It can't be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Weights of another model.
    #[error(transparent)]
    Weights(#[from] LoadError),
    /// An input that it can't take.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A config, a program and weights on a device.
#[derive(Clone)]
pub struct Subject<'a> {
    /// What the model was built for.
    pub config: Config,
    program: &'a dyn Program,
    model: Decoder,
    device: Device,
}

/// A batch as the model takes it, with what is padding in it.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// Tokens, targets and sources.
    pub batch: data::Batch,
    /// `[B, L]`, row-major: positions that hold padding.
    pub padding: Option<Vec<bool>>,
}

impl Inputs {
    /// A batch with the padding that training tells the model of.
    pub fn new(batch: data::Batch) -> Self {
        let padding = batch.padding_told().map(<[bool]>::to_vec);
        Self { batch, padding }
    }
}

/// What a forward pass gave, on the host.
#[derive(Clone, Debug)]
pub struct Pass {
    /// `[B·L, outputs]`.
    pub logits: HostTensor,
    /// Every node of the pass, where asked for.
    pub nodes: Vec<Node>,
}

impl<'a> Subject<'a> {
    /// The untrained model of `config` on `device`.
    ///
    /// # Errors
    /// A config that can't be built.
    pub fn new(config: &Config, program: &'a dyn Program, device: &Device) -> Result<Self, SubjectError> {
        let device = device.clone().autodiff();
        let model = Decoder::new(&config.model, config.dims(), config.weights_seed(), &device)?;
        Ok(Self { config: config.clone(), program, model, device })
    }

    /// The same model with other weights, by parameter path.
    ///
    /// # Errors
    /// Weights of another model.
    pub fn with_weights(&self, weights: &BTreeMap<String, HostTensor>) -> Result<Self, SubjectError> {
        let model = parameters::from_host(self.model.clone(), weights)?;
        Ok(Self { model, ..self.clone() })
    }

    /// The same model with one parameter, the `index`-th of [`parameters::of`], moved by `change`.
    pub fn moved(&self, index: usize, change: &[f64]) -> Self {
        let mut flat = parameters::flat_parameters(&self.model);
        let data = TensorData::new(change.iter().map(|&x| x as f32).collect::<Vec<f32>>(), [change.len()]);
        let change = Tensor::<1>::from_data(data, &flat[index].device());
        flat[index] = flat[index].clone() + change;
        Self { model: parameters::replace_parameters(self.model.clone(), flat), ..self.clone() }
    }

    /// The same weights in a model of another config that has the same parameters.
    ///
    /// # Errors
    /// A config that has others.
    pub fn with_model(&self, change: impl FnOnce(&mut ModelConfig)) -> Result<Self, SubjectError> {
        let mut config = self.config.clone();
        change(&mut config.model);
        Subject::new(&config, self.program, &self.inner_device())?.with_weights(&self.weights())
    }

    /// The same weights on another device.
    ///
    /// # Errors
    /// None that the model did not have before.
    pub fn on(&self, device: &Device) -> Result<Self, SubjectError> {
        Subject::new(&self.config, self.program, device)?.with_weights(&self.weights())
    }

    /// The same model without dropout.
    ///
    /// # Errors
    /// None that the model did not have before.
    pub fn without_dropout(&self) -> Result<Self, SubjectError> {
        let ModelConfig { embedding_dropout, attention_dropout, residual_dropout, .. } = self.config.model;
        if [embedding_dropout, attention_dropout, residual_dropout] == [0.0; 3] {
            return Ok(self.clone());
        }
        self.with_model(|model| set_dropout(model, 0.0))
    }

    /// Every parameter on the host by path.
    pub fn weights(&self) -> BTreeMap<String, HostTensor> {
        parameters::to_host(&self.model)
    }

    /// The model with its weights.
    pub fn model(&self) -> &Decoder {
        &self.model
    }

    fn inner_device(&self) -> Device {
        parameters::flat_parameters(&self.model)[0].device()
    }

    /// Training samples as one batch.
    pub fn batch(&self, indices: &[u64]) -> data::Batch {
        self.program.batch(&self.config, indices)
    }

    /// A forward pass in evaluation.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn evaluate(&self, inputs: &Inputs) -> Result<Pass, SubjectError> {
        self.pass(&self.model.valid(), inputs, None, false, &self.inner_device())
    }

    /// The same, with every node.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn trace(&self, inputs: &Inputs) -> Result<Pass, SubjectError> {
        self.pass(&self.model.valid(), inputs, None, true, &self.inner_device())
    }

    /// A forward pass in training, with every node.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn train(&self, inputs: &Inputs, dropout: Dropout) -> Result<Pass, SubjectError> {
        self.pass(&self.model, inputs, Some(dropout), true, &self.device)
    }

    fn pass(
        &self,
        model: &Decoder,
        inputs: &Inputs,
        dropout: Option<Dropout>,
        traced: bool,
        device: &Device,
    ) -> Result<Pass, SubjectError> {
        let trace = Trace::new();
        let logits = self.logits(model, inputs, dropout, traced.then_some(&trace), device)?;
        let shape = logits.dims().to_vec();
        let logits = HostTensor { shape, values: parameters::host_values(logits.flatten(0, 1)) };
        Ok(Pass { logits, nodes: trace.nodes() })
    }

    /// The logits of a whole batch, `[B·L, outputs]`, read with a cache piece after piece.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn decode(&self, batch: &data::Batch, pieces: &[usize]) -> Result<Vec<f32>, SubjectError> {
        let device = self.inner_device();
        let (input, source) = on_device(batch, &device);
        let source = source.as_ref().map(|(tokens, padding)| Source { tokens, padding });
        let model = self.model.valid();
        let logits = self.program.decode(&self.config.model, &model, input, source, pieces)?;
        Ok(parameters::host_values(logits.flatten(0, 1)))
    }

    fn logits(
        &self,
        model: &Decoder,
        inputs: &Inputs,
        dropout: Option<Dropout>,
        trace: Option<&Trace>,
        device: &Device,
    ) -> Result<Tensor<2>, SubjectError> {
        let Inputs { batch, padding } = inputs;
        let (input, source) = on_device(batch, device);
        let call = Call {
            padding: padding.as_deref(),
            source: source.as_ref().map(|(tokens, padding)| Source { tokens, padding }),
            dropout: dropout.as_ref(),
            trace,
            ..Default::default()
        };
        Ok(self.program.forward(&self.config.model, model, input, call)?.logits)
    }

    /// Mean loss over the scored positions, in nats, summed on the host in f64; NaN where there are none.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn loss(&self, inputs: &Inputs) -> Result<f64, SubjectError> {
        let losses = losses(&self.evaluate(inputs)?.logits, &inputs.batch);
        Ok(losses.iter().sum::<f64>() / losses.len() as f64)
    }

    /// The gradient of [`Subject::loss`] by backward pass, for each parameter in the order of [`parameters::of`].
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn gradient(&self, inputs: &Inputs) -> Result<Vec<Vec<f32>>, SubjectError> {
        let logits = self.logits(&self.model, inputs, None, None, &self.device)?;
        let Some(batch) = DeviceBatch::new(&inputs.batch, &self.device) else { return Ok(vec![]) };
        let losses = batch::losses(logits.select(0, batch.scored.clone()), &batch);
        let mut gradients = (losses.sum() / batch.samples.len() as f64).backward();
        Ok(parameters::flat_gradients(&self.model, &mut gradients).into_iter().map(parameters::host_values).collect())
    }

    /// Loss and gradient as training makes them from micro-batches: mean loss, scored positions, and the gradient of every
    /// parameter in one row.
    ///
    /// # Errors
    /// A batch that the model can't take.
    pub fn accumulate(&self, batches: &[data::Batch]) -> Result<(Tally, Vec<f32>), SubjectError> {
        let (tally, gradient) = self.program.accumulate(&self.config.model, &self.model, batches, &self.device)?;
        let count = parameters::of(&self.model).iter().map(parameters::ParameterShape::count).sum();
        let mut gradient = gradient.map_or_else(Vec::new, |gradient| gradient.to_host());
        gradient.resize(count, 0.0);
        Ok((tally, gradient))
    }

    /// Trains on one batch and gives the loss before each of at most `steps` updates, until it falls below `enough`.
    ///
    /// # Errors
    /// A batch that the model can't take.
    pub fn overfit(&self, batch: &data::Batch, steps: u64, lr: f64, enough: f64) -> Result<Vec<f64>, SubjectError> {
        let settings = runs::TrainConfig { weight_decay: 0.0, clip_norm: 1.0, ..Default::default() };
        let mut model = self.model.clone();
        let mut optimiser = AdamW::new(&settings, &model);
        let mut losses = vec![];
        for step in 1..=steps + 1 {
            let batches = std::slice::from_ref(batch);
            let (tally, gradient) = self.program.accumulate(&self.config.model, &model, batches, &self.device)?;
            losses.push(tally.mean_loss());
            match gradient {
                Some(gradient) if step <= steps && tally.mean_loss() > enough => {
                    model = self.program.step(&mut optimiser, model, gradient, lr, step);
                }
                _ => break,
            }
        }
        Ok(losses)
    }
}

/// Tokens `[B, Ls]` of sources, and which of them are padding.
type SourceOnDevice<'b> = (Tensor<2, Int>, &'b [bool]);

/// What a model reads, and the sources where there are some.
fn on_device<'b>(batch: &'b data::Batch, device: &Device) -> (Input, Option<SourceOnDevice<'b>>) {
    let tensor = |tokens: &[i32], len: usize| {
        Tensor::<2, Int>::from_data(TensorData::new(tokens.to_vec(), [batch.batch, len]), device)
    };
    let source = batch.source.as_ref();
    let source = source.map(|source| (tensor(&source.tokens, source.len), &source.padding[..]));
    (input(batch, device), source)
}

/// Sets every dropout of a model.
pub fn set_dropout(model: &mut ModelConfig, probability: f64) {
    model.embedding_dropout = probability;
    model.attention_dropout = probability;
    model.residual_dropout = probability;
}

/// The loss of each scored position, of classes in nats, of numbers the mean squared error, on the host in f64. `logits` `[B·L, outputs]`.
pub fn losses(logits: &HostTensor, batch: &data::Batch) -> Vec<f64> {
    let classes = logits.shape[1];
    if let Some(numbers) = batch.numbers_asked() {
        let rows = logits.values.chunks(classes).zip(numbers.targets.chunks(classes)).zip(&numbers.scored);
        let squared = |(&said, &right): (&f32, &f32)| (f64::from(said) - f64::from(right)).powi(2);
        let mean = |(said, right): (&[f32], &[f32])| said.iter().zip(right).map(squared).sum::<f64>() / classes as f64;
        return rows.filter(|(_, scored)| **scored).map(|(row, _)| mean(row)).collect();
    }
    let (positions, targets) = batch.scored_positions();
    let loss = |(position, target): (i32, i32)| {
        let row = &logits.values[position as usize * classes..][..classes];
        // No such class is a mistake in the data, which its own check names.
        row.get(target as usize).map_or(f64::NAN, |&x| log_sum_exp(row) - f64::from(x))
    };
    positions.into_iter().zip(targets).map(loss).collect()
}

/// ln Σ exp(x), without overflow.
pub fn log_sum_exp(row: &[f32]) -> f64 {
    let most = row.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(f64::from(x)));
    most + row.iter().map(|&x| (f64::from(x) - most).exp()).sum::<f64>().ln()
}
