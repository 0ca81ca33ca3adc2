//! How steadily a run trained: loss spikes and the tail of its gradient norms. The spread across seeds is in
//! [`crate::describe::Description`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::describe::{median_of_sorted, quantile_of_sorted, sorted};

/// Logged steps before the one that is judged.
pub const SPIKE_WINDOW: usize = 50;

/// How many deviations above the median of the window a loss must lie.
pub const SPIKE_DEVIATIONS: f64 = 6.0;

/// A spike lasts at least so many logged steps in a row. On noise alone, single losses beyond the bound flag every fourth
/// run, and nine of ten where the noise is skewed; three in a row, practically none (`tests/spikes.rs`).
pub const SPIKE_LASTS: usize = 3;

/// The spikes of one loss curve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spikes {
    /// Indices into the losses of all logged steps that belong to a spike.
    pub at: Vec<usize>,
    /// Spikes: stretches of such steps.
    pub episodes: usize,
    /// How many losses were judged: all but the first [`SPIKE_WINDOW`].
    pub judged: usize,
    /// How many losses, anywhere in the curve, are not finite. Those that are judged count as spikes.
    pub not_finite: usize,
}

/// Finds the stretches of at least [`SPIKE_LASTS`] logged losses above the median of the previous [`SPIKE_WINDOW`] logged
/// ones + [`SPIKE_DEVIATIONS`] times their median absolute deviation (unscaled) or, where that is more, as with skewed
/// noise, the distance of their upper quartile. The first [`SPIKE_WINDOW`] losses are not judged, so a shorter curve has no
/// spikes. Losses that are not finite are left out of the windows, and are spikes themselves, however few. Where the
/// window does not vary at all, any rise lies above it.
///
/// `losses` are the training losses of one run in the order logged, in nats.
pub fn spikes(losses: &[f64]) -> Spikes {
    let judged = losses.len().saturating_sub(SPIKE_WINDOW);
    let stands_out: Vec<usize> =
        (SPIKE_WINDOW..losses.len()).filter(|index| is_spike(&losses[window_before(*index)], losses[*index])).collect();
    let stretches = stands_out.chunk_by(|step, next| *next == step + 1);
    let spikes: Vec<&[usize]> = stretches
        .filter(|stretch| stretch.len() >= SPIKE_LASTS || stretch.iter().any(|index| !losses[*index].is_finite()))
        .collect();
    Spikes {
        episodes: spikes.len(),
        at: spikes.concat(),
        judged,
        not_finite: losses.iter().filter(|loss| !loss.is_finite()).count(),
    }
}

fn window_before(index: usize) -> Range<usize> {
    index - SPIKE_WINDOW..index
}

fn is_spike(window: &[f64], loss: f64) -> bool {
    if !loss.is_finite() {
        return true;
    }
    let finite = sorted_finite(window);
    if finite.is_empty() {
        return false;
    }
    let centre = median_of_sorted(&finite);
    let distances: Vec<f64> = finite.iter().map(|value| (value - centre).abs()).collect();
    let deviation = median_of_sorted(&sorted(&distances));
    loss > centre + SPIKE_DEVIATIONS * deviation.max(quantile_of_sorted(&finite, 0.75) - centre)
}

/// The tail of the gradient norms of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GradientTail {
    /// Median gradient norm.
    pub median: f64,
    /// Quantile 0.99, type 7.
    pub percentile_99: f64,
    /// 99th percentile / median; `None` where the median is 0.
    pub ratio: Option<f64>,
    /// Norms that are not finite: left out of the above and counted here.
    pub not_finite: usize,
}

/// The 99th percentile of the gradient norms over their median: 1 for constant norms, large where few steps dominate.
/// `norms` are global norms before clipping. `None` without a finite norm.
pub fn gradient_tail(norms: &[f64]) -> Option<GradientTail> {
    let finite = sorted_finite(norms);
    if finite.is_empty() {
        return None;
    }
    let median = median_of_sorted(&finite);
    let percentile_99 = quantile_of_sorted(&finite, 0.99);
    Some(GradientTail {
        median,
        percentile_99,
        ratio: Some(percentile_99 / median).filter(|ratio| ratio.is_finite()),
        not_finite: norms.len() - finite.len(),
    })
}

fn sorted_finite(values: &[f64]) -> Vec<f64> {
    let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted(&finite)
}
