//! The primary metric, from a run's summary to what the statistics take.

use data::metrics::{Better, SplitMetric};
use runs::{Arm, Experiment, Status, Summary};
use statistics::{Direction, Metric};

/// The primary metric as the statistics see it.
pub(crate) fn metric(experiment: &Experiment) -> Metric {
    let name = experiment.metric.name;
    let direction = direction(name);
    let penalty = |arm: &Arm| name.kind.penalty(&arm.config.task.task, &arm.config.task.sets, name.split);
    let penalties = experiment.arms.iter().map(penalty);
    let worst = penalties.reduce(|worst, penalty| direction.worse(worst, penalty));
    Metric { name: name.words(), direction, worst: worst.unwrap_or_default() } // there are at least two arms
}

pub(crate) fn direction(name: SplitMetric) -> Direction {
    match name.kind.better {
        Better::Higher => Direction::HigherIsBetter,
        Better::Lower => Direction::LowerIsBetter,
    }
}

/// The metric of a run that finished, at its final step, if it is a number.
pub(crate) fn final_value(summary: &Summary, name: SplitMetric) -> Option<f64> {
    if summary.status != Status::Finished {
        return None;
    }
    finite(name.of(summary.test.as_ref(), summary.validation.as_ref())?)
}

/// A number that sums and squares stay finite with.
pub(crate) fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.abs() <= 1e300)
}
