//! What must hold of the rules of the answer whatever the numbers are.

use headcount_statistics::outcome::{Direction, Outcome};
use headcount_statistics::pairs::{ArmScores, pair_scores};
use headcount_statistics::rules::Rules;
use headcount_statistics::scale::MetricScale;
use headcount_statistics::statement::{Judged, Statement, judge};
use headcount_statistics::sweep::{Enough, Step, Sweep, SweepAnswer, sweep};
use headcount_statistics::two_arms::{Beside, TwoArms, compare_two_arms};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Values on a coarse grid in [0, 1], so that ties and equal values come up; now and then a run diverges.
fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        20 => (0_i32..=64).prop_map(|steps| Outcome::Finished(f64::from(steps) / 64.0)),
        20 => (58_i32..=64).prop_map(|steps| Outcome::Finished(f64::from(steps) / 64.0)),
        1 => Just(Outcome::Diverged),
    ]
}

/// The runs of so many arms, in the same number of pairs.
fn runs(arms: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<Outcome>>> {
    (arms, 2_usize..16).prop_flat_map(|(arms, pairs)| {
        prop::collection::vec(prop::collection::vec(outcome(), pairs..=pairs), arms..=arms)
    })
}

fn margin() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.001..0.3]
}

fn accuracy() -> MetricScale {
    MetricScale::accuracy("accuracy")
}

fn error() -> MetricScale {
    MetricScale { name: "error".into(), direction: Direction::LowerIsBetter, best: Some(0.0), penalty: 1.0 }
}

fn judged(arm: &[Outcome], baseline: &[Outcome], scale: &MetricScale, rules: &Rules) -> Judged {
    let seeds: Vec<u64> = (0..arm.len() as u64).collect();
    let (arm, baseline) = (ArmScores::new("a", arm.to_vec()), ArmScores::new("b", baseline.to_vec()));
    judge(&pair_scores(&seeds, &arm, &baseline, scale).unwrap(), rules).unwrap()
}

fn compared(runs: &[Vec<Outcome>], rules: &Rules) -> TwoArms {
    let seeds: Vec<u64> = (0..runs[0].len() as u64).collect();
    let arm = |index: usize| ArmScores::new("arm", runs[index].clone());
    let beside = Beside { solved_at: Some(0.9), resamples: 20, random_seed: 1 };
    compare_two_arms(&seeds, &arm(0), &arm(1), &accuracy(), rules, &beside).unwrap()
}

fn swept(runs: &[Vec<Outcome>], margin: f64) -> Sweep {
    let seeds: Vec<u64> = (0..runs[0].len() as u64).collect();
    let step = |(index, outcomes): (usize, &Vec<Outcome>)| Step {
        value: (1 << index) as f64,
        scores: ArmScores::new("arm", outcomes.clone()),
    };
    let steps: Vec<Step> = runs.iter().enumerate().map(step).collect();
    sweep(&seeds, &steps, &accuracy(), &Rules::new(margin)).unwrap()
}

fn mirrored(outcomes: &[Outcome]) -> Vec<Outcome> {
    let mirror = |outcome: &Outcome| match outcome {
        Outcome::Finished(value) => Outcome::Finished(1.0 - value),
        other => *other,
    };
    outcomes.iter().map(mirror).collect()
}

/// Rotated by so many places.
fn rotated(outcomes: &[Outcome], places: usize) -> Vec<Outcome> {
    let mut copy = outcomes.to_vec();
    let length = copy.len();
    copy.rotate_left(places % length);
    copy
}

/// Whether a limit lies within rounding of the margin, where the last bit decides.
fn is_at_the_margin(judged: &Judged, rules: &Rules) -> bool {
    let Some(estimate) = judged.estimate else { return false };
    let near = |limit: f64| (limit.abs() - rules.margin).abs() < 1e-9;
    let limits = [estimate.interval(rules.difference_tail()), estimate.interval(rules.equivalence_tail())];
    limits.concat().into_iter().any(near)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        ..ProptestConfig::default()
    })]

    /// Each statement is what its interval says, and no two can be said at once.
    #[test]
    fn statements_exclude_one_another(runs in runs(2..3), margin in margin()) {
        let rules = Rules::new(margin);
        let judged = judged(&runs[0], &runs[1], &accuracy(), &rules);
        let Some(estimate) = judged.estimate else { return Ok(()) };
        let [low, high] = estimate.interval(rules.difference_tail());
        let [inner_low, inner_high] = estimate.interval(rules.equivalence_tail());
        let within = inner_low >= -margin && inner_high <= margin;
        let holds = [low > margin, high < -margin, within];
        prop_assert!(holds.iter().filter(|holds| **holds).count() <= 1, "{holds:?}");
        match judged.statement {
            Statement::Better => prop_assert!(holds[0]),
            Statement::Worse => prop_assert!(holds[1]),
            Statement::Equivalent => prop_assert!(holds[2] && judged.failures.bound <= rules.max_failure),
            Statement::NoDifferenceSeen => prop_assert!(holds[2] && judged.failures.bound > rules.max_failure),
            Statement::Undecided { .. } => {}
        }
        prop_assert!(low <= estimate.plain.mean && estimate.plain.mean <= high);
    }

    #[test]
    fn swapping_the_arms_mirrors_the_statement(runs in runs(2..3), margin in margin()) {
        let rules = Rules::new(margin);
        let (ours, theirs) = (judged(&runs[0], &runs[1], &accuracy(), &rules), judged(&runs[1], &runs[0], &accuracy(), &rules));
        prop_assert_eq!(&ours.failures, &theirs.failures);
        let expected = match ours.statement {
            Statement::Better => Statement::Worse,
            Statement::Worse => Statement::Better,
            other => other,
        };
        prop_assert!(expected == theirs.statement || is_at_the_margin(&ours, &rules));
    }

    /// An accuracy and the error that is 1 − accuracy say the same.
    #[test]
    fn direction_does_not_matter(runs in runs(2..3), margin in margin()) {
        let rules = Rules::new(margin);
        let up = judged(&runs[0], &runs[1], &accuracy(), &rules);
        let down = judged(&mirrored(&runs[0]), &mirrored(&runs[1]), &error(), &rules);
        // Rounding in 1 − value may move a difference across a limit that it lies on.
        prop_assume!(!is_at_the_margin(&up, &rules));
        prop_assert_eq!(up.statement, down.statement);
    }

    #[test]
    fn order_of_pairs_does_not_matter(runs in runs(2..5), places in 0_usize..16, margin in margin()) {
        let turned: Vec<Vec<Outcome>> = runs.iter().map(|outcomes| rotated(outcomes, places)).collect();
        let rules = Rules::new(margin);
        let (a, b) = (judged(&runs[0], &runs[1], &accuracy(), &rules), judged(&turned[0], &turned[1], &accuracy(), &rules));
        prop_assume!(!is_at_the_margin(&a, &rules));
        prop_assert_eq!(a.statement, b.statement);
        prop_assert_eq!(a.failures.bound, b.failures.bound);
        let (a, b) = (swept(&runs, margin), swept(&turned, margin));
        let near = |sweep: &Sweep| sweep.steps.iter().flat_map(|step| &step.others).any(|other| {
            (other.lower - margin).abs() < 1e-9 || (other.upper - margin).abs() < 1e-9 || other.mean.abs() < 1e-9
        });
        prop_assert!(a.answer == b.answer || near(&a));
    }

    /// A larger margin, failures told apart by the same distance, never makes a winner, and never takes "equivalent" back.
    #[test]
    fn statements_are_monotone_in_the_margin(runs in runs(2..3), margin in 0.0..0.3, more in 0.0..0.3) {
        let rules = Rules { failure_difference: Some(0.1), ..Rules::new(margin) };
        let narrow = judged(&runs[0], &runs[1], &accuracy(), &rules);
        let wide = judged(&runs[0], &runs[1], &accuracy(), &Rules { margin: margin + more, ..rules });
        match narrow.statement {
            Statement::Better => prop_assert!(wide.statement != Statement::Worse),
            Statement::Worse => prop_assert!(wide.statement != Statement::Better),
            Statement::Equivalent => prop_assert_eq!(wide.statement, Statement::Equivalent),
            Statement::NoDifferenceSeen => prop_assert_eq!(wide.statement, Statement::NoDifferenceSeen),
            Statement::Undecided { .. } => {
                prop_assert!(!matches!(wide.statement, Statement::Better | Statement::Worse));
            }
        }
    }

    /// More looks and more arms never make a statement that fewer did not.
    #[test]
    fn looks_and_arms_only_take_away(runs in runs(2..3), margin in margin(), looks in 2_usize..5, arms in 3_usize..6) {
        let rules = Rules::new(margin);
        let once = judged(&runs[0], &runs[1], &accuracy(), &rules).statement;
        for stricter in [rules.for_looks(looks), rules.for_arms(arms)] {
            let said = judged(&runs[0], &runs[1], &accuracy(), &stricter).statement;
            prop_assert!(!said.is_decided() || said == once, "{said:?} after {once:?}");
        }
    }

    #[test]
    fn a_sweep_is_consistent(runs in runs(2..6), margin in margin()) {
        let found = swept(&runs, margin);
        let values: Vec<f64> = found.steps.iter().map(|step| step.value).collect();
        prop_assert!(values.windows(2).all(|two| two[0] < two[1]));
        let is = |value: f64, what: Enough| found.steps.iter().any(|step| step.value == value && step.enough == what);
        let below = |value: f64| values.iter().copied().filter(move |other| *other < value);
        match found.answer {
            SweepAnswer::Number { value } => {
                prop_assert!(is(value, Enough::Sufficient) && below(value).all(|other| is(other, Enough::Insufficient)));
            }
            SweepAnswer::Range { low, high } => {
                prop_assert!(low < high && is(high, Enough::Sufficient) && !is(low, Enough::Insufficient));
                prop_assert!(below(low).all(|other| is(other, Enough::Insufficient)));
                prop_assert!(below(high).all(|other| !is(other, Enough::Sufficient)));
            }
            SweepAnswer::NoneShown { at_least } => {
                prop_assert!(found.sufficient.is_empty() && !is(at_least, Enough::Insufficient));
            }
            SweepAnswer::TooFewPairs { pairs, needed } => prop_assert!(pairs < needed),
        }
        if let Some(best) = found.best {
            prop_assert!(!is(best, Enough::Insufficient));
        }
    }

    /// Nothing in a result is NaN, infinite or a p value of 0, whatever the runs; so JSON can hold it.
    #[test]
    fn results_are_finite(runs in runs(2..3), margin in margin()) {
        let found = compared(&runs, &Rules::new(margin));
        prop_assert!(found.p_value.is_none_or(|p| p > 0.0 && p <= 1.0));
        prop_assert!(found.solving.as_ref().is_some_and(|solving| solving.p_value > 0.0 && solving.p_value <= 1.0));
        prop_assert!(found.interval.is_some_and(|limits| limits.low >= -1.0 && limits.high <= 1.0));
        prop_assert!((0.0..=1.0).contains(&found.failures.bound));
        let told = format!("{found:?}");
        prop_assert!(!told.contains("NaN") && !told.contains("inf"), "{told}");
    }
}
