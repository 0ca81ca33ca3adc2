//! What must hold whatever the numbers are.

use headcount_statistics::Direction::{HigherIsBetter, LowerIsBetter};
use headcount_statistics::bootstrap::bootstrap_interval;
use headcount_statistics::describe::describe;
use headcount_statistics::estimate::MeanEstimate;
use headcount_statistics::interval::wilson_interval;
use headcount_statistics::outcome::probability_of_improvement;
use headcount_statistics::sign_flip::sign_flip;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Differences on a coarse grid, so that ties and equal values come up.
fn differences() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-40_i32..=40).prop_map(|steps| f64::from(steps) / 16.0), 2..14)
}

fn close(a: f64, b: f64, unit: f64) -> bool {
    (a - b).abs() <= 1e-9 * unit.abs().max(1e-12)
}

fn estimate(differences: &[f64]) -> MeanEstimate {
    MeanEstimate::of(differences, None).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    /// Which arm is called the baseline does not matter.
    #[test]
    fn swapping_the_arms_mirrors_everything(d in differences(), tail in 0.001..0.4) {
        let mirrored: Vec<f64> = d.iter().map(|value| -value).collect();
        let (a, b) = (estimate(&d), estimate(&mirrored));
        prop_assert!(close(a.lower(tail), -b.upper(tail), 1.0) && close(a.upper(tail), -b.lower(tail), 1.0));
        prop_assert_eq!(a.p_value(), b.p_value());
        prop_assert_eq!(sign_flip(&d, 0).unwrap(), sign_flip(&mirrored, 0).unwrap());
        let (a, b) = (bootstrap_interval(&d, 0.9, 200, 3).unwrap(), bootstrap_interval(&mirrored, 0.9, 200, 3).unwrap());
        prop_assert!(close(a.low, -b.high, 1.0) && close(a.high, -b.low, 1.0));
    }

    /// Units do not matter: accuracies in per cent decide as fractions do.
    #[test]
    fn scaling_scales(d in differences(), scale in 1e-6..1e6) {
        let scaled: Vec<f64> = d.iter().map(|value| value * scale).collect();
        let (a, b) = (estimate(&d), estimate(&scaled));
        prop_assert!(close(a.lower(0.025) * scale, b.lower(0.025), scale));
        prop_assert!(close(a.upper(0.025) * scale, b.upper(0.025), scale));
        match (a.p_value(), b.p_value()) {
            (Some(ours), Some(theirs)) => prop_assert!(close(ours, theirs, 1.0)),
            (ours, theirs) => prop_assert_eq!(ours, theirs),
        }
        prop_assert!(close(sign_flip(&d, 0).unwrap().p_value, sign_flip(&scaled, 0).unwrap().p_value, 1.0));
    }

    #[test]
    fn shifting_shifts(d in differences(), shift in -3.0..3.0) {
        let shifted: Vec<f64> = d.iter().map(|value| value + shift).collect();
        let (a, b) = (estimate(&d), estimate(&shifted));
        prop_assert!(close(a.lower(0.025) + shift, b.lower(0.025), 1.0));
        prop_assert!(close(a.upper(0.025) + shift, b.upper(0.025), 1.0));
        let (a, b) = (describe(&d).unwrap(), describe(&shifted).unwrap());
        prop_assert!(close(a.interquartile_mean + shift, b.interquartile_mean, 1.0));
        prop_assert!(close(a.median_absolute_deviation, b.median_absolute_deviation, 1.0));
    }

    /// p and interval never contradict each other.
    #[test]
    fn interval_excludes_zero_where_its_p_value_says_so(d in differences()) {
        let estimate = estimate(&d);
        let [low, high] = estimate.interval(0.025);
        prop_assert!(low <= estimate.mean && estimate.mean <= high);
        if let Some(p_value) = estimate.p_value() {
            prop_assert_eq!(low > 0.0 || high < 0.0, p_value < 0.05);
        } else {
            prop_assert_eq!(low, high);
        }
    }

    #[test]
    fn sign_flip_stays_between_floor_and_one(d in differences()) {
        let test = sign_flip(&d, 0).unwrap();
        prop_assert!(test.exact && test.floor == 2_f64.powi(1 - d.len() as i32));
        prop_assert!(test.p_value >= test.floor && test.p_value <= 1.0);
    }

    /// Meeting in the middle counts what listing every pattern counts.
    #[test]
    fn sign_flip_equals_plain_listing(d in differences()) {
        let observed = d.iter().sum::<f64>().abs();
        let signed = |pattern: usize| d.iter().enumerate().map(move |(i, v)| if pattern >> i & 1 == 1 { -v } else { *v });
        // Multiples of 1/16 add up exactly: no tolerance is needed.
        let beyond = (0..1 << d.len()).filter(|pattern| signed(*pattern).sum::<f64>().abs() >= observed).count();
        prop_assert_eq!(sign_flip(&d, 0).unwrap().p_value, beyond as f64 / 2_f64.powi(d.len() as i32));
    }

    #[test]
    fn improvement_chances_add_up_to_one(a in differences(), b in differences()) {
        let chance = |direction| probability_of_improvement(&a, &b, direction).unwrap();
        prop_assert!((0.0..=1.0).contains(&chance(HigherIsBetter)));
        prop_assert!(close(chance(HigherIsBetter) + chance(LowerIsBetter), 1.0, 1.0));
    }

    #[test]
    fn wilson_holds_the_rate_and_mirrors(successes in 0_u64..50, more in 0_u64..50) {
        prop_assume!(successes + more > 0);
        let a = wilson_interval(successes, successes + more, 0.95).unwrap();
        let b = wilson_interval(more, successes + more, 0.95).unwrap();
        prop_assert!(0.0 <= a.low && a.low <= a.rate && a.rate <= a.high && a.high <= 1.0);
        prop_assert!(close(a.low, 1.0 - b.high, 1.0));
    }
}
