//! One arm of a comparison: what follows from a config before a step is trained.

use architecture::{Dims, ModelError, Parts, cost};
use burn::tensor::Device;
use data::metrics::Yardstick;
use data::{Generator, Split, steps_per_pass};
use model::Decoder;
use runs::Config;

/// A config with the numbers that follow from it.
pub struct Arm<'a> {
    config: &'a Config,
}

/// Training samples that averages over the training set are estimated from, as in the data fingerprint.
const FIRST_SAMPLES: u64 = 256;

impl<'a> Arm<'a> {
    /// The arm of `config`.
    pub fn new(config: &'a Config) -> Self {
        Self { config }
    }

    /// Such as `h8 seed 0`.
    pub fn title(&self) -> String {
        format!("{} seed {}", self.config.name, self.config.seed)
    }

    /// The untrained model on `device`: the same numbers on every backend.
    pub fn model(&self, device: &Device) -> Result<Decoder, ModelError> {
        Decoder::new(&self.config.model, self.dims(), self.config.weights_seed(), device)
    }

    /// The sizes that the task gives to the model.
    pub fn dims(&self) -> Dims {
        self.config.dims()
    }

    /// Samples of one optimiser step; the last of a pass over a fixed set may hold fewer.
    pub fn samples_per_step(&self) -> u64 {
        self.config.train.batch_size as u64 * self.config.train.accumulate as u64
    }

    /// Length of a pass over a fixed training set.
    pub fn steps_per_pass(&self) -> Option<u64> {
        steps_per_pass(&self.config.task.sets, self.samples_per_step())
    }

    /// Training tokens read in the first `steps` steps, those of sources and padding included.
    pub fn tokens_after(&self, steps: u64) -> u64 {
        let samples = match (self.steps_per_pass(), self.config.task.sets.train_examples) {
            (Some(pass), Some(examples)) => {
                steps / pass * examples + (steps % pass * self.samples_per_step()).min(examples)
            }
            _ => steps * self.samples_per_step(),
        };
        let task = &self.config.task.task;
        samples * (task.seq_len() + task.source().map_or(0, |source| source.len)) as u64
    }

    /// Samples of a full step: a fixed set smaller than the batch gives no more than it has.
    fn samples_of_a_full_step(&self) -> u64 {
        self.samples_per_step().min(self.config.task.sets.train_examples.unwrap_or(u64::MAX))
    }

    /// Scored positions of a full step: the average over the first training samples, rounded.
    pub fn scored_per_step(&self) -> u64 {
        let generator = Generator::new(&self.config.task.task, Split::Train, Split::Train.data_seed(self.config.seed));
        let scored = generator.batch(&(0..FIRST_SAMPLES).collect::<Vec<_>>()).scored() as u64;
        (scored * self.samples_of_a_full_step() + FIRST_SAMPLES / 2) / FIRST_SAMPLES
    }

    /// What scores on a split are relative to.
    pub fn yardstick(&self, split: Split) -> Yardstick {
        Yardstick::of(&self.config.task.task, &self.config.task.sets, split)
    }

    /// Trainable parameters by part.
    pub fn parameters(&self) -> Parts {
        cost::parameters(&self.config.model, self.dims())
    }

    /// FLOPs of one optimiser step by part.
    pub fn flops_per_step(&self) -> Parts {
        cost::step_flops(&self.config.model, self.dims(), self.samples_of_a_full_step(), self.scored_per_step())
    }

    /// BLAKE3 over the task, the seed, the first training samples and the whole validation and test sets.
    pub fn data_fingerprint(&self) -> String {
        data::fingerprint(&self.config.task.task, &self.config.task.sets, self.config.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text, "test.toml").unwrap()
    }

    #[test]
    fn tokens_count_what_was_read_in_short_batches_too() {
        let fresh = config("[task]\nkind = \"registers\"\n[train]\nbatch_size = 4\naccumulate = 2\n");
        assert_eq!(Arm::new(&fresh).tokens_after(3), 3 * 8 * 32);
        let fixed = config("[task]\nkind = \"registers\"\ntrain_examples = 10\n[train]\nbatch_size = 4\n");
        let arm = Arm::new(&fixed);
        assert_eq!(arm.steps_per_pass(), Some(3));
        let samples: Vec<u64> = (0..=4).map(|steps| arm.tokens_after(steps) / 32).collect();
        assert_eq!(samples, [0, 4, 8, 10, 14]);
        let source = config("[task]\nkind = \"sort\"\n[model]\narchitecture = \"encoder_decoder\"\n");
        assert_eq!(Arm::new(&source).tokens_after(2), 2 * 64 * (13 + 12));
    }

    /// A fixed set smaller than the batch is all that a step can hold.
    #[test]
    fn flops_follow_the_samples_that_are_there() {
        let with = |batch: u64| {
            let text = format!("[task]\nkind = \"registers\"\ntrain_examples = 4\n[train]\nbatch_size = {batch}\n");
            Arm::new(&config(&text)).flops_per_step()
        };
        assert_eq!(with(64), with(4));
        assert_ne!(with(4), with(2));
    }

    /// Arms that differ in `heads` alone cost the same.
    #[test]
    fn head_counts_are_matched() {
        let arms =
            [1, 2, 4, 8, 16].map(|heads| config(&format!("[task]\nkind = \"registers\"\n[model]\nheads = {heads}\n")));
        for arm in &arms[1..] {
            assert_eq!(Arm::new(arm).parameters(), Arm::new(&arms[0]).parameters());
            assert_eq!(Arm::new(arm).flops_per_step(), Arm::new(&arms[0]).flops_per_step());
            assert_eq!(Arm::new(arm).data_fingerprint(), Arm::new(&arms[0]).data_fingerprint());
        }
    }
}
