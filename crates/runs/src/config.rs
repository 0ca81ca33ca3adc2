//! What a run is: one TOML file, read, overridden, checked and written back complete.
//!
//! A [`Config`] that was read has passed every check, so that nothing later can fail for its sake. What is refused
//! comes back as a [`ConfigError`] that shows the file, the line, the key's full path and the nearest valid name.

mod backend;
mod meaning;
mod resolve;
mod train;

use std::path::Path;

use architecture::{Dims, ModelConfig, SourceDims};
use data::{Dataset, FileError, PATHS, Sets, Task};
use serde::Serialize;

use self::meaning::Meanings;
use crate::document::{self, Document};

pub use crate::document::{ConfigError, Diagnostic, Excerpt, Problem, Shown};
pub use backend::Backend;
pub(crate) use resolve::is_experiment;
pub use train::{SampleSizes, Schedule, ScheduleBy, TrainConfig, TrainConfigError};

/// Everything that decides what a run computes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Config {
    /// Name of the arm; the file's stem unless set. 1 to 100 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Derives initial weights, training order and dropout; 0 to 2^63 - 1, the largest integer of TOML.
    pub seed: u64,
    /// Where the run computes.
    pub backend: Backend,
    /// What is learnt, and from how many samples.
    pub task: TaskSection,
    /// The network.
    pub model: ModelConfig,
    /// The optimiser, its schedule, and when to measure.
    pub train: TrainConfig,
}

/// The `[task]` section: a task's kind and parameters, with the sizes of its sets beside them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskSection {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Sizes of the training, validation and test sets, in samples: as they are, which of files is no more than these hold.
    #[serde(skip)]
    pub sets: Sets,
    /// As they were asked for.
    #[serde(flatten)]
    asked: Sets,
}

impl TaskSection {
    /// A task whose samples are generated.
    pub fn new(task: Task, sets: Sets) -> Self {
        Self { task, sets, asked: sets }
    }

    /// The task, open, with its sets.
    ///
    /// # Errors
    /// Whatever is wrong with its files, whose paths are taken from `folder`.
    fn open(self, folder: &Path) -> Result<Self, FileError> {
        let Self { task, asked, sets: _ } = self;
        let data = Dataset::open(&task, &asked, folder)?;
        Ok(Self { task: data.task().clone(), sets: *data.sets(), asked })
    }
}

impl Config {
    /// Reads a file and applies overrides of the form `model.heads=4`, the last one winning. Their values are TOML, or
    /// else text, so that `name=h8` needs no quotes.
    ///
    /// # Errors
    /// Whatever is unknown, of the wrong type, missing or impossible; see [`Problem`].
    pub fn load(path: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let text = document::read_file(path)?;
        Self::parse_with(&text, &path.display().to_string(), overrides)
    }

    /// Reads the text of a config; `origin` names it in errors and, without its folder and extension, is the default
    /// of `name`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        Self::parse_with(text, origin, &[])
    }

    /// [`Config::parse`] with overrides, as in [`Config::load`].
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse_with(text: &str, origin: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        if text.trim().is_empty() {
            let (problem, place) = (Problem::Empty, Shown::File);
            let help = vec!["a config needs at least the lines `[task]` and `kind = \"registers\"`".into()];
            return Err(Diagnostic { problem, origin: origin.into(), place, help }.into());
        }
        let mut meanings = Meanings::of(overrides);
        loop {
            let document = Document { origin, text, overrides: &meanings.overrides, given: overrides };
            let error = match resolve::resolve(document) {
                Ok(config) => return Ok(config),
                Err(error) => error,
            };
            // At most once for each override.
            if !meanings.reread(&error) {
                let help = meanings.help(&error);
                return Err(error.with_help(help));
            }
        }
    }

    /// The resolved config: every default written, in the order of the documentation. Reading it gives an equal config.
    pub fn to_toml(&self) -> String {
        // Only types that TOML lacks could fail, and there are none; an empty text would be refused when read.
        toml::to_string(self).unwrap_or_default()
    }

    /// Eight hex digits of the BLAKE3 hash of [`Config::to_toml`]: part of the run directory's name. Of files their names count,
    /// and not in which folder they lie, so that a run keeps its name where all is moved.
    pub fn hash(&self) -> String {
        let text = self.to_toml();
        let text = if self.task.task.stored().is_some() { without_folders(&text).unwrap_or(text) } else { text };
        blake3::hash(text.as_bytes()).to_hex().chars().take(8).collect()
    }

    /// The seed of the initial weights.
    pub fn weights_seed(&self) -> u64 {
        self.seed + self.train.weights_offset.unwrap_or(0)
    }

    /// The sizes that the task gives to the model.
    pub fn dims(&self) -> Dims {
        let task = &self.task.task;
        let source = task.source().map(|source| SourceDims { vocab: source.vocab, length: source.len });
        let numbers = task.numbers().unwrap_or_default();
        // Of classes and numbers a task asks for one.
        let outputs = if numbers.outputs > 0 { numbers.outputs } else { task.outputs() };
        let (vocab, length) = (task.vocab(), task.seq_len());
        Dims { vocab, inputs: numbers.inputs, outputs, length, readout: task.readout(), source }
    }
}

/// A config of a task of files with the last part of each path alone.
fn without_folders(text: &str) -> Option<String> {
    fn shorten(value: &mut toml::Value) {
        match value {
            toml::Value::String(path) => {
                let name = Path::new(path.as_str()).file_name().map(|name| name.to_string_lossy().into_owned());
                *path = name.unwrap_or_default();
            }
            toml::Value::Array(paths) => paths.iter_mut().for_each(shorten),
            _ => {}
        }
    }
    let mut table: toml::Table = text.parse().ok()?;
    let task = table.get_mut("task")?.as_table_mut()?;
    for key in PATHS {
        task.get_mut(key).into_iter().for_each(shorten);
    }
    toml::to_string(&table).ok()
}

#[cfg(test)]
mod tests;
