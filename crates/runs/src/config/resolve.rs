//! From text and overrides to a checked config: unknown keys, then types, then values.

use std::path::Path;

use architecture::{Dims, ModelConfig, ModelError};
use data::{Sets, Task, TaskError};
use serde::Deserialize;

use super::{
    Config, TaskSection, TrainConfig,
    train::{SampleSizes, TrainConfigError},
};
use crate::{
    document::{
        ConfigError, Diagnostic, Document, KeyNode, KeyPlace, Problem, Section, Shown, Value, keys_of, refuse, shorten,
    },
    limits,
    nearest::{list, nearest},
};

/// The sections of a config.
const SECTIONS: [&str; 3] = ["task", "model", "train"];
/// Keys at the top of an experiment file, as far as they tell it from a config.
const EXPERIMENT_KEYS: [&str; 15] = [
    "base",
    "baseline",
    "regime",
    "seeds",
    "repetitions",
    "about",
    "metric",
    "tuning",
    "vary",
    "looks",
    "predict",
    "check",
    "published",
    "arms",
    "grid",
];
const ROOT_KEYS: [&str; 6] = ["name", "seed", "backend", "task", "model", "train"];

/// Whether a text is an experiment's rather than a config's, by the keys at its top.
pub(crate) fn is_experiment(text: &str) -> bool {
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| table.keys().any(|key| EXPERIMENT_KEYS.contains(&key.as_str())))
}

/// Reads and checks everything.
pub(crate) fn resolve(document: Document<'_>) -> Result<Config, ConfigError> {
    let table = document.tree()?;
    let resolver = Resolver { root: Section::root(document, &table) };
    resolver.refuse_unknown_keys()?;
    let mut config = Config {
        name: resolver.root.value("name")?.unwrap_or_else(|| default_name(document.origin)),
        seed: resolver.root.value("seed")?.unwrap_or_default(),
        backend: resolver.root.value("backend")?.unwrap_or_default(),
        task: resolver.task()?,
        model: resolver.section("model")?,
        train: resolver.section("train")?,
    };
    resolver.check_itself(&config)?;
    config.task = resolver.open(config.task, document.origin)?;
    if config.model.readout {
        config.task.task = config.task.task.with_readout();
    }
    resolver.check_together(&config)?;
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
    root: Section<'a>,
}

impl Resolver<'_> {
    /// The task's kind, if it is there and is text.
    fn kind(&self) -> Option<(&KeyNode, &str)> {
        match &self.root.get("task")?.value {
            Value::Table(task) => match task.get("kind")? {
                node @ KeyNode { value: Value::Text(kind), .. } => Some((node, kind)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The keys of a section; `None` where they depend on a task that isn't known.
    fn keys(&self, section: &str) -> Option<Vec<&'static str>> {
        match section {
            "model" => Some(keys_of::<ModelConfig>().to_vec()),
            "train" => Some(keys_of::<TrainConfig>().to_vec()),
            "task" => {
                let own = Task::keys(self.kind()?.1)?;
                Some(["kind"].into_iter().chain(own).chain(Sets::KEYS.iter().copied()).collect())
            }
            _ => None,
        }
    }

    /// All unknown keys at once, in the order of the file.
    fn refuse_unknown_keys(&self) -> Result<(), ConfigError> {
        let mut unknown = vec![];
        let refuse_of = |section: &Section<'_>, name: &str, keys: &[&str]| -> Vec<(KeyPlace, Diagnostic)> {
            let with_help = |(key, place, diagnostic): (&str, &KeyPlace, Diagnostic)| {
                (place.clone(), Diagnostic { help: self.help_for(key, keys, name), ..diagnostic })
            };
            section.unknown(keys).into_iter().map(with_help).collect()
        };
        unknown.extend(refuse_of(&self.root, "", &ROOT_KEYS));
        for name in SECTIONS {
            if let (Some(section), Some(keys)) = (self.root.section(name)?, self.keys(name)) {
                unknown.extend(refuse_of(&section, name, &keys));
            }
        }
        refuse(unknown)
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
            let mut all = Task::kinds().into_iter().chain(Task::file_kinds());
            let owner = all.find(|kind| Task::keys(kind).is_some_and(|keys| keys.contains(&key)));
            if let Some(owner) = owner {
                let by = match self.root.document.at(Some(&node.place), Problem::Override).place {
                    Shown::Override(set) => format!(" by `--set {set}`"),
                    Shown::File | Shown::Excerpt(_) => String::new(),
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

    fn section<T: for<'de> Deserialize<'de> + Default>(&self, name: &str) -> Result<T, ConfigError> {
        self.root.section(name)?.map_or(Ok(T::default()), |section| section.read(&[]))
    }

    fn task(&self) -> Result<TaskSection, ConfigError> {
        let kinds = list(Task::kinds().into_iter().chain(Task::file_kinds()));
        let with_help =
            |diagnostic: Diagnostic, help: String| ConfigError::from(Diagnostic { help: vec![help], ..diagnostic });
        let Some(section) = self.root.section("task")? else {
            let problem = Problem::MissingSection { section: "task".into() };
            let help = format!("add the lines `[task]` and `kind = \"...\"`, with one of {kinds}");
            return Err(with_help(self.root.at("task", problem), help));
        };
        let Some(kind) = section.value::<String>("kind")? else {
            let problem = Problem::MissingKey { key: "task.kind".into() };
            return Err(with_help(section.at("kind", problem), format!("the tasks are {kinds}")));
        };
        let skip: Vec<&str> = ["kind"].into_iter().chain(Sets::KEYS.iter().copied()).collect();
        let task = section.read_with(&skip, |reader| Task::from_kind(&kind, reader).transpose())?;
        let Some(task) = task else {
            let problem =
                Problem::UnknownWord { key: "task.kind".into(), value: shorten(&kind, 40), what: "task".into() };
            let help = match nearest(&kind, Task::kinds().into_iter().chain(Task::file_kinds())) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the tasks are {kinds}"),
            };
            return Err(with_help(section.at("kind", problem), help));
        };
        let own: Vec<&str> = section.keys().filter(|key| !Sets::KEYS.contains(key)).collect();
        Ok(TaskSection::new(task, section.read(&own)?))
    }

    /// What needs no sizes of the task.
    fn check_itself(&self, config: &Config) -> Result<(), ConfigError> {
        let name = &config.name;
        if name.is_empty() || name.len() > limits::NAME || name.starts_with('.') || !name.chars().all(is_name_character)
        {
            let message = format!(
                "the name becomes part of a folder's name: 1 to {} letters, digits, `_`, `-` and `.`, not \
                 beginning with `.`",
                limits::NAME
            );
            return Err(self.root.impossible("name", message));
        }
        if config.seed > limits::SEED {
            let message = format!("seed = {} is out of range: 0 to {}", config.seed, limits::SEED);
            return Err(self.root.impossible("seed", message));
        }
        let TaskSection { task, asked: sets, .. } = &config.task;
        let refuse = |error: TaskError| {
            self.impossible("task", error.key(), error.keys().get(1..).unwrap_or_default(), error.to_string())
        };
        task.check().map_err(refuse)?;
        sets.check().map_err(refuse)
    }

    /// Reads the files of a task, their paths taken from the config's folder.
    fn open(&self, task: TaskSection, origin: &str) -> Result<TaskSection, ConfigError> {
        let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
        task.open(folder).map_err(|error| self.impossible("task", "files", &[], error.to_string()))
    }

    /// What follows from the task's sizes.
    fn check_together(&self, config: &Config) -> Result<(), ConfigError> {
        let TaskSection { task, sets, .. } = &config.task;
        let numbers = task.numbers().unwrap_or_default();
        for (does, has_both) in [
            ("reads tokens and numbers, and a model reads", task.vocab() > 0 && numbers.inputs > 0),
            ("asks for classes and numbers, and a model says", task.outputs() > 0 && numbers.outputs > 0),
        ] {
            if has_both {
                let message = format!("kind = \"{}\" {does} one of the two", task.kind());
                return Err(self.impossible("task", "kind", &[], message));
            }
        }
        let dims = config.dims();
        config.model.check(dims).map_err(|error| {
            let message = match &error {
                ModelError::NoSource | ModelError::UnreadSource => format!("{error} (task.kind = \"{}\")", task.kind()),
                _ => error.to_string(),
            };
            self.impossible("model", error.key(), others_of_model(&error), message)
        })?;
        let sizes = sample_sizes(&config.model, dims);
        let train = config.train.check(sizes, sets.train_examples);
        train.map_err(|error| self.impossible("train", error.key(), others_of_train(&error), error.to_string()))
    }

    /// A value that can't be, alone or beside others of its section.
    fn impossible(&self, section: &str, key: &str, others: &[&str], message: String) -> ConfigError {
        match self.root.section(section) {
            Ok(Some(section)) => section.impossible_beside(key, others, message),
            // Nothing of it is written: it can't be with the defaults.
            _ => {
                let problem = Problem::Impossible { key: format!("{section}.{key}"), message };
                self.root.at(section, problem).into()
            }
        }
    }
}

/// Keys of `[model]` whose values an error names beside its own key.
fn others_of_model(error: &ModelError) -> &'static [&'static str] {
    match error {
        ModelError::HeadsDoNotDivide { .. } | ModelError::OddWidth { .. } => &["d_model"],
        ModelError::KvHeadsDoNotDivide { .. } => &["heads"],
        ModelError::OddHeads { .. } => &["d_head", "d_model", "heads"],
        ModelError::NotCausal => &["architecture"],
        ModelError::TiedInit => &["init"],
        ModelError::InputWidth { .. } | ModelError::OutputWidth { .. } => &["d_model"],
        ModelError::TiedToNothing => &["output_layer"],
        ModelError::CausalReadout => &["causal"],
        _ => &[],
    }
}

/// As [`others_of_model`], of `[train]`.
fn others_of_train(error: &TrainConfigError) -> &'static [&'static str] {
    match error {
        TrainConfigError::MinLr { .. } => &["lr"],
        TrainConfigError::StepTooLarge { .. } => &["accumulate"],
        _ => &[],
    }
}

/// The sizes that decide how much memory a sample takes; the model must have passed its own check.
fn sample_sizes(model: &ModelConfig, dims: Dims) -> SampleSizes {
    let query = model.heads.saturating_mul(model.d_head());
    let widths = [model.d_model, query, model.d_ff(), dims.outputs, dims.inputs];
    let length = dims.source.map_or(dims.length, |source| source.length.max(dims.length));
    SampleSizes { length, heads: model.heads, width: widths.into_iter().max().unwrap_or_default() }
}
