//! What can be wrong with a file of samples: file, line, field and value.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::sample::Split;

/// Why the files of a task give no samples.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{}{problem}", Place(self))]
pub struct FileError {
    /// The file; several or none where all of them are at fault together.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The field of a line, such as `tokens[3]`, or the array of a file.
    pub field: Option<String>,
    /// What is wrong.
    pub problem: FileProblem,
}

struct Place<'a>(&'a FileError);

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileError { file, line, field, problem: _ } = self.0;
        if let Some(file) = file {
            write!(formatter, "{}", file.display())?;
            if let Some(line) = line {
                write!(formatter, ":{line}")?;
            }
            formatter.write_str(": ")?;
        }
        match field {
            Some(field) => write!(formatter, "`{field}` "),
            None => Ok(()),
        }
    }
}

/// One variant a rule. Each reads on after the place: `data.jsonl:3: ` and, where there is a field, its name.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum FileProblem {
    /// It can't be read: missing, a folder, no permission.
    #[error("can't be read: {0}")]
    Unreadable(String),
    /// Nothing is in it.
    #[error("is empty")]
    Empty,
    /// A byte 0, which no text has.
    #[error("is no text: byte {0} is 0")]
    Binary(u64),
    /// Bytes that are no characters.
    #[error("is not UTF-8 at byte {0}; `unit = \"bytes\"` reads text in any encoding")]
    NotUtf8(u64),
    /// More than is read.
    #[error("holds {found} bytes, and at most {most} are read")]
    TooLarge {
        /// Its size.
        found: u64,
        /// The most allowed.
        most: u64,
    },
    /// It is not what its kind says.
    #[error("{0}")]
    Malformed(String),
    /// Not a value of the type that is needed.
    #[error("is {found}, and must be {expected}")]
    Wrong {
        /// The value, shortened.
        found: String,
        /// What is needed.
        expected: String,
    },
    /// A field, column or array that is not there.
    #[error("is missing; there are {0}")]
    Missing(String),
    /// A token without a place in the vocabulary.
    #[error("is {token}, beyond the vocabulary of {vocab}")]
    BeyondVocabulary {
        /// Its id.
        token: u64,
        /// V.
        vocab: usize,
    },
    /// A sample longer than the length that was asked for.
    #[error("has {found} positions, more than seq_len = {most}")]
    TooLong {
        /// The sample's positions.
        found: usize,
        /// L.
        most: usize,
    },
    /// A part that no sample fits into.
    #[error("the {split} part has {found} {what}, fewer than the {needed} that a sample takes")]
    TooShort {
        /// The part.
        split: Split,
        /// What is counted: bytes, characters, rows.
        what: &'static str,
        /// How many there are.
        found: u64,
        /// How many a sample takes.
        needed: u64,
    },
    /// A part without samples.
    #[error("no sample is left for the {0} part")]
    NoSamples(Split),
}

impl FileProblem {
    /// At a file.
    pub(crate) fn of(self, file: &Path) -> FileError {
        FileError { file: Some(file.into()), line: None, field: None, problem: self }
    }

    /// At a line of a file, from 1.
    pub(crate) fn at(self, file: &Path, line: u64) -> FileError {
        FileError { line: Some(line), ..self.of(file) }
    }

    /// Of no file in particular.
    pub(crate) fn everywhere(self) -> FileError {
        FileError { file: None, line: None, field: None, problem: self }
    }

    /// A value of the wrong kind, shown as far as there is room.
    pub(crate) fn wrong(found: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self::Wrong { found: short(&found.to_string()), expected: expected.into() }
    }
}

impl FileError {
    /// With the field at fault.
    pub(crate) fn field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }
}

/// The first characters of `text`, control characters escaped.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
