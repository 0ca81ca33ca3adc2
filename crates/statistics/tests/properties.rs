//! What must hold whatever the numbers are.

use headcount_statistics::Direction::{HigherIsBetter, LowerIsBetter};
use headcount_statistics::bootstrap::bootstrap_interval;
use headcount_statistics::describe::describe;
use headcount_statistics::holm::{holm_adjusted, holm_levels};
use headcount_statistics::interval::{PairedInterval, paired_interval, wilson_interval};
use headcount_statistics::outcome::probability_of_improvement;
use headcount_statistics::sign_flip::sign_flip;
use headcount_statistics::verdict::{PairCounts, Verdict, decide, decision_p_value};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Differences on a coarse grid, so that ties and equal values come up.
fn differences() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-40_i32..=40).prop_map(|steps| f64::from(steps) / 16.0), 2..14)
}

fn p_values() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![0.0..=1.0, 0.0..=0.06, Just(0.012)], 1..9)
}

fn close(a: f64, b: f64, unit: f64) -> bool {
    (a - b).abs() <= 1e-9 * unit.abs().max(1e-12)
}

fn verdict_of(interval: &PairedInterval, margin: f64) -> Verdict {
    let pairs = PairCounts { complete: interval.pairs, with_a_finished_run: interval.pairs };
    decide(Some(interval), pairs, margin, HigherIsBetter)
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
    fn swapping_the_arms_mirrors_everything(d in differences(), margin in 0.0..1.0) {
        let mirrored: Vec<f64> = d.iter().map(|value| -value).collect();
        let (a, b) = (paired_interval(&d, 0.95).unwrap(), paired_interval(&mirrored, 0.95).unwrap());
        prop_assert!(close(a.low, -b.high, 1.0) && close(a.high, -b.low, 1.0) && close(a.p_value, b.p_value, 1.0));
        prop_assert_eq!(sign_flip(&d, 0).unwrap(), sign_flip(&mirrored, 0).unwrap());
        let (ours, theirs) = (verdict_of(&a, margin), verdict_of(&b, margin));
        prop_assert_eq!(ours == Verdict::Better, theirs == Verdict::Worse);
        prop_assert_eq!(ours == Verdict::Equivalent, theirs == Verdict::Equivalent);
        let (a, b) = (bootstrap_interval(&d, 0.9, 200, 3).unwrap(), bootstrap_interval(&mirrored, 0.9, 200, 3).unwrap());
        prop_assert!(close(a.low, -b.high, 1.0) && close(a.high, -b.low, 1.0));
    }

    /// Units do not matter: accuracies in per cent decide as fractions do.
    #[test]
    fn scaling_scales(d in differences(), scale in 1e-6..1e6) {
        let scaled: Vec<f64> = d.iter().map(|value| value * scale).collect();
        let (a, b) = (paired_interval(&d, 0.95).unwrap(), paired_interval(&scaled, 0.95).unwrap());
        prop_assert!(close(a.low * scale, b.low, scale) && close(a.high * scale, b.high, scale));
        // Differences that are all equal may be so only nearly once scaled.
        prop_assert!(close(a.p_value, b.p_value, 1.0) || a.statistic.is_none());
        prop_assert!(close(sign_flip(&d, 0).unwrap().p_value, sign_flip(&scaled, 0).unwrap().p_value, 1.0));
    }

    #[test]
    fn shifting_shifts(d in differences(), shift in -3.0..3.0) {
        let shifted: Vec<f64> = d.iter().map(|value| value + shift).collect();
        let (a, b) = (paired_interval(&d, 0.95).unwrap(), paired_interval(&shifted, 0.95).unwrap());
        prop_assert!(close(a.low + shift, b.low, 1.0) && close(a.high + shift, b.high, 1.0));
        let (a, b) = (describe(&d).unwrap(), describe(&shifted).unwrap());
        prop_assert!(close(a.interquartile_mean + shift, b.interquartile_mean, 1.0));
        prop_assert!(close(a.median_absolute_deviation, b.median_absolute_deviation, 1.0));
    }

    /// p, interval and verdict never contradict each other.
    #[test]
    fn interval_decides_where_its_p_value_does(d in differences(), margin in prop_oneof![Just(0.0), 0.0..2.0]) {
        let interval = paired_interval(&d, 0.95).unwrap();
        prop_assert!(interval.low <= interval.mean_difference && interval.mean_difference <= interval.high);
        let excludes = interval.low > 0.0 || interval.high < 0.0;
        prop_assert_eq!(excludes, interval.p_value < 0.05);
        let decides = !matches!(verdict_of(&interval, margin), Verdict::Undecided { .. });
        prop_assert_eq!(decides, interval.pairs >= 6 && decision_p_value(&interval, margin) < 0.05);
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
    fn holm_is_monotone_and_never_below_the_p_value(p in p_values()) {
        let adjusted = holm_adjusted(&p).unwrap();
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }

    /// An interval at Holm's level excludes 0 exactly where the adjusted p value is below 0.05.
    #[test]
    fn holm_levels_agree_with_adjusted_p_values(p in p_values()) {
        let (adjusted, levels) = (holm_adjusted(&p).unwrap(), holm_levels(&p, 0.95).unwrap());
        for i in 0..p.len() {
            prop_assert!(levels[i] >= 0.95 && levels[i] <= 1.0 - 0.05 / p.len() as f64 + 1e-12);
            prop_assert_eq!(p[i] < 1.0 - levels[i], adjusted[i] < 0.05);
        }
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
