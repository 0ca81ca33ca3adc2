//! What is compared: one TOML file that names the arms, the seeds, the metric and what would settle the question.
//!
//! ```toml
//! base = "../configs/h8.toml"     # relative to this file; or [base] with `config = "..."` and keys that go over it
//! baseline = "h1"
//! regime = "split"                # split | params | free
//! seeds = 10                      # 0 to 9; or a list. Fewer than 10 pairs need `why_seeds = "..."`
//!
//! [about]
//! question = "Does one head keep up with eight?"
//! prediction = "No."
//! minutes = 20                    # on two cores
//!
//! [metric]
//! name = "test_accuracy"          # {test,validation}_{accuracy,loss}
//! margin = 0.02                   # the smallest difference that matters
//! threshold = 0.95                # a run at this value solved the task
//!
//! [arms.h1]
//! model.heads = 1                 # any keys of a config, checked like its own
//! [arms.h8]
//! ```
//!
//! Instead of arms, `[grid]` with `"model.heads" = [1, 2, 4]` makes the arms `h1`, `h2` and `h4`; several keys make
//! their product. `[predict]` (or several `[[predict]]`) says in a form that can be held against the results what is
//! expected: `better = "h8"`, `equivalent = true` or `sufficient = 4`, and `where = { layers = 1 }` of which arms. Also there
//! are, each documented at its field: `repetitions`, `sweep`, `match_d_ff`, `looks`, `vary`, `[tuning]`, `[check]`, `[published]`,
//! and in an arm `config`, `label` and `seed_offset`. What is refused comes back as a [`ConfigError`] that shows the line.

mod arms;
mod plan;
mod planned;
mod predict;
mod resolve;
mod seeds;
mod variant;
mod write;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use data::metrics::SplitMetric;
use serde::{Deserialize, Serialize};

use crate::{
    config::{self, Config},
    document::{self, ConfigError},
    error::RunError,
    files, limits,
};

pub use plan::Check;
pub use planned::{GridEnd, PlannedRun};
pub use predict::{Claim, Predicted};
pub(crate) use seeds::SeedList;
pub use variant::Variant;

/// Pairs that a comparison has unless its file says why not.
pub const USUAL_PAIRS: usize = 10;

/// A comparison. One that exists has passed every check: each arm's config, with every learning rate of its grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Names the folder of its runs; the file's stem unless set.
    pub name: String,
    /// What it is for.
    pub about: About,
    /// In which sense the arms match.
    pub regime: Regime,
    /// What decides.
    pub metric: MetricChoice,
    /// Name of the arm that all others are compared with.
    pub baseline: String,
    /// Seeds of the reported runs, one pair each.
    pub seeds: Vec<u64>,
    /// Why there are fewer than [`USUAL_PAIRS`].
    pub why_seeds: Option<String>,
    /// The seeds are cut into this many equal parts, each decided on its own, to see how often a verdict is wrong; 1 is
    /// an ordinary comparison.
    pub repetitions: usize,
    /// The config key along which the arms are ordered, the first of `[grid]` unless set: every arm has a number there.
    pub sweep: Option<String>,
    /// Learning rates that are tried for each arm before the reported runs.
    pub tuning: Option<Tuning>,
    /// Keys of instance seeds, such as `task.table_seed`, that take the seed of the pair (the same for all arms), so that
    /// pair i is about instance i of the task; empty where all pairs are about the one that the configs say.
    pub vary: Vec<String>,
    /// Numbers of pairs at which a decision is due, rising to all of them; empty for one look, at all.
    pub looks: Vec<usize>,
    /// What was predicted; empty where nothing was.
    pub predict: Vec<Predicted>,
    /// Pairs that train longer, after the reported runs.
    pub check: Option<Check>,
    /// What others have published of the same, to be shown beside; it decides nothing.
    pub published: Option<Published>,
    /// At least two.
    pub arms: Vec<Arm>,
}

/// Results that others published, by arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Where they stand, such as "arXiv 2510.06662, table 3".
    pub source: String,
    /// What of several runs they are.
    #[serde(default)]
    pub of_runs: OfRuns,
    /// In what our settings differ from theirs, and what that may do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differs: Option<String>,
    /// The deciding metric by the name of the arm.
    pub values: BTreeMap<String, f64>,
}

/// What one number says of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfRuns {
    /// The mean.
    #[default]
    Mean,
    /// The median.
    Median,
    /// The best of them.
    Best,
    /// There was one.
    One,
}

impl OfRuns {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Median => "median",
            Self::Best => "best",
            Self::One => "one",
        }
    }

    /// As it reads after a source.
    pub fn words(self) -> &'static str {
        match self {
            Self::Mean => "means over runs",
            Self::Median => "medians over runs",
            Self::Best => "the best of several runs",
            Self::One => "one run each",
        }
    }
}

/// What an experiment is for, in its author's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct About {
    /// What shall be settled.
    pub question: Option<String>,
    /// What its author expected before the runs.
    pub prediction: Option<String>,
    /// Where the prediction comes from, or numbers that the runs should show.
    pub expected: Option<String>,
    /// Wall-clock minutes of all runs on two laptop cores.
    pub minutes: Option<f64>,
    /// What came out, recorded by hand after the runs.
    pub result: Option<String>,
}

/// In which sense arms match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    /// Only `model.heads` and `model.kv_heads` differ: equal parameters, FLOPs and initial weights.
    Split,
    /// Only `[model]` differs, and the total of parameters by at most half an MLP unit a layer.
    Params,
    /// Anything may differ; the report lists it.
    Free,
}

impl Regime {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Params => "params",
            Self::Free => "free",
        }
    }
}

/// What decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetricChoice {
    /// The primary metric; [`SplitMetric::USUAL`] unless set.
    #[serde(default = "usual_metric")]
    pub name: SplitMetric,
    /// The smallest difference that matters, at least 0, in the metric's unit.
    pub margin: f64,
    /// A run at this value or better solved the task; that of the metric unless set.
    pub threshold: Option<f64>,
    /// At which step it is read.
    #[serde(default)]
    pub at: ReadAt,
    /// A pair whose difference lies further than this from the median one has failed; five margins unless set.
    pub failure_difference: Option<f64>,
    /// Failures more frequent than this must be excluded before anything is called equivalent or sufficient; 0.3 unless set.
    pub max_failure: Option<f64>,
}

/// The step at which a metric is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAt {
    /// The last one.
    #[default]
    Final,
    /// The one with the best validation: on data that are fixed, the last step rewards whoever overfits later.
    BestValidation,
}

impl ReadAt {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Final => "final",
            Self::BestValidation => "best_validation",
        }
    }
}

fn usual_metric() -> SplitMetric {
    SplitMetric::USUAL
}

/// Learning rates that are tried for each arm; the one with the best mean on the validation set is used. Where that is at an end
/// of the grid for any arm, the grid is extended there for all of them: [`Experiment::extended`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// Peak learning rates, the same for every arm, rising.
    pub lr: Vec<f64>,
    /// None of them is a seed of a reported run.
    #[serde(deserialize_with = "SeedList::listed")]
    pub seeds: Vec<u64>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// Such as `h8`.
    pub name: String,
    /// As it reads in a sentence, such as "8 heads"; made from `model.heads` where arms differ in nothing else that is
    /// not implied by it, or else the name, unless `label` says otherwise.
    pub label: String,
    /// Added to every seed of this arm: an arm of other seeds, for comparing a config with itself. Only in regime `free`.
    pub seed_offset: u64,
    /// The resolved config, whose name is the arm's and whose seed is 0.
    pub config: Config,
}

/// The experiment's file in its folder.
pub const FILE: &str = "experiment.toml";
impl Experiment {
    /// Reads a file; the configs that it names are found relative to it.
    ///
    /// # Errors
    /// Whatever is unknown, of the wrong type, missing or impossible, in it or in a config it names.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = document::read_file(path)?;
        Self::parse(&text, path)
    }

    /// Reads the text of an experiment; `path` names it in errors and is what its configs are relative to.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        resolve::resolve(text, path, &Default::default())
    }

    /// The experiment as a file that stands alone: every key of every arm written, no other file named. Reading it
    /// gives an equal experiment.
    pub fn to_toml(&self) -> String {
        write::to_toml(self)
    }

    /// Writes [`Experiment::to_toml`] to `experiment.toml` in the experiment's folder, so that the folder stands alone.
    ///
    /// # Errors
    /// [`files::check_folder`]'s, where what is written in the folder is a link, and where the disk is full or gone.
    pub fn save(&self, folder: &Path) -> Result<(), RunError> {
        files::check_folder(folder)?;
        [FILE, planned::TUNING, planned::CHECK].iter().try_for_each(|name| files::refuse_link(&folder.join(name)))?;
        fs::create_dir_all(folder).map_err(RunError::io("create", folder))?;
        files::write_atomically(&folder.join(FILE), self.to_toml().as_bytes())
    }

    /// Reads what [`Experiment::save`] wrote.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn of_folder(folder: &Path) -> Result<Self, ConfigError> {
        Self::load(&folder.join(FILE))
    }

    /// The arm of that name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// Where the experiment's runs and results are.
    pub fn folder(&self, out: &Path) -> PathBuf {
        out.join(&self.name)
    }
}

/// Whether a file is an experiment's rather than a config's; `None` where it can't be read.
pub fn is_one(path: &Path) -> Option<bool> {
    let text = files::read_at_most(path, limits::CONFIG).ok()?;
    Some(config::is_experiment(&String::from_utf8_lossy(&text)))
}

/// The number that a resolved config has at a key such as `model.heads`, defaults that follow from others included.
pub fn number_at(config: &Config, key: &str) -> Option<f64> {
    arms::number_at(config, key)
}

#[cfg(test)]
mod tests;
