//! Samples, batches and the three splits.

use std::fmt;

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
    /// The data seed of this split in a run with seed `run_seed`: training samples differ from run to run, validation
    /// and test sets are fixed. This is the only place that says so.
    pub fn data_seed(self, run_seed: u64) -> u64 {
        match self {
            Self::Train => run_seed,
            Self::Validation | Self::Test => 0,
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
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sample {
    /// Token ids in `0..vocab`; where there is a source, what a decoder reads: a start token, then the target's prefix.
    pub tokens: Vec<u32>,
    /// As long as `tokens`: what the model should say at each position, in `0..outputs`, or [`IGNORE`].
    pub targets: Vec<i32>,
    /// What an encoder reads, in sequence-to-sequence tasks.
    pub source: Option<Source>,
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
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Batch {
    /// B, the number of samples; 0 is possible (see [`crate::train_indices`]).
    pub batch: usize,
    /// L, the length of each.
    pub len: usize,
    /// Token ids, B * L of them.
    pub tokens: Vec<i32>,
    /// Targets, B * L of them, [`IGNORE`] where not scored.
    pub targets: Vec<i32>,
    /// The samples' sources, in sequence-to-sequence tasks.
    pub source: Option<SourceBatch>,
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
    /// Tokens of the whole batch, sources and padding included.
    pub fn token_count(&self) -> usize {
        self.tokens.len() + self.source.as_ref().map_or(0, |source| source.tokens.len())
    }

    /// The number of scored positions: the weight of this batch's mean loss. It can be 0.
    pub fn scored(&self) -> usize {
        self.targets.iter().filter(|&&target| target != IGNORE).count()
    }

    /// The scored positions, as ascending indices into the flattened B * L positions, and their targets: two lists of
    /// length [`Batch::scored`].
    pub fn scored_positions(&self) -> (Vec<i32>, Vec<i32>) {
        self.targets
            .iter()
            .enumerate()
            .filter(|&(_, &target)| target != IGNORE)
            .map(|(position, &target)| (position as i32, target))
            .unzip()
    }
}
