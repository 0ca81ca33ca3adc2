//! How often noise alone is taken for a loss spike, and whether spikes are still found.

mod draws;

use draws::{generator, lognormal, normal, simulations, uniform};
use headcount_statistics::describe::{median, median_absolute_deviation};
use headcount_statistics::stability::{SPIKE_DEVIATIONS, SPIKE_WINDOW, spikes};
use rand_chacha::ChaCha8Rng;

/// Logged training losses of a run.
const STEPS: usize = 800;

/// Whether any single loss lies above the median + 6 median absolute deviations of the window: the rule before.
fn any_above(losses: &[f64]) -> bool {
    (SPIKE_WINDOW..losses.len()).any(|index| {
        let window = &losses[index - SPIKE_WINDOW..index];
        let bound = median(window).unwrap() + SPIKE_DEVIATIONS * median_absolute_deviation(window).unwrap();
        losses[index] > bound
    })
}

/// Per cent of runs of noise that are flagged by single losses, and by three in a row.
fn flagged(noise: impl Fn(&mut ChaCha8Rng) -> f64) -> [f64; 2] {
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

/// Normal noise: 24 % of runs by single losses. Skewed: nine of ten.
#[test]
fn noise_is_no_spike() {
    let [single, lasting] = flagged(normal);
    assert!((12.0..36.0).contains(&single), "{single} %");
    assert_eq!(lasting, 0.0);
    // A gamma variable of shape 4, skewness 1: the sum of four exponential ones.
    let [single, lasting] = flagged(|generator| (0..4).map(|_| -uniform(generator).ln()).sum());
    assert!(single > 85.0, "{single} %");
    assert!(lasting < 2.0, "{lasting} %");
    let [single, lasting] = flagged(lognormal);
    assert!(single > 99.0, "{single} %");
    assert!(lasting < 5.0, "{lasting} %");
}

/// A loss that leaps and takes a few steps to come back is found, whatever the noise.
#[test]
fn spikes_are_found() {
    let mut generator = generator(3);
    for leap in [3, 5, 10] {
        let mut losses: Vec<f64> = (0..STEPS).map(|_| 1.0 + 0.05 * normal(&mut generator)).collect();
        losses[400..400 + leap].iter_mut().for_each(|loss| *loss += 1.0);
        let found = spikes(&losses);
        assert_eq!((found.episodes, found.at.len()), (1, leap));
        assert_eq!(found.at[0], 400);
    }
}
