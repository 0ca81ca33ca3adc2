//! The Wilson interval of a rate.

use serde::{Deserialize, Serialize};

use crate::distributions::normal_quantile;
use crate::error::{StatisticsError, check_level};

/// The confidence level of every interval unless something else is said.
pub const LEVEL: f64 = 0.95;

/// A rate and its Wilson interval, all in [0, 1].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WilsonInterval {
    pub successes: u64,
    pub trials: u64,
    /// Successes / trials.
    pub rate: f64,
    /// Confidence level, such as 0.95.
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

/// The Wilson score interval of a rate, without continuity correction (Wilson 1927;
/// `scipy.stats.binomtest(...).proportion_ci(method='wilson')`). It is never empty, not even at 0 or all successes.
///
/// Errors: no trials, more successes than trials, a level outside (0, 1).
pub fn wilson_interval(successes: u64, trials: u64, level: f64) -> Result<WilsonInterval, StatisticsError> {
    check_level(level)?;
    if trials == 0 {
        return Err(StatisticsError::TooFew { what: "Wilson interval", needed: 1, got: 0 });
    }
    if successes > trials {
        return Err(StatisticsError::MoreSuccessesThanTrials { successes, trials });
    }
    let n = trials as f64;
    let rate = successes as f64 / n;
    let z = -normal_quantile((1.0 - level) / 2.0);
    let centre = (rate + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    Ok(WilsonInterval {
        successes,
        trials,
        rate,
        level,
        // Exact at the ends, where rounding would leave 1e-17.
        low: if successes == 0 { 0.0 } else { (centre - reach).max(0.0) },
        high: if successes == trials { 1.0 } else { (centre + reach).min(1.0) },
    })
}
