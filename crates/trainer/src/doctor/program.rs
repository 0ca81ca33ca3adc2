//! The parts of a program that a model is trained by, and this program's.

use architecture::ModelConfig;
use burn::tensor::{Device, Tensor};
use data::{Generator, Split};
use model::{Call, CallError, Decoder, Input, Output, Source};
use runs::Config;

use crate::training::batch::Tally;
use crate::training::gradient::accumulate;
use crate::training::optimiser::{AdamW, FlatGradient};

/// The parts of a program that can be wrong. [`Headcount`] is this program; a variant with a mistake in one part is
/// examined in the same way.
pub trait Program {
    /// `input` `[B, L]` through the weights of `model`, built for `config`.
    ///
    /// # Errors
    /// An input that the model can't take.
    fn forward(&self, config: &ModelConfig, model: &Decoder, input: Input, call: Call) -> Result<Output, CallError>;

    /// `input` `[B, L]` read with a cache, piece after piece of the lengths given, to the logits at every position,
    /// `[B·L, outputs]`.
    ///
    /// # Errors
    /// An input that the model can't take.
    fn decode(
        &self,
        config: &ModelConfig,
        model: &Decoder,
        input: Input,
        source: Option<Source>,
        pieces: &[usize],
    ) -> Result<Tensor<2>, CallError>;

    /// Training samples as one batch.
    fn batch(&self, config: &Config, indices: &[u64]) -> data::Batch;

    /// Loss and gradient of one optimiser step over its micro-batches.
    ///
    /// # Errors
    /// A batch that the model can't take.
    fn accumulate(
        &self,
        config: &ModelConfig,
        model: &Decoder,
        batches: &[data::Batch],
        device: &Device,
    ) -> Result<(Tally, Option<FlatGradient>), CallError>;

    /// One update; `step` counts from 1.
    fn step(&self, optimiser: &mut AdamW, model: Decoder, gradient: FlatGradient, lr: f64, step: u64) -> Decoder;
}

/// This program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headcount;

impl Program for Headcount {
    fn forward(&self, _config: &ModelConfig, model: &Decoder, input: Input, call: Call) -> Result<Output, CallError> {
        model.forward(input, call)
    }

    fn decode(
        &self,
        _config: &ModelConfig,
        model: &Decoder,
        input: Input,
        source: Option<Source>,
        pieces: &[usize],
    ) -> Result<Tensor<2>, CallError> {
        let [b, l] = input.dims();
        let mut cache = model.cache(b, l, source)?;
        let mut logits = vec![];
        let mut first = 0;
        for &length in pieces {
            let piece = input.clone().between(first, length);
            let output = model.extend(piece, &mut cache, Call::default())?.logits; // [B·length, outputs]
            let classes = output.dims()[1];
            logits.push(output.reshape([b, length, classes]));
            first += length;
        }
        Ok(Tensor::cat(logits, 1).flatten(0, 1))
    }

    fn batch(&self, config: &Config, indices: &[u64]) -> data::Batch {
        Generator::new(&config.task.task, Split::Train, Split::Train.data_seed(config.seed)).batch(indices)
    }

    fn accumulate(
        &self,
        _config: &ModelConfig,
        model: &Decoder,
        batches: &[data::Batch],
        device: &Device,
    ) -> Result<(Tally, Option<FlatGradient>), CallError> {
        accumulate(model, batches, 0, 0, device)
    }

    fn step(&self, optimiser: &mut AdamW, model: Decoder, gradient: FlatGradient, lr: f64, step: u64) -> Decoder {
        let norm = gradient.norm();
        optimiser.step(model, gradient, norm, lr, step)
    }
}
