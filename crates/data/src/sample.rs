//! Samples, batches and the three splits.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// The target of a position that is not scored. What is scored is decided by position, never by a token's value.
pub const IGNORE: i32 = -100;

/// Which of the three sets a sample belongs to. Their samples come from different random keys.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// What the model learns from.
    Train,
    /// Curves, learning rate, best checkpoint.
    Validation,
    /// The verdict, at the final step.
    Test,
}

impl Split {
    /// All three, in the order of their use.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The data seed of this split in a run with seed `run_seed`: the seed itself, for every split. This is the only place
    /// that says so.
    ///
    /// A pair of runs has one seed, so both are tested on the same samples, and another pair on others: differences over
    /// pairs then hold what the choice of test samples adds, and an interval over pairs speaks of all samples. The same for
    /// validation, which may decide too and chooses learning rates and the best step: what one set favours by chance is not
    /// chosen in every pair.
    pub fn data_seed(self, run_seed: u64) -> u64 {
        match self {
            Self::Train | Self::Validation | Self::Test => run_seed,
        }
    }

    /// The name in files: `train`, `validation` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// One sequence, `[L]`, and in sequence-to-sequence tasks the one that it is to be made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Token ids in `0..vocab`; where there is a source, what a decoder reads: a start token, then the target's prefix. Empty in
    /// tasks without tokens.
    pub tokens: Vec<u32>,
    /// What the model should say at each position, in `0..outputs`, or [`IGNORE`].
    pub targets: Vec<i32>,
    /// How many positions are real, of L; padding comes after them. Only this number tells: any token may stand in padding.
    pub real: usize,
    /// What an encoder reads, in sequence-to-sequence tasks.
    pub source: Option<Source>,
    /// What is read and said in numbers, in tasks that have any.
    pub numbers: Option<Numbers>,
}

impl Sample {
    /// Tokens and their targets, `[L]` each, all of them real.
    pub fn new(tokens: Vec<u32>, targets: Vec<i32>) -> Self {
        Self { real: targets.len(), tokens, targets, source: None, numbers: None }
    }

    /// Numbers `[L, F]` or `[L, O]` at each of `len` positions, all of them real, without tokens and classes.
    pub fn of_numbers(len: usize, numbers: Numbers) -> Self {
        Self { tokens: vec![], targets: vec![IGNORE; len], real: len, source: None, numbers: Some(numbers) }
    }
}

/// Real numbers of one sample, `[L, ...]`, or of a batch, `[B, L, ...]`, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// What is read, `[.., L, F]`; empty where F is 0.
    pub inputs: Vec<f32>,
    /// What the model should say, `[.., L, O]`, 0 where it is not scored; empty where O is 0.
    pub targets: Vec<f32>,
    /// Positions whose numbers are scored, `[.., L]`; empty where O is 0.
    pub scored: Vec<bool>,
}

/// How many numbers a task has at each position.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct NumberSizes {
    /// F, numbers read; 0 where tokens are.
    pub inputs: usize,
    /// O, numbers said; 0 where classes are.
    pub outputs: usize,
}

/// The source of one sample, `[Ls]`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Source {
    /// Token ids in `0..vocab` of the source, padded to the length that all samples share.
    pub tokens: Vec<u32>,
    /// How many of them are real; padding comes after them. Only this number tells: any token may stand in padding.
    pub real: usize,
}

/// The sizes of a task's sources.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourceSizes {
    /// Number of token ids.
    pub vocab: usize,
    /// Ls, the length of every source, padding included.
    pub len: usize,
}

/// Samples side by side, `[B, L]` row-major, on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// B, the number of samples; 0 is possible (see [`crate::train_indices`]).
    pub batch: usize,
    /// L, the length of each.
    pub len: usize,
    /// Token ids, B * L of them; none in tasks without tokens.
    pub tokens: Vec<i32>,
    /// Targets, B * L of them, [`IGNORE`] where not scored.
    pub targets: Vec<i32>,
    /// B * L of them; true = padding, as told by each sample's length.
    pub padding: Vec<bool>,
    /// The samples' sources, in sequence-to-sequence tasks.
    pub source: Option<SourceBatch>,
    /// The samples' numbers, in tasks that have any.
    pub numbers: Option<Numbers>,
}

/// Sources side by side, `[B, Ls]` row-major, on the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SourceBatch {
    /// Ls, the length of each.
    pub len: usize,
    /// Token ids, B * Ls of them.
    pub tokens: Vec<i32>,
    /// B * Ls of them; true = padding, as told by each source's length.
    pub padding: Vec<bool>,
}

impl Batch {
    /// Tokens and targets, `batch * len` of each, without padding.
    pub fn new(batch: usize, len: usize, tokens: Vec<i32>, targets: Vec<i32>) -> Self {
        Self { batch, len, tokens, targets, padding: vec![false; batch * len], source: None, numbers: None }
    }

    /// The numbers that are read, `[B, L, F]`; `None` where tokens are.
    pub fn numbers_read(&self) -> Option<&[f32]> {
        self.numbers.as_ref().map(|numbers| &*numbers.inputs).filter(|inputs| !inputs.is_empty())
    }

    /// The numbers that should be said, and where; `None` where classes are asked for.
    pub fn numbers_asked(&self) -> Option<&Numbers> {
        self.numbers.as_ref().filter(|numbers| !numbers.targets.is_empty())
    }

    /// The padding that a model is told of, `[B, L]`. None where there is none, nor beside a source: there it comes last, where a
    /// causal decoder reads nothing of it.
    pub fn padding_told(&self) -> Option<&[bool]> {
        (self.source.is_none() && self.padding.contains(&true)).then_some(&*self.padding)
    }

    /// Samples `rows` of the batch.
    ///
    /// # Panics
    /// Where there are fewer samples.
    pub fn rows(&self, rows: Range<usize>) -> Self {
        fn cut<T: Clone>(values: &[T], rows: &Range<usize>, batch: usize) -> Vec<T> {
            let width = values.len() / batch.max(1);
            values[rows.start * width..rows.end * width].to_vec()
        }
        let cut_source = |source: &SourceBatch| SourceBatch {
            len: source.len,
            tokens: cut(&source.tokens, &rows, self.batch),
            padding: cut(&source.padding, &rows, self.batch),
        };
        let cut_numbers = |numbers: &Numbers| Numbers {
            inputs: cut(&numbers.inputs, &rows, self.batch),
            targets: cut(&numbers.targets, &rows, self.batch),
            scored: cut(&numbers.scored, &rows, self.batch),
        };
        Self {
            batch: rows.len(),
            len: self.len,
            tokens: cut(&self.tokens, &rows, self.batch),
            targets: cut(&self.targets, &rows, self.batch),
            padding: cut(&self.padding, &rows, self.batch),
            source: self.source.as_ref().map(cut_source),
            numbers: self.numbers.as_ref().map(cut_numbers),
        }
    }

    /// Positions of the whole batch, sources and padding included: tokens, where tokens are read.
    pub fn token_count(&self) -> usize {
        self.batch * self.len + self.source.as_ref().map_or(0, |source| source.tokens.len())
    }

    /// The number of scored positions, of classes or of numbers: the weight of this batch's mean loss. It can be 0.
    pub fn scored(&self) -> usize {
        let of_numbers = |position: usize| {
            self.numbers.as_ref().and_then(|numbers| numbers.scored.get(position)).copied().unwrap_or(false)
        };
        let is_scored = |&(position, &target): &(usize, &i32)| target != IGNORE || of_numbers(position);
        self.targets.iter().enumerate().filter(is_scored).count()
    }

    /// The positions whose class is scored, as ascending indices into the flattened B * L positions, and their targets: two
    /// lists of one length, which is [`Batch::scored`] where no numbers are said.
    pub fn scored_positions(&self) -> (Vec<i32>, Vec<i32>) {
        self.targets
            .iter()
            .enumerate()
            .filter(|&(_, &target)| target != IGNORE)
            .map(|(position, &target)| (position as i32, target))
            .unzip()
    }

    /// The positions whose numbers are scored, as ascending indices into the flattened B * L positions, `[N]`, and their
    /// targets, `[N, O]`. Empty in tasks without them.
    pub fn scored_numbers(&self) -> (Vec<i32>, Vec<f32>) {
        let Some(numbers) = &self.numbers else { return (vec![], vec![]) };
        let width = numbers.targets.len() / numbers.scored.len().max(1);
        let positions: Vec<usize> = (0..numbers.scored.len()).filter(|&position| numbers.scored[position]).collect();
        let target = |&position: &usize| &numbers.targets[position * width..(position + 1) * width];
        let targets = positions.iter().flat_map(target).copied().collect();
        (positions.into_iter().map(|position| position as i32).collect(), targets)
    }
}
