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
//! are, each documented at its field: `repetitions`, `sweep`, `match_d_ff`, `looks`, `vary`, `[tuning]`, `[check]`, and in an
//! arm `config`, `label` and `seed_offset`. What is refused comes back as a [`ConfigError`] that shows the line.

mod arms;
mod plan;
mod predict;
mod resolve;
mod variant;
mod write;

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use data::metrics::SplitMetric;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{
    config::Config,
    directory::RunDirectory,
    document::{self, ConfigError},
    error::RunError,
    files, limits,
};

pub use plan::Check;
pub use predict::{Claim, Predicted};
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
    /// At least two.
    pub arms: Vec<Arm>,
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

/// An end of a grid of learning rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridEnd {
    /// Below its smallest rate.
    Below,
    /// Above its largest.
    Above,
}

/// Seeds as a file has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SeedList {
    /// 0, 1 and so on, so many.
    Count(u64),
    /// These.
    List(Vec<u64>),
}

impl SeedList {
    fn len(&self) -> u64 {
        match self {
            Self::Count(count) => *count,
            Self::List(seeds) => seeds.len() as u64,
        }
    }

    /// A list, or as many as a count says; a count that no check would let pass is refused.
    fn listed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let seeds = Self::deserialize(deserializer)?;
        match seeds.len() {
            count if count > limits::SEEDS => {
                Err(de::Error::custom(format!("{count} seeds are too many: at most {}", limits::SEEDS)))
            }
            _ => Ok(seeds.into()),
        }
    }
}

impl From<SeedList> for Vec<u64> {
    fn from(seeds: SeedList) -> Self {
        match seeds {
            SeedList::Count(count) => (0..count).collect(),
            SeedList::List(seeds) => seeds,
        }
    }
}

impl<'de> Deserialize<'de> for SeedList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = SeedList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number of seeds or a list of them, each 0 or more")
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<SeedList, E> {
                Ok(SeedList::Count(count))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<SeedList, A::Error> {
                let mut seeds = vec![];
                while let Some(seed) = items.next_element()? {
                    seeds.push(seed);
                }
                Ok(SeedList::List(seeds))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
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

/// One run of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// Name of the arm.
    pub arm: String,
    /// The pair it belongs to; `config.seed` is this plus the arm's `seed_offset`.
    pub pair: u64,
    /// The learning rate that is tried, for a run of the tuning.
    pub tuned_lr: Option<f64>,
    /// What runs.
    pub config: Config,
    /// Where.
    pub directory: RunDirectory,
}

/// The experiment's file in its folder.
pub const FILE: &str = "experiment.toml";
/// The folder of the runs that choose learning rates, within the experiment's.
const TUNING: &str = "tuning";
/// The folder of the runs that train longer, within the experiment's.
const CHECK: &str = "check";

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
        [FILE, TUNING, CHECK].iter().try_for_each(|name| files::refuse_link(&folder.join(name)))?;
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

    /// The reported runs, all arms of one seed together, so that pairs are complete early. With `[tuning]` call
    /// [`Experiment::tuned`] first.
    pub fn runs(&self, out: &Path) -> Vec<PlannedRun> {
        self.runs_in(&self.folder(out))
    }

    /// [`Experiment::runs`] by the experiment's own folder, wherever that was moved to.
    pub fn runs_in(&self, folder: &Path) -> Vec<PlannedRun> {
        let pairs = self.seeds.iter().flat_map(|seed| self.arms.iter().map(move |arm| (*seed, arm)));
        let run = |(pair, arm): (u64, &Arm)| {
            let config = self.config(arm, pair);
            let directory = RunDirectory::of(folder, &config);
            PlannedRun { arm: arm.name.clone(), pair, tuned_lr: None, config, directory }
        };
        pairs.map(run).collect()
    }

    /// The config of the run of an arm that belongs to the pair of this seed.
    pub fn config(&self, arm: &Arm, pair: u64) -> Config {
        let mut config = Config { seed: pair.saturating_add(arm.seed_offset), ..arm.config.clone() };
        for key in self.vary.iter().filter_map(|key| key.strip_prefix("task.")) {
            // Every seed of the experiment was tried when it was read.
            if let Some(instance) = config.task.task.instance(key, pair) {
                config.task.task = instance;
            }
        }
        config
    }

    /// The runs that train longer, in `<folder>/check/`; none without `[check]`. With `[tuning]` call [`Experiment::tuned`]
    /// first.
    pub fn check_runs_in(&self, folder: &Path) -> Vec<PlannedRun> {
        let Some(check) = self.check else { return vec![] };
        let folder = folder.join(CHECK);
        let mut runs = vec![];
        for pair in self.seeds.iter().copied().take(check.pairs) {
            for arm in &self.arms {
                let config = check.config(self.config(arm, pair));
                let directory = RunDirectory::of(&folder, &config);
                runs.push(PlannedRun { arm: arm.name.clone(), pair, tuned_lr: None, config, directory });
            }
        }
        runs
    }

    /// The runs that choose learning rates, in `<out>/<name>/tuning/`; none without `[tuning]`.
    pub fn tuning_runs(&self, out: &Path) -> Vec<PlannedRun> {
        self.tuning_runs_in(&self.folder(out))
    }

    /// [`Experiment::tuning_runs`] by the experiment's own folder.
    pub fn tuning_runs_in(&self, folder: &Path) -> Vec<PlannedRun> {
        self.tuning_runs_at(folder, self.tuning.as_ref().map_or(&[], |tuning| &tuning.lr))
    }

    /// The same at other rates: those of the file and what the grid was extended by.
    pub fn tuning_runs_at(&self, folder: &Path, rates: &[f64]) -> Vec<PlannedRun> {
        let folder = folder.join(TUNING);
        let mut runs = vec![];
        if let Some(tuning) = &self.tuning {
            for (seed, lr) in tuning.seeds.iter().flat_map(|seed| rates.iter().map(move |lr| (*seed, *lr))) {
                for arm in &self.arms {
                    let mut config = self.config(arm, seed);
                    config.name = format!("{}-lr{lr}", arm.name);
                    config.train.lr = lr;
                    let directory = RunDirectory::of(&folder, &config);
                    runs.push(PlannedRun { arm: arm.name.clone(), pair: seed, tuned_lr: Some(lr), config, directory });
                }
            }
        }
        runs
    }

    /// The experiment with the learning rate that was chosen for each arm, by its name.
    pub fn tuned(&self, chosen: &BTreeMap<String, f64>) -> Self {
        let mut tuned = self.clone();
        for arm in &mut tuned.arms {
            if let Some(lr) = chosen.get(&arm.name) {
                arm.config.train.lr = *lr;
            }
        }
        tuned
    }

    /// The grid of learning rates extended by one step of the ratio at that end, below or above; `None` where it has a single
    /// rate, was extended there twice already, or the rate is none that every arm can have. `rates` rise.
    pub fn extended(&self, rates: &[f64], end: GridEnd) -> Option<Vec<f64>> {
        let declared = &self.tuning.as_ref()?.lr;
        let [first, second, ..] = rates else { return None };
        let [.., before, last] = rates else { return None };
        let (extensions, rate) = match end {
            GridEnd::Below => (rates.iter().filter(|rate| **rate < declared[0]).count(), first * first / second),
            GridEnd::Above => {
                (rates.iter().filter(|rate| **rate > declared[declared.len() - 1]).count(), last * last / before)
            }
        };
        // Three digits, as people write rates: it becomes part of a folder's name.
        let rate: f64 = format!("{rate:.2e}").parse().ok()?;
        let fits = |arm: &Arm| {
            let mut config = arm.config.clone();
            config.train.lr = rate;
            Config::parse(&config.to_toml(), "tuned").is_ok()
        };
        if extensions >= limits::EXTENSIONS || rates.contains(&rate) || !self.arms.iter().all(fits) {
            return None;
        }
        let mut extended = rates.to_vec();
        extended.push(rate);
        extended.sort_by(f64::total_cmp);
        Some(extended)
    }

    /// Every learning rate that may be chosen: those of the file, and all that the grid can be extended by; none without
    /// `[tuning]`.
    pub fn every_rate(&self) -> Vec<f64> {
        let mut rates = self.tuning.as_ref().map_or(vec![], |tuning| tuning.lr.clone());
        for end in [GridEnd::Below, GridEnd::Above] {
            while let Some(extended) = self.extended(&rates, end) {
                rates = extended;
            }
        }
        rates
    }

    /// How many runs have ended in the experiment's folder, of how many: those that choose learning rates, the reported ones
    /// and those of the check. Which rate a reported run would have is not asked: any of the grid, extended or not.
    pub fn ended_in(&self, folder: &Path) -> (usize, usize) {
        let has_ended = |run: &PlannedRun| run.directory.summary_path().is_file();
        let tuning = self.tuning_runs_in(folder);
        let rates = self.every_rate();
        let mut rest: Vec<bool> = vec![];
        let at_rates: Vec<Self> = match rates.is_empty() {
            true => vec![self.clone()],
            false => rates
                .iter()
                .map(|lr| self.tuned(&self.arms.iter().map(|arm| (arm.name.clone(), *lr)).collect()))
                .collect(),
        };
        for tuned in &at_rates {
            let runs: Vec<bool> =
                tuned.runs_in(folder).iter().chain(&tuned.check_runs_in(folder)).map(has_ended).collect();
            rest.resize(runs.len(), false);
            rest.iter_mut().zip(runs).for_each(|(any, ended)| *any |= ended);
        }
        let ended = tuning.iter().filter(|run| has_ended(run)).count() + rest.iter().filter(|ended| **ended).count();
        (ended, tuning.len() + rest.len())
    }

    /// The seeds of each repetition.
    pub fn repetition_seeds(&self) -> impl Iterator<Item = &[u64]> {
        self.seeds.chunks((self.seeds.len() / self.repetitions.max(1)).max(1))
    }
}

/// The number that a resolved config has at a key such as `model.heads`, defaults that follow from others included.
pub fn number_at(config: &Config, key: &str) -> Option<f64> {
    arms::number_at(config, key)
}

#[cfg(test)]
mod tests;
