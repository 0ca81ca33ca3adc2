//! How many pairs a statement will probably need: exact power of the paired t test and of two one-sided tests, the
//! spread of the sample standard deviation integrated out.

use serde::{Deserialize, Serialize};

use crate::distributions::{chi_squared_quantile, ln_density_of_deviation_ratio, normal_cdf, student_t_upper};
use crate::estimate::MeanEstimate;
use crate::failures::{FailedPairs, pairs_for_bound};
use crate::rules::{FEWEST_PAIRS, Rules};
use crate::search::first_that;

/// The chance with which the pairs named decide.
pub const POWER: f64 = 0.9;

/// The standard deviation is planned with at its upper limit of this level: that of few pairs is often too low.
pub const DEVIATION_LEVEL: f64 = 0.8;

/// More pairs than this are not named.
pub const MOST_PAIRS: usize = 10_000;

/// Intervals of Simpson's rule: good to 1e-7 (`tests/answer_reference.rs`).
const INTERVALS: usize = 200;

/// What the pairs shall show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// That one arm is better than the other by more than the margin.
    Better,
    /// That neither is.
    Equivalent,
}

/// How the noise falls with the number of pairs; in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation of the paired differences.
    pub standard_deviation: f64,
    /// Variance of the mean that stays however many pairs there are: that of a shared test set.
    pub fixed_variance: f64,
}

impl Noise {
    /// With the upper limit of the standard deviation of an estimate, at [`DEVIATION_LEVEL`].
    pub fn cautious(estimate: &MeanEstimate) -> Self {
        let pairs = estimate.pairs as f64;
        let freedom = pairs - 1.0;
        let widened = (freedom / chi_squared_quantile(1.0 - DEVIATION_LEVEL, freedom)).sqrt();
        let over_pairs = estimate.standard_deviation.powi(2) / pairs;
        Self {
            standard_deviation: estimate.standard_deviation * widened,
            fixed_variance: (estimate.standard_error.powi(2) - over_pairs).max(0.0),
        }
    }

    fn standard_error(&self, pairs: usize) -> f64 {
        (self.standard_deviation.powi(2) / pairs as f64 + self.fixed_variance).sqrt()
    }
}

/// The chance that `pairs` pairs (at least 2) show `target` where the true mean difference is `difference`, failures
/// aside.
pub fn power(target: Target, pairs: usize, difference: f64, noise: Noise, rules: &Rules) -> f64 {
    let error = noise.standard_error(pairs);
    let (difference, margin) = (difference.abs(), rules.margin);
    if error == 0.0 {
        let shows = match target {
            Target::Better => difference > margin,
            Target::Equivalent => difference <= margin,
        };
        return f64::from(u8::from(shows));
    }
    let freedom = (pairs - 1) as f64;
    match target {
        Target::Better => {
            let critical = student_t_upper(rules.difference_tail(), freedom);
            let beyond = (difference - margin) / error;
            over_deviation_ratios(freedom, f64::MAX, |ratio| normal_cdf(beyond - critical * ratio))
        }
        Target::Equivalent => {
            let critical = student_t_upper(rules.equivalence_tail(), freedom);
            let (above, below) = ((margin - difference) / error, (-margin - difference) / error);
            let within = |ratio| normal_cdf(above - critical * ratio) - normal_cdf(below + critical * ratio);
            // With a larger sample deviation the interval is wider than the margins allow.
            over_deviation_ratios(freedom, (above - below) / (2.0 * critical), within)
        }
    }
}

/// The mean, over the sample standard deviations s of normal differences, of `of(s/σ)`, counted as 0 where s/σ is above
/// `until`.
fn over_deviation_ratios(degrees_of_freedom: f64, until: f64, of: impl Fn(f64) -> f64) -> f64 {
    let width = 9.0 / (2.0 * degrees_of_freedom).sqrt();
    let from = (1.0 - width).max(1e-9);
    let step = (until.min(1.0 + width) - from) / INTERVALS as f64;
    if step <= 0.0 {
        return 0.0;
    }
    let value = |index: usize| {
        let ratio = from + step * index as f64;
        let simpson = if index == 0 || index == INTERVALS { 1.0 } else { (2 + 2 * (index % 2)) as f64 };
        simpson * ln_density_of_deviation_ratio(ratio, degrees_of_freedom).exp() * of(ratio)
    };
    ((0..=INTERVALS).map(value).sum::<f64>() * step / 3.0).clamp(0.0, 1.0)
}

/// The fewest pairs that show `target` with a chance of [`POWER`] where the true difference is `difference`, and, for
/// "equivalent", whose failure bound is low enough with `failed` failed pairs. `None` beyond [`MOST_PAIRS`].
pub fn pairs_needed(target: Target, difference: f64, noise: Noise, failed: usize, rules: &Rules) -> Option<usize> {
    let is_enough = |pairs: usize| power(target, pairs, difference, noise, rules) >= POWER;
    let needed = first_that(FEWEST_PAIRS, MOST_PAIRS, is_enough)?;
    match target {
        Target::Better => Some(needed),
        Target::Equivalent => Some(needed.max(pairs_for_bound(failed, rules.max_failure, rules.alpha, MOST_PAIRS)?)),
    }
}

/// What would probably settle an open question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherPairs {
    /// What they would show, if the difference is what it seems.
    pub target: Target,
    /// Pairs beyond those there are; `None` if not even [`MOST_PAIRS`] in all would do.
    pub further: Option<usize>,
}

/// How many further pairs would probably decide, if the true difference is the one seen and the standard deviation is at
/// its upper limit. No further failed pair is assumed.
pub fn further_pairs(estimate: &MeanEstimate, failures: &FailedPairs, rules: &Rules) -> FurtherPairs {
    let target = if estimate.mean.abs() > rules.margin { Target::Better } else { Target::Equivalent };
    let needed = pairs_needed(target, estimate.mean, Noise::cautious(estimate), failures.seeds.len(), rules);
    // Pairs that should have decided and did not: at least one more is needed.
    FurtherPairs { target, further: needed.map(|needed| needed.saturating_sub(estimate.pairs).max(1)) }
}
