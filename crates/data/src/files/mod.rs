//! Tasks whose samples lie in files: [`Text`], [`Records`], [`Series`], [`Vectors`]. A config names files by paths relative to itself;
//! [`Dataset::open`](crate::Dataset::open) reads them, once. To add a format: a file beside this one with its [`Format`] and its line
//! in `KINDS`.

mod npy;
mod opened;
mod packed;
mod read;
mod records;
mod repeats;
mod series;
mod text;
mod vectors;

use std::fmt::{self, Debug};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::de::{self, DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::answers::Answers;
use crate::definition::{Definition, Draw, Task};
use crate::error::{TaskError, in_range};
use crate::explain::explain;
use crate::file_error::FileError;
use crate::kind::Kind;
use crate::order::Sets;
use crate::parameter::Parameter;
use crate::sample::{NumberSizes, Sample, SourceSizes, Split};
use crate::stored::{Contents, ReadFile, Stored};

pub use records::{Records, TargetKind};
pub use series::{Column, Series, columns};
pub use text::{Text, TextSplit, TextUnit};
pub use vectors::{VectorAnswers, Vectors};

/// The kinds of files, in the order in which they are listed to people.
pub(crate) const KINDS: &[fn() -> Kind] = &[
    // a line each
    Kind::of::<OfFiles<Text>>,
    Kind::of::<OfFiles<Records>>,
    Kind::of::<OfFiles<Series>>,
    Kind::of::<OfFiles<Vectors>>,
];

/// A format of files: its parameters, and how they are read.
pub trait Format: Debug + Clone + Default + DeserializeOwned + Send + Sync + 'static {
    /// See [`Definition::kind`].
    const KIND: &'static str;
    /// See [`Definition::about`].
    const ABOUT: &'static str;

    /// See [`Definition::parameters`].
    fn parameters(&self) -> Vec<(&'static str, Parameter)>;

    /// See [`Definition::check`].
    ///
    /// # Errors
    /// The first rule broken.
    fn check(&self) -> Result<(), TaskError>;

    /// With its paths taken from `folder`: complete, so that they mean the same from anywhere.
    #[must_use]
    fn located(&self, folder: &Path) -> Self;

    /// Reads the files, their paths taken from `folder`.
    ///
    /// # Errors
    /// Whatever is wrong with them.
    fn read(&self, folder: &Path) -> Result<Read, FileError>;
}

/// What a [`Format`] gives.
pub struct Read {
    pub(crate) contents: Box<dyn Contents>,
    pub(crate) files: Vec<ReadFile>,
}

/// The task of the files that `F` describes.
#[derive(Clone, Debug, Default)]
pub struct OfFiles<F> {
    /// The parameters.
    pub format: F,
    stored: Option<Arc<Stored>>,
}

impl<F> OfFiles<F> {
    /// Not open yet.
    pub fn new(format: F) -> Self {
        Self { format, stored: None }
    }

    fn contents(&self) -> Option<&dyn Contents> {
        self.stored.as_ref().map(|stored| stored.contents())
    }
}

impl<'de, F: Deserialize<'de>> Deserialize<'de> for OfFiles<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        F::deserialize(deserializer).map(Self::new)
    }
}

impl<F: Format> Definition for OfFiles<F> {
    fn kind(&self) -> &'static str {
        F::KIND
    }

    fn about(&self) -> &'static str {
        F::ABOUT
    }

    fn prediction(&self) -> &'static str {
        "Nobody knows before it has been tried: how many heads these data need is what a sweep over heads answers."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        self.format.parameters()
    }

    fn check(&self) -> Result<(), TaskError> {
        self.format.check()
    }

    fn vocab(&self) -> usize {
        self.contents().map_or(0, |contents| contents.vocab())
    }

    fn outputs(&self) -> usize {
        self.contents().map_or(0, |contents| contents.outputs())
    }

    fn seq_len(&self) -> usize {
        self.contents().map_or(0, |contents| contents.seq_len())
    }

    fn source(&self) -> Option<SourceSizes> {
        self.contents()?.source()
    }

    fn numbers(&self) -> Option<NumberSizes> {
        self.contents()?.numbers()
    }

    fn one_answer(&self) -> bool {
        self.contents().is_some_and(|contents| contents.one_answer())
    }

    fn open(&self, folder: &Path, sets: &Sets) -> Option<Result<Task, FileError>> {
        let format = self.format.located(folder);
        let read = || {
            let Read { contents, files } = format.read(Path::new(""))?;
            Stored::new(contents, files, sets)
        };
        let stored = opened::shared(F::KIND, &format.parameters(), sets, read);
        Some(stored.map(|stored| Task::new(Self { format, stored: Some(stored) })))
    }

    fn stored(&self) -> Option<&Arc<Stored>> {
        self.stored.as_ref()
    }

    /// Any training sample.
    fn prepare(&self) -> Draw {
        let stored = self.stored.clone();
        Arc::new(move |stream| match &stored {
            Some(stored) => {
                let count = stored.sets().train_examples.unwrap_or_else(|| stored.available(Split::Train));
                let index = stream.below(count);
                stored.sample(Split::Train, index, stream)
            }
            None => Sample::new(vec![], vec![]),
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        explain(self, sample)
    }

    fn answers(&self) -> Answers {
        self.contents().map_or(Answers::Classes, |contents| contents.answers())
    }

    fn token_name(&self, token: u32) -> String {
        self.contents().map_or_else(|| token.to_string(), |contents| contents.token_name(token))
    }

    fn source_token_name(&self, token: u32) -> String {
        self.token_name(token)
    }

    fn answer_name(&self, class: u32) -> String {
        self.contents().map_or_else(|| class.to_string(), |contents| contents.answer_name(class))
    }
}

/// One path or several, as a config has them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Paths(pub Vec<String>);

impl Paths {
    /// With complete paths, taken from `folder`.
    pub(crate) fn locate(&mut self, folder: &Path) {
        self.0.iter_mut().for_each(|path| locate(path, folder));
    }
}

/// Makes `path` complete, taken from `folder`, without `.` and `name/..`. No path stays none.
pub(crate) fn locate(path: &mut String, folder: &Path) {
    if path.is_empty() {
        return;
    }
    let joined = folder.join(&*path);
    // Where there is no working directory the path stays as it is, and is reported when it is read.
    let complete = std::path::absolute(&joined).unwrap_or(joined);
    let mut parts = PathBuf::new();
    for part in complete.components() {
        match (part, parts.components().next_back()) {
            (Component::ParentDir, Some(Component::Normal(_))) => drop(parts.pop()),
            (Component::CurDir, _) => {}
            _ => parts.push(part),
        }
    }
    *path = parts.to_string_lossy().into_owned();
}

impl From<&str> for Paths {
    fn from(path: &str) -> Self {
        Self(vec![path.into()])
    }
}

impl From<&Paths> for Parameter {
    fn from(paths: &Paths) -> Self {
        match &*paths.0 {
            [path] => path.as_str().into(),
            several => Self::List(several.iter().map(|path| path.as_str().into()).collect()),
        }
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PathsVisitor;

        impl<'de> Visitor<'de> for PathsVisitor {
            type Value = Paths;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a path or a list of paths")
            }

            fn visit_str<E: de::Error>(self, path: &str) -> Result<Paths, E> {
                Ok(path.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Paths, A::Error> {
                let mut paths = vec![];
                while let Some(path) = items.next_element()? {
                    paths.push(path);
                }
                Ok(Paths(paths))
            }
        }

        deserializer.deserialize_any(PathsVisitor)
    }
}

/// Which part a sample is of, where its file does not say: shares of the validation and the test part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shares {
    pub validation: f64,
    pub test: f64,
}

impl Shares {
    /// # Errors
    /// Shares outside 0 to 1, or that leave nothing to learn from.
    pub fn check(self) -> Result<(), TaskError> {
        in_range("validation_share", self.validation, 0.0, 1.0)?;
        in_range("test_share", self.test, 0.0, 1.0)?;
        if self.validation + self.test >= 1.0 {
            let message = format!(
                "validation_share = {:?} and test_share = {:?} leave nothing to learn from",
                self.validation, self.test
            );
            return Err(TaskError::Impossible { keys: &["validation_share", "test_share"], message });
        }
        Ok(())
    }

    /// By what a sample holds, so that it stays where it is whatever comes before it, and its copies come with it.
    pub fn by_hash(self, content: &blake3::Hash) -> Split {
        let mut first = [0; 8];
        first.copy_from_slice(&content.as_bytes()[..8]);
        let point = (u64::from_le_bytes(first) >> 11) as f64 * (-53f64).exp2();
        match point {
            point if point < self.test => Split::Test,
            point if point < self.test + self.validation => Split::Validation,
            _ => Split::Train,
        }
    }

    /// The places at which `count` things in a row are cut: training, then validation, then test.
    pub fn cuts(self, count: u64) -> [u64; 2] {
        let before = |share: f64| count - ((count as f64 * share).round() as u64).min(count);
        [before(self.validation + self.test), before(self.test)]
    }

    /// Without the parts that have files of their own.
    pub fn without(self, validation: &Paths, test: &Paths) -> Self {
        let unless = |paths: &Paths, share: f64| if paths.0.is_empty() { share } else { 0.0 };
        Self { validation: unless(validation, self.validation), test: unless(test, self.test) }
    }
}

/// # Errors
/// No file to learn from.
pub(crate) fn some_files(files: &Paths) -> Result<(), TaskError> {
    if files.0.iter().all(|path| path.is_empty()) {
        let message = "files names no file: a path, several, or a folder".into();
        return Err(TaskError::Impossible { keys: &["files"], message });
    }
    Ok(())
}
