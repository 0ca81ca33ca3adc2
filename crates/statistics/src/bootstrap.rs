//! The bias-corrected and accelerated (BCa) bootstrap interval of a mean difference: Efron 1987, "Better bootstrap
//! confidence intervals", section 2 to 4; Efron and Tibshirani 1993, section 14.3; `scipy.stats.bootstrap`. Shown
//! beside the Student t interval, never instead: with few pairs it is too narrow (89 % instead of 95 %
//! for 8 normal differences, `tests/simulation.rs`).

use serde::{Deserialize, Serialize};

use crate::describe::{mean_of_checked, quantile_of_sorted, scaled_deviations, sorted};
use crate::distributions::{generator, index_below, normal_cdf, normal_quantile};
use crate::error::{StatisticsError, check_level, check_values};

/// Resamples drawn unless the caller says otherwise (the default of `scipy.stats.bootstrap` is 9,999).
pub const RESAMPLES: usize = 10_000;

/// How the ends of a bootstrap interval were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootstrapMethod {
    /// Bias-corrected and accelerated.
    BiasCorrectedAccelerated,
    /// Plain percentiles, because the correction is not defined: the mean lies outside all resampled means, or the
    /// acceleration is too strong for the level.
    Percentile,
    /// All differences are equal: the interval is that point, whatever the level.
    AllEqual,
}

/// A bootstrap interval, in the unit of the differences.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootstrapInterval {
    /// Number of differences.
    pub pairs: usize,
    pub mean_difference: f64,
    /// Confidence level asked for, such as 0.95.
    pub level: f64,
    pub low: f64,
    pub high: f64,
    pub method: BootstrapMethod,
    /// Bias correction z₀ and acceleration a; `None` unless the method is BCa.
    pub correction: Option<BiasAndAcceleration>,
    /// Number of resampled means behind the interval.
    pub resamples: usize,
}

/// The two numbers that shift the percentiles of a BCa interval. No unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BiasAndAcceleration {
    /// z₀ = Φ⁻¹(share of resampled means below the observed mean; ties count half).
    pub bias: f64,
    /// a, from the jackknife; for a mean Σ(d − d̄)³ / (6 (Σ(d − d̄)²)^1.5).
    pub acceleration: f64,
}

/// The BCa interval of the mean of `differences` from `resamples` resamples, the same for the same `random_seed`.
///
/// Errors: fewer than two differences, one that is not finite, a level outside (0, 1), no resamples.
pub fn bootstrap_interval(
    differences: &[f64],
    level: f64,
    resamples: usize,
    random_seed: u64,
) -> Result<BootstrapInterval, StatisticsError> {
    check_values("bootstrap interval", differences, 2)?;
    let count = differences.len();
    let mut generator = generator(random_seed);
    let mut resampled_mean = || {
        let draw = |_| differences[index_below(&mut generator, count)];
        (0..count).map(draw).sum::<f64>() / count as f64
    };
    let means: Vec<f64> = (0..resamples).map(|_| resampled_mean()).collect();
    interval_from_means(differences, &means, level)
}

/// The BCa interval from resampled means that are already there, such as all n^n of a small sample.
///
/// Errors: as [`bootstrap_interval`].
pub fn interval_from_means(
    differences: &[f64],
    resampled_means: &[f64],
    level: f64,
) -> Result<BootstrapInterval, StatisticsError> {
    check_values("bootstrap interval", differences, 2)?;
    check_values("resampled means", resampled_means, 1)?;
    check_level(level)?;
    let mean = mean_of_checked(differences);
    let means = sorted(resampled_means);
    let (ends, method, correction) = match bias_and_acceleration(differences, mean, &means) {
        None => ([mean, mean], BootstrapMethod::AllEqual, None),
        Some(correction) => match corrected_percentiles(correction, level) {
            Some([low, high]) => (
                [quantile_of_sorted(&means, low), quantile_of_sorted(&means, high)],
                BootstrapMethod::BiasCorrectedAccelerated,
                Some(correction),
            ),
            None => {
                let tail = (1.0 - level) / 2.0;
                let ends = [tail, 1.0 - tail].map(|p| quantile_of_sorted(&means, p));
                (ends, BootstrapMethod::Percentile, None)
            }
        },
    };
    Ok(BootstrapInterval {
        pairs: differences.len(),
        mean_difference: mean,
        level,
        low: ends[0],
        high: ends[1],
        method,
        correction,
        resamples: resampled_means.len(),
    })
}

/// z₀ and a; `None` where all differences are equal. z₀ is infinite where the mean lies outside all resampled means.
fn bias_and_acceleration(differences: &[f64], mean: f64, sorted_means: &[f64]) -> Option<BiasAndAcceleration> {
    let (scale, deviations) = scaled_deviations(differences);
    if scale == 0.0 {
        return None;
    }
    let cubes: f64 = deviations.iter().map(|d| d.powi(3)).sum();
    let squares: f64 = deviations.iter().map(|d| d.powi(2)).sum();
    // A resample that repeats the sample in another order has the same mean but for rounding: a tie, counted half.
    let rounding = 1e-12 * (scale + mean.abs());
    let below = sorted_means.partition_point(|other| *other < mean - rounding);
    let not_above = sorted_means.partition_point(|other| *other <= mean + rounding);
    let share = (below + not_above) as f64 / (2 * sorted_means.len()) as f64;
    Some(BiasAndAcceleration { bias: normal_quantile(share), acceleration: cubes / (6.0 * squares.powf(1.5)) })
}

/// The percentiles, in [0, 1], at which a BCa interval ends; `None` where the correction is not defined.
fn corrected_percentiles(correction: BiasAndAcceleration, level: f64) -> Option<[f64; 2]> {
    let BiasAndAcceleration { bias, acceleration } = correction;
    let tail = (1.0 - level) / 2.0;
    let corrected = |probability: f64| {
        let shifted = bias + normal_quantile(probability);
        let divisor = 1.0 - acceleration * shifted;
        (bias.is_finite() && divisor > 0.0).then(|| normal_cdf(bias + shifted / divisor))
    };
    Some([corrected(tail)?, corrected(1.0 - tail)?])
}
