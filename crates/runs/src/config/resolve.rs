//! From text and overrides to a checked config: unknown keys, then types, then values.

use data::{Sets, Task};
use model::config::{Dims, ModelConfig, ModelError};
use serde::Deserialize;

use super::{
    Config, TaskSection, TrainConfig,
    error::{ConfigError, Diagnostic, Problem},
    read::{self, ReadError, Reason},
    train::SampleSizes,
    tree::{Node, Place, SECTIONS, Source, Table, Value, shorten},
};
use crate::{
    limits,
    nearest::{list, nearest},
};

/// Keys at the top of an experiment file, as far as they tell it from a config.
const EXPERIMENT_KEYS: [&str; 10] =
    ["base", "baseline", "regime", "seeds", "repetitions", "about", "metric", "tuning", "arms", "grid"];
const ROOT_KEYS: [&str; 6] = ["name", "seed", "backend", "task", "model", "train"];

/// Reads and checks everything.
pub(crate) fn resolve(source: Source<'_>) -> Result<Config, ConfigError> {
    let root = source.tree()?;
    let resolver = Resolver { source, root: &root };
    resolver.refuse_unknown_keys()?;
    let config = Config {
        name: resolver.root_value("name")?.unwrap_or_else(|| default_name(source.origin)),
        seed: resolver.root_value("seed")?.unwrap_or_default(),
        backend: resolver.root_value("backend")?.unwrap_or_default(),
        task: resolver.task()?,
        model: resolver.section::<ModelConfig>("model")?,
        train: resolver.section::<TrainConfig>("train")?,
    };
    resolver.check(&config)?;
    Ok(config)
}

/// The file's stem as far as it can name a folder.
fn default_name(origin: &str) -> String {
    let stem = std::path::Path::new(origin).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let name: String = stem.chars().map(|c| if is_name_character(c) { c } else { '-' }).take(limits::NAME).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "run".into() } else { name.into() }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

struct Resolver<'a> {
    source: Source<'a>,
    root: &'a Table,
}

impl Resolver<'_> {
    fn table(&self, section: &str) -> Result<Option<(&Node, &Table)>, ConfigError> {
        match self.root.get(section) {
            None => Ok(None),
            Some(node) => match &node.value {
                Value::Table(table) => Ok(Some((node, table))),
                other => {
                    let (key, value) = (section.to_string(), format!(" = {}", self.source.written(&node.place)));
                    let (expected, found) = (format!("a section `[{section}]`"), other.kind().into());
                    Err(self.at(&node.place, Problem::WrongType { key, value, expected, found }).into())
                }
            },
        }
    }

    fn at(&self, place: &Place, problem: Problem) -> Diagnostic {
        self.source.at(Some(place), problem)
    }

    /// The task's kind, if it is there and is text.
    fn kind(&self) -> Option<(&Node, &str)> {
        match &self.root.get("task")?.value {
            Value::Table(task) => match task.get("kind")? {
                node @ Node { value: Value::Text(kind), .. } => Some((node, kind)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The keys of a section; `None` where they depend on a task that isn't known.
    fn keys(&self, section: &str) -> Option<Vec<&'static str>> {
        match section {
            "model" => Some(read::keys_of::<ModelConfig>().to_vec()),
            "train" => Some(read::keys_of::<TrainConfig>().to_vec()),
            "task" => {
                let own = Task::keys(self.kind()?.1)?;
                Some(["kind"].into_iter().chain(own).chain(Sets::KEYS.iter().copied()).collect())
            }
            _ => None,
        }
    }

    /// All unknown keys at once, in the order of the file.
    fn refuse_unknown_keys(&self) -> Result<(), ConfigError> {
        let mut unknown: Vec<(&Place, Diagnostic)> = vec![];
        for (key, node) in self.root.iter().filter(|(key, _)| !ROOT_KEYS.contains(&key.as_str())) {
            let problem = match node.value {
                Value::Table(_) => Problem::UnknownSection { section: shorten(key, 60) },
                _ => Problem::UnknownKey { key: shorten(key, 60) },
            };
            let help = self.help_for(key, &ROOT_KEYS, "");
            unknown.push((&node.place, Diagnostic { help, ..self.at(&node.place, problem) }));
        }
        for section in SECTIONS {
            let Some((_, table)) = self.table(section)? else { continue };
            let Some(keys) = self.keys(section) else { continue };
            for (key, node) in table.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
                let problem = Problem::UnknownKey { key: format!("{section}.{}", shorten(key, 60)) };
                let help = self.help_for(key, &keys, section);
                unknown.push((&node.place, Diagnostic { help, ..self.at(&node.place, problem) }));
            }
        }
        unknown.sort_by_key(|(place, _)| match place {
            Place::File { key, .. } => (0, key.start),
            Place::Override(index) => (1, *index),
        });
        // A file of junk is told about its first few keys only.
        let diagnostics: Vec<_> = unknown.into_iter().map(|(_, diagnostic)| diagnostic).take(5).collect();
        if diagnostics.is_empty() { Ok(()) } else { Err(ConfigError::new(diagnostics)) }
    }

    fn help_for(&self, key: &str, keys: &[&str], section: &str) -> Vec<String> {
        if section.is_empty() && EXPERIMENT_KEYS.contains(&key) {
            return vec![format!("`{key}` belongs to an experiment; `trainer compare FILE` runs those")];
        }
        let full = |section: &str, key: &str| if section.is_empty() { key.into() } else { format!("{section}.{key}") };
        if let Some(near) = nearest(key, keys.iter().copied()) {
            return vec![format!("did you mean `{}`?", full(section, near))];
        }
        let elsewhere = SECTIONS.iter().find(|other| self.keys(other).is_some_and(|keys| keys.contains(&key)));
        if let Some(other) = elsewhere.filter(|other| **other != section) {
            return vec![format!("it belongs in the section `[{other}]`: `{other}.{key}`")];
        }
        if !section.is_empty() && ROOT_KEYS.contains(&key) {
            return vec![format!("it belongs at the top, before the first section: `{key}`")];
        }
        let mut help = vec![];
        if let Some((node, kind)) = self.kind().filter(|_| section == "task") {
            let owner = Task::kinds().iter().find(|kind| Task::keys(kind).is_some_and(|keys| keys.contains(&key)));
            if let Some(owner) = owner {
                let by = match self.at(&node.place, Problem::Override).place {
                    super::error::Shown::Override(set) => format!(" by `--set {set}`"),
                    _ => String::new(),
                };
                help.push(format!("it belongs to the task `{owner}`, but the task is `{kind}`{by}"));
            }
        }
        let valid = list(keys.iter().copied());
        help.push(if section.is_empty() {
            format!("valid are {valid}")
        } else {
            format!("valid in `[{section}]` are {valid}")
        });
        help
    }

    fn root_value<T: for<'de> Deserialize<'de>>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        let read = |node| read::value(key, node).map_err(|error| self.refuse("", Some(node), error));
        self.root.get(key).map(read).transpose()
    }

    fn section<T: for<'de> Deserialize<'de> + Default>(&self, section: &str) -> Result<T, ConfigError> {
        let Some((node, table)) = self.table(section)? else { return Ok(T::default()) };
        T::deserialize(read::section(table, &[])).map_err(|error| self.refuse(section, Some(node), error))
    }

    fn task(&self) -> Result<TaskSection, ConfigError> {
        let kinds = list(Task::kinds().iter().copied());
        let with_help =
            |diagnostic: Diagnostic, help: String| ConfigError::from(Diagnostic { help: vec![help], ..diagnostic });
        let Some((node, table)) = self.table("task")? else {
            let problem = Problem::MissingSection { section: "task".into() };
            let help = format!("add the lines `[task]` and `kind = \"...\"`, with one of {kinds}");
            return Err(with_help(self.source.at(None, problem), help));
        };
        let Some(kind_node) = table.get("kind") else {
            let problem = Problem::MissingKey { key: "task.kind".into() };
            return Err(with_help(self.at(&node.place, problem), format!("the tasks are {kinds}")));
        };
        let kind: String =
            read::value("kind", kind_node).map_err(|error| self.refuse("task", Some(kind_node), error))?;
        let refuse = |error| self.refuse("task", Some(node), error);
        let skip: Vec<&str> = ["kind"].into_iter().chain(Sets::KEYS.iter().copied()).collect();
        let Some(task) = Task::from_kind(&kind, read::section(table, &skip)) else {
            let problem =
                Problem::UnknownWord { key: "task.kind".into(), value: shorten(&kind, 40), what: "task".into() };
            let help = match nearest(&kind, Task::kinds().iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the tasks are {kinds}"),
            };
            return Err(with_help(self.at(&kind_node.place, problem), help));
        };
        let own: Vec<&str> = table.keys().map(String::as_str).filter(|key| !Sets::KEYS.contains(key)).collect();
        let sets = Sets::deserialize(read::section(table, &own)).map_err(refuse)?;
        Ok(TaskSection { task: task.map_err(refuse)?, sets })
    }

    /// Puts a reader's error into words and to its place.
    fn refuse(&self, section: &str, within: Option<&Node>, error: ReadError) -> ConfigError {
        let mut path: Vec<&str> = if section.is_empty() { vec![] } else { vec![section] };
        path.extend(error.keys.iter().rev().map(String::as_str));
        let place = error.place.as_ref().or(within.map(|node| &node.place));
        let key = shorten(&path.join("."), 100);
        let mut help = vec![];
        let problem = match error.reason {
            Reason::WrongType { expected, found } => {
                let written = place.map(|place| self.source.written(place)).unwrap_or_default();
                let unquoted = written.trim_matches(['"', '\'']);
                if found == "text" && expected.contains("number") && unquoted.parse::<f64>().is_ok() {
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
        Diagnostic { help, ..self.source.at(place, problem) }.into()
    }

    fn check(&self, config: &Config) -> Result<(), ConfigError> {
        let name = &config.name;
        if name.is_empty() || name.len() > limits::NAME || name.starts_with('.') || !name.chars().all(is_name_character)
        {
            let message = format!(
                "the name becomes part of a folder's name: 1 to {} letters, digits, `_`, `-` and `.`, not \
                 beginning with `.`",
                limits::NAME
            );
            return Err(self.impossible("", "name", message));
        }
        if config.seed > limits::SEED {
            let message = format!("seed = {} is out of range: 0 to {}", config.seed, limits::SEED);
            return Err(self.impossible("", "seed", message));
        }
        let TaskSection { task, sets } = &config.task;
        task.check().map_err(|error| self.impossible("task", error.key(), error.to_string()))?;
        sets.check().map_err(|error| self.impossible("task", error.key(), error.to_string()))?;
        let dims = config.dims();
        config.model.check(dims).map_err(|error| {
            let message = match error {
                ModelError::NoSource | ModelError::UnreadSource => format!("{error} (task.kind = \"{}\")", task.kind()),
                _ => error.to_string(),
            };
            self.impossible("model", error.key(), message)
        })?;
        let sizes = sample_sizes(&config.model, dims);
        let train = config.train.check(sizes, sets.train_examples);
        train.map_err(|error| self.impossible("train", error.key(), error.to_string()))
    }

    /// A value that can't be, shown where it was set. Where several keys are at fault together, that is an override
    /// before anything in the file, and the key that the error names before others in its message.
    fn impossible(&self, section: &str, key: &str, message: String) -> ConfigError {
        let table = match self.root.get(section) {
            Some(Node { value: Value::Table(table), .. }) => Some(table),
            _ if section.is_empty() => Some(self.root),
            _ => None,
        };
        let is_named = |other: &str| other == key || message.contains(&format!("{other} = "));
        let mut nodes: Vec<_> = table.into_iter().flatten().filter(|(other, _)| is_named(other)).collect();
        nodes.sort_by_key(|(other, node)| (matches!(node.place, Place::File { .. }), other.as_str() != key));
        let node = nodes.first().map(|(_, node)| *node).or(self.root.get(section));
        let key = if section.is_empty() { key.into() } else { format!("{section}.{key}") };
        self.source.at(node.map(|node| &node.place), Problem::Impossible { key, message }).into()
    }
}

/// The sizes that decide how much memory a sample takes; the model must have passed its own check.
fn sample_sizes(model: &ModelConfig, dims: Dims) -> SampleSizes {
    let widths = [model.d_model, model.heads.saturating_mul(model.d_head()), model.d_ff(), dims.outputs];
    let length = dims.source.map_or(dims.length, |source| source.length.max(dims.length));
    SampleSizes { length, heads: model.heads, width: widths.into_iter().max().unwrap_or_default() }
}
