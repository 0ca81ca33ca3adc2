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
use data::{Sets, Task};
use serde::Serialize;

use self::meaning::Meanings;
use crate::document::{self, Document};

pub use crate::document::{ConfigError, Diagnostic, Excerpt, Problem, Shown};
pub use backend::Backend;
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
    /// Sizes of the training, validation and test sets, in samples.
    #[serde(flatten)]
    pub sets: Sets,
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

    /// Eight hex digits of the BLAKE3 hash of [`Config::to_toml`]: part of the run directory's name.
    pub fn hash(&self) -> String {
        blake3::hash(self.to_toml().as_bytes()).to_hex().chars().take(8).collect()
    }

    /// The seed of the initial weights.
    pub fn weights_seed(&self) -> u64 {
        self.seed + self.train.weights_offset.unwrap_or(0)
    }

    /// The sizes that the task gives to the model.
    pub fn dims(&self) -> Dims {
        let task = &self.task.task;
        let source = task.source().map(|source| SourceDims { vocab: source.vocab, length: source.len });
        Dims { vocab: task.vocab(), outputs: task.outputs(), length: task.seq_len(), source }
    }
}

#[cfg(test)]
mod tests;
