//! A section of a document: typed reading, and complaints at the place of a key.

use std::ops::Range;

use serde::Deserialize;

use super::{
    error::{ConfigError, Diagnostic, Problem},
    read::{self, ReadError, Reason},
    tree::{Document, KeyNode, KeyPlace, KeyTable, Value, in_order, shorten},
};
use crate::nearest::{list, nearest};

/// A table of a document; the document's top has an empty path.
#[derive(Clone)]
pub(crate) struct Section<'a> {
    pub document: Document<'a>,
    /// Full path, such as `arms.h1`.
    path: String,
    place: Option<&'a KeyPlace>,
    table: &'a KeyTable,
}

/// A key of a file with its value as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    /// Full path, such as `model.heads`.
    pub key: String,
    /// In TOML.
    pub value: String,
    /// Where the key stands.
    pub span: Range<usize>,
}

impl<'a> Section<'a> {
    /// The document's top.
    pub fn root(document: Document<'a>, table: &'a KeyTable) -> Self {
        Self { document, path: String::new(), place: None, table }
    }

    /// The key's full path.
    pub fn full(&self, key: &str) -> String {
        let short = shorten(key, 60);
        if self.path.is_empty() { short } else { format!("{}.{short}", self.path) }
    }

    /// The node of a key.
    pub fn get(&self, key: &str) -> Option<&'a KeyNode> {
        self.table.get(key)
    }

    /// Names of the keys that are there.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(String::as_str)
    }

    /// Keys and nodes in the order of the file.
    pub fn in_order(&self) -> Vec<(&'a str, &'a KeyNode)> {
        in_order(self.table)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// A problem at a key, at the section where the key isn't there, or of the file as a whole.
    pub fn at(&self, key: &str, problem: Problem) -> Diagnostic {
        self.document.at(self.get(key).map(|node| &node.place).or(self.place), problem)
    }

    /// A value that can't be.
    pub fn impossible(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.at(key, Problem::Impossible { key: self.full(key), message: message.into() }).into()
    }

    /// Such a value, shown where it was set: where it can't be beside `others`, that is an override before anything in the
    /// file, and `key` before the others.
    pub fn impossible_beside(&self, key: &str, others: &[&str], message: String) -> ConfigError {
        let keys = [key].into_iter().chain(others.iter().copied());
        let mut places: Vec<&KeyPlace> = keys.filter_map(|key| self.get(key)).map(|node| &node.place).collect();
        places.sort_by_key(|place| matches!(place, KeyPlace::File { .. }));
        let place = places.first().copied().or(self.place);
        self.document.at(place, Problem::Impossible { key: self.full(key), message }).into()
    }

    /// A complaint about a key's value.
    pub fn wrong_type(&self, key: &str, node: &KeyNode, expected: impl Into<String>) -> ConfigError {
        let value = match node.value {
            Value::Table(_) => String::new(),
            _ => format!(" = {}", self.document.written(&node.place)),
        };
        let (expected, found) = (expected.into(), node.value.kind().to_string());
        self.document.at(Some(&node.place), Problem::WrongType { key: self.full(key), value, expected, found }).into()
    }

    /// A section within this one.
    pub fn section(&self, key: &str) -> Result<Option<Self>, ConfigError> {
        match self.get(key) {
            None => Ok(None),
            Some(node @ KeyNode { value: Value::Table(_), .. }) => Ok(self.inner(key, node)),
            Some(node) => Err(self.wrong_type(key, node, format!("a section `[{}]`", self.full(key)))),
        }
    }

    /// [`Section::section`], where a node is one.
    pub fn inner(&self, key: &str, node: &'a KeyNode) -> Option<Self> {
        let Value::Table(table) = &node.value else { return None };
        Some(Self { document: self.document, path: self.full(key), place: Some(&node.place), table })
    }

    /// Keys that nothing reads, each with its place, in no order. Help is the nearest of `known`, or all of them.
    pub fn unknown(&self, known: &[&str]) -> Vec<(&'a str, &'a KeyPlace, Diagnostic)> {
        let unknown = self.table.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        let diagnose = |(key, node): (&'a String, &'a KeyNode)| {
            let help = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{}`?", self.full(near)),
                None => format!("valid are {}", list(known.iter().copied())),
            };
            let problem = match node.value {
                Value::Table(_) => Problem::UnknownSection { section: self.full(key) },
                _ => Problem::UnknownKey { key: self.full(key) },
            };
            let diagnostic = Diagnostic { help: vec![help], ..self.document.at(Some(&node.place), problem) };
            (key.as_str(), &node.place, diagnostic)
        };
        unknown.map(diagnose).collect()
    }

    /// Refuses keys that nothing reads.
    pub fn refuse_unknown(&self, known: &[&str]) -> Result<(), ConfigError> {
        let unknown = self.unknown(known);
        refuse(unknown.into_iter().map(|(_, place, diagnostic)| (place.clone(), diagnostic)).collect())
    }

    /// The value of a key.
    pub fn value<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        self.get(key).map(|node| read::value(key, node).map_err(|error| self.refuse(error))).transpose()
    }

    /// A section within this one as its type reads it, its keys checked; `None` where it isn't there.
    pub fn typed<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Option<(Self, T)>, ConfigError> {
        let Some(section) = self.section(key)? else { return Ok(None) };
        section.refuse_unknown(read::keys_of::<T>())?;
        let value = section.read(&[])?;
        Ok(Some((section, value)))
    }

    /// The section as a whole, without the keys that `skip` names.
    pub fn read<T: for<'de> Deserialize<'de>>(&self, skip: &[&str]) -> Result<T, ConfigError> {
        T::deserialize(read::section(self.table, skip)).map_err(|error| self.refuse(error))
    }

    /// What `read` makes of the section without the keys that `skip` names.
    pub fn read_with<T>(
        &self,
        skip: &[&str],
        read: impl FnOnce(read::SectionReader<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ConfigError> {
        read(read::section(self.table, skip)).map_err(|error| self.refuse(error))
    }

    /// All keys below this section, without those that `skip` names, in the order of the file, by their paths from here.
    pub fn leaves(&self, skip: &[&str]) -> Result<Vec<Leaf>, ConfigError> {
        let mut leaves = vec![];
        for (key, node) in self.in_order().into_iter().filter(|(key, _)| !skip.contains(key)) {
            self.collect(key, key, node, 1, &mut leaves)?;
        }
        Ok(leaves)
    }

    fn collect(
        &self,
        path: &str,
        key: &str,
        node: &KeyNode,
        depth: usize,
        leaves: &mut Vec<Leaf>,
    ) -> Result<(), ConfigError> {
        // Keys become overrides, in which `.` and `=` have a meaning; no config nests deeper.
        let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_bare || depth > 4 {
            return Err(self.document.at(Some(&node.place), Problem::UnknownKey { key: self.full(path) }).into());
        }
        if let Value::Table(table) = &node.value {
            return in_order(table)
                .into_iter()
                .try_for_each(|(key, node)| self.collect(&format!("{path}.{key}"), key, node, depth + 1, leaves));
        }
        if let KeyPlace::File { key: span, value } = &node.place {
            let value = self.document.text.get(value.clone()).unwrap_or_default().to_string();
            leaves.push(Leaf { key: path.into(), value, span: span.clone() });
        }
        Ok(())
    }

    /// Puts a reader's error into words and to its place.
    fn refuse(&self, error: ReadError) -> ConfigError {
        let mut path: Vec<&str> = if self.path.is_empty() { vec![] } else { vec![&self.path] };
        path.extend(error.keys.iter().rev().map(String::as_str));
        let place = error.place.as_ref().or(self.place);
        let key = shorten(&path.join("."), 100);
        let mut help = vec![];
        let problem = match error.reason {
            Reason::WrongType { expected, found } => {
                let written = place.map(|place| self.document.written(place)).unwrap_or_default();
                let unquoted = written.trim_matches(['"', '\'']);
                let is_in_file = matches!(place, Some(KeyPlace::File { .. }));
                if is_in_file && found == "text" && expected.contains("number") && unquoted.parse::<f64>().is_ok() {
                    help.push(format!("write {unquoted} without quotes"));
                }
                let value = if found == "a section" { String::new() } else { format!(" = {written}") };
                Problem::WrongType { key, value, expected, found }
            }
            Reason::UnknownWord { word, words } => {
                help.push(match nearest(&word, words.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("valid are {}", list(words.iter().copied())),
                });
                let what = path.last().copied().unwrap_or("word").to_string();
                Problem::UnknownWord { key, value: shorten(&word, 40), what }
            }
            Reason::UnknownKey(unknown) => Problem::UnknownKey { key: format!("{key}.{}", shorten(&unknown, 60)) },
            Reason::MissingKey(missing) => Problem::MissingKey { key: format!("{key}.{missing}") },
            Reason::Other(message) => Problem::Impossible { key, message },
        };
        Diagnostic { help, ..self.document.at(place, problem) }.into()
    }
}

/// Refuses if there is anything to refuse: in the order of the file, overrides last.
pub(crate) fn refuse(mut found: Vec<(KeyPlace, Diagnostic)>) -> Result<(), ConfigError> {
    found.sort_by_key(|(place, _)| match place {
        KeyPlace::File { key, .. } => (0, key.start),
        KeyPlace::Override(index) => (1, *index),
    });
    // A file of junk is told about its first few keys only.
    let diagnostics: Vec<_> = found.into_iter().map(|(_, diagnostic)| diagnostic).take(5).collect();
    if diagnostics.is_empty() { Ok(()) } else { Err(ConfigError::new(diagnostics)) }
}
