//! The choice of learning rates, on seeds and a set of their own.

use std::{collections::BTreeMap, path::Path};

use data::{Split, metrics::SplitMetric};
use runs::{Experiment, PlannedRun, RunRecord, experiment::GridEnd};
use serde::{Deserialize, Serialize};
use statistics::describe::mean_of_checked;

use crate::deciding::{self, final_value};

/// What the tuning runs showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuningTable {
    /// The metric that chose: the primary one on the validation set, at the final step.
    pub metric: SplitMetric,
    /// Seeds of the tuning runs.
    pub seeds: Vec<u64>,
    /// Rates by which the grid was extended, for every arm alike, as the best of some arm was at an end.
    #[serde(default)]
    pub extended: Vec<f64>,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmTuning>,
}

/// One arm's learning rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmTuning {
    /// Name of the arm.
    pub arm: String,
    /// As it reads in a sentence.
    pub label: String,
    /// Every rate that was tried, rising.
    pub rates: Vec<RateResult>,
    /// Of the rates at which the fewest runs diverged that with the best mean, the smallest of equal ones; `None` while a run
    /// is missing.
    pub chosen: Option<f64>,
    /// Where nothing is chosen, since a tuning run is missing: the rate of the reported runs that are there, which followed
    /// from the choice when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_runs: Option<f64>,
}

/// One learning rate of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateResult {
    /// Peak learning rate.
    pub lr: f64,
    /// The metric of each seed's run; `None` where it diverged or is missing.
    pub values: Vec<Option<f64>>,
    pub diverged: usize,
    pub missing: usize,
    /// Over the runs that ended, a diverged one entering with the worst value; `None` if none did.
    pub mean: Option<f64>,
}

impl ArmTuning {
    /// Whether the rate that was chosen is the smallest or the largest of several: one beyond the grid may be better.
    pub fn is_at_edge(&self) -> bool {
        self.edge().is_some()
    }

    /// At which end it is.
    fn edge(&self) -> Option<GridEnd> {
        let [first, .., last] = &self.rates[..] else { return None };
        match self.chosen? {
            chosen if chosen == first.lr => Some(GridEnd::Below),
            chosen if chosen == last.lr => Some(GridEnd::Above),
            _ => None,
        }
    }
}

impl TuningTable {
    /// What the tuning runs of an experiment in `folder` come to, and the rates to be tried next, if any; `None` if it has no
    /// tuning.
    ///
    /// The grid is that of the file at first. Where every run of it has ended and the best rate of some arm is at an end, one
    /// beyond may be better: it is extended there for all arms, and so on, as far as [`Experiment::extended`] goes.
    pub fn read(experiment: &Experiment, folder: &Path) -> Option<(Self, Vec<f64>)> {
        let mut rates = experiment.tuning.as_ref()?.lr.clone();
        let mut records: Vec<RunRecord> = vec![];
        loop {
            // What was read before is not read again.
            let is_new = |run: &PlannedRun| records.iter().all(|record| record.plan.tuned_lr != run.tuned_lr);
            let new = experiment.tuning_runs_at(folder, &rates).into_iter().filter(is_new).collect::<Vec<_>>();
            records.extend(new.into_iter().map(RunRecord::read));
            let table = Self::of(experiment, folder, &rates, &records)?;
            if table.missing() > 0 {
                return Some((table, rates));
            }
            let Some(extended) = table.extended(experiment, &rates) else { return Some((table, vec![])) };
            // Where nothing beyond has been tried yet, the choice is shown as it is so far.
            let next = experiment.tuning_runs_at(folder, &extended);
            let is_tried = |run: &PlannedRun| {
                is_beyond(run, &rates) && runs::claims::latest(&run.directory).config_path().is_file()
            };
            if !next.iter().any(is_tried) {
                return Some((table, extended));
            }
            rates = extended;
        }
    }

    /// The rates with those beyond the ends at which some arm's best is; `None` where there are none to be added.
    fn extended(&self, experiment: &Experiment, rates: &[f64]) -> Option<Vec<f64>> {
        let mut extended = rates.to_vec();
        for end in [GridEnd::Below, GridEnd::Above] {
            if self.arms.iter().any(|arm| arm.edge() == Some(end))
                && let Some(further) = experiment.extended(&extended, end)
            {
                extended = further;
            }
        }
        (extended.len() > rates.len()).then_some(extended)
    }

    /// What the runs of these rates come to; `None` if the experiment has no tuning.
    fn of(experiment: &Experiment, folder: &Path, rates: &[f64], records: &[RunRecord]) -> Option<Self> {
        let tuning = experiment.tuning.as_ref()?;
        let metric = SplitMetric { split: Split::Validation, ..experiment.metric.name };
        let worst = deciding::scale(experiment).penalty;
        let arm = |arm: &runs::Arm| {
            let rate = |lr: &f64| {
                let tried = records.iter().filter(|r| r.plan.arm == arm.name && r.plan.tuned_lr == Some(*lr));
                self::rate(*lr, &tried.collect::<Vec<_>>(), metric, worst)
            };
            let results: Vec<RateResult> = rates.iter().map(rate).collect();
            let chosen = choose(&results, metric);
            let of_runs = if chosen.is_none() { rate_of_runs(experiment, folder, &arm.name) } else { None };
            ArmTuning { arm: arm.name.clone(), label: arm.label.clone(), rates: results, chosen, of_runs }
        };
        let extended = rates.iter().copied().filter(|rate| !tuning.lr.contains(rate)).collect();
        let arms = experiment.arms.iter().map(arm).collect();
        Some(Self { metric, seeds: tuning.seeds.clone(), extended, arms })
    }

    /// How many tuning runs have not ended yet.
    pub fn missing(&self) -> usize {
        self.arms.iter().flat_map(|arm| &arm.rates).map(|rate| rate.missing).sum()
    }

    /// The learning rate of every arm for which one is known, for [`Experiment::tuned`].
    pub fn chosen(&self) -> BTreeMap<String, f64> {
        self.arms.iter().filter_map(|arm| Some((arm.arm.clone(), arm.chosen.or(arm.of_runs)?))).collect()
    }

    /// What is to be said of each arm that misses tuning runs.
    pub fn gaps(&self) -> Vec<String> {
        let gap = |arm: &ArmTuning| {
            let missing: usize = arm.rates.iter().map(|rate| rate.missing).sum();
            let runs = if missing == 1 { "tuning run is" } else { "tuning runs are" };
            let rate = match arm.of_runs {
                Some(lr) => format!("the rate {lr} is that of its runs, and can't be checked"),
                None => "no rate can be chosen".into(),
            };
            (missing > 0).then(|| format!("{}: {missing} {runs} missing; {rate}", arm.label))
        };
        self.arms.iter().filter_map(gap).collect()
    }
}

/// The one rate of which reported runs of an arm are there; `None` where there are none, or of several.
fn rate_of_runs(experiment: &Experiment, folder: &Path, arm: &str) -> Option<f64> {
    let rates = experiment.every_rate();
    let is_there = |lr: &&f64| {
        let runs = experiment.tuned(&[(arm.to_string(), **lr)].into()).runs_in(folder);
        runs.iter().any(|run| run.arm == arm && run.directory.config_path().is_file())
    };
    let mut there = rates.iter().filter(is_there);
    there.next().copied().filter(|_| there.next().is_none())
}

fn rate(lr: f64, tried: &[&RunRecord], metric: SplitMetric, worst: f64) -> RateResult {
    let value = |summary| final_value(summary, metric);
    let ended: Vec<Option<f64>> = tried.iter().filter_map(|record| record.summary()).map(value).collect();
    let values = tried.iter().map(|record| record.summary().and_then(value)).collect();
    let direction = deciding::direction(metric);
    let worst = ended.iter().flatten().fold(worst, |worst, value| direction.worse(worst, *value));
    let entered: Vec<f64> = ended.iter().map(|value| value.unwrap_or(worst)).collect();
    RateResult {
        lr,
        values,
        diverged: ended.iter().filter(|value| value.is_none()).count(),
        missing: tried.len() - ended.len(),
        mean: (!entered.is_empty()).then(|| mean_of_checked(&entered)),
    }
}

/// A rate with more divergences than another is never chosen, however good its other runs are.
fn choose(rates: &[RateResult], metric: SplitMetric) -> Option<f64> {
    if rates.iter().any(|rate| rate.missing > 0) {
        return None;
    }
    let direction = deciding::direction(metric);
    let fewest = rates.iter().map(|rate| rate.diverged).min()?;
    let mut best: Option<(f64, f64)> = None;
    for rate in rates.iter().filter(|rate| rate.diverged == fewest) {
        let mean = rate.mean?;
        if best.is_none_or(|(_, other)| direction.advantage(mean - other) > 0.0) {
            best = Some((rate.lr, mean));
        }
    }
    best.map(|(lr, _)| lr)
}

fn is_beyond(run: &PlannedRun, rates: &[f64]) -> bool {
    run.tuned_lr.is_some_and(|lr| !rates.contains(&lr))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(means: &[(f64, f64, usize)]) -> Vec<RateResult> {
        let rate = |(lr, mean, diverged): &(f64, f64, usize)| RateResult {
            lr: *lr,
            values: vec![Some(*mean); 3],
            diverged: *diverged,
            missing: 0,
            mean: Some(*mean),
        };
        means.iter().map(rate).collect()
    }

    fn chosen(means: &[(f64, f64, usize)]) -> Option<f64> {
        let metric = SplitMetric { split: Split::Validation, ..SplitMetric::USUAL };
        choose(&rates(means), metric)
    }

    #[test]
    fn a_rate_with_more_divergences_is_never_chosen() {
        assert_eq!(chosen(&[(1e-3, 0.6, 0), (1e-2, 0.9, 0)]), Some(1e-2));
        assert_eq!(chosen(&[(1e-3, 0.6, 0), (1e-2, 0.9, 1)]), Some(1e-3));
        // Where all rates diverge at times, those that do least often.
        assert_eq!(chosen(&[(1e-4, 0.5, 1), (1e-3, 0.6, 1), (1e-2, 0.9, 2)]), Some(1e-3));
        // The smallest of equals.
        assert_eq!(chosen(&[(1e-3, 0.6, 0), (1e-2, 0.6, 0)]), Some(1e-3));
    }

    #[test]
    fn a_choice_at_an_end_is_told() {
        let arm = |chosen: Option<f64>, means: &[(f64, f64, usize)]| ArmTuning {
            arm: "h1".into(),
            label: "1 head".into(),
            rates: rates(means),
            chosen,
            of_runs: None,
        };
        let means = [(1e-4, 0.5, 0), (1e-3, 0.6, 0), (1e-2, 0.9, 0)];
        assert_eq!(arm(Some(1e-4), &means).edge(), Some(GridEnd::Below));
        assert_eq!(arm(Some(1e-3), &means).edge(), None);
        assert_eq!(arm(Some(1e-2), &means).edge(), Some(GridEnd::Above));
        assert_eq!(arm(Some(1e-2), &means[2..]).edge(), None, "a single rate is no grid");
        assert_eq!(arm(None, &means).edge(), None);
    }
}
