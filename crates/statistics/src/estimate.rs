//! The mean of paired differences with its Student t limits, the samples of a shared test set included.

use serde::{Deserialize, Serialize};

use crate::describe::{mean_of_checked, standard_deviation};
use crate::distributions::{student_t_two_sided_at, student_t_upper};
use crate::error::{StatisticsError, check_values};
use crate::pairs::SampleSpread;

/// A spread below this share of the values is what subtracting left of their rounding.
const ROUNDING: f64 = 1e-12;

/// A mean and how uncertain it is; mean, deviation and error in the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MeanEstimate {
    /// Number of pairs.
    pub pairs: usize,
    pub mean: f64,
    /// Over the pairs, divisor n − 1.
    pub standard_deviation: f64,
    /// √(s_d² / n + s_x² / N); the second part is there only where a test set is shared.
    pub standard_error: f64,
    /// n − 1; with a shared test set by Welch and Satterthwaite, so not a whole number.
    pub degrees_of_freedom: f64,
}

impl MeanEstimate {
    /// Of at least two differences. `samples` where all pairs were measured on one test set.
    ///
    /// Errors: fewer than two differences, or one that is not finite.
    pub fn of(differences: &[f64], samples: Option<SampleSpread>) -> Result<Self, StatisticsError> {
        check_values("mean of paired differences", differences, 2)?;
        let pairs = differences.len();
        let largest = differences.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
        let spread = standard_deviation(differences)?;
        let standard_deviation = if spread <= ROUNDING * largest { 0.0 } else { spread };
        let over_pairs = standard_deviation.powi(2) / pairs as f64;
        let over_samples = samples.map_or(0.0, |samples| samples.variance_of_mean());
        let freedom = (pairs - 1) as f64;
        let standard_error = (over_pairs + over_samples).sqrt();
        let degrees_of_freedom = match samples {
            Some(samples) if standard_error > 0.0 => {
                // Shares of the variance, so that squares of small numbers do not vanish.
                let share = over_pairs / (over_pairs + over_samples);
                1.0 / (share.powi(2) / freedom + (1.0 - share).powi(2) / (samples.samples - 1) as f64)
            }
            _ => freedom,
        };
        Ok(Self { pairs, mean: mean_of_checked(differences), standard_deviation, standard_error, degrees_of_freedom })
    }

    /// The limit above which the true mean lies but for a chance of `tail` (in (0, 0.5)).
    pub fn lower(&self, tail: f64) -> f64 {
        self.mean - self.reach(tail)
    }

    /// The limit below which the true mean lies but for a chance of `tail`.
    pub fn upper(&self, tail: f64) -> f64 {
        self.mean + self.reach(tail)
    }

    /// Both limits, each with its own `tail`.
    pub fn interval(&self, tail: f64) -> [f64; 2] {
        let reach = self.reach(tail);
        [self.mean - reach, self.mean + reach]
    }

    /// Two-sided p of "no difference". `None` where differences are all equal: there is no spread to judge by, and what
    /// is left are the failure bound and the floor of the sign-flip test. Never 0.
    pub fn p_value(&self) -> Option<f64> {
        if self.standard_error == 0.0 {
            return None;
        }
        Some(student_t_two_sided_at(self.mean / self.standard_error, self.degrees_of_freedom)).filter(|p| *p > 0.0)
    }

    fn reach(&self, tail: f64) -> f64 {
        if self.standard_error == 0.0 {
            return 0.0;
        }
        student_t_upper(tail, self.degrees_of_freedom) * self.standard_error
    }
}
