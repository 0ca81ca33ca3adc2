//! The mean curve of an arm, diverged runs included: leaving them out would make the arm that diverges look best.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::describe::mean_of_checked;
use crate::error::{StatisticsError, is_usable};
use crate::outcome::Outcome;
use crate::scale::MetricScale;

/// The curve of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCurve {
    /// (step, value) in the order logged.
    pub points: Vec<(u64, f64)>,
    pub diverged: bool,
}

/// What the runs have at one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepValues {
    pub step: u64,
    /// Of every run that has a value there, those that diverged before at the penalty; in the unit of the metric.
    pub values: Vec<f64>,
    /// Of them, runs that had diverged and stand at the penalty.
    pub at_penalty: usize,
    /// Runs that logged nothing there.
    pub left_out: usize,
}

/// One step of the mean curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanPoint {
    pub step: u64,
    /// In the unit of the metric.
    pub mean: f64,
    /// Runs in the mean.
    pub runs: usize,
    /// Of them, runs that had diverged and stand at the penalty.
    pub at_penalty: usize,
    /// Runs that logged nothing there: not in the mean.
    pub left_out: usize,
}

/// The values of the runs at every step that any of them logged. A run that diverged stands at the penalty from its last
/// finite value on, and from there on values worse than the penalty stand there too, so that diverging never looks better
/// than training on. A step that no run has a value for is left out.
///
/// Errors: steps that do not rise, a penalty that is not finite.
pub fn values_by_step(runs: &[RunCurve], scale: &MetricScale) -> Result<Vec<StepValues>, StatisticsError> {
    scale.check()?;
    let mut steps = BTreeSet::new();
    for run in runs {
        if let Some(two) = run.points.windows(2).find(|two| two[1].0 <= two[0].0) {
            return Err(StatisticsError::StepsNotRising { previous: two[0].0, step: two[1].0 });
        }
        steps.extend(run.points.iter().map(|(step, _)| *step));
    }
    let of = |step| {
        let found: Vec<AtStep> = runs.iter().filter_map(|run| at_step(run, step, scale)).collect();
        let at_penalty = found.iter().filter(|value| value.has_diverged).count();
        let entered = |value: f64| if at_penalty > 0 { scale.entered(Outcome::Finished(value)) } else { Some(value) };
        let left_out = runs.len() - found.len();
        StepValues {
            step,
            values: found.into_iter().filter_map(|at| entered(at.value)).collect(),
            at_penalty,
            left_out,
        }
    };
    Ok(steps.into_iter().map(of).filter(|at| !at.values.is_empty()).collect())
}

/// The mean over runs at every step: of [`values_by_step`].
///
/// Errors: as there.
pub fn mean_curve(runs: &[RunCurve], scale: &MetricScale) -> Result<Vec<MeanPoint>, StatisticsError> {
    let mean = |at: StepValues| MeanPoint {
        step: at.step,
        mean: mean_of_checked(&at.values),
        runs: at.values.len(),
        at_penalty: at.at_penalty,
        left_out: at.left_out,
    };
    Ok(values_by_step(runs, scale)?.into_iter().map(mean).collect())
}

struct AtStep {
    value: f64,
    has_diverged: bool,
}

/// What a run has at a step; `None` where it logged nothing and has not diverged.
fn at_step(run: &RunCurve, step: u64, scale: &MetricScale) -> Option<AtStep> {
    let found = run.points.binary_search_by_key(&step, |(step, _)| *step).ok().map(|index| run.points[index].1);
    if let Some(value) = found.filter(|value| is_usable(*value)) {
        return Some(AtStep { value, has_diverged: false });
    }
    let last_finite = run.points.iter().rev().find(|(_, value)| is_usable(*value)).map(|(step, _)| *step);
    let has_diverged = run.diverged && last_finite.is_none_or(|last| step > last);
    has_diverged.then_some(AtStep { value: scale.penalty, has_diverged })
}
