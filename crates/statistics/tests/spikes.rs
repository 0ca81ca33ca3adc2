//! How often noise alone is taken for a loss spike, and whether spikes are still found.

mod draws;

use draws::spikes::{STEPS, flagged};
use draws::{gamma, generator, lognormal, normal};
use headcount_statistics::stability::spikes;

/// Normal noise: 24 % of runs by single losses. Skewed: nine of ten.
#[test]
fn noise_is_no_spike() {
    let [single, lasting] = flagged(normal);
    assert!((12.0..36.0).contains(&single), "{single} %");
    assert_eq!(lasting, 0.0);
    let [single, lasting] = flagged(gamma);
    assert!(single > 85.0, "{single} %");
    assert!(lasting < 2.0, "{lasting} %");
    let [single, lasting] = flagged(lognormal);
    assert!(single > 99.0, "{single} %");
    assert!(lasting < 7.0, "{lasting} %");
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
