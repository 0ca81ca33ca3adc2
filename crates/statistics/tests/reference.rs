//! Every statistic against scipy 1.17 or numpy 2. `scripts/statistics_reference.py` prints the numbers; the Python line
//! that made each stands beside it.

use headcount_statistics::Direction;
use headcount_statistics::bootstrap::{BootstrapMethod, bootstrap_interval, interval_from_means};
use headcount_statistics::describe::{
    describe, interquartile_mean, mean, median, median_absolute_deviation, quantile, standard_deviation, weighted_mean,
};
use headcount_statistics::estimate::MeanEstimate;
use headcount_statistics::interval::wilson_interval;
use headcount_statistics::outcome::probability_of_improvement;
use headcount_statistics::sign_flip::sign_flip;

const ARM: [f64; 8] = [0.9925, 0.9875, 0.9950, 0.9800, 0.9900, 0.9775, 0.9925, 0.9850];
const BASE: [f64; 8] = [0.9800, 0.9850, 0.9775, 0.9825, 0.9700, 0.9750, 0.9800, 0.9825];
const X: [f64; 10] = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 35.0];
const SMALL: [f64; 5] = [0.5, -0.25, 1.0, 2.0, 0.75];

/// `d = arm - base`
fn d() -> Vec<f64> {
    ARM.iter().zip(BASE).map(|(arm, base)| arm - base).collect()
}

/// Equal but for a relative error of 1e-9.
#[track_caller]
fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-6), "{ours} is not {theirs}");
}

#[test]
fn paired_t() {
    let estimate = MeanEstimate::of(&d(), None).unwrap();
    close(estimate.mean / estimate.standard_error, 2.899468791886467); // ttest_rel(arm, base).statistic
    close(estimate.p_value().unwrap(), 0.023003352274788474); // ttest_rel(arm, base).pvalue
    close(estimate.mean, 0.008437500000000014); // np.mean(d)
    close(estimate.standard_deviation, 0.008230767626065378); // np.std(d, ddof=1)
    close(estimate.standard_error, 0.0029100158013807653); // stats.sem(d)
    // ttest_rel(arm, base).confidence_interval(0.95)
    let [low, high] = estimate.interval(0.025);
    close(low, 0.0015564060635368474);
    close(high, 0.015318593936463181);
    assert_eq!((estimate.pairs, estimate.degrees_of_freedom), (8, 7.0));
    // ttest_rel(arm, base).confidence_interval(0.99)
    let [low, high] = estimate.interval(0.005);
    close(low, -0.0017460516919579807);
    close(high, 0.01862105169195801);
}

/// Differences of standard error 1 and mean `statistic`, so that the interval shows the quantile itself.
fn unit_differences(degrees_of_freedom: usize, statistic: f64) -> Vec<f64> {
    let pairs = degrees_of_freedom + 1;
    let plain: Vec<f64> = (0..pairs).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let error = standard_deviation(&plain).unwrap() / (pairs as f64).sqrt();
    let centre = mean(&plain).unwrap();
    plain.iter().map(|value| (value - centre) / error + statistic).collect()
}

#[test]
fn quantiles_of_student_t() {
    // stats.t.ppf(0.975, [1, 2, 5, 7, 9, 29, 999])
    let expected = [
        (1, 12.706204736174694),
        (2, 4.302652729749462),
        (5, 2.5705818356363146),
        (7, 2.364624251592784),
        (9, 2.262157162798205),
        (29, 2.045229642132703),
        (999, 1.9623414611334493),
    ];
    for (degrees_of_freedom, quantile) in expected {
        let estimate = MeanEstimate::of(&unit_differences(degrees_of_freedom, 0.0), None).unwrap();
        close((estimate.upper(0.025) - estimate.lower(0.025)) / 2.0, quantile);
    }
    // stats.t.ppf(1 - 1e-8, 1), where the inverse of statrs alone is 9 % off
    let [low, high] = MeanEstimate::of(&unit_differences(1, 0.0), None).unwrap().interval(1e-8);
    let half_width = (high - low) / 2.0;
    assert!((half_width / 31830988.45843601 - 1.0).abs() < 1e-7, "{half_width}");
    // 2 * stats.t.sf([0.5, 2, 10, 50], 9)
    let expected = [
        (0.5, 0.6290712998260263),
        (2.0, 0.07655282377070101),
        (10.0, 3.578237431924736e-06),
        (50.0, 2.5689529108747976e-12),
    ];
    for (statistic, p_value) in expected {
        let ours = MeanEstimate::of(&unit_differences(9, statistic), None).unwrap().p_value().unwrap();
        assert!((ours / p_value - 1.0).abs() < 1e-9, "{ours} is not {p_value}");
    }
}

#[test]
fn sign_flips() {
    let p_value = |values: &[f64]| sign_flip(values, 0).unwrap().p_value;
    close(p_value(&d()), 0.0390625); // sign_flip(d)
    close(p_value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.03125); // sign_flip(np.array([1.0, 2.0, ...
    // sign_flip(np.array([1.0, 1.0, -1.0, 1.0, 0.0, 1.0, 1.0, 1.0, -1.0, 1.0]))
    close(p_value(&[1.0, 1.0, -1.0, 1.0, 0.0, 1.0, 1.0, 1.0, -1.0, 1.0]), 0.1796875);
    close(p_value(&X[..9].iter().map(|x| x - 3.7).collect::<Vec<_>>()), 0.75); // sign_flip(x[:9] - 3.7)
}

#[test]
fn wilson() {
    let ends = |successes, trials, level| {
        let interval = wilson_interval(successes, trials, level).unwrap();
        (interval.low, interval.high)
    };
    let (low, high) = ends(7, 10, 0.95); // binomtest(7, 10).proportion_ci(0.95, method='wilson')
    close(low, 0.39677814746114526);
    close(high, 0.892208732593699);
    let (low, high) = ends(0, 10, 0.95); // binomtest(0, 10).proportion_ci(0.95, method='wilson')
    assert_eq!(low, 0.0);
    close(high, 0.27753279986288926);
    let (low, high) = ends(10, 10, 0.95); // binomtest(10, 10).proportion_ci(0.95, method='wilson')
    close(low, 0.7224672001371109);
    assert_eq!(high, 1.0);
    let (low, high) = ends(1, 3, 0.99); // binomtest(1, 3).proportion_ci(0.99, method='wilson')
    close(low, 0.04042662929608476);
    close(high, 0.855783984952333);
}

/// The mean of every one of the 5^5 resamples of `SMALL`: `[np.mean(draw) for draw in product(small, repeat=5)]`.
fn all_means() -> Vec<f64> {
    let resample = |number: usize| (0..5).map(move |place| SMALL[number / 5_usize.pow(place) % 5]);
    (0..5_usize.pow(5)).map(|number| resample(number).sum::<f64>() / 5.0).collect()
}

#[test]
fn bootstrap_from_given_resamples() {
    let interval = interval_from_means(&SMALL, &all_means(), 0.95).unwrap();
    let correction = interval.correction.unwrap();
    // bca(small, all_means, 0.95): z0, a, low, high
    close(correction.bias, 0.016444222571954565);
    close(correction.acceleration, 0.020999631438274408);
    close(interval.low, 0.2);
    close(interval.high, 1.5);
    assert_eq!(interval.method, BootstrapMethod::BiasCorrectedAccelerated);
    let interval = interval_from_means(&SMALL, &all_means(), 0.80).unwrap(); // bca(small, all_means, 0.80)
    close(interval.low, 0.4);
    close(interval.high, 1.25);
}

#[test]
fn bootstrap_from_drawn_resamples() {
    let interval = bootstrap_interval(&d(), 0.95, 100_000, 0).unwrap();
    // bootstrap((d,), np.mean, n_resamples=1_000_000, ..., method='BCa', ...).confidence_interval
    // Means come in steps of 0.0025 / 8 here; one step either way is chance.
    let step = 0.0025 / 8.0 + 1e-12;
    assert!((interval.low - 0.0031250000000000167).abs() <= step, "{}", interval.low);
    assert!((interval.high - 0.01375000000000004).abs() <= step, "{}", interval.high);
    assert_eq!(interval, bootstrap_interval(&d(), 0.95, 100_000, 0).unwrap());
}

#[test]
fn descriptions() {
    close(mean(&X).unwrap(), 7.1); // np.mean(x)
    close(standard_deviation(&X).unwrap(), 10.104454463255301); // np.std(x, ddof=1)
    close(median(&X).unwrap(), 4.5); // np.median(x)
    close(median_absolute_deviation(&X).unwrap(), 2.0); // stats.median_abs_deviation(x)
    // np.quantile(x, [0, 0.1, 0.25, 0.5, 0.75, 0.99, 1])
    let expected = [(0.0, 1.0), (0.1, 1.0), (0.25, 2.25), (0.5, 4.5), (0.75, 5.75), (0.99, 32.66), (1.0, 35.0)];
    for (probability, value) in expected {
        close(quantile(&X, probability).unwrap(), value);
    }
    close(interquartile_mean(&X).unwrap(), 4.166666666666667); // trim_mean(x, 0.25)
    close(interquartile_mean(&X[..7]).unwrap(), 3.0); // trim_mean(x[:7], 0.25)
    close(interquartile_mean(&X[..3]).unwrap(), 2.6666666666666665); // trim_mean(x[:3], 0.25)

    let all = describe(&X).unwrap();
    assert_eq!((all.count, all.minimum, all.median, all.maximum), (10, 1.0, 4.5, 35.0));
    assert_eq!((all.lower_quartile, all.upper_quartile), (2.25, 5.75));
}

/// Lightning#2924: averaging over batches gave 0.8; the last batch has 10 samples, not 256.
#[test]
fn lightning_2924_uneven_batches() {
    // np.average([0.7, 0.8, 0.9], weights=[256, 256, 10])
    close(weighted_mean(&[0.7, 0.8, 0.9], &[256, 256, 10]).unwrap(), 0.7528735632183908);
}

#[test]
fn chance_of_improvement() {
    let of = |direction| probability_of_improvement(&ARM, &BASE, direction).unwrap();
    close(of(Direction::HigherIsBetter), 0.84375); // stats.mannwhitneyu(arm, base).statistic / 64
    close(of(Direction::LowerIsBetter), 1.0 - 0.84375);
}
