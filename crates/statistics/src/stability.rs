//! How steadily a run trained: loss spikes and the tail of its gradient norms. The spread across seeds is in
//! [`crate::describe::Description`].

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::describe::{median_of_sorted, quantile_of_sorted, sorted};

/// Logged steps before the one that is judged.
pub const SPIKE_WINDOW: usize = 50;

/// How many median absolute deviations above the median of the window a loss must lie.
pub const SPIKE_DEVIATIONS: f64 = 6.0;

/// The spikes of one loss curve (DESIGN section 7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spikes {
    /// Indices into the losses.
    pub at: Vec<usize>,
    /// Spikes on neighbouring logged steps are one episode.
    pub episodes: usize,
    /// How many losses were judged: all but the first [`SPIKE_WINDOW`].
    pub judged: usize,
    /// How many losses, anywhere in the curve, are not finite. Those that are judged count as spikes.
    pub not_finite: usize,
}

/// Finds the losses above the median of the previous [`SPIKE_WINDOW`] logged ones + [`SPIKE_DEVIATIONS`] times their
/// median absolute deviation (unscaled). The first [`SPIKE_WINDOW`] losses are not judged, so a shorter curve has no
/// spikes. Losses that are not finite are left out of the windows, and are spikes themselves. Where the window does not
/// vary at all, any rise is a spike.
///
/// `losses` are the training losses of one run in the order logged, in nats.
pub fn spikes(losses: &[f64]) -> Spikes {
    let at: Vec<usize> =
        (SPIKE_WINDOW..losses.len()).filter(|index| is_spike(&losses[window_before(*index)], losses[*index])).collect();
    let continued = at.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    Spikes {
        episodes: at.len() - continued,
        at,
        judged: losses.len().saturating_sub(SPIKE_WINDOW),
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
    loss > centre + SPIKE_DEVIATIONS * median_of_sorted(&sorted(&distances))
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
