//! One arm: its outcomes, how fast it learnt, how steadily.

use data::{
    Split,
    metrics::{MetricKind, SplitScores},
};
use runs::{
    Arm, Experiment, MetricLine, ReadAt, RunRecord, Status,
    differences::{self, Difference},
    experiment::{MetricChoice, number_at},
};
use serde::{Deserialize, Serialize};
use statistics::{
    MetricScale,
    describe::describe,
    estimate::MeanEstimate,
    grid::Level,
    interval::LEVEL,
    outcome::{Outcome, solve_rate, steps_to_threshold},
    stability::{gradient_tail, spikes},
    two_arms::Limits,
};

use super::{ArmResult, ResultsError, RunResult, RunStatus, curves};
use crate::{
    deciding::{self, finite},
    reading::ExperimentRuns,
};

/// How steadily the runs of an arm trained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stability {
    /// Runs with at least one loss spike (see [`statistics::stability::spikes`]).
    pub runs_with_spikes: usize,
    /// Spike episodes in all runs together.
    pub spike_episodes: usize,
    /// Training steps that were judged, in all runs together.
    pub judged_steps: usize,
    /// Median over the runs of 99th percentile / median of the gradient norm.
    pub gradient_tail: Option<f64>,
    /// Logged losses that were not finite.
    pub losses_not_finite: usize,
}

/// The outcome of a run for the statistics.
pub(super) fn outcome(run: &RunResult) -> Outcome {
    match (run.status, run.value) {
        (RunStatus::Finished, Some(value)) => Outcome::Finished(value),
        (RunStatus::Missing, _) => Outcome::Missing,
        _ => Outcome::Diverged,
    }
}

/// Every arm, in the order of the experiment.
pub(super) fn arms(runs: &ExperimentRuns) -> Result<Vec<ArmResult>, ResultsError> {
    let experiment = &runs.experiment;
    let scale = deciding::scale(experiment);
    let of = |(arm, settings): (&Arm, Level)| {
        summarise(experiment, &scale, arm, settings, &runs.of_arm(&arm.name).collect::<Vec<_>>())
    };
    experiment.arms.iter().zip(settings(&experiment.arms)).map(of).collect()
}

/// Of every arm its values at the keys in which any two differ, names and seeds apart.
fn settings(arms: &[Arm]) -> Vec<Level> {
    let Some(first) = arms.first() else { return vec![] };
    let mut settings = vec![Level::new(); arms.len()];
    for (place, arm) in arms.iter().enumerate() {
        for Difference { key, value, other } in differences::between(&arm.config, &first.config) {
            if matches!(key.as_str(), "name" | "seed") {
                continue;
            }
            for level in &mut settings {
                level.entry(key.clone()).or_insert_with(|| other.clone());
            }
            settings[place].insert(key, value);
        }
    }
    settings
}

/// The deciding metric of every sample of the one test set that all runs have, a list for each run, all of one weight; none where
/// each pair has a test set of its own, or another set decides.
pub(super) fn sample_scores(experiment: &Experiment, records: &[&RunRecord]) -> Vec<Vec<f64>> {
    let metric = &experiment.metric;
    if metric.name.split != Split::Test || !has_one_test_set(experiment) {
        return vec![];
    }
    let of = |record: &&RunRecord| {
        let scores = record.test_scores()?;
        let read = match metric.at {
            ReadAt::Final => &scores.last,
            ReadAt::BestValidation => scores.best.as_ref().unwrap_or(&scores.last),
        };
        read.of_equal_weight(metric.name.kind)
    };
    records.iter().map(|record| of(record).unwrap_or_default()).collect()
}

/// Whether every run is tested on the same samples.
pub(super) fn has_one_test_set(experiment: &Experiment) -> bool {
    experiment.arms.iter().all(|arm| arm.config.task.task.stored().is_some())
}

/// What an arm's outcomes come to, wherever they are from.
pub(crate) struct Summarised {
    pub finished: usize,
    pub diverged: usize,
    pub missing: usize,
    pub description: Option<statistics::describe::Description>,
    pub interval_of_mean: Option<Limits>,
    pub solve_rate: Option<statistics::interval::WilsonInterval>,
}

impl Summarised {
    /// Of outcomes, values as they enter.
    pub fn of(outcomes: &[Outcome], scale: &MetricScale, threshold: Option<f64>) -> Result<Self, ResultsError> {
        let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
        let values: Vec<f64> = outcomes.iter().filter_map(|outcome| scale.entered(*outcome)).collect();
        let interval = match values.len() {
            0 | 1 => None,
            // Of one list of values, the interval of its mean is that of differences from 0.
            _ => Some(MeanEstimate::of(&values, None)?.interval((1.0 - LEVEL) / 2.0)),
        };
        Ok(Self {
            finished: count(|outcome| matches!(outcome, Outcome::Finished(_))),
            diverged: count(|outcome| matches!(outcome, Outcome::Diverged)),
            missing: count(|outcome| matches!(outcome, Outcome::Missing)),
            description: (!values.is_empty()).then(|| describe(&values)).transpose()?,
            interval_of_mean: interval.map(|[low, high]| Limits { level: LEVEL, low, high }),
            solve_rate: match threshold {
                Some(threshold) => solve_rate(outcomes, threshold, scale.direction, LEVEL)?,
                None => None,
            },
        })
    }
}

fn summarise(
    experiment: &Experiment,
    scale: &MetricScale,
    arm: &Arm,
    settings: Level,
    records: &[&RunRecord],
) -> Result<ArmResult, ResultsError> {
    let (name, threshold) = (experiment.metric.name, experiment.metric.threshold);
    let ended: Vec<&&RunRecord> = records.iter().filter(|record| record.summary().is_some()).collect();

    let steps_to_threshold = match threshold {
        Some(threshold) => {
            let curves: Vec<Vec<(u64, f64)>> =
                ended.iter().map(|record| validated(record.metrics(), name.kind)).collect();
            let curves: Vec<&[(u64, f64)]> = curves.iter().map(Vec::as_slice).collect();
            Some(steps_to_threshold(&curves, threshold, scale.direction)?)
        }
        None => None,
    };
    let mut first_steps = steps_to_threshold.iter().flat_map(|steps| steps.first_step.iter().copied());
    let runs: Vec<RunResult> = records
        .iter()
        .map(|record| {
            let first_step = if record.summary().is_some() { first_steps.next().flatten() } else { None };
            run(record, &experiment.metric, first_step)
        })
        .collect();

    let outcomes: Vec<Outcome> = runs.iter().map(outcome).collect();
    let Summarised { finished, diverged, missing, description, interval_of_mean, solve_rate } =
        Summarised::of(&outcomes, scale, threshold)?;
    let metrics: Vec<&[MetricLine]> = ended.iter().map(|record| record.metrics()).collect();
    Ok(ArmResult {
        name: arm.name.clone(),
        label: arm.label.clone(),
        sweep_value: experiment.sweep.as_deref().and_then(|key| number_at(&arm.config, key)),
        level: Default::default(),
        settings,
        steps: arm.config.train.steps,
        lr: Some(arm.config.train.lr),
        finished,
        diverged,
        missing,
        description,
        interval_of_mean,
        solve_rate,
        steps_to_threshold,
        stability: stability(&metrics),
        curves: curves::curves(experiment, &ended)?,
        runs,
    })
}

fn run(record: &RunRecord, metric: &MetricChoice, first_step: Option<u64>) -> RunResult {
    let summary = record.summary();
    let finished = summary.filter(|summary| summary.status == Status::Finished);
    let scores = finished.map(|summary| SplitScores {
        test: summary.test.unwrap_or_default(),
        validation: summary.validation.unwrap_or_default(),
    });
    let value = summary.and_then(|summary| deciding::value(summary, metric));
    let best = summary.and_then(|summary| summary.best);
    let (losses, norms) = trained(record.metrics());
    RunResult {
        pair: record.plan.pair,
        seed: record.plan.config.seed,
        // A run that ends with a result that is not a number has diverged, whatever it says.
        status: match (summary, value) {
            (None, _) => RunStatus::Missing,
            (Some(_), Some(_)) => RunStatus::Finished,
            (Some(_), None) => RunStatus::Diverged,
        },
        directory: record.directory_name(),
        value,
        steps: summary.map(|summary| summary.steps),
        scores: scores.unwrap_or_default(),
        best_step: best.map(|best| best.step),
        best_validation_loss: best.and_then(|best| finite(best.scores.goal())),
        first_step_at_threshold: first_step,
        spike_episodes: summary.map(|_| spikes(&losses).episodes),
        gradient_tail: gradient_tail(&norms).and_then(|tail| tail.ratio),
    }
}

/// Step and value of every validation.
fn validated(metrics: &[MetricLine], kind: &MetricKind) -> Vec<(u64, f64)> {
    let validated = metrics.iter().filter(|metric| metric.split == Split::Validation);
    validated.map(|metric| (metric.step, metric.scores.number(kind))).collect()
}

/// Training losses and gradient norms in the order logged.
fn trained(metrics: &[MetricLine]) -> (Vec<f64>, Vec<f64>) {
    let lines = || metrics.iter().filter(|metric| metric.split == Split::Train);
    (lines().map(|metric| metric.scores.goal()).collect(), lines().filter_map(|metric| metric.grad_norm).collect())
}

fn stability(runs: &[&[MetricLine]]) -> Stability {
    let mut stability = Stability::default();
    let mut ratios = vec![];
    for run in runs {
        let (losses, norms) = trained(run);
        let found = spikes(&losses);
        stability.runs_with_spikes += usize::from(found.episodes > 0);
        stability.spike_episodes += found.episodes;
        stability.judged_steps += found.judged;
        stability.losses_not_finite += found.not_finite;
        ratios.extend(gradient_tail(&norms).and_then(|tail| tail.ratio));
    }
    stability.gradient_tail = statistics::describe::median(&ratios).ok();
    stability
}
