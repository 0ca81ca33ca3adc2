//! Typed reading of an experiment file that keeps every key's place.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    config::{ConfigError, Diagnostic, Excerpt, Problem, Shown},
    nearest::{list, nearest},
};

/// The text of an experiment file and its name in errors.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl<'a> Text<'a> {
    /// The file's tree.
    pub fn parse(self) -> Result<DeTable<'a>, ConfigError> {
        let refuse = |error: toml::de::Error| {
            let end = self.text.len();
            let span = error.span().unwrap_or(end..end);
            let key = || self.text.get(span.clone()).unwrap_or_default().chars().filter(|c| !c.is_control()).take(100);
            let problem = match error.message() {
                message if message.contains("duplicate key") => Problem::Duplicate { key: key().collect() },
                message => Problem::Syntax(message.replace('\n', ", ")),
            };
            ConfigError::from(self.at(span, problem))
        };
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(refuse)
    }

    /// A problem at a span of the text.
    pub fn at(self, span: Range<usize>, problem: Problem) -> Diagnostic {
        let place = Shown::Excerpt(Excerpt::new(self.text, span));
        Diagnostic { problem, origin: self.origin.into(), place, help: vec![] }
    }

    /// A problem of the file as a whole.
    pub fn whole(self, problem: Problem) -> Diagnostic {
        Diagnostic { problem, origin: self.origin.into(), place: Shown::File, help: vec![] }
    }

    /// The value as its author wrote it, shortened to one line.
    fn written(self, span: Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().filter(|c| !c.is_control()).take(40).collect();
        if short.len() < text.trim().len() { format!("{short}...") } else { short }
    }
}

/// A table of the file.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub text: Text<'a>,
    /// Full path, empty for the file's top.
    pub path: &'a str,
    pub table: &'a DeTable<'a>,
}

/// A config key with its value as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    /// Full path, such as `model.heads`.
    pub key: String,
    /// In TOML.
    pub value: String,
    /// Where the key stands.
    pub span: Range<usize>,
}

/// What a value is, in plain words.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(integer) if integer.as_str().starts_with('-') => "a negative number",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a decimal point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

/// A number, whether written with a decimal point or not.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(integer) => Some(i128::from_str_radix(integer.as_str(), integer.radix()).ok()? as f64),
        _ => None,
    }
}

/// A whole number that TOML can hold, 0 or more.
pub(super) fn whole(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(integer) => {
            let signed = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            u64::try_from(signed).ok()
        }
        _ => None,
    }
}

impl<'a> Section<'a> {
    /// The key's full path.
    pub fn full(&self, key: &str) -> String {
        let short: String = key.chars().filter(|c| !c.is_control()).take(60).collect();
        if self.path.is_empty() { short } else { format!("{}.{short}", self.path) }
    }

    /// Key and value.
    pub fn get(&self, key: &str) -> Option<(Range<usize>, &'a Spanned<DeValue<'a>>)> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(name, value)| (name.span(), value))
    }

    /// Keys and values in the order of the file.
    pub fn in_order(&self) -> Vec<(&'a str, Range<usize>, &'a Spanned<DeValue<'a>>)> {
        let mut entries: Vec<_> =
            self.table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value)).collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// A problem at a key, or of the file as a whole where it isn't there.
    pub fn at(&self, key: &str, problem: Problem) -> Diagnostic {
        match self.get(key) {
            Some((span, _)) => self.text.at(span, problem),
            None => self.text.whole(problem),
        }
    }

    /// A value that can't be.
    pub fn impossible(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.at(key, Problem::Impossible { key: self.full(key), message: message.into() }).into()
    }

    /// Refuses keys that nothing reads, the first few at once.
    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self.in_order().into_iter().filter(|(key, ..)| !known.contains(key));
        let diagnose = |(key, span, value): (&str, Range<usize>, &Spanned<DeValue<'_>>)| {
            let help = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{}`?", self.full(near)),
                None => format!("valid are {}", list(known.iter().copied())),
            };
            let problem = match value.get_ref() {
                DeValue::Table(_) => Problem::UnknownSection { section: self.full(key) },
                _ => Problem::UnknownKey { key: self.full(key) },
            };
            Diagnostic { help: vec![help], ..self.text.at(span, problem) }
        };
        let diagnostics: Vec<_> = unknown.map(diagnose).take(5).collect();
        if diagnostics.is_empty() { Ok(()) } else { Err(ConfigError::new(diagnostics)) }
    }

    /// The value of a key as `read` gives it, or a complaint that it isn't what was expected.
    pub fn read<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some((_, value)) = self.get(key) else { return Ok(None) };
        read(value.get_ref()).map(Some).ok_or_else(|| self.wrong_type(key, value, expected))
    }

    /// A complaint about a key's value, or a part of it.
    pub fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> ConfigError {
        let written = match value.get_ref() {
            DeValue::Table(_) => String::new(),
            _ => format!(" = {}", self.text.written(value.span())),
        };
        let (expected, found) = (expected.to_string(), kind(value.get_ref()).to_string());
        let problem = Problem::WrongType { key: self.full(key), value: written, expected, found };
        match value.get_ref() {
            DeValue::Table(_) => self.at(key, problem).into(),
            _ => self.text.at(value.span(), problem).into(),
        }
    }

    /// Text.
    pub fn words(&self, key: &str) -> Result<Option<String>, ConfigError> {
        self.read(key, "text in quotes", |value| value.as_str().map(String::from))
    }

    /// A finite number.
    pub fn number(&self, key: &str) -> Result<Option<f64>, ConfigError> {
        self.read(key, "a number", |value| number(value).filter(|number| number.is_finite()))
    }

    /// A whole number, 0 or more.
    pub fn whole(&self, key: &str) -> Result<Option<u64>, ConfigError> {
        self.read(key, "a whole number, 0 or more", whole)
    }

    /// One of some words.
    pub fn one_of<T: Copy>(&self, key: &str, words: &[(&'static str, T)]) -> Result<Option<T>, ConfigError> {
        let Some(word) = self.words(key)? else { return Ok(None) };
        if let Some((_, value)) = words.iter().find(|(name, _)| *name == word) {
            return Ok(Some(*value));
        }
        let names = || words.iter().map(|(name, _)| *name);
        let help = match nearest(&word, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("valid are {}", list(names())),
        };
        let value: String = word.chars().filter(|c| !c.is_control()).take(40).collect();
        let problem = Problem::UnknownWord { key: self.full(key), value, what: key.into() };
        Err(Diagnostic { help: vec![help], ..self.at(key, problem) }.into())
    }

    /// All keys below this section, without those that `skip` names, in the order of the file.
    pub fn leaves(&self, skip: &[&str]) -> Result<Vec<Leaf>, ConfigError> {
        let mut leaves = vec![];
        for (key, span, value) in self.in_order().into_iter().filter(|(key, ..)| !skip.contains(key)) {
            self.collect(key, key, span, value, 1, &mut leaves)?;
        }
        Ok(leaves)
    }

    fn collect(
        &self,
        path: &str,
        key: &str,
        span: Range<usize>,
        value: &Spanned<DeValue<'a>>,
        depth: usize,
        leaves: &mut Vec<Leaf>,
    ) -> Result<(), ConfigError> {
        // Keys become overrides, in which `.` and `=` have a meaning; no config nests deeper.
        let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_bare || depth > 4 {
            return Err(self.text.at(span, Problem::UnknownKey { key: self.full(path) }).into());
        }
        let DeValue::Table(table) = value.get_ref() else {
            let text = self.text.text.get(value.span()).unwrap_or_default();
            leaves.push(Leaf { key: path.into(), value: text.into(), span });
            return Ok(());
        };
        let inner = Section { text: self.text, path: self.path, table };
        for (key, span, value) in inner.in_order() {
            self.collect(&format!("{path}.{key}"), key, span, value, depth + 1, leaves)?;
        }
        Ok(())
    }
}
