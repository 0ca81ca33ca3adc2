//! Loss curves of nothing but noise, and how many of them are said to have a spike.

use headcount_statistics::describe::{median, median_absolute_deviation};
use headcount_statistics::stability::{SPIKE_DEVIATIONS, SPIKE_WINDOW, spikes};
use rand_chacha::ChaCha8Rng;

use super::{generator, simulations};

/// Logged training losses of a run.
pub const STEPS: usize = 800;

/// Whether any single loss lies above the median + 6 median absolute deviations of the window: the rule before.
fn any_above(losses: &[f64]) -> bool {
    (SPIKE_WINDOW..losses.len()).any(|index| {
        let window = &losses[index - SPIKE_WINDOW..index];
        let bound = median(window).unwrap() + SPIKE_DEVIATIONS * median_absolute_deviation(window).unwrap();
        losses[index] > bound
    })
}

/// Per cent of runs of noise that are flagged by single losses, and by three in a row.
pub fn flagged(noise: impl Fn(&mut ChaCha8Rng) -> f64) -> [f64; 2] {
    let runs = simulations(200).min(2_000);
    let mut generator = generator(6);
    let mut counts = [0, 0];
    for _ in 0..runs {
        let losses: Vec<f64> = (0..STEPS).map(|_| noise(&mut generator)).collect();
        counts[0] += usize::from(any_above(&losses));
        counts[1] += usize::from(spikes(&losses).episodes > 0);
    }
    counts.map(|count| 100.0 * f64::from(u16::try_from(count).unwrap()) / runs as f64)
}
