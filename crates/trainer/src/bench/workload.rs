//! What is measured: a config's step, or that of a plain decoder of given sizes.

use architecture::{Dims, ModelConfig, ModelError, cost};
use data::{Batch, Generator, Split, TrainingOrder};
use runs::{Config, Schedule, TrainConfig};

use crate::training::arm::Arm;
use crate::training::schedule::learning_rate;

/// A model, its optimiser's settings, and where its batches come from.
pub struct Workload {
    /// The config's name, or `decoder`.
    pub name: String,
    /// The model.
    pub model: ModelConfig,
    /// The sizes that the data give to it.
    pub dims: Dims,
    /// The optimiser's settings.
    pub train: TrainConfig,
    /// Of weights, order and dropout.
    pub seed: u64,
    /// Samples of an optimiser step.
    pub samples_per_step: u64,
    /// Tokens of an optimiser step.
    pub tokens_per_step: u64,
    /// Analytic FLOPs of an optimiser step.
    pub flops_per_step: u64,
    /// Trainable parameters.
    pub parameters: u64,
    steps_per_pass: Option<u64>,
    supply: Supply,
}

/// Where batches come from.
enum Supply {
    /// A config's task.
    Task(Box<TaskSupply>),
    /// Uniform random tokens, each its own target.
    Uniform(SplitMix),
}

/// A task's training samples in the order of a run, and the first of its validation set.
struct TaskSupply {
    train: Generator,
    order: TrainingOrder,
    validation: Generator,
    /// Samples of an evaluation batch.
    evaluated: u64,
}

/// The sizes of a plain decoder and its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sizes {
    /// Width of the residual stream.
    pub d_model: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads.
    pub heads: usize,
    /// Samples of a step.
    pub batch: usize,
    /// Tokens of a sample.
    pub seq: usize,
    /// Different tokens.
    pub vocab: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { d_model: 64, layers: 2, heads: 8, batch: 32, seq: 64, vocab: 64 }
    }
}

impl Workload {
    /// The step of a run of `config`.
    pub fn of_config(config: &Config) -> Self {
        let (arm, sets) = (Arm::new(config), &config.task.sets);
        let generator = |split: Split, seed| Generator::new(&config.task.task, split, split.data_seed(seed));
        let supply = TaskSupply {
            train: generator(Split::Train, config.seed),
            order: TrainingOrder::new(sets, config.seed),
            validation: generator(Split::Validation, config.seed),
            evaluated: sets.validation_examples.min(config.train.eval_batch as u64),
        };
        Self {
            name: config.name.clone(),
            model: config.model.clone(),
            dims: arm.dims(),
            train: config.train.clone(),
            seed: config.seed,
            samples_per_step: arm.samples_per_step(),
            tokens_per_step: arm.tokens_after(1),
            flops_per_step: arm.flops_per_step().total(),
            parameters: arm.parameters().total(),
            steps_per_pass: arm.steps_per_pass(),
            supply: Supply::Task(Box::new(supply)),
        }
    }

    /// The step of a decoder as `scripts/torch_step.py` takes it: pre-norm blocks of causal attention with all four biases
    /// and an MLP of 4 · d_model, learned positions, untied logits; the loss over all positions, whose targets are the
    /// tokens themselves; AdamW with weight decay 0.01 at a constant 1e-3, no clipping; fresh tokens each step.
    ///
    /// # Errors
    /// A model that can't be built.
    pub fn of_sizes(sizes: Sizes) -> Result<Self, ModelError> {
        let Sizes { d_model, layers, heads, batch, seq, vocab } = sizes;
        let model = ModelConfig { d_model, layers, heads, key_bias: true, ..Default::default() };
        let dims = Dims::of_tokens(vocab, vocab, seq);
        model.check(dims)?;
        let train = TrainConfig {
            batch_size: batch,
            eval_batch: batch,
            lr: 1e-3,
            warmup: 0,
            schedule: Schedule::Constant,
            clip_norm: 0.0,
            ..Default::default()
        };
        let tokens = (batch * seq) as u64;
        Ok(Self {
            name: "decoder".into(),
            samples_per_step: batch as u64,
            tokens_per_step: tokens,
            flops_per_step: cost::step_flops(&model, dims, batch as u64, tokens).total(),
            parameters: cost::parameters(&model, dims).total(),
            seed: 0,
            steps_per_pass: None,
            supply: Supply::Uniform(SplitMix(0)),
            model,
            dims,
            train,
        })
    }

    /// The micro-batches of optimiser step `step`, counted from 0.
    pub fn batches(&mut self, step: u64) -> Vec<Batch> {
        let (micros, size) = (self.train.accumulate as u64, self.train.batch_size as u64);
        match &mut self.supply {
            Supply::Task(task) => {
                (0..micros).map(|micro| task.train.batch(&task.order.indices(step, micro, micros, size))).collect()
            }
            Supply::Uniform(random) => vec![random.batch(self.train.batch_size, self.dims)],
        }
    }

    /// A batch to evaluate the model on.
    pub fn evaluation(&mut self) -> Batch {
        match &mut self.supply {
            Supply::Task(task) => task.validation.batch(&(0..task.evaluated).collect::<Vec<_>>()),
            Supply::Uniform(random) => random.batch(self.train.eval_batch, self.dims),
        }
    }

    /// The learning rate of optimiser step `step`, counted from 1.
    pub fn learning_rate(&self, step: u64) -> f64 {
        learning_rate(&self.train, self.steps_per_pass, step)
    }
}

/// SplitMix64 (Steele 2014, "Fast splittable pseudorandom number generators").
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform tokens in `0..vocab`, which are their own targets.
    fn batch(&mut self, batch: usize, dims: Dims) -> Batch {
        // The upper half of a number times V, over 2^32.
        let mut token = || (((self.next() >> 32) * dims.vocab as u64) >> 32) as i32;
        let tokens: Vec<i32> = (0..batch * dims.length).map(|_| token()).collect();
        Batch::new(batch, dims.length, tokens.clone(), tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// print(sum(p.numel() for p in Decoder(argparse.Namespace(d_model=64, layers=2, heads=8, vocab=64, seq=64,
    ///     mode="sdpa")).parameters())) of scripts/torch_step.py
    #[test]
    fn the_decoder_has_the_parameters_of_the_peer() {
        assert_eq!(Workload::of_sizes(Sizes::default()).unwrap().parameters, 112_448);
    }

    #[test]
    fn tokens_are_fresh_uniform_and_their_own_targets() {
        let mut workload = Workload::of_sizes(Sizes { batch: 100, vocab: 5, ..Default::default() }).unwrap();
        let (first, second) = (workload.batches(0).remove(0), workload.batches(1).remove(0));
        assert_ne!(first, second);
        assert_eq!(first.tokens, first.targets);
        assert_eq!((first.scored() as u64, first.token_count() as u64), (6400, workload.tokens_per_step));
        for token in 0..5 {
            // 1280 expected, standard deviation 32.
            let count = first.tokens.iter().filter(|&&found| found == token).count();
            assert!((1120..1440).contains(&count), "{token}: {count}");
        }
    }

    /// steps of <https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64>, seed 1234567
    #[test]
    fn splitmix_gives_the_published_numbers() {
        let mut random = SplitMix(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn a_config_is_measured_as_it_is_trained() {
        let text = "[task]\nkind = \"registers\"\n[train]\nbatch_size = 4\naccumulate = 2\neval_batch = 16\n";
        let config = Config::parse(text, "test.toml").unwrap();
        let mut workload = Workload::of_config(&config);
        let batches = workload.batches(1);
        let generator = Generator::new(&config.task.task, Split::Train, 0);
        assert_eq!(batches, [generator.batch(&[8, 9, 10, 11]), generator.batch(&[12, 13, 14, 15])]);
        assert_eq!(workload.evaluation().batch, 16);
        assert_eq!((workload.samples_per_step, workload.tokens_per_step), (8, 8 * 32));
    }

    #[test]
    fn sizes_that_do_not_divide_are_refused() {
        assert!(Workload::of_sizes(Sizes { heads: 3, ..Default::default() }).is_err());
    }
}
