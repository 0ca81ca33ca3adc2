//! Loss and gradient of an optimiser step, from its micro-batches.

use burn::tensor::Device;
use model::{Call, CallError, Decoder, Dropout};

use super::batch::{DeviceBatch, Tally, losses};
use super::optimiser::FlatGradient;

/// Forward and backward of optimiser step `step` (from 0) over its micro-batches, each weighted by its scored positions:
/// loss and gradient are those of one large batch, whichever way it is cut. No gradient where no position is scored.
///
/// # Errors
/// A batch that the model can't take.
pub fn accumulate(
    model: &Decoder,
    batches: &[data::Batch],
    seed: u64,
    step: u64,
    device: &Device,
) -> Result<(Tally, Option<FlatGradient>), CallError> {
    accumulate_watched(model, batches, seed, step, device, &mut |_| ())
}

/// [`accumulate`], telling `watch` of each part that is over.
///
/// # Errors
/// As [`accumulate`].
pub fn accumulate_watched(
    model: &Decoder,
    batches: &[data::Batch],
    seed: u64,
    step: u64,
    device: &Device,
    watch: &mut dyn FnMut(StepPart),
) -> Result<(Tally, Option<FlatGradient>), CallError> {
    let scored: usize = batches.iter().map(data::Batch::scored).sum();
    let mut sum: Option<FlatGradient> = None;
    let mut tally = Tally::default();
    for (micro_batch, batch) in (0..).zip(batches) {
        let Some(batch) = DeviceBatch::new(batch, device) else { continue };
        watch(StepPart::Data);
        let dropout = Dropout { seed, step, micro_batch };
        let call = Call { dropout: Some(&dropout), ..batch.call() };
        let logits = model.forward(batch.input.clone(), call)?.logits;
        let losses = losses(logits.clone(), &batch);
        watch(StepPart::Forward);
        let mut gradients = (losses.clone().sum() / scored as f64).backward();
        let gradient = FlatGradient::take(model, &mut gradients);
        sum = Some(match sum {
            Some(sum) => sum.plus(gradient),
            None => gradient,
        });
        watch(StepPart::Backward);
        tally.add(Tally::of(losses.inner(), logits.inner(), &batch));
        watch(StepPart::Reading);
    }
    Ok((tally, sum))
}

/// A part of an optimiser step, named when it is over. With several micro-batches the first four come once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPart {
    /// Samples drawn on the host and put on the device.
    Data,
    /// From tokens to losses.
    Forward,
    /// From losses to the flat gradient.
    Backward,
    /// Loss and accuracy read back to the host.
    Reading,
    /// From the gradient's norm to new parameters.
    Optimiser,
}

impl StepPart {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 5] = [Self::Data, Self::Forward, Self::Backward, Self::Reading, Self::Optimiser];
}
