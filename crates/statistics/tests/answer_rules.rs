//! Each rule of the answer on small examples, and the sentences people read.

use headcount_statistics::StatisticsError;
use headcount_statistics::context::{Context, Rates, Scope, Unit};
use headcount_statistics::grid::interaction;
use headcount_statistics::looks::{Looks, complete_in_order};
use headcount_statistics::mean_curve::{RunCurve, mean_curve};
use headcount_statistics::outcome::Direction;
use headcount_statistics::outcome::Outcome::{self, Diverged, Finished, Missing};
use headcount_statistics::pairs::{ArmScores, pair_scores};
use headcount_statistics::plan::{looks_for, plan};
use headcount_statistics::power::Target;
use headcount_statistics::prediction::{Fate, fate_of_better, fate_of_equivalent, fate_of_sufficient};
use headcount_statistics::rules::Rules;
use headcount_statistics::scale::MetricScale;
use headcount_statistics::statement::{Because, Statement};
use headcount_statistics::steps::compare_steps;
use headcount_statistics::sweep::{Enough, Step, Sweep, SweepAnswer, sweep};
use headcount_statistics::two_arms::{Beside, TwoArms, compare_two_arms};

fn accuracy() -> MetricScale {
    MetricScale::accuracy("test accuracy")
}

/// Pairs around a value, apart by up to `spread` in a fixed pattern; other patterns differ.
fn around(value: f64, spread: f64, pairs: usize, pattern: usize) -> Vec<Outcome> {
    let place = |pair: usize| ((pair * 7 + pattern * 3) % 5) as f64 / 4.0 - 0.5;
    (0..pairs).map(|pair| Finished(value + spread * place(pair))).collect()
}

fn values(values: &[f64]) -> Vec<Outcome> {
    values.iter().map(|value| Finished(*value)).collect()
}

fn seeds(pairs: usize) -> Vec<u64> {
    (0..pairs as u64).collect()
}

#[track_caller]
fn compared(arm: Vec<Outcome>, baseline: Vec<Outcome>, scale: &MetricScale, margin: f64) -> TwoArms {
    let seeds = seeds(arm.len());
    let (arm, baseline) = (ArmScores::new("8 heads", arm), ArmScores::new("1 head", baseline));
    let beside = Beside { solved_at: Some(0.95), resamples: 200, random_seed: 0 };
    compare_two_arms(&seeds, &arm, &baseline, scale, &Rules::new(margin), &beside).unwrap()
}

fn context() -> Context {
    Context {
        condition: Some("with one layer".into()),
        steps: None,
        scope: Scope::Instances { instances: 10 },
        rates: Rates::One,
    }
}

fn heads() -> Unit {
    Unit::new("head", "heads")
}

fn swept(arms: &[(f64, Vec<Outcome>)]) -> Sweep {
    swept_on(arms, &accuracy())
}

fn swept_on(arms: &[(f64, Vec<Outcome>)], scale: &MetricScale) -> Sweep {
    let step = |(value, outcomes): &(f64, Vec<Outcome>)| Step {
        value: *value,
        scores: ArmScores::new(value.to_string(), outcomes.clone()),
    };
    let steps: Vec<Step> = arms.iter().map(step).collect();
    sweep(&seeds(arms[0].1.len()), &steps, scale, &Rules::new(0.02)).unwrap()
}

/// Means of `heads-sweep`, ten pairs.
fn heads_sweep() -> Sweep {
    swept(&[
        (16.0, around(0.992, 0.004, 10, 4)),
        (1.0, around(0.593, 0.02, 10, 0)),
        (2.0, around(0.770, 0.04, 10, 1)),
        (4.0, around(0.993, 0.004, 10, 2)),
        (8.0, around(0.993, 0.004, 10, 3)),
    ])
}

// ----------------------------------------------------------------------------------------------------- Pairs

#[test]
fn diverged_runs_enter_with_the_penalty_and_finished_ones_no_worse() {
    let loss = MetricScale::loss("test loss", 8_f64.ln());
    let entered = [Finished(0.1), Finished(9.0), Diverged, Missing].map(|outcome| loss.entered(outcome));
    assert_eq!(entered, [Some(0.1), Some(8_f64.ln()), Some(8_f64.ln()), None]);
    assert_eq!(accuracy().entered(Diverged), Some(0.0));
    assert_eq!(loss.largest_difference(), Some(8_f64.ln()));
    let (arm, baseline) = (
        ArmScores::new("a", vec![Finished(0.5), Missing, Diverged]),
        ArmScores::new("b", vec![Finished(1.0), Finished(1.0), Finished(1.0)]),
    );
    let paired = pair_scores(&[3, 4, 5], &arm, &baseline, &loss).unwrap();
    assert_eq!(paired.incomplete, [4]);
    assert_eq!(paired.advantages(), [0.5, 1.0 - 8_f64.ln()]);
    assert!(paired.pairs[1].arm_diverged && paired.pairs[1].has_a_finished_run());
}

#[test]
fn refused_input_is_named() {
    let arm = |outcomes: &[Outcome]| ArmScores::new("h8", outcomes.to_vec());
    let pair = |seeds: &[u64], outcomes: &[Outcome]| {
        pair_scores(seeds, &arm(outcomes), &arm(&[Finished(0.5), Finished(0.5)]), &accuracy()).unwrap_err()
    };
    let error = pair(&[1, 2], &[Finished(0.5), Finished(99.3)]);
    assert_eq!(error.to_string(), "arm `h8`, seed 2: result 99.3 is better than the best possible value 1");
    assert_eq!(pair(&[1, 1], &[Finished(0.5); 2]), StatisticsError::SeedTwice { seed: 1 });
    assert!(matches!(pair(&[1, 2], &[Finished(0.5)]), StatisticsError::LengthsDiffer { .. }));
    assert!(matches!(pair(&[1, 2], &[Finished(f64::NAN); 2]), StatisticsError::OutcomeNotFinite { .. }));
    let bad = MetricScale { best: Some(-1.0), ..accuracy() };
    assert!(bad.check().is_err());
    let refused = |rules: Rules| rules.check().unwrap_err().to_string();
    assert_eq!(refused(Rules::new(-0.1)), "margin is -0.1, must be finite and at least 0");
    assert_eq!(
        refused(Rules { max_failure: 0.0, ..Rules::new(0.1) }),
        "max_failure is 0, must be above 0 and at most 1"
    );
    let twice =
        [Step { value: 4.0, scores: arm(&[Finished(0.5)]) }, Step { value: 4.0, scores: arm(&[Finished(0.5)]) }];
    let error = sweep(&[1], &twice, &accuracy(), &Rules::new(0.02)).unwrap_err();
    assert_eq!(error, StatisticsError::SweptTwice { value: 4.0 });
}

// -------------------------------------------------------------------------------------------------- Two arms

#[test]
fn both_values_stand_in_the_sentence() {
    let found = compared(around(0.993, 0.004, 10, 2), around(0.593, 0.02, 10, 0), &accuracy(), 0.02);
    assert_eq!(found.statement, Statement::Better);
    let context = Context { steps: Some(800), ..context() };
    assert_eq!(
        found.sentence(&context),
        "with one layer, after 800 steps, 8 heads beat 1 head by 0.400 in test accuracy, 0.993 against 0.593 (95 % \
         interval 0.395 to 0.405; 10 pairs over 10 instances, at one learning rate)"
    );
    assert_eq!(
        found.headline(&context),
        "with one layer, after 800 steps, 8 heads beat 1 head by 0.400 in test accuracy, 0.993 against 0.593"
    );
    let lost = compared(around(0.593, 0.02, 10, 0), around(0.993, 0.004, 10, 2), &accuracy(), 0.02);
    let context = Context { scope: Scope::OneInstance, rates: Rates::Tuned, ..Context::unknown() };
    assert_eq!(
        lost.sentence(&context),
        "8 heads lost to 1 head by 0.400 in test accuracy, 0.593 against 0.993 (95 % interval 0.395 to 0.405; 10 \
         pairs, over 10 seeds of one task instance, each at its best learning rate)"
    );
}

#[test]
fn equivalence_needs_its_failure_bound() {
    let alike = |pairs| compared(around(0.99, 0.004, pairs, 0), around(0.99, 0.004, pairs, 1), &accuracy(), 0.02);
    assert_eq!(alike(8).statement, Statement::NoDifferenceSeen);
    assert_eq!(alike(9).statement, Statement::Equivalent);
    let six = alike(6);
    assert_eq!(six.further.map(|further| (further.target, further.further)), Some((Target::Equivalent, Some(3))));
    assert_eq!(
        six.sentence(&Context::unknown()),
        "no difference seen between 8 heads and 1 head in test accuracy, 0.990 against 0.990; pairs like these do not \
         exclude one that differs in up to 39 % of runs (90 % interval -0.003 to 0.002; 6 pairs); about 3 further \
         pairs would probably show that there is none beyond the margin"
    );
    assert_eq!(
        alike(10).sentence(&Context::unknown()),
        "8 heads and 1 head differed by no more than 0.02 in test accuracy, 0.990 against 0.990 (90 % interval -0.001 \
         to 0.001; 10 pairs)"
    );
    // Four looks divide alpha for the bound too: 13 clean pairs instead of 9.
    let rules = Rules::new(0.02).for_looks(4);
    let arm = ArmScores::new("a", vec![Finished(0.5); 13]);
    let bound = |pairs| {
        let beside = Beside { resamples: 1, ..Beside::default() };
        let (ours, theirs) = (arm.first(pairs), arm.first(pairs));
        compare_two_arms(&seeds(pairs), &ours, &theirs, &accuracy(), &rules, &beside).unwrap().statement
    };
    assert_eq!([bound(12), bound(13)], [Statement::NoDifferenceSeen, Statement::Equivalent]);
}

/// A pair unlike the others is a failed one; a large difference in all pairs is none.
#[test]
fn failed_pairs_are_those_unlike_the_others() {
    let mut arm = around(0.99, 0.004, 10, 0);
    arm[3] = Finished(0.6);
    arm[7] = Diverged;
    let found = compared(arm, around(0.99, 0.004, 10, 1), &accuracy(), 0.02);
    assert_eq!(found.failures.seeds, [3, 7]);
    assert!(matches!(found.statement, Statement::Undecided { because: Because::IntervalCrossesMargin }));
    let apart = compared(around(0.99, 0.004, 10, 0), around(0.5, 0.004, 10, 1), &accuracy(), 0.02);
    assert_eq!((apart.failures.seeds.len(), apart.failures.pairs), (0, 10));
    // Without a margin only divergence can be told from noise.
    let no_margin = compared(around(0.99, 0.004, 10, 0), around(0.5, 0.4, 10, 1), &accuracy(), 0.0);
    assert_eq!(no_margin.failures.seeds.len(), 0);
}

/// Nine pairs at +0.10 and one at +0.99: the one failed run of the loser does not take the win away.
#[test]
fn a_failure_of_the_loser_does_not_undo_a_win() {
    let mut baseline = vec![0.89; 10];
    baseline[4] = 0.0;
    let found = compared(values(&[0.99; 10]), values(&baseline), &accuracy(), 0.02);
    assert_eq!((found.statement, found.won), (Statement::Better, 10));
    let (interval, plain) = (found.interval.unwrap(), found.estimate.unwrap().interval(0.025));
    assert!((interval.low - 0.0874).abs() < 1e-4, "{interval:?}");
    assert!((plain[0] + 0.0123).abs() < 1e-3, "{plain:?}");
    assert_eq!(found.failures.seeds, [4]);
    let sentence = found.sentence(&Context::unknown());
    assert!(
        sentence.ends_with("; 1 of 10 pairs went unlike the others, which up to 39 % of pairs may do"),
        "{sentence}"
    );
    // A failure of the winner does.
    let mut arm = vec![0.99; 10];
    arm[4] = 0.0;
    let found = compared(values(&arm), values(&[0.89; 10]), &accuracy(), 0.02);
    assert!(!found.statement.is_decided());
}

#[test]
fn limits_are_cut_to_what_the_metric_allows() {
    let found = compared(values(&[1.0, 1.0, 1.0, 1.0, 1.0, 0.2]), values(&[0.0; 6]), &accuracy(), 0.02);
    assert_eq!(found.interval.unwrap().high, 1.0);
    assert!(found.estimate.unwrap().upper(0.025) > 1.0);
}

#[test]
fn too_few_pairs_decide_nothing() {
    let found = compared(values(&[0.9; 5]), values(&[0.1; 5]), &accuracy(), 0.02);
    assert_eq!(found.statement, Statement::Undecided { because: Because::TooFewPairs { pairs: 5, needed: 6 } });
    let found = compared(vec![Diverged; 10], vec![Diverged; 10], &accuracy(), 0.02);
    assert_eq!(found.statement, Statement::Undecided { because: Because::TooFewFinished { pairs: 0, needed: 6 } });
    let found = compared(vec![Missing; 3], vec![Diverged; 3], &accuracy(), 0.02);
    assert!(found.estimate.is_none() && found.solving.is_none() && found.incomplete.len() == 3);
    assert_eq!(
        found.sentence(&Context::unknown()),
        "undecided between 8 heads and 1 head in test accuracy: only 0 of the 6 pairs that a verdict needs (0 pairs); \
         diverged (entered as 0): 3 of 3 runs of 1 head; left out, as a run is missing: seeds 0, 1, 2"
    );
}

#[test]
fn solving_is_its_own_question() {
    let solves = |count: usize| (0..6).map(|pair| Finished(if pair < count { 0.99 } else { 0.55 })).collect();
    let found = compared(solves(4), solves(0), &accuracy(), 0.02);
    assert_eq!(
        found.solving_sentence().unwrap(),
        "8 heads solved it more often than 1 head: 4 of 6 against 0 of 6, p = 0.125, not decided"
    );
    let solving = found.solving.unwrap();
    assert_eq!((solving.only_arm, solving.only_baseline, solving.where_both_solved), (4, 0, None));
    let found = compared(solves(6), solves(0), &accuracy(), 0.02);
    assert!(found.solving_sentence().unwrap().ends_with("6 of 6 against 0 of 6, p = 0.031"));
    let found = compared(solves(3), solves(3), &accuracy(), 0.02);
    assert_eq!(
        found.solving_sentence().unwrap(),
        "8 heads and 1 head solved it as often: 3 of 6 against 3 of 6, p = 1.000, not decided"
    );
    assert_eq!(found.solving.unwrap().where_both_solved.unwrap().pairs, 3);
}

#[test]
fn no_p_value_is_zero() {
    let found = compared(values(&[0.9; 10]), values(&[0.1; 10]), &accuracy(), 0.02);
    assert_eq!((found.statement, found.p_value), (Statement::Better, None));
    assert_eq!(found.sign_flip.unwrap().p_value, 2.0 / 1024.0);
    // Equal but for rounding: no spread either.
    let found =
        compared(values(&[0.3, 0.4, 0.5, 0.6, 0.7, 0.8]), values(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), &accuracy(), 0.02);
    assert_eq!((found.p_value, found.estimate.unwrap().standard_deviation), (None, 0.0));
}

// ---------------------------------------------------------------------------------------------------- Sweeps

#[test]
fn a_sweep_says_how_many() {
    let found = heads_sweep();
    assert_eq!(found.answer, SweepAnswer::Number { value: 4.0 });
    assert_eq!(found.answer.words(), "4");
    assert_eq!((found.sufficient.as_slice(), found.too_many.as_slice()), ([4.0, 8.0, 16.0].as_slice(), [].as_slice()));
    assert_eq!(
        found.sentence(&heads(), &context()),
        "With one layer, this task needs 4 heads: 2 reach 0.770, 4 reach 0.993, more add nothing above the margin of 0.02 \
         (10 pairs over 10 instances, at one learning rate)."
    );
}

#[test]
fn a_title_is_the_sentence_without_what_it_rests_on() {
    assert_eq!(
        heads_sweep().headline(&heads(), &context()),
        "With one layer, this task needs 4 heads: 2 reach 0.770, 4 reach 0.993, more add nothing above the margin of 0.02"
    );
}

/// One failed run of an arm says something of that arm, and takes nothing from the others.
#[test]
fn an_arm_that_fails_once_leaves_the_answer() {
    let mut unstable = around(0.992, 0.004, 10, 4);
    unstable[6] = Diverged;
    let found = swept(&[
        (2.0, around(0.770, 0.04, 10, 1)),
        (4.0, around(0.993, 0.004, 10, 2)),
        (8.0, around(0.993, 0.004, 10, 3)),
        (16.0, unstable),
    ]);
    assert_eq!(found.answer, SweepAnswer::Number { value: 4.0 });
    assert_eq!((found.steps[3].enough, found.steps[3].failures.seeds.as_slice()), (Enough::Open, [6].as_slice()));
}

#[test]
fn sweeps_at_the_ends_say_what_was_not_tried() {
    let all_alike = [1.0, 2.0, 4.0].map(|value| (value, around(0.99, 0.004, 10, value as usize)));
    let context = Context::unknown();
    assert_eq!(
        swept(&all_alike).sentence(&heads(), &context),
        "This task needs 1 head: 1 reaches 0.990, more add nothing above the margin of 0.02 (10 pairs)."
    );
    let rising = [(2.0, around(0.5, 0.004, 10, 0)), (4.0, around(0.7, 0.004, 10, 1))];
    assert_eq!(
        swept(&rising).sentence(&heads(), &context),
        "This task needs 4 heads: 2 reach 0.500, 4 reach 0.700, more than 4 were not tried (10 pairs)."
    );
    let falling = [(2.0, around(0.7, 0.004, 10, 0)), (4.0, around(0.5, 0.004, 10, 1))];
    assert_eq!(
        swept(&falling).sentence(&heads(), &context),
        "This task needs 2 heads, and 4 are too many: 2 reach 0.700, fewer than 2 were not tried, 4 reach 0.500, no other \
         adds more than the margin of 0.02 (10 pairs)."
    );
}

#[test]
fn what_is_open_is_said() {
    let noisy = [
        (1.0, around(0.5, 0.004, 10, 0)),
        (
            2.0,
            around(0.97, 0.1, 10, 1)
                .into_iter()
                .map(|outcome| match outcome {
                    Finished(value) => Finished(value.min(1.0)),
                    other => other,
                })
                .collect(),
        ),
        (4.0, around(0.98, 0.004, 10, 2)),
    ];
    let found = swept(&noisy);
    assert_eq!(found.answer, SweepAnswer::Range { low: 2.0, high: 4.0 });
    assert_eq!(found.answer.words(), "2 to 4");
    assert_eq!(
        found.sentence(&heads(), &Context::unknown()),
        "This task needs 2 to 4 heads: 2 reach 0.966, 4 reach 0.980, more than 4 were not tried; 2 (0.966) is not decided \
         (10 pairs)."
    );
    // Eight pairs do not exclude failures in 31 %.
    let few = [(1.0, around(0.5, 0.004, 8, 0)), (2.0, around(0.98, 0.004, 8, 1)), (4.0, around(0.98, 0.004, 8, 2))];
    let found = swept(&few);
    assert_eq!(found.answer, SweepAnswer::NoneShown { at_least: 2.0 });
    assert_eq!(found.steps[1].enough, Enough::FailuresOpen);
    assert_eq!(
        found.sentence(&heads(), &Context::unknown()),
        "This task needs at least 2 heads, and none of the numbers of heads tried is shown to be enough: 1 reaches 0.500, \
         2 reach 0.980, 4 reach 0.980 (8 pairs; pairs like these do not exclude failures in up to 31 % of runs)."
    );
    let found = swept(&[(1.0, vec![Finished(0.5); 3]), (2.0, vec![Finished(0.9); 3])]);
    assert_eq!(
        found.sentence(&heads(), &Context::unknown()),
        "Undecided how many heads this task needs: only 3 of the 6 pairs needed (3 pairs)."
    );
}

#[test]
fn too_many_are_listed_where_a_sweep_is_not_monotone() {
    let found = swept(&[
        (1.0, around(0.37, 0.01, 10, 0)),
        (2.0, around(0.40, 0.01, 10, 1)),
        (4.0, around(0.62, 0.01, 10, 2)),
        (8.0, around(0.62, 0.01, 10, 3)),
        (16.0, around(0.55, 0.01, 10, 4)),
    ]);
    assert_eq!((found.answer, found.best), (SweepAnswer::Number { value: 4.0 }, Some(4.0)));
    assert_eq!((found.sufficient.as_slice(), found.too_many.as_slice()), ([4.0, 8.0].as_slice(), [16.0].as_slice()));
    assert_eq!(
        found.sentence(&heads(), &Context::unknown()),
        "This task needs 4 heads (enough are 4 and 8), and 16 are too many: 2 reach 0.400, 4 reach 0.620, 16 reach 0.550, \
         no other adds more than the margin of 0.02 (10 pairs)."
    );
}

#[test]
fn a_loss_is_named_and_its_diverged_runs_are_counted() {
    let mut one = around(1.9, 0.01, 10, 0);
    one[2] = Diverged;
    let loss = MetricScale::loss("test loss", 2.0);
    let found = swept_on(&[(1.0, one), (2.0, around(0.1, 0.01, 10, 1)), (4.0, around(0.1, 0.01, 10, 2))], &loss);
    assert_eq!(
        found.sentence(&heads(), &Context::unknown()),
        "This task needs 2 heads: in test loss, 1 reaches 1.909, 2 reach 0.100, more add nothing above the margin of 0.02 \
         (10 pairs; 1 run diverged, entered as 2)."
    );
}

/// With two arms a sweep says what the two-arm rules say.
#[test]
fn a_sweep_of_two_agrees_with_two_arms() {
    for difference in [0.0, 0.01, 0.018, 0.03, 0.2] {
        let (small, large) = (around(0.7, 0.03, 10, 0), around(0.7 + difference, 0.03, 10, 1));
        let two = compared(large.clone(), small.clone(), &accuracy(), 0.02);
        let both = swept(&[(1.0, small), (8.0, large)]);
        let insufficient = both.steps[0].enough == Enough::Insufficient;
        assert_eq!(two.statement == Statement::Better, insufficient, "{difference}");
        let all_sufficient = both.sufficient == [1.0, 8.0];
        assert_eq!(two.statement == Statement::Equivalent, all_sufficient, "{difference}");
    }
}

#[test]
fn interaction_is_a_contrast_per_pair() {
    let arm = |values: [f64; 3]| ArmScores::new("", values.map(Finished).to_vec());
    let mut both = arm([0.9, 0.8, 0.85]);
    both.outcomes[2] = Missing;
    let (neither, second, first) = (arm([0.5; 3]), arm([0.6; 3]), arm([0.6, 0.7, 0.6]));
    let found =
        interaction(&[7, 8, 9], [[&neither, &second], [&first, &both]], &accuracy(), &Rules::new(0.02)).unwrap();
    assert_eq!(found.seeds, [7, 8]);
    assert!((found.mean.unwrap() - 0.1).abs() < 1e-12);
    let [low, high] = found.interval.unwrap();
    // 0.2 and 0: t(0.975, 1) times 0.1.
    assert!((low + 1.1706204736174694).abs() < 1e-9 && (high - 1.3706204736174694).abs() < 1e-9, "{low} {high}");
}

// ------------------------------------------------------------------------------------------- Looks and plans

#[test]
fn looks_rise_from_the_fewest_pairs() {
    let looks = Looks::new(vec![6, 10, 15, 20]).unwrap();
    assert_eq!((looks.next_after(6), looks.next_after(20), looks.planned()), (Some(10), None, 20));
    assert!(Looks::new(vec![6, 6]).is_err() && Looks::new(vec![5, 10]).is_err() && Looks::new(vec![]).is_err());
    let error = Looks::new(vec![10, 6]).unwrap_err().to_string();
    assert_eq!(error, "looks at [10, 6] pairs: must rise from at least 6");
}

/// A gap stops the count: pairs that end early may be those that diverge.
#[test]
fn pairs_count_in_order() {
    let one = [Finished(0.1), Diverged, Finished(0.1), Finished(0.1)];
    let other = [Finished(0.1), Finished(0.1), Missing, Finished(0.1)];
    assert_eq!(complete_in_order(&[&one, &other]), 2);
    assert_eq!(complete_in_order(&[&one]), 4);
    assert_eq!(complete_in_order(&[]), 0);
}

#[test]
fn the_first_look_that_decides_ends_the_experiment() {
    let looks = Looks::new(vec![6, 10, 15]).unwrap();
    let rules = Rules::new(0.02);
    let decides_from = |first: usize, complete: usize| {
        let look = |pairs: usize, rules: &Rules| {
            assert!((rules.alpha - 0.05 / 3.0).abs() < 1e-15);
            Ok(pairs)
        };
        looks.walk(complete, &rules, look, |pairs| *pairs >= first).unwrap()
    };
    assert_eq!((decides_from(10, 5).taken, decides_from(10, 5).next), (None, Some(6)));
    let looked = decides_from(10, 12);
    let taken = looked.taken.unwrap();
    assert_eq!((looked.next, taken.look, taken.result, taken.further_pairs, taken.decided), (None, 2, 10, 2, true));
    let open = decides_from(99, 12);
    assert_eq!((open.next, open.taken.unwrap().decided), (Some(15), false));
    let ended = decides_from(99, 15);
    assert_eq!((ended.next, ended.taken.unwrap().look), (None, 3));
}

#[test]
fn a_plan_names_the_pairs_each_statement_needs() {
    let pair = |arm: Vec<Outcome>, baseline: Vec<Outcome>| {
        let seeds = seeds(arm.len());
        pair_scores(&seeds, &ArmScores::new("a", arm), &ArmScores::new("b", baseline), &accuracy()).unwrap()
    };
    let pilot = pair(around(0.9, 0.04, 4, 0), around(0.8, 0.04, 4, 1));
    let planned = plan(&pilot, &Rules::new(0.02), 1).unwrap();
    assert_eq!((planned.pilot_pairs, planned.rows[0].target, planned.rows[0].seen), (4, Target::Better, true));
    assert!(planned.planned_deviation > planned.standard_deviation);
    let pairs: Vec<usize> = planned.rows.iter().map(|row| row.pairs.unwrap()).collect();
    // The larger the difference, the fewer pairs; with looks, more.
    assert!(pairs[2..].windows(2).all(|two| two[0] >= two[1]), "{pairs:?}");
    let with_looks = plan(&pilot, &Rules::new(0.02), 4).unwrap();
    assert!(with_looks.rows[2].pairs.unwrap() > pairs[2]);
    assert_eq!(Vec::from(looks_for(20).unwrap()), [6, 10, 16, 20]);
    assert_eq!(Vec::from(looks_for(7).unwrap()), [6, 7]);
}

// --------------------------------------------------------------------------------------- Curves and the rest

#[test]
fn mean_curves_keep_diverged_runs_at_the_penalty() {
    let loss = MetricScale::loss("loss", 2.0);
    let runs = [
        RunCurve { points: vec![(10, 1.0), (20, 0.5), (30, 0.5)], diverged: false },
        RunCurve { points: vec![(10, 1.5), (20, f64::NAN)], diverged: true },
        // As it is while nothing has diverged: a spike is to be seen. Then no worse than the penalty.
        RunCurve { points: vec![(10, 9.5), (20, 9.5)], diverged: false },
    ];
    let curve = mean_curve(&runs, &loss).unwrap();
    let shown: Vec<_> = curve.iter().map(|p| (p.step, p.mean, p.runs, p.at_penalty, p.left_out)).collect();
    assert_eq!(shown, [(10, 4.0, 3, 0, 0), (20, 1.5, 3, 1, 0), (30, 1.25, 2, 1, 1)]);
}

#[test]
fn steps_to_threshold_differ_with_an_interval_or_not_at_all() {
    let rules = Rules::new(0.02);
    let sooner: Vec<(Option<u64>, Option<u64>)> = (0..6).map(|pair| (Some(300 + 10 * pair), Some(500))).collect();
    let found = compare_steps(&sooner, &rules).unwrap().difference.unwrap();
    assert!(found.differs && found.mean == -175.0 && found.high < 0.0);
    let mut never = sooner.clone();
    never[2].1 = None;
    let found = compare_steps(&never, &rules).unwrap();
    assert_eq!((found.difference, found.arm_reached, found.baseline_reached), (None, 6, 5));
    assert_eq!(compare_steps(&sooner[..5], &rules).unwrap().difference, None);
}

#[test]
fn predictions_hold_fail_or_stay_open() {
    let crosses = Statement::Undecided { because: Because::IntervalCrossesMargin };
    assert_eq!(
        [Statement::Better, Statement::Equivalent, crosses].map(fate_of_better),
        [Fate::Held, Fate::Failed, Fate::Undecided]
    );
    assert_eq!(fate_of_equivalent(Statement::NoDifferenceSeen), Fate::Undecided);
    let found = heads_sweep();
    let fates = [2.0, 4.0, 8.0, 5.0].map(|value| fate_of_sufficient(value, &found));
    assert_eq!(fates, [Fate::Failed, Fate::Held, Fate::Failed, Fate::Failed]);
}

#[test]
fn direction_mirrors_a_metric() {
    let error = |outcomes: &[Outcome]| -> Vec<Outcome> {
        let mirrored = |outcome: &Outcome| match outcome {
            Finished(value) => Finished(1.0 - value),
            other => *other,
        };
        outcomes.iter().map(mirrored).collect()
    };
    let scale =
        MetricScale { name: "error".into(), direction: Direction::LowerIsBetter, best: Some(0.0), penalty: 1.0 };
    let (arm, baseline) = (around(0.9, 0.05, 10, 0), around(0.8, 0.05, 10, 1));
    let up = compared(arm.clone(), baseline.clone(), &accuracy(), 0.02);
    let down = compared(error(&arm), error(&baseline), &scale, 0.02);
    assert_eq!(up.statement, down.statement);
    assert!((up.estimate.unwrap().mean - down.estimate.unwrap().mean).abs() < 1e-12);
}

#[test]
fn results_can_be_written_and_read() {
    fn both_ways<T: serde::Serialize + for<'a> serde::Deserialize<'a>>() {}
    both_ways::<TwoArms>();
    both_ways::<Sweep>();
    both_ways::<Looks>();
    both_ways::<headcount_statistics::looks::Looked<TwoArms>>();
    both_ways::<headcount_statistics::looks::Looked<Vec<headcount_statistics::sweep::Sweep>>>();
    both_ways::<headcount_statistics::grid::Interaction>();
    both_ways::<headcount_statistics::plan::Plan>();
    both_ways::<headcount_statistics::steps::StepsCompared>();
    both_ways::<headcount_statistics::mean_curve::MeanPoint>();
    both_ways::<Fate>();
    both_ways::<Context>();
}
