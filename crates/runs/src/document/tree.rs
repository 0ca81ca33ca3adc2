//! A file as a tree that remembers where each key came from: a span of the file or an override.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::error::{ConfigError, Diagnostic, Excerpt, Problem, Shown};

/// The text of a file and the overrides that go over it.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub origin: &'a str,
    pub text: &'a str,
    /// As they are read.
    pub overrides: &'a [String],
    /// As their user wrote them, and sees them in errors.
    pub given: &'a [String],
}

/// Where a key and its value came from.
#[derive(Clone, Debug)]
pub(crate) enum KeyPlace {
    /// Bytes of the file.
    File { key: Range<usize>, value: Range<usize> },
    /// Index of an override.
    Override(usize),
}

/// A key's value and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct KeyNode {
    pub place: KeyPlace,
    pub value: Value,
}

pub(crate) type KeyTable = BTreeMap<String, KeyNode>;

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// `None` if it doesn't fit.
    Integer(Option<i128>),
    Float(f64),
    Boolean(bool),
    Date,
    List(Vec<KeyNode>),
    Table(KeyTable),
}

impl Value {
    /// What it is, in plain words.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(Some(value)) if *value < 0 => "a negative number",
            Self::Integer(Some(value)) if *value <= u64::MAX as i128 => "a whole number",
            Self::Integer(_) => "a number that is far too large",
            Self::Float(value) if value.is_nan() => "not a number",
            Self::Float(value) if value.is_infinite() => "infinity",
            Self::Float(_) => "a decimal number",
            Self::Boolean(_) => "true or false",
            Self::Date => "a date or time",
            Self::List(_) => "a list",
            Self::Table(_) => "a section",
        }
    }

    fn from(value: &Spanned<DeValue<'_>>) -> Self {
        match value.get_ref() {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(integer) => Self::Integer(i128::from_str_radix(integer.as_str(), integer.radix()).ok()),
            DeValue::Float(float) => Self::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(boolean) => Self::Boolean(*boolean),
            DeValue::Datetime(_) => Self::Date,
            DeValue::Array(items) => Self::List(
                items
                    .iter()
                    .map(|item| KeyNode {
                        place: KeyPlace::File { key: item.span(), value: item.span() },
                        value: Self::from(item),
                    })
                    .collect(),
            ),
            DeValue::Table(entries) => Self::Table(table(entries)),
        }
    }
}

fn table(entries: &DeTable<'_>) -> KeyTable {
    let node = |key: &Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>| KeyNode {
        place: KeyPlace::File { key: key.span(), value: value.span() },
        value: Value::from(value),
    };
    entries.iter().map(|(key, value)| (key.get_ref().to_string(), node(key, value))).collect()
}

/// Keys and nodes in the order of the file.
pub(crate) fn in_order(table: &KeyTable) -> Vec<(&str, &KeyNode)> {
    let mut entries: Vec<_> = table.iter().map(|(key, node)| (key.as_str(), node)).collect();
    entries.sort_by_key(|(_, node)| match &node.place {
        KeyPlace::File { key, .. } => key.start,
        KeyPlace::Override(_) => usize::MAX,
    });
    entries
}

/// The beginning of the first line of a text, fit to be shown.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().filter(|c| !c.is_control()).take(most).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

/// Full keys and values of a file of sections, in its order, the values as they are written; none where it is no TOML.
pub(crate) fn leaves(text: &str) -> Vec<(String, String)> {
    fn collect(text: &str, path: &str, table: &KeyTable, leaves: &mut Vec<(String, String)>) {
        for (key, KeyNode { place, value }) in in_order(table) {
            let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            match (value, place) {
                (Value::Table(table), _) => collect(text, &path, table, leaves),
                (_, KeyPlace::File { value, .. }) => {
                    leaves.push((path, text.get(value.clone()).unwrap_or_default().to_string()));
                }
                (_, KeyPlace::Override(_)) => {}
            }
        }
    }
    let mut found = vec![];
    if let Ok(parsed) = DeTable::parse(text) {
        collect(text, "", &table(parsed.get_ref()), &mut found);
    }
    found
}

impl Document<'_> {
    /// The file's tree with every override applied.
    pub fn tree(&self) -> Result<KeyTable, ConfigError> {
        let parsed = DeTable::parse(self.text).map_err(|error| self.syntax(&error))?;
        let mut root = table(parsed.get_ref());
        (0..self.overrides.len()).try_for_each(|index| self.apply(&mut root, index))?;
        Ok(root)
    }

    /// A problem at the place of a node, or of the file as a whole.
    pub fn at(&self, place: Option<&KeyPlace>, problem: Problem) -> Diagnostic {
        let place = match place {
            None => Shown::File,
            Some(KeyPlace::File { key, .. }) => Shown::Excerpt(Excerpt::new(self.text, key.clone())),
            Some(KeyPlace::Override(index)) => Shown::Override(shorten(&self.given[*index], 100)),
        };
        Diagnostic { problem, origin: self.origin.into(), place, help: vec![] }
    }

    /// A problem at a span of the text.
    pub fn at_span(&self, span: Range<usize>, problem: Problem) -> Diagnostic {
        let place = Shown::Excerpt(Excerpt::new(self.text, span));
        Diagnostic { problem, origin: self.origin.into(), place, help: vec![] }
    }

    /// The value as its user wrote it, shortened to one line.
    pub fn written(&self, place: &KeyPlace) -> String {
        let text = match place {
            KeyPlace::File { value, .. } => self.text.get(value.clone()).unwrap_or_default(),
            KeyPlace::Override(index) => self.given[*index].split_once('=').map_or("", |(_, value)| value),
        };
        shorten(text.trim(), 40)
    }

    fn syntax(&self, error: &toml::de::Error) -> ConfigError {
        let end = self.text.len();
        let span = error.span().unwrap_or(end..end);
        let problem = match error.message() {
            message if message.contains("duplicate key") => {
                let key = self.text.get(span.clone()).unwrap_or_default();
                let before = self.text.get(..span.start).unwrap_or_default();
                let header = |line: &str| Some(line.trim().strip_prefix('[')?.strip_suffix(']')?.to_string());
                let section = before.lines().rev().find_map(header).filter(|_| !before.ends_with('['));
                let key = section.map_or(key.to_string(), |section| format!("{section}.{key}"));
                Problem::Duplicate { key: shorten(&key, 60) }
            }
            message => Problem::Syntax(message.replace('\n', ", ")),
        };
        self.at_span(span, problem).into()
    }

    fn apply(&self, root: &mut KeyTable, index: usize) -> Result<(), ConfigError> {
        let place = KeyPlace::Override(index);
        let refuse = |problem| ConfigError::from(self.at(Some(&place), problem));
        let Some((path, written)) = self.overrides[index].split_once('=') else {
            return Err(refuse(Problem::Override));
        };
        let keys: Vec<&str> = path.split('.').map(str::trim).collect();
        let Some((last, sections)) = keys.split_last() else { return Err(refuse(Problem::Override)) };
        // Nothing is nested deeper than a section; the limit keeps the tree shallow.
        if keys.iter().any(|key| key.is_empty()) || keys.len() > 8 {
            return Err(refuse(Problem::Override));
        }
        let mut table = root;
        for (depth, section) in sections.iter().enumerate() {
            let new = || KeyNode { place: place.clone(), value: Value::Table(KeyTable::new()) };
            let node = table.entry(section.to_string()).or_insert_with(new);
            let found = node.value.kind();
            let Value::Table(inner) = &mut node.value else {
                let (key, value) = (shorten(&keys[..=depth].join("."), 60), String::new());
                return Err(refuse(Problem::WrongType {
                    key,
                    value,
                    expected: "a section".into(),
                    found: found.into(),
                }));
            };
            table = inner;
        }
        // `--set name=h8` needs no quotes within the shell's.
        let value = DeValue::parse(written.trim()).map(|value| Value::from(&value));
        let value = value.unwrap_or_else(|_: toml::de::Error| Value::Text(written.trim().into()));
        let replaces_section = table.get(*last).is_some_and(|node| matches!(node.value, Value::Table(_)));
        if replaces_section || matches!(value, Value::Table(_)) {
            let (key, message) = (shorten(path, 60), "a section's keys are overridden one at a time".to_string());
            return Err(refuse(Problem::Impossible { key, message }));
        }
        table.insert(last.to_string(), KeyNode { place, value });
        Ok(())
    }
}
