//! The result of an experiment, from its file and its run directories alone, in numbers.
//!
//! `results.json` holds [`Results`] and is the same, byte for byte, for the same runs, however many of them ran at once;
//! wall-clock figures are in `timings.json` ([`Timings`]). The same numbers are in `runs.csv` (one line a run) and
//! `curves.csv` (one line an arm, split and step; [`crate::tables`]), drawn in `figures/` as SVG ([`crate::figures`]), and told
//! in `report.html` ([`crate::page`]).
//!
//! No number in these files is NaN or infinite. What each metric says and its unit are in [`data::metrics`]; steps
//! are optimiser steps.

mod answer;
mod arms;
mod check;
mod curves;
mod metric;
mod of_experiment;
mod predictions;
mod question;
mod registered;
mod repetitions;
mod timings;

use std::{io, path::PathBuf};

use data::metrics::SplitScores;
use runs::{
    Ledger, LedgerRun, Mismatch, PlannedRun, Regime, RunError, RunRecord,
    experiment::{About, Published},
};
use serde::{Deserialize, Serialize};
use statistics::{
    StatisticsError, describe::Description, interval::WilsonInterval, outcome::StepsToThreshold, two_arms::Limits,
};
use thiserror::Error;

use crate::{
    reading::ExperimentRuns,
    tuning::{ArmTuning, TuningTable},
};

pub use answer::Answer;
pub use arms::Stability;
pub use check::Checked;
pub use curves::{Band, Curve, CurvePoint};
pub use metric::DecidingMetric;
pub use predictions::Prediction;
pub use question::{ArmVerdict, Decision, Findings, InteractionFound, SweepAtLevel, Swept};
pub use registered::{Change, Registered};
pub use repetitions::{Repetition, Repetitions};
pub use timings::{ArmTiming, RunTiming, Timings};

pub(crate) use answer::answer;
pub(crate) use arms::Summarised;
pub(crate) use question::{Contender, Judged, Question};

/// Version of the layout of `results.json`; raised whenever a reader would have to change.
pub const SCHEMA_VERSION: u32 = 2;

/// The content of `results.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was found, in words.
    pub answer: Answer,
    /// Whether a decision is due, and whether it has come.
    pub decision: Decision,
    /// Name of the experiment.
    pub name: String,
    /// Question, prediction and so on, as its author wrote them.
    pub about: About,
    /// What was predicted before the runs, and how that ended.
    pub predictions: Vec<Prediction>,
    /// What stood before the first run, and what was changed since, with the times: those are in `registration.json`, as
    /// nothing here depends on when it was done.
    #[serde(skip)]
    pub registered: Option<Registered>,
    /// Whether the answer holds where the arms train longer, once those runs are there.
    pub check: Option<Checked>,
    /// What was found, in numbers, at the look that counts. With repetitions, over all pairs together.
    #[serde(flatten)]
    pub findings: Findings,
    /// Over all complete pairs, where there are more than were planned: it decides nothing.
    pub exploratory: Option<Exploratory>,
    /// Each part of the seeds on its own, where the experiment has repetitions.
    pub repetitions: Option<Repetitions>,
    /// In which sense the arms match; `None` for results of others.
    pub regime: Option<Regime>,
    /// Name of the arm that the others are compared with.
    pub baseline: String,
    /// The deciding metric, its margin and the threshold at which a run solved the task.
    pub metric: DecidingMetric,
    /// The pairs.
    pub seeds: Vec<u64>,
    /// Why there are fewer than ten.
    pub why_seeds: Option<String>,
    /// The config key along which arms are ordered, where there is one; each arm's number is its `sweep_value`.
    pub sweep: Option<Swept>,
    /// What others have published of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmResult>,
    /// How learning rates were chosen, where they were.
    pub tuning: Option<TuningTable>,
    /// What the arms share; `None` for results of others.
    pub ledger: Option<Ledger>,
    /// Runs that are missing or diverged, and why.
    pub problems: Vec<RunProblem>,
}

/// What more pairs than were planned show: not the registered verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exploratory {
    /// How many pairs.
    pub pairs: usize,
    pub findings: Findings,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    /// Such as `h8`.
    pub name: String,
    /// Such as "8 heads".
    pub label: String,
    /// Its number at the sweep's key.
    pub sweep_value: Option<f64>,
    /// Its values at the other keys in which arms differ; empty where nothing is swept.
    pub level: statistics::grid::Level,
    /// Its values at every key of the config in which any two arms differ, as TOML; empty for results of others.
    #[serde(default)]
    pub settings: statistics::grid::Level,
    /// Optimiser steps of a run; 0 where not known.
    pub steps: u64,
    /// Peak learning rate, where known.
    pub lr: Option<f64>,
    /// Its runs, in the order of the pairs.
    pub runs: Vec<RunResult>,
    /// How many of them finished.
    pub finished: usize,
    /// How many diverged: failures of the arm.
    pub diverged: usize,
    /// How many say nothing, because they have not run to the end.
    pub missing: usize,
    /// The primary metric over all runs that aren't missing, values as they enter: a diverged run with the penalty.
    pub description: Option<Description>,
    /// 95 % Student t interval of the arm's own mean, unpaired; for the sweep curve, not for a verdict.
    pub interval_of_mean: Option<Limits>,
    /// Share of runs that ended at the threshold or better.
    pub solve_rate: Option<WilsonInterval>,
    /// First validated step at the threshold or better, of every run that isn't missing.
    pub steps_to_threshold: Option<StepsToThreshold>,
    /// How steadily it trained.
    pub stability: Stability,
    /// Curves over training: validation at every validated step, training thinned.
    pub curves: Vec<Curve>,
}

/// How one run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// All steps were done.
    Finished,
    /// The loss or the gradient left the finite numbers.
    Diverged,
    /// It has not run to the end.
    Missing,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The pair it belongs to.
    pub pair: u64,
    /// Its own seed.
    pub seed: u64,
    pub status: RunStatus,
    /// Its directory within the experiment's.
    pub directory: String,
    /// The deciding metric; `None` unless it finished.
    pub value: Option<f64>,
    /// Optimiser steps done.
    pub steps: Option<u64>,
    /// At the final step; none unless it finished.
    #[serde(flatten)]
    pub scores: SplitScores,
    /// The step with the smallest validation loss, and that loss.
    pub best_step: Option<u64>,
    pub best_validation_loss: Option<f64>,
    /// First validated step at the threshold or better.
    pub first_step_at_threshold: Option<u64>,
    /// Loss spikes; neighbouring ones are one episode.
    pub spike_episodes: Option<usize>,
    /// 99th percentile of the gradient norm over its median.
    pub gradient_tail: Option<f64>,
}

/// A run that did not finish.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunProblem {
    pub arm: String,
    pub pair: u64,
    /// Its directory within the experiment's.
    pub directory: String,
    /// Such as "diverged at step 12" or "stopped after step 300".
    pub reason: String,
}

/// Why there are no results.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The arms are not what the experiment says they are.
    #[error("the arms don't match:\n{}", runs::ledger::explain(*.regime, .mismatches))]
    Mismatch { regime: Regime, mismatches: Vec<Mismatch> },
    /// No run has left anything to read.
    #[error("{}: no run of the experiment has finished yet", .folder.display())]
    NoRuns { folder: PathBuf },
    /// A file of a run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A statistic that can't be computed.
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    /// The folder of the figures.
    #[error("can't create {}: {source}", .path.display())]
    Folder { path: PathBuf, source: io::Error },
}

impl ResultsError {
    /// As [`RunError::is_unwritten`].
    pub fn is_unwritten(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        match self {
            Self::Run(error) => error.is_unwritten(),
            Self::Folder { source, .. } => {
                self.is_read_only() || matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
            }
            _ => false,
        }
    }

    /// As [`RunError::is_read_only`].
    pub fn is_read_only(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::Run(error) => error.is_read_only(),
            Self::Folder { source, .. } => matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem),
            _ => false,
        }
    }
}

impl Results {
    /// What the runs of an experiment come to.
    ///
    /// # Errors
    /// [`ResultsError::Mismatch`] where the runs aren't matched as their regime demands (program versions and backends
    /// may be mixed with `mixed_ok`), and [`ResultsError::NoRuns`]. A run that is missing or damaged is no error: it is
    /// named in [`Results::problems`].
    pub fn of(runs: &ExperimentRuns, mixed_ok: bool) -> Result<Self, ResultsError> {
        let ExperimentRuns { folder, experiment, tuning, records, .. } = runs;
        if records.iter().all(|record| record.summary().is_none()) {
            return Err(ResultsError::NoRuns { folder: folder.clone() });
        }
        let ledger = ledger(runs, mixed_ok);
        let regime = experiment.regime;
        ledger.check(regime).map_err(|mismatches| ResultsError::Mismatch { regime, mismatches })?;
        let mut arms = arms::arms(runs)?;
        let question = of_experiment::question(runs, &arms)?;
        for (arm, contender) in arms.iter_mut().zip(&question.arms) {
            arm.level.clone_from(&contender.level);
        }
        let judged = question.judge()?;
        let repetitions = if judged.decision.is_due() { repetitions::of(experiment, &question)? } else { None };
        let registered = registered::of(runs);
        let Judged { decision, findings, beyond } = judged;
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            answer: answer(&question, decision, &findings, repetitions.as_ref()),
            decision,
            name: experiment.name.clone(),
            about: experiment.about.clone(),
            predictions: predictions::of(experiment, &findings),
            registered,
            check: check::of(runs, &question, &findings)?,
            exploratory: beyond.map(|(pairs, findings)| Exploratory { pairs, findings }),
            findings,
            repetitions,
            regime: Some(experiment.regime),
            baseline: experiment.baseline.clone(),
            metric: question.metric,
            seeds: experiment.seeds.clone(),
            why_seeds: experiment.why_seeds.clone(),
            sweep: question.sweep,
            published: experiment.published.clone(),
            arms,
            tuning: tuning.clone(),
            ledger: Some(ledger),
            problems: problems(runs),
        })
    }

    /// Where learning rates were tuned: at every rate that all arms tried, by how much each arm is ahead of the baseline in
    /// the tuning runs (above 0 is better); rates at which one misses a run are left out.
    pub fn at_common_rates(&self) -> Vec<(f64, Vec<(String, f64)>)> {
        let Some(tuning) = &self.tuning else { return vec![] };
        let mean = |arm: &ArmTuning, lr: f64| {
            let rate = arm.rates.iter().find(|rate| rate.lr == lr).filter(|rate| rate.missing == 0)?;
            rate.mean
        };
        let Some(baseline) = tuning.arms.iter().find(|arm| arm.arm == self.baseline) else { return vec![] };
        let others = || tuning.arms.iter().filter(|arm| arm.arm != self.baseline);
        let at = |lr: f64| {
            let own = mean(baseline, lr)?;
            let ahead = |arm: &ArmTuning| {
                Some((arm.label.clone(), self.metric.scale.direction.advantage(mean(arm, lr)? - own)))
            };
            Some((lr, others().map(ahead).collect::<Option<Vec<_>>>()?))
        };
        baseline.rates.iter().filter_map(|rate| at(rate.lr)).collect()
    }

    /// Everything that is to be said beside the verdict in the colour of a warning.
    pub fn warnings(&self) -> Vec<String> {
        let of_registration = self.registered.iter().flat_map(Registered::warnings);
        of_registration.chain(self.ledger.iter().flat_map(Ledger::warnings)).collect()
    }
}

/// Whether a decision is due for an experiment, and whether it has come: what terminal, page and files go by, and whoever
/// runs it may stop at.
///
/// # Errors
/// A statistic that can't be computed.
pub fn decision(runs: &ExperimentRuns) -> Result<Decision, ResultsError> {
    let arms = arms::arms(runs)?;
    Ok(of_experiment::question(runs, &arms)?.judge()?.decision)
}

/// The ledger of all runs that ended.
fn ledger(runs: &ExperimentRuns, mixed_ok: bool) -> Ledger {
    let mut ended = vec![];
    for record in &runs.records {
        let PlannedRun { arm, pair, config, .. } = &record.plan;
        ended.extend(record.manifest().map(|manifest| LedgerRun { arm, pair: *pair, config, manifest }));
    }
    Ledger::new(&runs.experiment, &ended, mixed_ok)
}

/// Every run that did not finish.
fn problems(runs: &ExperimentRuns) -> Vec<RunProblem> {
    let problem = |record: &RunRecord| {
        let (arm, pair) = (record.plan.arm.clone(), record.plan.pair);
        Some(RunProblem { arm, pair, directory: record.directory_name(), reason: record.problem()? })
    };
    runs.records.iter().filter_map(problem).collect()
}
