//! `sort`: write a sequence in ascending order.

use serde::{Deserialize, Serialize};

use super::rewrite::Rewrite;
use crate::definition::{Answers, Definition, Draw};
use crate::error::TaskError;
use crate::parameter::Parameter;
use crate::sample::{Sample, SourceSizes};

/// Parameters of `sort`: the target is the source in ascending order of token id, equal ones as often as they come.
///
/// The encoder reads n tokens, uniform in `0..vocab`, n uniform in `min_len..=max_len`, padded to `max_len`. The decoder
/// reads a start token and then the target, one position late, and is scored at the n tokens of the target and at the end
/// that follows them. Start and end share the id `vocab`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sort {
    /// Number of tokens that a source is made of, 2 to 2^20 - 1.
    pub vocab: usize,
    /// Shortest source, at least 1.
    pub min_len: usize,
    /// Longest source, at most 65,535.
    pub max_len: usize,
}

impl Default for Sort {
    fn default() -> Self {
        Self { vocab: 16, min_len: 4, max_len: 12 }
    }
}

impl Sort {
    fn rewrite(self) -> Rewrite {
        let Self { vocab, min_len, max_len } = self;
        Rewrite { vocab, min_len, max_len }
    }
}

impl Definition for Sort {
    fn kind(&self) -> &'static str {
        "sort"
    }

    fn about(&self) -> &'static str {
        "Sequence to sequence: the encoder reads tokens, the decoder writes them in \
        ascending order, equal ones as often as they come, and then says that it is done. Lengths vary, so sources \
        and targets are padded."
    }

    fn prediction(&self) -> &'static str {
        "A check of cross-attention and padding rather than of heads: the next token \
        follows from how often each one was read, which one head can count, so head counts should end alike."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        self.rewrite().parameters()
    }

    fn check(&self) -> Result<(), TaskError> {
        self.rewrite().check()
    }

    fn vocab(&self) -> usize {
        self.rewrite().ids()
    }

    fn outputs(&self) -> usize {
        self.rewrite().ids()
    }

    fn seq_len(&self) -> usize {
        self.rewrite().seq_len()
    }

    fn source(&self) -> Option<SourceSizes> {
        Some(self.rewrite().source())
    }

    fn prepare(&self) -> Draw {
        self.rewrite().prepare(<[u32]>::sort_unstable)
    }

    fn explain(&self, sample: &Sample) -> String {
        self.rewrite().explain(sample)
    }

    fn answers(&self) -> Answers {
        self.rewrite().answers()
    }

    fn token_name(&self, token: u32) -> String {
        self.rewrite().token_name(token)
    }

    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        Some(self.rewrite().expected(read, <[u32]>::sort_unstable))
    }
}
