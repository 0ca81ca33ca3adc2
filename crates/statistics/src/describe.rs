//! Describing one list of numbers: centre, spread, quantiles. All results are in the unit of the values.

use serde::{Deserialize, Serialize};

use crate::error::{StatisticsError, check_values};

/// What a table shows about the results of one arm, in the unit of the metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Number of values.
    pub count: usize,
    pub mean: f64,
    /// Sample standard deviation (divisor n − 1): the spread across seeds. `None` with one value.
    pub standard_deviation: Option<f64>,
    /// Median absolute deviation, unscaled.
    pub median_absolute_deviation: f64,
    /// Interquartile mean, see [`interquartile_mean`].
    pub interquartile_mean: f64,
    pub minimum: f64,
    /// Quantile 0.25, type 7.
    pub lower_quartile: f64,
    pub median: f64,
    /// Quantile 0.75, type 7.
    pub upper_quartile: f64,
    pub maximum: f64,
}

/// Describes one or more finite values.
///
/// Errors: no values, or one that is not finite.
pub fn describe(values: &[f64]) -> Result<Description, StatisticsError> {
    check_values("description", values, 1)?;
    Ok(Description {
        count: values.len(),
        mean: mean(values)?,
        standard_deviation: if values.len() > 1 { Some(standard_deviation(values)?) } else { None },
        median_absolute_deviation: median_absolute_deviation(values)?,
        interquartile_mean: interquartile_mean(values)?,
        minimum: quantile(values, 0.0)?,
        lower_quartile: quantile(values, 0.25)?,
        median: median(values)?,
        upper_quartile: quantile(values, 0.75)?,
        maximum: quantile(values, 1.0)?,
    })
}

/// The arithmetic mean. The mean of equal values is that value exactly.
///
/// Errors: no values, or one that is not finite.
pub fn mean(values: &[f64]) -> Result<f64, StatisticsError> {
    check_values("mean", values, 1)?;
    Ok(mean_of_checked(values))
}

/// The mean of values known to be finite and at least one.
pub fn mean_of_checked(values: &[f64]) -> f64 {
    // Summing distances from the first value keeps equal values exact, so that "no spread" is seen as such.
    let first = values[0];
    let sum: f64 = values.iter().map(|value| value - first).sum();
    first + sum / values.len() as f64
}

/// The sample standard deviation, divisor n − 1.
///
/// Errors: fewer than two values, or one that is not finite.
pub fn standard_deviation(values: &[f64]) -> Result<f64, StatisticsError> {
    check_values("standard deviation", values, 2)?;
    let (scale, scaled) = scaled_deviations(values);
    let squares: f64 = scaled.iter().map(|value| value * value).sum();
    Ok(scale * (squares / (values.len() - 1) as f64).sqrt())
}

/// Largest distance from the mean, and all distances divided by it: their squares neither overflow nor vanish.
/// All zero for equal values.
pub fn scaled_deviations(values: &[f64]) -> (f64, Vec<f64>) {
    let mean = mean_of_checked(values);
    let distances = values.iter().map(|value| value - mean);
    let scale = distances.clone().fold(0.0, |most: f64, d| most.max(d.abs()));
    if scale == 0.0 {
        return (0.0, vec![0.0; values.len()]);
    }
    (scale, distances.map(|distance| distance / scale).collect())
}

/// The median: the middle value, or the mean of the two in the middle.
///
/// Errors: no values, or one that is not finite.
pub fn median(values: &[f64]) -> Result<f64, StatisticsError> {
    check_values("median", values, 1)?;
    Ok(median_of_sorted(&sorted(values)))
}

/// The median of sorted values, at least one.
pub fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        sorted[middle - 1] + (sorted[middle] - sorted[middle - 1]) / 2.0
    }
}

/// The quantile at `probability` in [0, 1]: type 7 of Hyndman and Fan (1996), the default of NumPy and R, linear
/// between the order statistics around (n − 1)·probability.
///
/// Errors: no values, one that is not finite, a probability outside [0, 1].
pub fn quantile(values: &[f64], probability: f64) -> Result<f64, StatisticsError> {
    check_values("quantile", values, 1)?;
    if !(0.0..=1.0).contains(&probability) {
        return Err(StatisticsError::OutOfRange {
            what: "probability of a quantile",
            value: probability,
            must_be: "between 0 and 1",
        });
    }
    Ok(quantile_of_sorted(&sorted(values), probability))
}

/// [`quantile`] of sorted values, at least one.
pub fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let position = probability * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// The median absolute deviation from the median, unscaled (no factor 1.4826).
///
/// Errors: no values, or one that is not finite.
pub fn median_absolute_deviation(values: &[f64]) -> Result<f64, StatisticsError> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances)
}

/// The interquartile mean: the mean after a quarter of the values is cut at each end, rounded down to whole values
/// (`scipy.stats.trim_mean(x, 0.25)`, as in rliable). Agarwal et al. 2021 (arXiv 2108.13264), section 4.2.
///
/// Errors: no values, or one that is not finite.
pub fn interquartile_mean(values: &[f64]) -> Result<f64, StatisticsError> {
    check_values("interquartile mean", values, 1)?;
    let cut = values.len() / 4;
    let sorted = sorted(values);
    Ok(mean_of_checked(&sorted[cut..values.len() - cut]))
}

/// The mean of `values[i]` counted `weights[i]` times: the mean over uneven batches, where the weight is a batch's
/// number of scored positions.
///
/// Errors: no values, lengths that differ, a value that is not finite, only weights of 0.
pub fn weighted_mean(values: &[f64], weights: &[u64]) -> Result<f64, StatisticsError> {
    check_values("weighted mean", values, 1)?;
    if values.len() != weights.len() {
        return Err(StatisticsError::LengthsDiffer {
            first: "values".into(),
            first_length: values.len(),
            second: "weights".into(),
            second_length: weights.len(),
        });
    }
    let total: f64 = weights.iter().map(|weight| *weight as f64).sum();
    if total == 0.0 {
        return Err(StatisticsError::NoWeight { what: "weighted mean", got: weights.len() });
    }
    let shares = weights.iter().map(|weight| *weight as f64 / total);
    Ok(values.iter().zip(shares).map(|(value, share)| value * share).sum())
}

/// A sorted copy.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}
