//! The runs of an experiment: which there are, with what config, and where.

use std::{collections::BTreeMap, path::Path};

use super::{Arm, Experiment};
use crate::{config::Config, directory::RunDirectory, limits};

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

/// An end of a grid of learning rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridEnd {
    /// Below its smallest rate.
    Below,
    /// Above its largest.
    Above,
}

/// The folder of the runs that choose learning rates, within the experiment's.
pub(super) const TUNING: &str = "tuning";
/// The folder of the runs that train longer, within the experiment's.
pub(super) const CHECK: &str = "check";

impl Experiment {
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
