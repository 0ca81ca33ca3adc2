//! Another experiment than the file's, by words of the command line: other seeds, other values. It has a name, so a folder
//! and a registration, of its own.

use std::path::Path;

use super::{
    Experiment,
    resolve::{self, Overrides},
};
use crate::{document, document::ConfigError, limits};

/// What is otherwise than in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// A number of seeds, or several between commas.
    pub seeds: Option<String>,
    /// `KEY=VALUE` each, as in a config's overrides. A key of `[task]`, `[model]` or `[train]` is every arm's; any other is
    /// the experiment's, such as `metric.margin`.
    pub set: Vec<String>,
}

/// Sections of a config, whose keys are every arm's.
const OF_CONFIGS: [&str; 4] = ["task.", "model.", "train.", "backend="];

impl Variant {
    /// Whether it is the file's experiment after all.
    pub fn is_empty(&self) -> bool {
        self.seeds.is_none() && self.set.is_empty()
    }

    pub(super) fn overrides(&self) -> Overrides {
        let plain = |set: &String| set.split_once('=').map(|(key, value)| format!("{}={}", key.trim(), value.trim()));
        let is_of_configs =
            |set: &String| plain(set).is_some_and(|set| OF_CONFIGS.iter().any(|key| set.starts_with(key)));
        let (of_configs, mut own): (Vec<String>, Vec<String>) = self.set.iter().cloned().partition(is_of_configs);
        own.extend(self.seeds.as_ref().map(|seeds| match seeds.contains(',') {
            true => format!("seeds=[{seeds}]"),
            false => format!("seeds={seeds}"),
        }));
        Overrides { own, of_configs }
    }

    /// A name that tells what is otherwise: `h1-vs-h8+seeds=20+train.steps=400`.
    fn name(&self, name: &str) -> String {
        let seeds = self.seeds.iter().map(|seeds| format!("seeds={seeds}"));
        let parts: Vec<String> = self.set.iter().cloned().chain(seeds).collect();
        let plain = |c: char| if resolve::is_name_character(c) { c } else { '-' };
        let parts: String = parts
            .iter()
            .flat_map(|part| {
                ['+'].into_iter().chain(part.chars().filter(|c| !matches!(c, ' ' | '"' | '\'')).map(plain))
            })
            .collect();
        let whole = format!("{name}{parts}");
        if whole.len() <= limits::NAME {
            return whole;
        }
        let hash: String = blake3::hash(whole.as_bytes()).to_hex().chars().take(8).collect();
        let short: String = whole.chars().take(limits::NAME - 9).collect();
        format!("{short}-{hash}")
    }
}

impl Experiment {
    /// [`Experiment::load`], with what a variant has otherwise.
    ///
    /// # Errors
    /// As [`Experiment::load`], and keys that can't be set so.
    pub fn load_variant(path: &Path, variant: &Variant) -> Result<Self, ConfigError> {
        let text = document::read_file(path)?;
        let mut experiment = resolve::resolve(&text, path, &variant.overrides())?;
        if !variant.is_empty() {
            experiment.name = variant.name(&experiment.name);
        }
        Ok(experiment)
    }
}
