//! What is fixed before the runs: margin, error rate, and how rare a failure must be shown to be.

use serde::{Deserialize, Serialize};

use crate::error::{StatisticsError, is_usable};

/// Fewer pairs than this decide nothing.
pub const FEWEST_PAIRS: usize = 6;

/// The rate of wrong statements, before it is divided by the number of looks.
pub const ALPHA: f64 = 0.05;

/// See [`Rules::max_failure`].
pub const MAX_FAILURE: f64 = 0.3;

/// Unless set otherwise, a pair this many margins away from the median difference is a failed one.
pub const FAILURE_MARGINS: f64 = 5.0;

/// The rules by which arms are told apart. Differences are in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// The smallest difference that matters, at least 0.
    pub margin: f64,
    /// Rate of wrong statements: [`ALPHA`] divided by the number of looks.
    pub alpha: f64,
    /// How many arms are compared with one another, at least 2.
    pub arms: usize,
    /// "Equivalent" and "sufficient" need a failure bound of at most this, in (0, 1].
    pub max_failure: f64,
    /// A pair further than this from the median difference is a failed one; [`FAILURE_MARGINS`] margins if `None`.
    pub failure_difference: Option<f64>,
}

impl Rules {
    /// Two arms, one look.
    pub fn new(margin: f64) -> Self {
        Self { margin, alpha: ALPHA, arms: 2, max_failure: MAX_FAILURE, failure_difference: None }
    }

    /// The same rules for more arms.
    pub fn for_arms(self, arms: usize) -> Self {
        Self { arms, ..self }
    }

    /// The same rules, each alpha divided by the number of looks (Bonferroni).
    pub fn for_looks(self, looks: usize) -> Self {
        Self { alpha: self.alpha / looks.max(1) as f64, ..self }
    }

    /// The tail that the limit of "better", "worse" and "insufficient" leaves on its side: alpha / (K (K − 1)), as there
    /// are so many ordered pairs of K arms; alpha / 2 for two.
    pub fn difference_tail(&self) -> f64 {
        self.alpha / (self.arms * (self.arms - 1)) as f64
    }

    /// The tail that each limit of "equivalent" and "sufficient" leaves on its side: alpha / (K − 1), as at most K − 1
    /// arms can be insufficient; alpha for two (two one-sided tests; Schuirmann 1987).
    pub fn equivalence_tail(&self) -> f64 {
        self.alpha / (self.arms - 1) as f64
    }

    /// Level of the interval behind "better" and "worse": 1 − alpha for two arms.
    pub fn difference_level(&self) -> f64 {
        1.0 - 2.0 * self.difference_tail()
    }

    /// Level of the interval behind "equivalent": 1 − 2 alpha for two arms.
    pub fn equivalence_level(&self) -> f64 {
        1.0 - 2.0 * self.equivalence_tail()
    }

    /// The distance from the median difference beyond which a pair is a failed one; `None` at a margin of 0 without a
    /// distance of its own: then every pair would be one, and only divergence counts.
    pub fn failure_distance(&self) -> Option<f64> {
        self.failure_difference.or((self.margin > 0.0).then_some(FAILURE_MARGINS * self.margin))
    }

    /// Errors: a number outside its range, named.
    pub fn check(&self) -> Result<(), StatisticsError> {
        let need = |holds: bool, what, value, must_be| {
            if holds { Ok(()) } else { Err(StatisticsError::OutOfRange { what, value, must_be }) }
        };
        let Self { margin, alpha, arms, max_failure, .. } = *self;
        need(margin >= 0.0 && is_usable(margin), "margin", margin, "finite and at least 0")?;
        need(alpha > 0.0 && alpha < 0.5, "alpha", alpha, "between 0 and 0.5, both excluded")?;
        need(arms >= 2, "number of arms", arms as f64, "at least 2")?;
        need(max_failure > 0.0 && max_failure <= 1.0, "max_failure", max_failure, "above 0 and at most 1")?;
        match self.failure_difference {
            Some(value) => need(value > 0.0 && is_usable(value), "failure_difference", value, "finite and above 0"),
            None => Ok(()),
        }
    }
}
