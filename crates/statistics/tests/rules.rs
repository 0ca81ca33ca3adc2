//! Descriptions in words: rates, curves, stability, degenerate and refused input. Verdicts are in `answer_rules.rs`.

use headcount_statistics::bootstrap::{BootstrapMethod, bootstrap_interval, interval_from_means};
use headcount_statistics::describe::{describe, mean, weighted_mean};
use headcount_statistics::estimate::MeanEstimate;
use headcount_statistics::interval::wilson_interval;
use headcount_statistics::outcome::{solve_rate, steps_to_threshold};
use headcount_statistics::sign_flip::{EXACT_UP_TO, sign_flip};
use headcount_statistics::stability::{gradient_tail, spikes};
use headcount_statistics::{Direction, Outcome, StatisticsError};

use Outcome::{Diverged, Finished, Missing};

// ----------------------------------------------------------------------------------- Rates, steps, stability

#[test]
fn solve_rate_counts_diverged_runs_and_no_missing_ones() {
    let outcomes = [Finished(0.95), Finished(0.5), Diverged, Missing, Finished(0.9)];
    let rate = solve_rate(&outcomes, 0.9, Direction::HigherIsBetter, 0.95).unwrap().unwrap();
    assert_eq!((rate.successes, rate.trials), (2, 4));
    let rate = solve_rate(&outcomes, 0.9, Direction::LowerIsBetter, 0.95).unwrap().unwrap();
    assert_eq!((rate.successes, rate.trials), (2, 4));
    assert_eq!(solve_rate(&[Missing], 0.9, Direction::HigherIsBetter, 0.95).unwrap(), None);
}

#[test]
fn steps_to_threshold_count_apart_what_never_got_there() {
    let curves: [&[(u64, f64)]; 4] = [
        &[(50, 0.2), (100, 0.9), (150, 0.4)],
        &[(50, 0.2), (100, f64::NAN), (150, 0.95)],
        &[(50, 0.2), (100, 0.3)],
        &[],
    ];
    let up = Direction::HigherIsBetter;
    let steps = steps_to_threshold(&curves, 0.9, up).unwrap();
    assert_eq!(steps.first_step, [Some(100), Some(150), None, None]);
    // Half never got there: the median lies between 150 and never.
    assert_eq!((steps.reached, steps.never_reached, steps.median), (2, 2, None));
    assert_eq!(steps_to_threshold(&curves[..3], 0.9, up).unwrap().median, Some(150.0));
    assert_eq!(steps_to_threshold(&curves[..2], 0.9, up).unwrap().median, Some(125.0));
    assert_eq!(steps_to_threshold(&[], 0.9, up).unwrap().median, None);
    assert_eq!(steps_to_threshold(&curves, 0.25, Direction::LowerIsBetter).unwrap().reached, 3);
    let error = steps_to_threshold(&[&[(50, 0.1), (50, 0.2)]], 0.9, up).unwrap_err();
    assert_eq!(error, StatisticsError::StepsNotRising { previous: 50, step: 50 });
}

#[test]
fn spikes_stand_out_of_the_window_before() {
    // 1.0, 1.1, 1.0, 1.1, ...: median 1.05, deviation 0.05, so spikes lie above 1.35, three steps in a row.
    let mut losses: Vec<f64> = (0..120).map(|step| 1.0 + 0.1 * (step % 2) as f64).collect();
    assert_eq!(spikes(&losses).at, [0_usize; 0]);
    losses[5] = 9.0; // Not judged: too early.
    losses[60..62].fill(2.5); // Two in a row are noise.
    losses[70..73].fill(2.5);
    losses[80] = f64::NAN;
    losses[81] = 2.0;
    let found = spikes(&losses);
    assert_eq!(found.at, [70, 71, 72, 80, 81]);
    assert_eq!((found.episodes, found.judged, found.not_finite), (2, 70, 1));
    assert_eq!(spikes(&losses[..50]).judged, 0);
    assert_eq!(spikes(&[f64::NAN; 60]).at.len(), 10);
}

#[test]
fn gradient_tail_is_percentile_over_median() {
    let mut norms = vec![2.0; 100];
    norms[7] = 52.0;
    let tail = gradient_tail(&norms).unwrap();
    // np.quantile([2.0] * 99 + [52.0], 0.99) is 2.5
    assert!((tail.percentile_99 - 2.5).abs() < 1e-9 && (tail.ratio.unwrap() - 1.25).abs() < 1e-9);
    norms[8] = f64::INFINITY;
    assert_eq!(gradient_tail(&norms).unwrap().not_finite, 1);
    assert_eq!(gradient_tail(&[0.0, 0.0]).unwrap().ratio, None);
    assert_eq!(gradient_tail(&[f64::NAN]), None);
}

// ------------------------------------------------------------------------------- Degenerate and refused input

#[test]
fn bootstrap_names_what_it_fell_back_to() {
    // All resampled means above the mean: the bias correction would be infinite.
    let outside = interval_from_means(&[1.0, 2.0, 3.0], &[5.0, 6.0, 7.0], 0.95).unwrap();
    assert_eq!((outside.method, outside.correction), (BootstrapMethod::Percentile, None));
    assert!(outside.low >= 5.0 && outside.high <= 7.0);
    let single = bootstrap_interval(&[1.0, 2.0, 3.0], 0.95, 1, 0).unwrap();
    assert_eq!(single.low, single.high);
    let equal = bootstrap_interval(&[0.1; 7], 0.95, 100, 0).unwrap();
    assert_eq!((equal.low, equal.high, equal.method), (0.1, 0.1, BootstrapMethod::AllEqual));
}

#[test]
fn sign_flip_beyond_the_exact_range_is_drawn_and_repeatable() {
    let differences: Vec<f64> = (0..EXACT_UP_TO + 10).map(|i| (i % 7) as f64 - 2.4).collect();
    let exact = sign_flip(&differences[..EXACT_UP_TO], 1).unwrap();
    assert!(exact.exact && exact.floor == 2_f64.powi(-29));
    let drawn = sign_flip(&differences, 1).unwrap();
    assert_eq!(drawn, sign_flip(&differences, 1).unwrap());
    assert!(!drawn.exact && drawn.p_value >= drawn.floor);
    // Near the t test, as it must be with 40 pairs.
    let p_value = MeanEstimate::of(&differences, None).unwrap().p_value().unwrap();
    assert!((drawn.p_value - p_value).abs() < 0.01, "{} against {p_value}", drawn.p_value);
    assert!(sign_flip(&[1.0; 40], 0).unwrap().p_value == 1.0 / 100_001.0);
}

#[test]
fn extremes_stay_finite() {
    for scale in [1e-300, 1e-170, 1e170, 1e299] {
        let values = [1.0, 2.0, -3.0, 4.0, 0.5, 1.5].map(|value: f64| value * scale);
        let estimate = MeanEstimate::of(&values, None).unwrap();
        let [low, high] = estimate.interval(0.025);
        assert!(low.is_finite() && high.is_finite() && low <= high, "{estimate:?}");
        // stats.ttest_1samp([1, 2, -3, 4, 0.5, 1.5], 0).pvalue
        assert!((estimate.p_value().unwrap() - 0.33599530694).abs() < 1e-9, "{estimate:?}");
        let bootstrap = bootstrap_interval(&values, 0.95, 500, 0).unwrap();
        assert_eq!(bootstrap.method, BootstrapMethod::BiasCorrectedAccelerated);
        assert_eq!(sign_flip(&values, 0).unwrap().p_value, 0.375);
    }
}

#[test]
fn refused_input_is_named() {
    let text = |error: StatisticsError| error.to_string();
    assert_eq!(text(mean(&[]).unwrap_err()), "mean: needs at least 1 value(s), got 0");
    assert_eq!(
        text(describe(&[1.0, f64::NAN]).unwrap_err()),
        "description: value NaN at index 1 is not a finite number (within ±1e300)"
    );
    assert_eq!(
        text(MeanEstimate::of(&[1.0], None).unwrap_err()),
        "mean of paired differences: needs at least 2 value(s), got 1"
    );
    assert!(text(wilson_interval(1, 2, 95.0).unwrap_err()).contains("confidence level is 95"));
    assert_eq!(text(wilson_interval(3, 2, 0.95).unwrap_err()), "3 successes in 2 trials");
    assert_eq!(text(weighted_mean(&[1.0], &[0]).unwrap_err()), "weighted mean: all 1 weights are 0");
}

/// `results.json` is written from these and read back.
#[test]
fn results_can_be_written_and_read() {
    fn both_ways<T: serde::Serialize + for<'a> serde::Deserialize<'a>>() {}
    both_ways::<headcount_statistics::outcome::StepsToThreshold>();
    both_ways::<headcount_statistics::stability::Spikes>();
    both_ways::<headcount_statistics::stability::GradientTail>();
}
