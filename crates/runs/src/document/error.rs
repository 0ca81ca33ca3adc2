//! What is wrong with a config, and where: the file, the line, the key, and what was probably meant.

use std::{fmt, ops::Range};

use thiserror::Error;

/// Why a config was refused. Printed, it is a few lines in the style of rustc that name the file and the key.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    /// At least one; more than one only for unknown keys.
    diagnostics: Vec<Diagnostic>,
}

/// One problem and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// What is wrong.
    pub problem: Problem,
    /// The file as its user named it.
    pub origin: String,
    /// Where in it, or which override.
    pub place: Shown,
    /// What may help, a sentence each.
    pub help: Vec<String>,
}

/// A place as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The file as a whole.
    File,
    /// A part of a line.
    Excerpt(Excerpt),
    /// An override from the command line, e.g. `--set model.heads=4`.
    Override(String),
}

/// A part of a line of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    text: String,
    marked: Range<usize>,
}

/// What can be wrong with a config.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Problem {
    /// There is no such file.
    #[error("no such config file")]
    NotFound,
    /// The path is a folder.
    #[error("this is a folder, not a config file")]
    Folder,
    /// The operating system refuses to read it.
    #[error("the config file can't be read: {0}")]
    Unreadable(String),
    /// Nothing that large is a config.
    #[error("the config file is larger than {most} bytes")]
    TooLarge { most: u64 },
    /// Binary, or text in another encoding.
    #[error("the config file isn't UTF-8 text: byte 0x{byte:02x} at offset {offset}, line {line}")]
    NotText { byte: u8, offset: usize, line: usize },
    /// Nothing in it.
    #[error("the config file is empty")]
    Empty,
    /// Not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// TOML allows each key once.
    #[error("`{key}` is set twice")]
    Duplicate { key: String },
    /// Not an override at all.
    #[error("an override has the form `--set section.key=value`")]
    Override,
    /// A key that nothing reads.
    #[error("unknown key `{key}`")]
    UnknownKey { key: String },
    /// A section that nothing reads.
    #[error("unknown section `[{section}]`")]
    UnknownSection { section: String },
    /// A section that has no defaults.
    #[error("missing section `[{section}]`")]
    MissingSection { section: String },
    /// A key that has no default.
    #[error("missing key `{key}`")]
    MissingKey { key: String },
    /// A value of the wrong type, or out of its type's range.
    #[error("`{key}{value}`: expected {expected}, found {found}")]
    WrongType { key: String, value: String, expected: String, found: String },
    /// A word where only certain words are valid.
    #[error("`{key} = \"{value}\"`: unknown {what} `{value}`")]
    UnknownWord { key: String, value: String, what: String },
    /// A value that can't be, alone or beside others.
    #[error("`{key}`: {message}")]
    Impossible { key: String, message: String },
}

impl ConfigError {
    pub(crate) fn new(diagnostics: Vec<Diagnostic>) -> Self {
        Self { diagnostics }
    }

    /// With one more piece of help, if there is any.
    pub(crate) fn with_help(mut self, help: Option<String>) -> Self {
        if let Some(first) = self.diagnostics.first_mut() {
            first.help.extend(help);
        }
        self
    }

    /// The problems found; at least one.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The full path of the (first) key at fault, e.g. `model.heads`, where there is one.
    pub fn key(&self) -> Option<&str> {
        self.diagnostics.first().and_then(|diagnostic| diagnostic.problem.key())
    }
}

impl From<Diagnostic> for ConfigError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::new(vec![diagnostic])
    }
}

impl Problem {
    /// The full path of the key at fault, e.g. `model.heads`, where there is one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownSection { section } | Self::MissingSection { section } => Some(section),
            Self::Duplicate { key }
            | Self::UnknownKey { key }
            | Self::MissingKey { key }
            | Self::WrongType { key, .. }
            | Self::UnknownWord { key, .. }
            | Self::Impossible { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// Longest excerpt of a line, in characters.
const WIDEST: usize = 100;

impl Excerpt {
    /// The line of `text` in which `span` (bytes) begins, with the span marked as far as it lies on that line.
    pub(crate) fn new(text: &str, span: Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let (before, after) = (text.get(..start).unwrap_or_default(), text.get(start..).unwrap_or_default());
        let first_line = |text: &str| text.find('\n').unwrap_or(text.len());
        let line = before.matches('\n').count() + 1;
        let line_before = before.rsplit('\n').next().unwrap_or_default();
        let line_after = after.get(..first_line(after)).unwrap_or_default();
        let marked = text.get(start..end).unwrap_or_default();
        let column = line_before.chars().count();
        let width = marked.get(..first_line(marked)).unwrap_or_default().trim_end().chars().count().max(1);
        // A window around the mark: a line may be a megabyte long.
        let skipped = if column + width > WIDEST { column.saturating_sub(WIDEST / 4) } else { 0 };
        let shown = line_before.chars().chain(line_after.trim_end().chars()).skip(skipped).take(WIDEST);
        let shown = shown.map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        let marked = column - skipped..(column - skipped + width).min(WIDEST);
        Self { line, column: column + 1, text: shown.collect(), marked }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.problem)?;
        let gutter = match &self.place {
            Shown::Excerpt(excerpt) => excerpt.line.to_string().len(),
            _ => 1,
        };
        let (origin, empty) = (&self.origin, "");
        match &self.place {
            Shown::File => write!(f, "{empty:gutter$}--> {origin}")?,
            Shown::Override(set) => write!(f, "{empty:gutter$}--> --set {set} (over {origin})")?,
            Shown::Excerpt(Excerpt { line, column, text, marked }) => {
                writeln!(f, "{empty:gutter$}--> {origin}:{line}:{column}")?;
                writeln!(f, "{empty:gutter$} |")?;
                writeln!(f, "{line} | {text}")?;
                let (before, carets) = (marked.start, "^".repeat(marked.len()));
                write!(f, "{empty:gutter$} | {empty:before$}{carets}")?;
            }
        }
        self.help.iter().try_for_each(|help| write!(f, "\n{empty:gutter$} = help: {help}"))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.diagnostics.iter().enumerate() {
            let between = if index == 0 { "" } else { "\n" };
            write!(f, "{between}{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
