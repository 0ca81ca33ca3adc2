//! How often the deciding interval covers the true mean difference, and how often a verdict is wrong. Continuous
//! differences are simulated from fixed seeds; discrete ones are counted out exactly, outcome by outcome.
//!
//! The numbers are those in the documentation of `MeanEstimate::interval`.

use std::ops::RangeInclusive;

use headcount_statistics::bootstrap::bootstrap_interval;
use headcount_statistics::estimate::MeanEstimate;
use headcount_statistics::{ArmScores, Beside, Direction, MetricScale, Outcome, Rules, Statement, compare_two_arms};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// The level of the intervals, and the tail that it leaves on each side.
const LEVEL: f64 = 0.95;
const TAIL: f64 = 0.025;

/// The standard error of a simulated share near 95 % is 0.15 percentage points.
const SIMULATIONS: usize = 20_000;

// ---------------------------------------------------------------------------------------------- Continuous

/// Uniform in (0, 1].
fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    ((generator.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Standard normal, by Box and Muller.
fn normal(generator: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * uniform(generator).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(generator)).cos()
}

/// Exponential, shifted to a mean of 0; skewness 2.
fn exponential(generator: &mut ChaCha8Rng) -> f64 {
    -uniform(generator).ln() - 1.0
}

/// Lognormal with σ = 1, shifted to a mean of 0; skewness 6.2.
fn lognormal(generator: &mut ChaCha8Rng) -> f64 {
    normal(generator).exp() - 0.5_f64.exp()
}

/// The difference of two arms that are alike, each skewed: symmetric, as every difference of arms alike.
fn difference_of(draw: Draw) -> impl Fn(&mut ChaCha8Rng) -> f64 {
    move |generator| draw(generator) - draw(generator)
}

type Draw = fn(&mut ChaCha8Rng) -> f64;

/// Intervals of simulated differences whose true mean is 0.
fn simulate(pairs: usize, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> Vec<(f64, [f64; 2])> {
    let mut generator = ChaCha8Rng::seed_from_u64(pairs as u64);
    let interval = |_| {
        let differences: Vec<f64> = (0..pairs).map(|_| draw(&mut generator)).collect();
        let interval = MeanEstimate::of(&differences, None).expect("finite differences").interval(TAIL);
        (1.0 / SIMULATIONS as f64, interval)
    };
    (0..SIMULATIONS).map(interval).collect()
}

// ------------------------------------------------------------------------------------------------ Discrete

/// All outcomes of `pairs` differences that are −1, 0 or +1 with the given probabilities, shifted to a mean of 0.
fn count_out(pairs: usize, [minus, zero, plus]: [f64; 3]) -> Vec<(f64, [f64; 2])> {
    let mean = plus - minus;
    let mut outcomes = Vec::new();
    for minuses in 0..=pairs {
        for pluses in 0..=pairs - minuses {
            let zeros = pairs - minuses - pluses;
            let ways = choose(pairs, minuses) * choose(pairs - minuses, pluses);
            let chance = ways * minus.powi(minuses as i32) * plus.powi(pluses as i32) * zero.powi(zeros as i32);
            let mut differences = vec![-1.0 - mean; minuses];
            differences.resize(minuses + pluses, 1.0 - mean);
            differences.resize(pairs, -mean);
            let interval = MeanEstimate::of(&differences, None).expect("finite differences").interval(TAIL);
            outcomes.push((chance, interval));
        }
    }
    outcomes
}

fn choose(from: usize, count: usize) -> f64 {
    (0..count).fold(1.0, |ways, i| ways * (from - i) as f64 / (i + 1) as f64)
}

// ------------------------------------------------------------------------------------------------- Measures

/// Per cent of intervals that hold the true mean, 0.
fn coverage(intervals: &[(f64, [f64; 2])]) -> f64 {
    let holds = |[low, high]: &[f64; 2]| *low <= 0.0 && *high >= 0.0;
    let chances = intervals.iter().filter(|(_, interval)| holds(interval));
    100.0 * chances.map(|(chance, _)| chance).sum::<f64>()
}

/// Per cent of intervals beyond the margin, each a wrong "better" or "worse", as the true mean difference is 0.
fn wrong_verdicts(intervals: &[(f64, [f64; 2])], margin: f64) -> f64 {
    let wrong = |[low, high]: &[f64; 2]| *low > margin || *high < -margin;
    let chances = intervals.iter().filter(|(_, interval)| wrong(interval));
    100.0 * chances.map(|(chance, _)| chance).sum::<f64>()
}

/// Coverage and wrong verdicts at margin 0, in per cent, must lie in the ranges.
#[track_caller]
fn check(set: &[(f64, [f64; 2])], covered: RangeInclusive<f64>, wrong: RangeInclusive<f64>) {
    let (covers, errs) = (coverage(set), wrong_verdicts(set, 0.0));
    assert!(covered.contains(&covers), "covers {covers:.2} %, not {covered:?}");
    assert!(wrong.contains(&errs), "{errs:.2} % wrong verdicts, not {wrong:?}");
    // A margin can only take wrong verdicts away.
    assert!(wrong_verdicts(set, 0.05) <= errs);
}

/// Three standard errors above 5 %: what a simulation of exactly 5 % may show.
const FIVE: f64 = 5.0 + 3.0 * 0.154;

// ----------------------------------------------------------------------------------------- Where it holds

#[test]
fn normal_differences_are_covered() {
    check(&simulate(8, normal), 94.4..=95.6, 0.0..=FIVE);
    check(&simulate(10, normal), 94.4..=95.6, 0.0..=FIVE);
}

/// Four arms and a baseline that are all alike: at most 5 % of the comparisons have any arm better or worse.
#[test]
fn several_arms_alike_are_rarely_told_apart() {
    let mut generator = ChaCha8Rng::seed_from_u64(4);
    let seeds: Vec<u64> = (0..8).collect();
    let scale = MetricScale { name: "loss".into(), direction: Direction::LowerIsBetter, best: None, penalty: 90.0 };
    let rules = Rules::new(0.0).for_arms(5);
    let simulations = 4_000;
    let any_wrong = |_: &usize| {
        let mut runs =
            || ArmScores::new("alike", seeds.iter().map(|_| Outcome::Finished(normal(&mut generator))).collect());
        let baseline = runs();
        let beside = Beside { resamples: 1, ..Beside::default() };
        (0..4).map(|_| runs()).collect::<Vec<_>>().iter().any(|arm| {
            let found = compare_two_arms(&seeds, arm, &baseline, &scale, &rules, &beside).expect("finite outcomes");
            matches!(found.statement, Statement::Better | Statement::Worse)
        })
    };
    let wrong = 100.0 * (0..simulations).filter(any_wrong).count() as f64 / simulations as f64;
    // The limits are those of all ten pairs of arms, of which the baseline's are four.
    assert!((0.5..=5.0).contains(&wrong), "{wrong:.2} %");
}

/// No difference between arms whose runs are skewed: differences are symmetric with heavy tails, and the interval is,
/// if anything, too wide.
#[test]
fn differences_of_skewed_arms_alike_are_covered() {
    check(&simulate(8, difference_of(exponential)), 95.0..=97.0, 0.0..=5.0);
    check(&simulate(10, difference_of(exponential)), 95.0..=97.0, 0.0..=5.0);
    check(&simulate(8, difference_of(lognormal)), 96.0..=97.6, 0.0..=5.0);
    check(&simulate(10, difference_of(lognormal)), 96.0..=97.6, 0.0..=5.0);
}

/// No difference between arms that solve the task in half, or in nine of ten, of their runs, and else fail by 1.
#[test]
fn differences_of_bimodal_arms_alike_are_about_covered() {
    check(&count_out(8, [0.25, 0.5, 0.25]), 94.4..=94.5, 5.5..=5.6);
    check(&count_out(10, [0.25, 0.5, 0.25]), 94.7..=94.8, 5.2..=5.3);
    check(&count_out(8, [0.09, 0.82, 0.09]), 99.5..=99.6, 0.4..=0.5);
    check(&count_out(10, [0.09, 0.82, 0.09]), 99.0..=99.1, 0.9..=1.0);
    // Just above 5 %, as the possible means are few; this is the most at any solve rate.
    for pairs in 6..=12 {
        for solve_rate in (2..=50).map(|percent| f64::from(percent) / 100.0) {
            let apart = solve_rate * (1.0 - solve_rate);
            let wrong = wrong_verdicts(&count_out(pairs, [apart, 1.0 - 2.0 * apart, apart]), 0.0);
            assert!(wrong < 5.6, "{wrong:.2} % with {pairs} pairs and solve rate {solve_rate}");
        }
    }
}

/// Two values, equally likely: right on average over n, not at each.
#[test]
fn symmetric_two_point_differences_are_about_covered() {
    check(&count_out(8, [0.5, 0.0, 0.5]), 92.9..=93.0, 7.0..=7.1);
    check(&count_out(10, [0.5, 0.0, 0.5]), 97.8..=97.9, 2.1..=2.2);
}

// ---------------------------------------------------------------------------------------- Where it does not

/// Skewed differences, which arms alike cannot have: the interval lags behind the long tail.
#[test]
fn skewed_differences_are_covered_too_rarely() {
    check(&simulate(8, exponential), 89.0..=90.2, 9.8..=11.0);
    check(&simulate(10, exponential), 89.6..=90.8, 9.2..=10.4);
    check(&simulate(8, lognormal), 82.6..=83.8, 16.2..=17.4);
    check(&simulate(10, lognormal), 83.7..=84.9, 15.1..=16.3);
}

/// Two values, one in three, five or ten times: often all pairs agree, and the interval is a point beside the truth.
#[test]
fn lopsided_two_point_differences_are_covered_too_rarely() {
    check(&count_out(8, [0.7, 0.0, 0.3]), 93.1..=93.2, 6.8..=6.9);
    check(&count_out(10, [0.7, 0.0, 0.3]), 96.1..=96.2, 3.8..=3.9);
    check(&count_out(8, [0.8, 0.0, 0.2]), 83.0..=83.2, 16.8..=17.0);
    check(&count_out(10, [0.8, 0.0, 0.2]), 88.6..=88.7, 11.3..=11.4);
    check(&count_out(8, [0.9, 0.0, 0.1]), 56.9..=57.0, 43.0..=43.1);
    check(&count_out(10, [0.9, 0.0, 0.1]), 64.9..=65.0, 35.0..=35.1);
}

/// The bootstrap beside it is narrower than it should be with few pairs: the reason why it does not decide.
#[test]
fn bootstrap_is_too_narrow_with_few_pairs() {
    let mut generator = ChaCha8Rng::seed_from_u64(8);
    let simulations = 2_000;
    let covers = |_: &usize| {
        let differences: Vec<f64> = (0..8).map(|_| normal(&mut generator)).collect();
        let interval = bootstrap_interval(&differences, LEVEL, 500, 0).expect("finite differences");
        interval.low <= 0.0 && interval.high >= 0.0
    };
    let covered = 100.0 * (0..simulations).filter(covers).count() as f64 / simulations as f64;
    assert!((88.0..90.7).contains(&covered), "covers {covered:.2} %");
}
