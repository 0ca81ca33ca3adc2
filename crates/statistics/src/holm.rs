//! Several arms against one baseline: Holm's step-down correction (Holm 1979, "A simple sequentially rejective
//! multiple test procedure"), for p values and, so that both tell the same, for the levels of intervals.

use crate::error::{StatisticsError, check_level};

/// Holm's adjusted p values, in the order given: the i-th smallest (from 0) of m is multiplied by m − i, never falls
/// below the one before it, and is at most 1. One p value comes back unchanged.
///
/// Errors: a p value outside [0, 1].
pub fn holm_adjusted(p_values: &[f64]) -> Result<Vec<f64>, StatisticsError> {
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, index) in from_smallest(p_values)?.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        largest = largest.max((factor * p_values[index]).min(1.0));
        adjusted[index] = largest;
    }
    Ok(adjusted)
}

/// The confidence level of each interval, in the order given, such that an interval decides exactly where Holm's
/// procedure rejects at 1 − `level`: with α = 1 − `level`, 1 − α/(m − i) for the i-th smallest p value as long as
/// p < α/(m − i); from the first that fails on, all get the level of that step. One p value: `level` itself.
///
/// The levels depend on the data, so these intervals answer the decision at hand; they do not cover all true
/// differences at once with probability `level`. Intervals at 1 − α/m would, and decide less often.
///
/// Errors: a p value outside [0, 1], a level outside (0, 1).
pub fn holm_levels(p_values: &[f64], level: f64) -> Result<Vec<f64>, StatisticsError> {
    check_level(level)?;
    let mut levels = vec![level; p_values.len()];
    let mut stopped_at = None;
    for (rank, index) in from_smallest(p_values)?.into_iter().enumerate() {
        let step = (1.0 - level) / (p_values.len() - stopped_at.unwrap_or(rank)) as f64;
        if p_values[index] >= step && stopped_at.is_none() {
            stopped_at = Some(rank);
        }
        if p_values.len() - stopped_at.unwrap_or(rank) > 1 {
            levels[index] = 1.0 - step;
        }
    }
    Ok(levels)
}

/// Indices from the smallest p value to the largest; equal ones in the order given.
fn from_smallest(p_values: &[f64]) -> Result<Vec<usize>, StatisticsError> {
    if let Some(value) = p_values.iter().find(|p| !(0.0..=1.0).contains(*p)) {
        return Err(StatisticsError::OutOfRange { what: "p value", value: *value, must_be: "between 0 and 1" });
    }
    let mut indices: Vec<usize> = (0..p_values.len()).collect();
    indices.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    Ok(indices)
}
