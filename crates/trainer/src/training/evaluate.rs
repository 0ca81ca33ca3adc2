//! A model's score on a fixed set.

use std::collections::BTreeMap;

use burn::tensor::Device;
use data::{Generator, Split, Task};
use model::{CallError, Decoder};

use super::batch::{DeviceBatch, Tally, losses};

/// A set of samples that stays the same while a run trains.
pub struct FixedSet {
    task: Task,
    split: Split,
    generator: Generator,
    examples: u64,
    /// Samples a batch. Part of the run's configuration, so that sums do not depend on the machine.
    batch: u64,
}

impl FixedSet {
    /// The validation or test set of a run of `task` with seed `run_seed`.
    pub fn new(task: &Task, split: Split, run_seed: u64, examples: u64, batch: u64) -> Self {
        let generator = Generator::new(task, split, split.data_seed(run_seed));
        Self { task: task.clone(), split, generator, examples, batch }
    }

    /// What `model` scores, which must be in evaluation mode (`model.valid()`).
    pub fn score(&self, model: &Decoder, device: &Device) -> Result<Tally, CallError> {
        let mut tally = Tally::default();
        for first in (0..self.examples).step_by(self.batch as usize) {
            let indices: Vec<u64> = (first..(first + self.batch).min(self.examples)).collect();
            tally.add(score(model, &self.generator.batch(&indices), device)?);
        }
        Ok(tally)
    }

    /// The same, with the part of each unit of the set that has a scored position, by [`data::Stored::unit`]; no units where every run
    /// has a set of its own.
    pub fn score_by_unit(&self, model: &Decoder, device: &Device) -> Result<(Tally, BTreeMap<u64, Tally>), CallError> {
        let Some(stored) = self.task.stored() else { return Ok((self.score(model, device)?, BTreeMap::new())) };
        let (mut whole, mut units) = (Tally::default(), BTreeMap::<u64, Tally>::new());
        for first in (0..self.examples).step_by(self.batch as usize) {
            let indices: Vec<u64> = (first..(first + self.batch).min(self.examples)).collect();
            let Some(batch) = DeviceBatch::new(&self.generator.batch(&indices), device) else { continue };
            let logits = model.forward(batch.input.clone(), batch.call())?.logits;
            let losses = losses(logits.clone(), &batch);
            for (sample, tally) in Tally::of_samples(losses.clone(), logits.clone(), &batch) {
                units.entry(stored.unit(self.split, first + sample as u64)).or_default().add(tally);
            }
            whole.add(Tally::of(losses, logits, &batch));
        }
        Ok((whole, units))
    }
}

/// What `model` scores, which must be in evaluation mode, on one batch; nothing where no position is scored.
///
/// # Errors
/// A batch that the model can't take.
pub fn score(model: &Decoder, batch: &data::Batch, device: &Device) -> Result<Tally, CallError> {
    let Some(batch) = DeviceBatch::new(batch, device) else { return Ok(Tally::default()) };
    let logits = model.forward(batch.input.clone(), batch.call())?.logits;
    Ok(Tally::of(losses(logits.clone(), &batch), logits, &batch))
}
