//! What can be wrong with a task's parameters: one variant a rule, naming the values that break it.

use std::fmt::Debug;

use thiserror::Error;

/// Parameters that no sample can be made from, or that would need absurd amounts of memory.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TaskError {
    /// A single value outside its bounds.
    #[error("{key} = {value} is out of range: it must lie in {low}..={high}")]
    OutOfRange {
        /// The field.
        key: &'static str,
        /// Its value, as text, since fields differ in type.
        value: String,
        /// The smallest value allowed.
        low: String,
        /// The largest value allowed.
        high: String,
    },
    /// `registers`: the table has an entry for every state of the registers.
    #[error(
        "registers = {registers} and values = {values} need a table of values^registers entries: at most {limit} are allowed"
    )]
    TableTooLarge {
        /// Number of registers.
        registers: usize,
        /// Number of values a register can hold.
        values: usize,
        /// The most entries allowed.
        limit: usize,
    },
    /// `registers`: no position could ever be scored.
    #[error("seq_len = {seq_len} is too short to write registers = {registers} registers: no position would be scored")]
    TooShortToScore {
        /// Sequence length.
        seq_len: usize,
        /// Number of registers.
        registers: usize,
    },
    /// `mqar`: pairs and query slots take two positions each.
    #[error("seq_len = {seq_len} is odd: mqar needs an even one, since pairs and query slots take two positions each")]
    OddLength {
        /// Sequence length.
        seq_len: usize,
    },
    /// `mqar`: Zoology's generator asks for a vocabulary larger than the sequence.
    #[error("vocab = {vocab} must be greater than seq_len = {seq_len}")]
    VocabTooSmall {
        /// Vocabulary size.
        vocab: usize,
        /// Sequence length.
        seq_len: usize,
    },
    /// `mqar`: the pairs and their query slots do not fit into the sequence.
    #[error("pairs = {pairs} do not fit into seq_len = {seq_len}: 4 * pairs must be at most seq_len")]
    TooManyPairs {
        /// Key-value pairs.
        pairs: usize,
        /// Sequence length.
        seq_len: usize,
    },
    /// `reverse`, `sort`: no length lies between the bounds.
    #[error("min_len = {min_len} is greater than max_len = {max_len}: no length lies between them")]
    NoLength {
        /// Shortest source.
        min_len: usize,
        /// Longest source.
        max_len: usize,
    },
    /// A rule of a task's own, which has no variant here.
    #[error("{message}")]
    Impossible {
        /// The fields at fault together, the one to point at first. At least one.
        keys: &'static [&'static str],
        /// What is wrong, naming each of them with its value, such as `width = 3 is odd`.
        message: String,
    },
}

impl TaskError {
    /// The field to point at, as written in a config's `[task]` section, e.g. `"seq_len"`.
    pub fn key(&self) -> &'static str {
        self.keys().first().copied().unwrap_or("kind")
    }

    /// All fields at fault together, the one to point at first.
    pub fn keys(&self) -> &[&'static str] {
        match self {
            Self::OutOfRange { key, .. } => std::slice::from_ref(key),
            Self::TableTooLarge { .. } => &["registers", "values"],
            Self::TooShortToScore { .. } => &["seq_len", "registers"],
            Self::OddLength { .. } => &["seq_len"],
            Self::VocabTooSmall { .. } => &["vocab", "seq_len"],
            Self::TooManyPairs { .. } => &["pairs", "seq_len"],
            Self::NoLength { .. } => &["min_len", "max_len"],
            Self::Impossible { keys, .. } => keys,
        }
    }
}

/// Checks that `value`, of the field `key`, lies in `low..=high`; NaN never does.
///
/// # Errors
/// [`TaskError::OutOfRange`] with all of them.
pub fn in_range<T: PartialOrd + Debug>(key: &'static str, value: T, low: T, high: T) -> Result<(), TaskError> {
    if low <= value && value <= high {
        return Ok(());
    }
    let text = |number: T| format!("{number:?}"); // a large float in full would be hundreds of digits
    Err(TaskError::OutOfRange { key, value: text(value), low: text(low), high: text(high) })
}
