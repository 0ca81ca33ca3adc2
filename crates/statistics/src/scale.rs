//! What a metric means where a verdict hangs on it: which way it improves, how far it reaches, and what a run that
//! diverged has of it.

use serde::{Deserialize, Serialize};

use crate::error::{StatisticsError, check_values};
use crate::outcome::{Direction, Outcome};

/// How far a value may lie beyond the best possible one and still count as rounding.
const ROUNDING: f64 = 1e-9;

/// The deciding metric. All of it is fixed before the first run and never taken from the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricScale {
    /// As it reads in a sentence: "test accuracy".
    pub name: String,
    pub direction: Direction,
    /// The best value there is, such as 1 for an accuracy and 0 for a cross-entropy; `None` if there is none.
    pub best: Option<f64>,
    /// The value of a run that diverged, and the worst that any run can have: 0 for an accuracy; for a loss or an error
    /// the value of a model that knows nothing, such as the logarithm of the number of classes.
    pub penalty: f64,
}

impl MetricScale {
    /// A share of right answers: 0 to 1, diverged runs at 0.
    pub fn accuracy(name: impl Into<String>) -> Self {
        Self { name: name.into(), direction: Direction::HigherIsBetter, best: Some(1.0), penalty: 0.0 }
    }

    /// A loss or an error that cannot fall below 0; `penalty` is that of a model that knows nothing.
    pub fn loss(name: impl Into<String>, penalty: f64) -> Self {
        Self { name: name.into(), direction: Direction::LowerIsBetter, best: Some(0.0), penalty }
    }

    /// The value with which a run enters: its own, no worse than the penalty; the penalty if it diverged; `None` if it
    /// is missing. Diverging thus never looks better than finishing.
    pub fn entered(&self, outcome: Outcome) -> Option<f64> {
        match outcome {
            Outcome::Finished(value) => {
                Some(if self.direction.reaches(value, self.penalty) { value } else { self.penalty })
            }
            Outcome::Diverged => Some(self.penalty),
            Outcome::Missing => None,
        }
    }

    /// The largest difference two runs can have, |best − penalty|; `None` without a best value.
    pub fn largest_difference(&self) -> Option<f64> {
        self.best.map(|best| (best - self.penalty).abs())
    }

    /// An interval of a mean difference cut to the differences that are possible.
    pub fn clipped(&self, [low, high]: [f64; 2]) -> [f64; 2] {
        match self.largest_difference() {
            Some(most) => [low.clamp(-most, most), high.clamp(-most, most)],
            None => [low, high],
        }
    }

    /// Errors: a value that is not finite, a best value that is no better than the penalty.
    pub fn check(&self) -> Result<(), StatisticsError> {
        check_values("penalty of the metric", &[self.penalty], 1)?;
        let Some(best) = self.best else { return Ok(()) };
        check_values("best value of the metric", &[best], 1)?;
        if self.direction.advantage(best - self.penalty) > 0.0 {
            return Ok(());
        }
        Err(StatisticsError::OutOfRange {
            what: "best value of the metric",
            value: best,
            must_be: "better than the penalty of a diverged run",
        })
    }

    /// Whether a value is better than the best possible one, so that another unit (per cent) must be meant.
    pub(crate) fn is_beyond_best(&self, value: f64) -> bool {
        self.best.is_some_and(|best| self.direction.advantage(value - best) > ROUNDING * best.abs().max(1.0))
    }
}
