//! One arm: its outcomes, how fast it learnt, how steadily.

use data::{
    Split,
    metrics::{MetricKind, OBJECTIVE, SplitMetric, SplitScores},
};
use runs::{Arm, Experiment, MetricLine, RunRecord, Status, experiment::number_at};
use serde::{Deserialize, Serialize};
use statistics::{
    describe::describe,
    interval::{LEVEL, paired_interval},
    outcome::{Outcome, solve_rate, steps_to_threshold},
    stability::{gradient_tail, spikes},
};

use super::{ArmResult, ResultsError, RunResult, RunStatus, curves};
use crate::{
    deciding::{self, final_value, finite},
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
    let mut metric = deciding::metric(experiment);
    let value = |record: &RunRecord| final_value(record.summary()?, experiment.metric.name);
    let finished = runs.records.iter().filter_map(value);
    // Diverging never looks better than finishing, in whatever arm.
    metric.worst = finished.fold(metric.worst, |worst, value| metric.direction.worse(worst, value));
    let of = |arm: &Arm| summarise(experiment, &metric, arm, &runs.of_arm(&arm.name).collect::<Vec<_>>());
    experiment.arms.iter().map(of).collect()
}

fn summarise(
    experiment: &Experiment,
    metric: &statistics::Metric,
    arm: &Arm,
    records: &[&RunRecord],
) -> Result<ArmResult, ResultsError> {
    let (name, threshold) = (experiment.metric.name, experiment.metric.threshold);
    let ended: Vec<&&RunRecord> = records.iter().filter(|record| record.summary().is_some()).collect();

    let steps_to_threshold = match threshold {
        Some(threshold) => {
            let curves: Vec<Vec<(u64, f64)>> =
                ended.iter().map(|record| validated(record.metrics(), name.kind)).collect();
            let curves: Vec<&[(u64, f64)]> = curves.iter().map(Vec::as_slice).collect();
            Some(steps_to_threshold(&curves, threshold, metric.direction)?)
        }
        None => None,
    };
    let mut first_steps = steps_to_threshold.iter().flat_map(|steps| steps.first_step.iter().copied());
    let runs: Vec<RunResult> = records
        .iter()
        .map(|record| {
            let first_step = if record.summary().is_some() { first_steps.next().flatten() } else { None };
            run(record, name, first_step)
        })
        .collect();

    let outcomes: Vec<Outcome> = runs.iter().map(outcome).collect();
    let count = |status| runs.iter().filter(|run| run.status == status).count();
    let values: Vec<f64> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Finished(value) => Some(*value),
            Outcome::Diverged => Some(metric.worst),
            Outcome::Missing => None,
        })
        .collect();
    let solve_rate = match threshold {
        Some(threshold) => solve_rate(&outcomes, threshold, metric.direction, LEVEL)?,
        None => None,
    };
    let metrics: Vec<&[MetricLine]> = ended.iter().map(|record| record.metrics()).collect();
    Ok(ArmResult {
        name: arm.name.clone(),
        label: arm.label.clone(),
        sweep_value: experiment.sweep.as_deref().and_then(|key| number_at(&arm.config, key)),
        steps: arm.config.train.steps,
        lr: arm.config.train.lr,
        finished: count(RunStatus::Finished),
        diverged: count(RunStatus::Diverged),
        missing: count(RunStatus::Missing),
        description: (!values.is_empty()).then(|| describe(&values)).transpose()?,
        // Of one list of values, the interval of its mean is that of differences from 0.
        interval_of_mean: (values.len() > 1).then(|| paired_interval(&values, LEVEL)).transpose()?,
        solve_rate,
        steps_to_threshold,
        stability: stability(&metrics),
        curves: curves::curves(&metrics),
        runs,
    })
}

fn run(record: &RunRecord, name: SplitMetric, first_step: Option<u64>) -> RunResult {
    let summary = record.summary();
    let finished = summary.filter(|summary| summary.status == Status::Finished);
    let scores = finished.map(|summary| SplitScores {
        test: summary.test.unwrap_or_default(),
        validation: summary.validation.unwrap_or_default(),
    });
    let value = summary.and_then(|summary| final_value(summary, name));
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
        best_validation_loss: best.and_then(|best| finite(best.scores.number(OBJECTIVE))),
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
    (
        lines().map(|metric| metric.scores.number(OBJECTIVE)).collect(),
        lines().filter_map(|metric| metric.grad_norm).collect(),
    )
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
