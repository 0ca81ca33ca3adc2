//! The primary metric, from a run's summary to what the statistics take.

use runs::{Experiment, MetricName, Status, Summary};
use statistics::{Direction, Metric};

/// The primary metric as the statistics see it.
pub(crate) fn metric(experiment: &Experiment) -> Metric {
    let name = experiment.metric.name;
    let outputs = experiment.arms.iter().map(|arm| arm.config.dims().outputs).max().unwrap_or(1);
    Metric {
        name: name.words().into(),
        direction: direction(name),
        worst: if name.is_accuracy() { 0.0 } else { (outputs as f64).ln() },
    }
}

pub(crate) fn direction(name: MetricName) -> Direction {
    if name.is_accuracy() { Direction::HigherIsBetter } else { Direction::LowerIsBetter }
}

/// The metric of a run that finished, at its final step, if it is a number.
pub(crate) fn final_value(summary: &Summary, name: MetricName) -> Option<f64> {
    if summary.status != Status::Finished {
        return None;
    }
    let score = if name.is_test() { summary.test } else { summary.validation }?;
    finite(if name.is_accuracy() { score.accuracy } else { score.loss })
}

/// A number that sums and squares stay finite with.
pub(crate) fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.abs() <= 1e300)
}
