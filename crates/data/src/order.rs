//! How many samples the sets hold, and which training samples each micro-batch takes.

use serde::{Deserialize, Serialize};

use crate::error::{TaskError, in_range};
use crate::random::{Stream, key};

/// Sizes of the three sets. These keys stand in a config's `[task]` section beside the task's own.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sets {
    /// Samples in the training set, reshuffled every pass, 1 to 10,000,000; without it every training sample is fresh.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub train_examples: Option<u64>,
    /// Samples in the validation set, 1 to 100,000.
    pub validation_examples: u64,
    /// Samples in the test set, 1 to 100,000.
    pub test_examples: u64,
}

impl Default for Sets {
    fn default() -> Self {
        Self { train_examples: None, validation_examples: 1024, test_examples: 2048 }
    }
}

impl Sets {
    /// The names of the fields.
    pub const KEYS: &'static [&'static str] = &["train_examples", "validation_examples", "test_examples"];

    /// # Errors
    /// [`TaskError::OutOfRange`] names the size that is out of bounds.
    pub fn check(&self) -> Result<(), TaskError> {
        if let Some(train_examples) = self.train_examples {
            in_range("train_examples", train_examples, 1, 10_000_000)?;
        }
        in_range("validation_examples", self.validation_examples, 1, 100_000)?;
        in_range("test_examples", self.test_examples, 1, 100_000)
    }
}

/// Which training samples each micro-batch holds; keeps the shuffle of the pass it was last asked about.
///
/// Let a step be `micros` micro-batches of `batch_size` samples.
///
/// - Fresh samples: step after step takes the next `micros * batch_size` indices, in order, without end.
/// - A fixed set of n samples: as PyTorch's `DataLoader(shuffle=True, drop_last=False)` with batches of
///   `micros * batch_size`. A pass takes each sample exactly once, in ceil(n / (micros * batch_size)) steps; the last
///   one may be smaller, so that its later micro-batches may be short or empty, and the next pass starts with the next
///   step. Each pass is shuffled by a pure function of (seed, pass).
///
/// Nothing depends on what was asked before: a resumed run takes the same samples.
#[derive(Clone, Debug)]
pub struct TrainingOrder {
    sets: Sets,
    seed: u64,
    pass: Option<(u64, Vec<u32>)>,
}

impl TrainingOrder {
    /// The order of a run with seed `seed`; `sets` must have passed [`Sets::check`].
    pub fn new(sets: &Sets, seed: u64) -> Self {
        Self { sets: *sets, seed, pass: None }
    }

    /// The samples of micro-batch `micro` (in `0..micros`) of step `step` (from 0): `batch_size` of them, fewer or none
    /// at the end of a pass over a fixed set. `micros` and `batch_size` are at least 1; the samples seen up to this step
    /// must number less than 2^64.
    pub fn indices(&mut self, step: u64, micro: u64, micros: u64, batch_size: u64) -> Vec<u64> {
        let samples_per_step = micros * batch_size;
        let Some(steps) = steps_per_pass(&self.sets, samples_per_step) else {
            let first = step * samples_per_step + micro * batch_size;
            return (first..first + batch_size).collect();
        };
        let order = self.pass_order(step / steps);
        let first = ((step % steps) * samples_per_step + micro * batch_size).min(order.len() as u64);
        let end = (first + batch_size).min(order.len() as u64);
        order[first as usize..end as usize].iter().map(|&index| u64::from(index)).collect()
    }

    /// The order of pass `pass`: a permutation of the fixed set.
    fn pass_order(&mut self, pass: u64) -> &[u32] {
        if self.pass.as_ref().is_none_or(|(held, _)| *held != pass) {
            self.pass = None; // frees the old order before the new one is made
        }
        let (_, order) = self.pass.get_or_insert_with(|| {
            let mut order: Vec<u32> = (0..self.sets.train_examples.unwrap_or(0) as u32).collect();
            Stream::new(key(&["order", &self.seed.to_string()]), pass).shuffle(&mut order);
            (pass, order)
        });
        order
    }
}

/// [`TrainingOrder::indices`] for a single question; with a fixed set each call shuffles a whole pass.
pub fn train_indices(sets: &Sets, seed: u64, step: u64, micro: u64, micros: u64, batch_size: u64) -> Vec<u64> {
    TrainingOrder::new(sets, seed).indices(step, micro, micros, batch_size)
}

/// The steps one pass over a fixed training set takes, at `samples_per_step` (at least 1) samples each; `None` where
/// every sample is fresh.
pub fn steps_per_pass(sets: &Sets, samples_per_step: u64) -> Option<u64> {
    sets.train_examples.map(|examples| examples.div_ceil(samples_per_step.max(1)))
}
