//! The `[train]` section of a config file.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits;

/// The learning rate after its warmup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Falls along half a cosine from `lr` to `min_lr` (Loshchilov 2017, SGDR, without restarts).
    #[default]
    Cosine,
    /// Stays at `lr`.
    Constant,
}

/// What the schedule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleBy {
    /// Optimiser steps.
    #[default]
    Step,
    /// Passes over a fixed training set: the rate is held during a pass, as in Zoology's `CosineAnnealingLR`.
    Pass,
}

/// The `[train]` section of a config file. AdamW as in Loshchilov 2019, with PyTorch's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimiser steps, 0 to 100,000,000. With 0 the untrained model is evaluated.
    pub steps: u64,
    /// Samples in a micro-batch, 1 to 65,536.
    pub batch_size: usize,
    /// Peak learning rate, above 0 and at most 1,000.
    pub lr: f64,
    /// Learning rate at the end of the cosine, 0 to `lr`.
    pub min_lr: f64,
    /// Optimiser steps over which the learning rate rises linearly to `lr`, 0 to 100,000,000. A run of fewer steps ends
    /// before the peak.
    pub warmup: u64,
    /// The learning rate after its warmup.
    pub schedule: Schedule,
    /// What the schedule counts; the warmup counts optimiser steps either way.
    pub schedule_by: ScheduleBy,
    /// Share of a weight taken away in a step, in multiples of the learning rate, 0 to 1,000 (decoupled).
    pub weight_decay: f64,
    /// Memory of the gradient's running mean, at least 0 and below 1.
    pub beta1: f64,
    /// Memory of the squared gradient's running mean, at least 0 and below 1.
    pub beta2: f64,
    /// Added to the denominator of a step, above 0 and at most 1.
    pub eps: f64,
    /// Largest global L2 norm of a gradient; a longer one is scaled down, once per optimiser step. 0 turns it off.
    pub clip_norm: f64,
    /// Micro-batches per optimiser step, 1 to 65,536; losses are weighted by scored positions.
    pub accumulate: usize,
    /// Optimiser steps between evaluations, 1 to 100,000,000; the last step is always evaluated.
    pub eval_every: u64,
    /// Samples in a batch of an evaluation, 1 to 65,536; fixed, so that sums do not depend on memory.
    pub eval_batch: usize,
    /// Optimiser steps between metric lines of training, 1 to 100,000,000.
    pub log_every: u64,
    /// Optimiser steps between checkpoints, 1 to 100,000,000; `eval_every` unless set. Besides, the last step has one, the
    /// best evaluated step so far, and where a run is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
    /// Checkpoints that are kept, the last ones, 1 to 1,000; 1 unless set. The best one is kept besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_checkpoints: Option<u64>,
    /// Evaluations, 0 to 1,000, at which the weights alone are kept in `snapshots/`, for the analysis of heads; a snapshot is
    /// as large as the model. Which they are: see [`TrainConfig::snapshot_steps`].
    pub snapshots: u64,
    /// Added to the run's seed for its initial weights alone, 0 to 1,000,000,000; 0 unless set. So two arms can see the same data
    /// in the same order from other first weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights_offset: Option<u64>,
    /// Keeps an event file for TensorBoard in the run's `tensorboard/`, a line for each of the metrics; false unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensorboard: Option<bool>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 800,
            batch_size: 64,
            lr: 3e-3,
            min_lr: 0.0,
            warmup: 50,
            schedule: Schedule::Cosine,
            schedule_by: ScheduleBy::Step,
            weight_decay: 0.01,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            clip_norm: 1.0,
            accumulate: 1,
            eval_every: 50,
            eval_batch: 256,
            log_every: 1,
            checkpoint_every: None,
            keep_checkpoints: None,
            snapshots: 8,
            weights_offset: None,
            tensorboard: None,
        }
    }
}

/// Why a run can't be trained as its `[train]` section says.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TrainConfigError {
    /// A count is out of range.
    #[error("{key} = {value} is out of range: {least} to {most}")]
    Count { key: &'static str, value: u64, least: u64, most: u64 },
    /// A real number is out of range, or not a number at all.
    #[error("{key} = {value} is out of range: {range}")]
    Real { key: &'static str, value: f64, range: &'static str },
    /// The learning rate falls, it never rises.
    #[error("min_lr = {min_lr} is greater than lr = {lr}")]
    MinLr { lr: f64, min_lr: f64 },
    /// Fresh samples have no passes.
    #[error("schedule_by = \"pass\" needs task.train_examples: without a fixed training set there are no passes")]
    PassWithoutSet,
    /// One step would hold more samples than can be counted on.
    #[error("batch_size = {batch_size} times accumulate = {accumulate} is {samples} samples a step; at most {most}")]
    StepTooLarge { batch_size: usize, accumulate: usize, samples: u128, most: u128 },
    /// One tensor alone would take gigabytes.
    #[error(
        "{key} = {value} needs a tensor of {elements} numbers ({what}); at most {most} (1 GiB of f32) are allowed{advice}"
    )]
    BatchTooLarge {
        key: &'static str,
        value: usize,
        what: &'static str,
        elements: u128,
        most: u128,
        advice: &'static str,
    },
}

impl TrainConfigError {
    /// The key of `[train]` at fault.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Count { key, .. } | Self::Real { key, .. } | Self::BatchTooLarge { key, .. } => key,
            Self::MinLr { .. } => "min_lr",
            Self::PassWithoutSet => "schedule_by",
            Self::StepTooLarge { .. } => "batch_size",
        }
    }
}

/// The sizes that decide how large the tensors of one sample are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleSizes {
    /// Sequence length, L.
    pub length: usize,
    /// Query heads, H.
    pub heads: usize,
    /// The widest activation of a position: `d_model`, H·K, `d_ff` or the number of outputs.
    pub width: usize,
}

impl TrainConfig {
    /// Steps at which a snapshot is kept, rising: for k of 1 to n = `snapshots` the evaluated step nearest to
    /// `steps·(k/n)²` (the earlier of two that are as near), each once. They are dense where a model changes most, and the
    /// last is the run's. None without snapshots or steps.
    pub fn snapshot_steps(&self) -> Vec<u64> {
        let (steps, every, n) =
            (u128::from(self.steps), u128::from(self.eval_every.max(1)), u128::from(self.snapshots));
        if steps == 0 {
            return vec![];
        }
        // In units of 1/n² steps everything is whole.
        let nearest = |k: u128| {
            let wanted = steps * k * k;
            let below = wanted / (every * n * n) * every;
            let candidates = [below, (below + every).min(steps)].into_iter().filter(|&step| step > 0);
            candidates.min_by_key(|step| (step * n * n).abs_diff(wanted)).unwrap_or(steps)
        };
        let mut found: Vec<u64> = (1..=n).map(|k| nearest(k) as u64).collect();
        found.dedup();
        found
    }

    /// Optimiser steps between checkpoints.
    pub fn checkpoint_every(&self) -> u64 {
        self.checkpoint_every.unwrap_or(self.eval_every)
    }

    /// Checkpoints that are kept besides the best one.
    pub fn keep_checkpoints(&self) -> u64 {
        self.keep_checkpoints.unwrap_or(1)
    }

    /// Whether a checkpoint belongs to `step` however the run comes about.
    pub fn is_checkpoint(&self, step: u64) -> bool {
        step.is_multiple_of(self.checkpoint_every()) || step == self.steps
    }

    /// Steps of the checkpoints that a run has kept by `step`, the best one aside, falling.
    pub fn last_checkpoints(&self, step: u64) -> Vec<u64> {
        let every = self.checkpoint_every();
        let last = (step == self.steps && !step.is_multiple_of(every)).then_some(step);
        let planned = (1..=step / every).rev().map(|count| count * every);
        last.into_iter().chain(planned).take(self.keep_checkpoints() as usize).collect()
    }

    /// Refuses what can't be trained, or what would take gigabytes for one tensor, naming the values at fault.
    pub fn check(&self, sizes: SampleSizes, train_examples: Option<u64>) -> Result<(), TrainConfigError> {
        for (key, value, least, most) in [
            ("steps", self.steps, 0, limits::STEPS),
            ("batch_size", self.batch_size as u64, 1, limits::SAMPLES),
            ("warmup", self.warmup, 0, limits::STEPS),
            ("accumulate", self.accumulate as u64, 1, limits::SAMPLES),
            ("eval_every", self.eval_every, 1, limits::STEPS),
            ("eval_batch", self.eval_batch as u64, 1, limits::SAMPLES),
            ("log_every", self.log_every, 1, limits::STEPS),
            ("checkpoint_every", self.checkpoint_every(), 1, limits::STEPS),
            ("keep_checkpoints", self.keep_checkpoints(), 1, limits::CHECKPOINTS),
            ("snapshots", self.snapshots, 0, limits::SNAPSHOTS),
            ("weights_offset", self.weights_offset.unwrap_or(0), 0, limits::WEIGHTS_OFFSET),
        ] {
            if value < least || value > most {
                return Err(TrainConfigError::Count { key, value, least, most });
            }
        }
        // NaN is in no range.
        let (above_zero, below_one) = (f64::MIN_POSITIVE, 1.0f64.next_down());
        for (key, value, least, most, range) in [
            ("lr", self.lr, above_zero, 1e3, "above 0, at most 1000"),
            ("min_lr", self.min_lr, 0.0, 1e3, "0 to lr"),
            ("weight_decay", self.weight_decay, 0.0, 1e3, "0 to 1000"),
            ("beta1", self.beta1, 0.0, below_one, "at least 0, below 1"),
            ("beta2", self.beta2, 0.0, below_one, "at least 0, below 1"),
            ("eps", self.eps, above_zero, 1.0, "above 0, at most 1"),
            ("clip_norm", self.clip_norm, 0.0, 1e9, "0 (off) to 1e9"),
        ] {
            if !(least..=most).contains(&value) {
                return Err(TrainConfigError::Real { key, value, range });
            }
        }
        if self.min_lr > self.lr {
            return Err(TrainConfigError::MinLr { lr: self.lr, min_lr: self.min_lr });
        }
        if self.schedule_by == ScheduleBy::Pass && train_examples.is_none() {
            return Err(TrainConfigError::PassWithoutSet);
        }
        let (batch_size, accumulate) = (self.batch_size, self.accumulate);
        let samples = batch_size as u128 * accumulate as u128;
        if samples > limits::STEP_SAMPLES {
            return Err(TrainConfigError::StepTooLarge { batch_size, accumulate, samples, most: limits::STEP_SAMPLES });
        }
        self.check_memory(sizes)
    }

    fn check_memory(&self, sizes: SampleSizes) -> Result<(), TrainConfigError> {
        let advice = "; use a smaller batch_size and a larger accumulate";
        for (key, value, advice) in [("batch_size", self.batch_size, advice), ("eval_batch", self.eval_batch, "")] {
            let positions = value as u128 * sizes.length as u128;
            for (what, of_a_position) in [
                ("the widest activation, batch x length x width", sizes.width as u128),
                ("attention scores, batch x heads x length x length", sizes.heads as u128 * sizes.length as u128),
            ] {
                let elements = positions.saturating_mul(of_a_position);
                if elements > limits::ELEMENTS {
                    return Err(TrainConfigError::BatchTooLarge {
                        key,
                        value,
                        what,
                        elements,
                        most: limits::ELEMENTS,
                        advice,
                    });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZES: SampleSizes = SampleSizes { length: 32, heads: 8, width: 256 };

    #[test]
    fn impossible_values_name_their_key() {
        let base = TrainConfig::default;
        assert_eq!(base().check(SIZES, None), Ok(()));
        for (config, key) in [
            (TrainConfig { steps: 100_000_001, ..base() }, "steps"),
            (TrainConfig { batch_size: 0, ..base() }, "batch_size"),
            (TrainConfig { batch_size: usize::MAX, ..base() }, "batch_size"),
            (TrainConfig { accumulate: 0, ..base() }, "accumulate"),
            (TrainConfig { batch_size: 1 << 14, accumulate: 1 << 14, ..base() }, "batch_size"),
            (TrainConfig { lr: 0.0, ..base() }, "lr"),
            (TrainConfig { lr: -1.0, ..base() }, "lr"),
            (TrainConfig { lr: f64::NAN, ..base() }, "lr"),
            (TrainConfig { lr: f64::INFINITY, ..base() }, "lr"),
            (TrainConfig { min_lr: 0.1, ..base() }, "min_lr"),
            (TrainConfig { beta1: 1.0, ..base() }, "beta1"),
            (TrainConfig { beta2: -0.1, ..base() }, "beta2"),
            (TrainConfig { eps: 0.0, ..base() }, "eps"),
            (TrainConfig { clip_norm: f64::INFINITY, ..base() }, "clip_norm"),
            (TrainConfig { eval_every: 0, ..base() }, "eval_every"),
            (TrainConfig { eval_batch: 0, ..base() }, "eval_batch"),
            (TrainConfig { log_every: 0, ..base() }, "log_every"),
            (TrainConfig { snapshots: 1001, ..base() }, "snapshots"),
            (TrainConfig { checkpoint_every: Some(0), ..base() }, "checkpoint_every"),
            (TrainConfig { keep_checkpoints: Some(0), ..base() }, "keep_checkpoints"),
            (TrainConfig { weights_offset: Some(u64::MAX), ..base() }, "weights_offset"),
            (TrainConfig { schedule_by: ScheduleBy::Pass, ..base() }, "schedule_by"),
        ] {
            assert_eq!(config.check(SIZES, None).unwrap_err().key(), key, "{config:?}");
        }
        assert_eq!(TrainConfig { schedule_by: ScheduleBy::Pass, ..base() }.check(SIZES, Some(10)), Ok(()));
        assert_eq!(TrainConfig { clip_norm: 0.0, steps: 0, ..base() }.check(SIZES, None), Ok(()));
    }

    #[test]
    fn snapshots_are_dense_early_and_end_with_the_run() {
        let steps = |steps, eval_every, snapshots| {
            TrainConfig { steps, eval_every, snapshots, ..Default::default() }.snapshot_steps()
        };
        assert_eq!(steps(800, 50, 8), [50, 100, 200, 300, 450, 600, 800]);
        assert_eq!(steps(800, 50, 1), [800]);
        // The last step is evaluated though it is no multiple.
        assert_eq!(steps(810, 510, 3), [510, 810]);
        // 405 lies as near to 270 as to 540.
        assert_eq!(steps(1620, 270, 2), [270, 1620]);
        assert_eq!(steps(7, 50, 8), [7]);
        assert_eq!((steps(0, 50, 8), steps(800, 50, 0)), (vec![], vec![]));
        assert_eq!(steps(100_000_000, 1, 1000).len(), 1000);
    }

    proptest! {
        #[test]
        fn snapshots_are_evaluated_steps(steps in 1u64..=limits::STEPS, every in 1u64..=limits::STEPS, count in 1u64..=40) {
            let found = TrainConfig { steps, eval_every: every, snapshots: count, ..Default::default() }.snapshot_steps();
            prop_assert!(found.is_sorted_by(|a, b| a < b) && found.len() as u64 <= count);
            prop_assert_eq!(found.last(), Some(&steps));
            prop_assert!(found.iter().all(|&step| step > 0 && (step.is_multiple_of(every) || step == steps)), "{:?}", found);
        }
    }

    #[test]
    fn one_tensor_never_takes_gigabytes() {
        let long = SampleSizes { length: 4096, ..SIZES };
        let error = TrainConfig::default().check(long, None).unwrap_err();
        assert_eq!(error.key(), "batch_size");
        assert!(error.to_string().contains("attention scores"), "{error}");
        let wide = SampleSizes { length: 64, heads: 1, width: 1 << 24 };
        assert_eq!(
            TrainConfig { batch_size: 1, eval_batch: 1, ..Default::default() }.check(wide, None).unwrap_err().key(),
            "batch_size"
        );
        let eval = TrainConfig { batch_size: 1, eval_batch: 1 << 16, ..Default::default() };
        assert_eq!(eval.check(SampleSizes { length: 512, ..SIZES }, None).unwrap_err().key(), "eval_batch");
    }
}
