//! The rules of the answer against scipy 1.17 and statsmodels 0.15. `scripts/statistics_reference.py` prints the numbers;
//! the Python line that made each stands beside it.

use headcount_statistics::estimate::MeanEstimate;
use headcount_statistics::failures::{clopper_pearson_upper, pairs_for_bound};
use headcount_statistics::outcome::Outcome;
use headcount_statistics::pairs::{ArmScores, SampleSpread, pair_scores};
use headcount_statistics::power::{Noise, Target, pairs_needed, power};
use headcount_statistics::rules::Rules;
use headcount_statistics::scale::MetricScale;
use headcount_statistics::solving::mcnemar;
use headcount_statistics::sweep::{Step, sweep};
use headcount_statistics::two_arms::{Beside, compare_two_arms};

const ARM: [f64; 8] = [0.9925, 0.9875, 0.9950, 0.9800, 0.9900, 0.9775, 0.9925, 0.9850];
const BASE: [f64; 8] = [0.9800, 0.9850, 0.9775, 0.9825, 0.9700, 0.9750, 0.9800, 0.9825];
const SEEDS: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

fn scores(values: &[f64]) -> ArmScores {
    ArmScores::new("arm", values.iter().map(|value| Outcome::Finished(*value)).collect())
}

fn accuracy() -> MetricScale {
    MetricScale::accuracy("test accuracy")
}

/// `d = arm - base`
fn d() -> Vec<f64> {
    ARM.iter().zip(&BASE).map(|(arm, base)| arm - base).collect()
}

/// Equal but for a relative error of 1e-9.
#[track_caller]
fn close(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-6), "{ours} is not {theirs}");
}

#[test]
fn correlation_of_pairs() {
    let paired = pair_scores(&SEEDS, &scores(&ARM), &scores(&BASE), &accuracy()).unwrap();
    close(paired.correlation().unwrap(), -0.08891084489487698); // stats.pearsonr(arm, base).statistic
}

/// The equivalence test decides where the larger of the two one-sided p values is at most alpha.
#[test]
fn two_one_sided_tests() {
    let estimate = MeanEstimate::of(&d(), None).unwrap();
    let decides_within = |margin: f64, alpha: f64| {
        let [low, high] = estimate.interval(alpha);
        low >= -margin && high <= margin
    };
    // ttost_paired(arm, base, -0.02, 0.02)[0] = 0.0026846534554689164
    assert!(decides_within(0.02, 0.0026846534554689164 * (1.0 + 1e-9)));
    assert!(!decides_within(0.02, 0.0026846534554689164 * (1.0 - 1e-9)));
    // ttost_paired(arm, base, -0.0125, 0.0125)[0] = 0.10268979305424335
    assert!(decides_within(0.0125, 0.10268979305424335 * (1.0 + 1e-9)));
    assert!(!decides_within(0.0125, 0.10268979305424335 * (1.0 - 1e-9)));
}

#[test]
fn intervals_of_two_arms() {
    let (arm, base, rules) = (scores(&ARM), scores(&BASE), Rules::new(0.02));
    let found = compare_two_arms(&SEEDS, &arm, &base, &accuracy(), &rules, &Beside::default()).unwrap();
    close(found.p_value.unwrap(), 0.023003352274788474); // ttest_rel(arm, base).pvalue
    let interval = found.interval.unwrap(); // ttest_rel(arm, base).confidence_interval(0.95)
    close(interval.low, 0.0015564060635368474);
    close(interval.high, 0.015318593936463181);
    let interval = found.equivalence.unwrap(); // ttest_rel(arm, base).confidence_interval(0.90)
    close(interval.low, 0.0029242463222301663);
    close(interval.high, 0.01395075367776986);
}

#[test]
fn clopper_pearson() {
    let bound = |events, trials, alpha| clopper_pearson_upper(events, trials, alpha).unwrap();
    // stats.beta.ppf(0.95, [1, 2, 3, 11], [10, 9, 18, 1190])
    close(bound(0, 10, 0.05), 0.2588655508930522);
    close(bound(1, 10, 0.05), 0.39416330243650466);
    close(bound(2, 20, 0.05), 0.28261852488586087);
    close(bound(10, 1200, 0.05), 0.014094179496020947);
    // binomtest(1, 15, alternative='less').proportion_ci(1 - 0.0125, method='exact').high
    close(bound(1, 15, 0.0125), 0.35653189786866524);
    assert_eq!(bound(4, 4, 0.05), 1.0);
    // So many clean pairs show that fewer than 30, 10 and 5 % fail.
    assert_eq!([0.3, 0.1, 0.05].map(|most| pairs_for_bound(0, most, 0.05, 1_000)), [Some(9), Some(29), Some(59)]);
}

#[test]
fn exact_mcnemar() {
    close(mcnemar(4, 0), 0.125); // mcnemar([[0, 4], [0, 2]], exact=True).pvalue
    close(mcnemar(9, 1), 0.021484375); // mcnemar([[3, 9], [1, 2]], exact=True).pvalue
    close(mcnemar(0, 0), 1.0); // mcnemar([[5, 0], [0, 1]], exact=True).pvalue
    close(mcnemar(2, 2), 1.0); // mcnemar([[0, 2], [2, 0]], exact=True).pvalue
}

#[test]
fn limits_of_a_sweep() {
    let last: Vec<f64> = BASE.iter().enumerate().map(|(pair, value)| value + 0.001 * pair as f64).collect();
    let rows: [&[f64]; 5] = [
        &[0.59, 0.61, 0.58, 0.60, 0.62, 0.57, 0.60, 0.59],
        &[0.77, 0.75, 0.79, 0.76, 0.78, 0.77, 0.74, 0.80],
        &ARM,
        &BASE,
        &last,
    ];
    let arms: Vec<Step> =
        rows.iter().enumerate().map(|(index, row)| Step { value: index as f64, scores: scores(row) }).collect();
    let found = sweep(&SEEDS, &arms, &accuracy(), &Rules::new(0.02)).unwrap();
    let limits = |index: usize| found.steps[index].others.iter();
    // [upper(0, j) for j in (1, 2, 3, 4)]
    let expected = [0.20440967202445415, 0.4082691798286552, 0.40098571030140207, 0.40480009204796574];
    limits(0).zip(expected).for_each(|(ours, theirs)| close(ours.upper, theirs));
    // [lower(0, j) for j in (1, 2, 3, 4)]
    let expected = [0.13329239780096794, 0.37013678973530634, 0.36006269059734686, 0.3631168471750397];
    limits(0).zip(expected).for_each(|(ours, theirs)| close(ours.lower, theirs));
    // [upper(3, j) for j in (0, 1, 2, 4)]
    let expected = [-0.367139289698598, -0.1870486884519492, 0.016705565658973926, 0.0059605896976338245];
    limits(3).zip(expected).for_each(|(ours, theirs)| close(ours.upper, theirs));
}

/// The samples of a shared test set add their part of the variance.
#[test]
fn samples_of_a_shared_test_set() {
    let samples = SampleSpread { samples: 500, standard_deviation: 0.3 };
    let estimate = MeanEstimate::of(&d(), Some(samples)).unwrap();
    // np.mean(d) + welch(np.std(d, ddof=1), 8, 0.3, 500)[0] * stats.t.ppf(...)
    close(estimate.upper(0.025), 0.03541371303296209);
    // welch(0.00823, 8, 0.3, 500), of a standard deviation that differs in the fourth digit
    assert!((estimate.degrees_of_freedom - 472.52).abs() < 0.05, "{}", estimate.degrees_of_freedom);
}

#[test]
fn power_of_the_statements() {
    let noise = |standard_deviation| Noise { standard_deviation, fixed_variance: 0.0 };
    let better = |pairs, difference, alpha| {
        power(Target::Better, pairs, difference, noise(0.02), &Rules { alpha, ..Rules::new(0.02) })
    };
    let near = |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 1e-7, "{ours} is not {theirs}");
    // power_better(10, 0.05, 0.02, 0.02, 0.05), power_better(6, 0.03, ..., 0.0125), power_better(40, 0.03, ..., 0.05)
    near(better(10, 0.05, 0.05), 0.9872769124397056);
    near(better(6, 0.03, 0.0125), 0.05468600334483065);
    near(better(40, 0.03, 0.05), 0.8693979112082973);
    let equivalent = |pairs, difference| power(Target::Equivalent, pairs, difference, noise(0.02), &Rules::new(0.02));
    // power_equivalent(13, 0.0, ...), (12, 0.0, ...), (20, 0.01, ...), (6, 0.0, 0.02, 0.02, 0.05)
    near(equivalent(13, 0.0), 0.9194064629574857);
    near(equivalent(12, 0.0), 0.8893810959914573);
    near(equivalent(20, 0.01), 0.6951485695302021);
    near(equivalent(6, 0.0), 0.4090435497278736);
    // [next(n for n in range(2, 200) if power_equivalent(n, 0, s, 1, 0.05) >= 0.9) for s in (0.5, 1, 1.5, 2, 3)]
    // The first is 5; the failure bound needs 9.
    let needed = [0.5, 1.0, 1.5, 2.0, 3.0].map(|deviation| {
        pairs_needed(Target::Equivalent, 0.0, noise(deviation), 0, &Rules::new(1.0)).expect("below 10,000")
    });
    assert_eq!(needed, [9, 13, 26, 45, 99]);
}

#[test]
fn cautious_deviation() {
    let estimate = MeanEstimate {
        pairs: 10,
        mean: 0.0,
        standard_deviation: 1.0,
        standard_error: 0.1_f64.sqrt(),
        degrees_of_freedom: 9.0,
    };
    close(Noise::cautious(&estimate).standard_deviation, 1.2933854444729525); // np.sqrt(9 / stats.chi2.ppf(0.2, 9))
}

/// Degrees of freedom that are no whole number.
#[test]
fn student_t_between_whole_degrees() {
    let estimate =
        |mean| MeanEstimate { pairs: 6, mean, standard_deviation: 1.0, standard_error: 1.0, degrees_of_freedom: 5.5 };
    // 2 * stats.t.sf(1.7, 5.5), stats.t.ppf(0.975, 5.5)
    close(estimate(1.7).p_value().unwrap(), 0.1445286697661792);
    close(estimate(0.0).upper(0.025), 2.501858617589239);
}
