//! The deciding metric as results have it: all of it was fixed before the first run.

use serde::{Deserialize, Serialize};
use statistics::{MetricScale, Rules, outcome::Direction};

/// What decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecidingMetric {
    /// In files, such as `test_accuracy`.
    pub name: String,
    /// Of its values in curves, such as `accuracy`.
    pub key: String,
    /// How it reads, which way it improves, its best value, and what a diverged run enters with.
    pub scale: MetricScale,
    /// Of its values and their differences; "share" for parts of a whole, empty where it is not known.
    pub unit: String,
    /// As it reads on an axis.
    pub axis: String,
    /// Where it is read, such as "at the final step"; empty where that is not known.
    pub read: String,
    /// The smallest difference that matters.
    pub margin: f64,
    /// A run at this value or better solved the task.
    pub threshold: Option<f64>,
    /// A pair further than this from the median difference has failed; `None`: five margins.
    pub failure_difference: Option<f64>,
    /// Failures more frequent than this must be excluded before anything is called equivalent or sufficient.
    pub max_failure: f64,
}

impl DecidingMetric {
    /// As it reads in a sentence, such as "test accuracy".
    pub fn words(&self) -> &str {
        &self.scale.name
    }

    /// The rules at one look, for two arms.
    pub(crate) fn rules(&self) -> Rules {
        let Self { margin, max_failure, failure_difference, .. } = *self;
        Rules { max_failure, failure_difference, ..Rules::new(margin) }
    }

    /// Smallest and greatest possible value: infinite where there is none.
    pub(crate) fn range(&self) -> (f64, f64) {
        let best = |end: f64| self.scale.best.unwrap_or(end);
        match self.scale.direction {
            Direction::HigherIsBetter => (self.scale.penalty.min(0.0), best(f64::INFINITY)),
            Direction::LowerIsBetter => (best(f64::NEG_INFINITY), f64::INFINITY),
        }
    }
}
