//! The primary metric, from a run's summary to what the statistics take.

use data::metrics::{Better, MetricKind, SplitMetric};
use runs::{Arm, Experiment, ReadAt, Status, Summary, experiment::MetricChoice};
use statistics::{Direction, MetricScale};

/// The primary metric as the statistics see it: fixed by the tasks alone, before any run.
pub(crate) fn scale(experiment: &Experiment) -> MetricScale {
    scale_of(experiment, experiment.metric.name)
}

/// The same of any metric: its direction, its best value, and as penalty the worst of those of the arms' tasks.
pub(crate) fn scale_of(experiment: &Experiment, name: SplitMetric) -> MetricScale {
    let direction = direction(name);
    let penalty = |arm: &Arm| name.kind.penalty(&arm.config.task.task, &arm.config.task.sets, name.split);
    let penalties = experiment.arms.iter().map(penalty);
    let penalty = penalties.reduce(|worst, penalty| direction.worse(worst, penalty));
    let penalty = penalty.unwrap_or_default(); // there are at least two arms
    MetricScale { name: name.words(), direction, best: best(name.kind), penalty }
}

/// The best value that there can be.
fn best(kind: &MetricKind) -> Option<f64> {
    let end = match kind.better {
        Better::Higher => kind.range.1,
        Better::Lower => kind.range.0,
    };
    Some(end).filter(|end| end.is_finite())
}

pub(crate) fn direction(name: SplitMetric) -> Direction {
    match name.kind.better {
        Better::Higher => Direction::HigherIsBetter,
        Better::Lower => Direction::LowerIsBetter,
    }
}

/// The deciding value of a run that finished, read where the experiment says, if it is a number.
pub(crate) fn value(summary: &Summary, metric: &MetricChoice) -> Option<f64> {
    match metric.at {
        ReadAt::Final => final_value(summary, metric.name),
        ReadAt::BestValidation if summary.status != Status::Finished => None,
        ReadAt::BestValidation => {
            let validation = summary.best.map(|best| best.scores);
            finite(metric.name.of(summary.best_test.as_ref(), validation.as_ref())?)
        }
    }
}

/// A metric of a run that finished, at its final step, if it is a number.
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
