//! Samples that were read from files, behind one face whatever their format.

use std::fmt;
use std::path::PathBuf;

use crate::answers::Answers;
use crate::file_error::{FileError, FileProblem};
use crate::order::Sets;
use crate::random::Stream;
use crate::sample::{NumberSizes, Sample, SourceSizes, Split};

/// Keys that hold paths: where a file lies says nothing about its samples.
pub const PATHS: [&str; 5] = ["files", "validation_files", "test_files", "vocab_file", "answer_files"];

/// A file that samples come from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReadFile {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is for, such as `train` or `vocab`.
    pub role: &'static str,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of what it holds, 64 hex digits.
    pub blake3: String,
}

/// What the files of a task hold, read once. A set's samples go by index; where fewer are taken than there are, they lie evenly over
/// all of them, so that a file that is sorted does not decide which.
pub struct Stored {
    contents: Box<dyn Contents>,
    files: Vec<ReadFile>,
    taken: Sets,
}

impl Stored {
    /// As many samples as there are, but no more than `asked`.
    ///
    /// # Errors
    /// A part without samples.
    pub(crate) fn new(contents: Box<dyn Contents>, files: Vec<ReadFile>, asked: &Sets) -> Result<Self, FileError> {
        if let Some(empty) = Split::ALL.into_iter().find(|&split| contents.count(split) == 0) {
            return Err(FileProblem::NoSamples(empty).everywhere());
        }
        let count = |split| contents.count(split);
        let train = match contents.is_windows() {
            true => asked.train_examples,
            false => Some(count(Split::Train).min(asked.train_examples.unwrap_or(u64::MAX))),
        };
        let taken = Sets {
            train_examples: train,
            validation_examples: asked.validation_examples.min(count(Split::Validation)),
            test_examples: asked.test_examples.min(count(Split::Test)),
        };
        Ok(Self { contents, files, taken })
    }

    /// The sizes of the sets. Without a size of the training set every training sample lies somewhere else, and they overlap.
    pub fn sets(&self) -> Sets {
        self.taken
    }

    /// How many samples there are for `split`: where training samples lie anywhere, how many places there are.
    pub fn available(&self, split: Split) -> u64 {
        self.contents.count(split)
    }

    /// The files, in the order in which they were read.
    pub fn files(&self) -> &[ReadFile] {
        &self.files
    }

    /// Sample `index` of `split`, below its size in [`Stored::sets`]; `stream` is that of the sample, for training samples that lie
    /// anywhere.
    pub fn sample(&self, split: Split, index: u64, stream: &mut Stream) -> Sample {
        self.contents.sample(split, self.place(split, index, stream))
    }

    /// What sample `index` of the validation or test set is a part of, such as a document: scores of one unit are not
    /// independent of each other, those of two are.
    pub fn unit(&self, split: Split, index: u64) -> u64 {
        self.contents.unit(split, self.even(split, index))
    }

    /// Mean number of bytes that the scored tokens of a set stand for, in text.
    pub fn bytes_per_answer(&self, split: Split) -> Option<f64> {
        let taken = match split {
            Split::Train => 1024.min(self.contents.count(split)),
            Split::Validation => self.taken.validation_examples,
            Split::Test => self.taken.test_examples,
        };
        let spread = |index: u64| spread(index, taken, self.contents.count(split));
        let mut sums = (0..taken).map(|index| self.contents.answer_bytes(split, spread(index)));
        let (answers, bytes) = sums.try_fold((0, 0), |sum, next| next.map(|next| (sum.0 + next.0, sum.1 + next.1)))?;
        (answers > 0).then(|| bytes as f64 / answers as f64)
    }

    /// What says nothing but that all stays as it is: the last value read, for each number asked for.
    pub fn last_value(&self, sample: &Sample) -> Option<Vec<f32>> {
        self.contents.last_value(sample)
    }

    /// How many samples of a set stand anywhere in the training part, in formats whose training samples lie anywhere.
    pub(crate) fn repeated(&self, split: Split) -> Option<Repeated> {
        let taken = match split {
            Split::Train => return None,
            Split::Validation => self.taken.validation_examples,
            Split::Test => self.taken.test_examples,
        };
        let places: Vec<u64> = (0..taken).map(|index| self.even(split, index)).collect();
        self.contents.repeated(split, &places)
    }

    pub(crate) fn contents(&self) -> &dyn Contents {
        &*self.contents
    }

    fn place(&self, split: Split, index: u64, stream: &mut Stream) -> u64 {
        match split {
            Split::Train if self.contents.is_windows() => stream.below(self.contents.count(split)),
            _ => self.even(split, index),
        }
    }

    fn even(&self, split: Split, index: u64) -> u64 {
        let count = self.contents.count(split);
        let taken = match split {
            Split::Train => self.taken.train_examples.unwrap_or(count),
            Split::Validation => self.taken.validation_examples,
            Split::Test => self.taken.test_examples,
        };
        spread(index, taken, count)
    }
}

/// The place of sample `index` of `taken` among `count`.
fn spread(index: u64, taken: u64, count: u64) -> u64 {
    (u128::from(index) * u128::from(count) / u128::from(taken.max(1))).min(u128::from(count.saturating_sub(1))) as u64
}

impl fmt::Debug for Stored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Stored").field("files", &self.files).field("taken", &self.taken).finish_non_exhaustive()
    }
}

/// What was found of a set's samples in the training part.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Repeated {
    /// Samples that were looked for.
    pub samples: u64,
    /// The distinct ones among them.
    pub distinct: u64,
    /// Those that were found.
    pub seen: u64,
}

/// What one format of files has to tell. Sizes are as in [`Definition`](crate::Definition).
pub(crate) trait Contents: Send + Sync {
    fn vocab(&self) -> usize;
    fn outputs(&self) -> usize;
    fn seq_len(&self) -> usize;
    fn source(&self) -> Option<SourceSizes> {
        None
    }
    fn numbers(&self) -> Option<NumberSizes> {
        None
    }
    fn answers(&self) -> Answers {
        Answers::Classes
    }
    fn one_answer(&self) -> bool {
        false
    }
    fn token_name(&self, token: u32) -> String {
        token.to_string()
    }
    fn answer_name(&self, class: u32) -> String {
        match self.answers() {
            Answers::Classes => class.to_string(),
            Answers::Tokens | Answers::Sequence { .. } => self.token_name(class),
        }
    }
    /// Places of samples of a part: of training, where they are windows, also ones that overlap.
    fn count(&self, split: Split) -> u64;
    /// Whether training samples are windows that may lie anywhere.
    fn is_windows(&self) -> bool {
        false
    }
    fn sample(&self, split: Split, place: u64) -> Sample;
    /// See [`Stored::unit`].
    fn unit(&self, _split: Split, place: u64) -> u64 {
        place
    }
    /// Scored tokens of a sample and the bytes that they stand for.
    fn answer_bytes(&self, _split: Split, _place: u64) -> Option<(u64, u64)> {
        None
    }
    /// Of windows: how many of the samples at `places` can be read in the training part.
    fn repeated(&self, _split: Split, _places: &[u64]) -> Option<Repeated> {
        None
    }
    /// See [`Stored::last_value`].
    fn last_value(&self, _sample: &Sample) -> Option<Vec<f32>> {
        None
    }
}
