//! The rules in words: verdicts, diverged and missing runs, several arms, curves, degenerate and refused input.

use headcount_statistics::bootstrap::{BootstrapMethod, bootstrap_interval, interval_from_means};
use headcount_statistics::describe::{describe, mean, weighted_mean};
use headcount_statistics::holm::holm_levels;
use headcount_statistics::interval::{differences, paired_interval, wilson_interval};
use headcount_statistics::outcome::{solve_rate, steps_to_threshold};
use headcount_statistics::sign_flip::{EXACT_UP_TO, sign_flip};
use headcount_statistics::stability::{gradient_tail, spikes};
use headcount_statistics::{
    ArmRuns, Comparison, Direction, Metric, Outcome, Settings, StatisticsError, Undecided, Verdict, compare,
};

use Outcome::{Diverged, Finished, Missing};

const SEEDS: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

fn accuracy() -> Metric {
    Metric { name: "test accuracy".into(), direction: Direction::HigherIsBetter, worst: 0.0 }
}

fn loss() -> Metric {
    Metric { name: "test loss".into(), direction: Direction::LowerIsBetter, worst: 8_f64.ln() }
}

fn arm(name: &str, outcomes: &[Outcome]) -> ArmRuns {
    ArmRuns { name: name.into(), outcomes: outcomes.to_vec() }
}

/// Ten finished runs around `centre`, each arm with its own small differences.
fn around(name: &str, centre: f64, spread: f64) -> ArmRuns {
    let outcomes = SEEDS.map(|seed| Finished(centre + spread * ((seed * 7 % 10) as f64 / 9.0 - 0.5)));
    arm(name, &outcomes)
}

fn one(arm: &ArmRuns, baseline: &ArmRuns, metric: Metric, margin: f64) -> Comparison {
    let seeds = &SEEDS[..baseline.outcomes.len()];
    let settings = Settings { solved_at: Some(0.9), ..Settings::new(metric, margin) };
    compare(seeds, baseline, std::slice::from_ref(arm), &settings).unwrap().remove(0)
}

// ------------------------------------------------------------------------------------------------- Verdicts

#[test]
fn better_worse_and_the_direction_of_the_metric() {
    let (high, low) = (around("8 heads", 0.99, 0.01), around("1", 0.58, 0.03));
    let better = one(&high, &low, accuracy(), 0.02);
    assert_eq!(better.verdict, Verdict::Better);
    assert_eq!(
        better.sentence(800),
        "after 800 steps, 8 heads beat 1 by 0.4100 (95 % interval 0.4052 to 0.4148) in test accuracy, 10 pairs"
    );
    assert_eq!((better.won, better.tied, better.lost), (10, 0, 0));
    assert_eq!(better.probability_of_improvement, Some(1.0));
    assert_eq!(better.sign_flip.as_ref().unwrap().p_value, 2_f64.powi(-9));
    assert_eq!(better.arm.solve_rate.as_ref().unwrap().rate, 1.0);
    assert_eq!(better.baseline.solve_rate.as_ref().unwrap().rate, 0.0);

    assert_eq!(one(&low, &high, accuracy(), 0.02).verdict, Verdict::Worse);
    let worse = one(&high, &low, loss(), 0.02);
    assert_eq!(worse.verdict, Verdict::Worse);
    assert_eq!(
        worse.sentence(800),
        "after 800 steps, 8 heads lost to 1 by 0.4100 (95 % interval 0.4052 to 0.4148) in test loss, 10 pairs"
    );
    assert_eq!(one(&low, &high, loss(), 0.02).verdict, Verdict::Better);
    // Significant, but not beyond the margin.
    let crosses = one(&high, &low, accuracy(), 0.41);
    assert!(matches!(crosses.verdict, Verdict::Undecided { reason: Undecided::IntervalCrossesMargin { .. } }));
    assert_eq!(
        crosses.sentence(800),
        "after 800 steps, undecided between 8 heads and 1 in test accuracy: difference 0.4100 (95 % interval 0.4052 \
         to 0.4148), neither beyond nor within the margin of 0.41, 10 pairs"
    );
}

#[test]
fn equivalent_within_the_margin_only() {
    let (first, second) = (around("h8", 0.99, 0.010), around("h8 again", 0.99, 0.012));
    let same = one(&second, &first, accuracy(), 0.01);
    assert_eq!(same.verdict, Verdict::Equivalent);
    assert_eq!(
        same.sentence(800),
        "after 800 steps, h8 again and h8 differed by no more than 0.01 in test accuracy: difference 0.00000 (95 % \
         interval -0.00048 to 0.00048), 10 pairs"
    );
    // The same interval with a margin of 0: no difference shown, and no equivalence either.
    assert!(matches!(one(&second, &first, accuracy(), 0.0).verdict, Verdict::Undecided { .. }));
}

#[test]
fn equal_differences_are_a_point_and_decide() {
    let base = around("1", 0.5, 0.1);
    let same = one(&ArmRuns { name: "1 again".into(), ..base.clone() }, &base, accuracy(), 0.0);
    let interval = same.interval.as_ref().unwrap();
    assert_eq!((interval.low, interval.high, interval.p_value), (0.0, 0.0, 1.0));
    assert_eq!((interval.statistic, same.verdict.clone()), (None, Verdict::Equivalent));
    assert_eq!(same.sign_flip.as_ref().unwrap().p_value, 1.0);
    assert_eq!(same.bootstrap.as_ref().unwrap().method, BootstrapMethod::AllEqual);
    assert_eq!((same.tied, same.probability_of_improvement), (10, Some(0.5)));

    let solved = one(&arm("8", &[Finished(1.0); 10]), &arm("1", &[Finished(0.7); 10]), accuracy(), 0.1);
    let interval = solved.interval.as_ref().unwrap();
    assert_eq!((interval.low, interval.high, interval.p_value), (1.0 - 0.7, 1.0 - 0.7, 0.0));
    assert_eq!(solved.verdict, Verdict::Better);
    assert_eq!(
        solved.sentence(10),
        "after 10 steps, 8 beat 1 by 0.3000 (95 % interval 0.3000 to 0.3000) in test accuracy, 10 pairs"
    );
}

#[test]
fn fewer_than_six_pairs_decide_nothing() {
    let runs = |value: f64, count| arm("arm", &[Finished(0.9), Finished(value), Finished(0.8)].repeat(2)[..count]);
    for count in 0..6 {
        let result = one(&runs(0.9, count), &arm("base", &vec![Finished(0.1); count]), accuracy(), 0.0);
        let reason = Undecided::TooFewPairs { pairs: count, needed: 6 };
        assert_eq!(result.verdict, Verdict::Undecided { reason });
        assert_eq!(result.interval.is_some(), count > 1);
    }
    let two = one(&runs(0.95, 2), &arm("base", &[Finished(0.1), Finished(0.2)]), accuracy(), 0.0);
    assert_eq!(
        two.sentence(50),
        "after 50 steps, undecided between arm and base in test accuracy: only 2 of the 6 pairs that a verdict needs; \
         difference 0.78 (95 % interval 0.46 to 1.09)"
    );
    assert_eq!(one(&runs(0.9, 6), &arm("base", &[Finished(0.1); 6]), accuracy(), 0.0).verdict, Verdict::Better);
}

// -------------------------------------------------------------------------------- Diverged and missing runs

#[test]
fn a_diverged_arm_is_a_failure_and_not_dropped() {
    let base = around("lr 0.003", 0.99, 0.01);
    let all = one(&arm("lr 10", &[Diverged; 10]), &base, accuracy(), 0.02);
    assert_eq!((all.verdict.clone(), all.arm.diverged, all.pairs.len()), (Verdict::Worse, 10, 10));
    assert_eq!(all.diverged_entered_as, Some(0.0));
    assert_eq!(all.arm.solve_rate.as_ref().unwrap().trials, 10);
    assert_eq!(
        all.sentence(800),
        "after 800 steps, lr 10 lost to lr 0.003 by 0.9900 (95 % interval 0.9876 to 0.9924) in test accuracy, 10 \
         pairs; diverged (entered as 0): 10 of 10 runs of lr 10"
    );
    // Three of ten: what looked better is not, for want of evidence.
    let mut some = around("8", 0.999, 0.001);
    some.outcomes[..3].fill(Diverged);
    assert!(matches!(one(&some, &base, accuracy(), 0.0).verdict, Verdict::Undecided { .. }));
}

#[test]
fn diverging_never_looks_better_than_finishing() {
    // A finished run with a loss of 5, above ln 8: the diverged run enters as 5, and ties with it.
    let mut diverged = arm("a", &[Finished(0.5); 10]);
    let mut finished = arm("b", &[Finished(0.5); 10]);
    diverged.outcomes[4] = Diverged;
    finished.outcomes[4] = Finished(5.0);
    let result = one(&diverged, &finished, loss(), 0.1);
    assert_eq!((result.diverged_entered_as, result.pairs[4].difference), (Some(5.0), 0.0));
    assert!(result.pairs[4].arm_diverged && !result.pairs[4].baseline_diverged);
}

#[test]
fn two_arms_that_both_diverge_are_not_equivalent() {
    let result = one(&arm("a", &[Diverged; 10]), &arm("b", &[Diverged; 10]), accuracy(), 0.1);
    let reason = Undecided::TooFewFinished { pairs: 0, needed: 6 };
    assert_eq!(result.verdict, Verdict::Undecided { reason });
    assert_eq!(result.correction.decision_p_value, 1.0);
}

#[test]
fn missing_runs_are_named() {
    let base = around("1", 0.58, 0.03);
    let mut eight = around("8", 0.99, 0.01);
    eight.outcomes[2] = Missing;
    let mut killed = base.clone();
    killed.outcomes[7] = Missing;
    let result = one(&eight, &killed, accuracy(), 0.02);
    assert_eq!((result.verdict.clone(), result.pairs.len()), (Verdict::Better, 8));
    assert_eq!(result.incomplete.iter().map(|pair| pair.seed).collect::<Vec<_>>(), [2, 7]);
    assert!(result.incomplete[0].arm_missing && result.incomplete[1].baseline_missing);
    assert!(result.sentence(800).ends_with("8 pairs; left out, as a run is missing: seeds 2, 7"));
    assert_eq!((result.arm.missing, result.arm.finished, result.arm.description.unwrap().count), (1, 9, 8));

    eight.outcomes[..5].fill(Missing);
    let reason = Undecided::TooFewPairs { pairs: 4, needed: 6 };
    assert_eq!(one(&eight, &killed, accuracy(), 0.02).verdict, Verdict::Undecided { reason });
    let none = one(&arm("8", &[Missing; 10]), &base, accuracy(), 0.02);
    assert!(none.interval.is_none() && none.arm.description.is_none() && none.arm.solve_rate.is_none());
    assert!(none.sentence(800).contains("only 0 of the 6 pairs that a verdict needs; no interval"));
}

// ---------------------------------------------------------------------------------------------- Several arms

#[test]
fn several_arms_verdict_agrees_with_the_adjusted_p_value() {
    let base = around("1", 0.5, 0.1);
    // Leads of very different clarity; some within the margin.
    let arms: Vec<ArmRuns> = [(2, 0.030, 0.1), (4, 0.004, 0.5), (8, 0.011, 0.4), (16, -0.02, 0.3), (32, 0.0, 0.12)]
        .into_iter()
        .map(|(heads, lead, noise)| {
            let mut runs = base.clone();
            runs.name = heads.to_string();
            for (index, outcome) in runs.outcomes.iter_mut().enumerate() {
                let wobble = ((index * 3 + heads) % 10) as f64 / 9.0 - 0.5;
                *outcome = Finished(0.5 + lead + noise * 0.1 * wobble);
                if let (Finished(value), Finished(ours)) = (base.outcomes[index], outcome) {
                    *ours += value - 0.5;
                }
            }
            runs
        })
        .collect();
    let mut decided = 0;
    for margin in [0.0, 0.005, 0.01, 0.03] {
        let results = compare(&SEEDS, &base, &arms, &Settings::new(accuracy(), margin)).unwrap();
        for result in &results {
            let says = !matches!(result.verdict, Verdict::Undecided { .. });
            assert_eq!(says, result.correction.adjusted_p_value < 0.05, "{margin}: {result:?}");
            assert!(result.interval.as_ref().unwrap().level >= 0.95);
            decided += usize::from(says);
        }
    }
    assert!((4..17).contains(&decided), "{decided} of 20: the case has lost its variety");
    let results = compare(&SEEDS, &base, &arms, &Settings::new(accuracy(), 0.01)).unwrap();
    assert!(results[1].sentence(800).contains("(97.5 % interval"), "{}", results[1].sentence(800));
}

#[test]
fn holm_levels_step_down_and_stop() {
    let levels = |p_values: &[f64]| holm_levels(p_values, 0.95).unwrap();
    let close = |ours: Vec<f64>, alphas: &[f64]| {
        assert!(ours.iter().zip(alphas).all(|(level, alpha)| (1.0 - level - alpha).abs() < 1e-12), "{ours:?}");
    };
    assert_eq!(levels(&[0.5]), [0.95]);
    close(levels(&[0.001, 0.04, 0.02]), &[0.05 / 3.0, 0.05, 0.05 / 2.0]);
    // The second fails at 0.025, so the third is held to 0.025 too.
    close(levels(&[0.001, 0.04, 0.03]), &[0.05 / 3.0, 0.025, 0.025]);
    // Without stopping the second would pass at 0.025.
    close(levels(&[0.02, 0.02, 0.9]), &[0.05 / 3.0; 3]);
}

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
    let p_value = paired_interval(&differences, 0.95).unwrap().p_value;
    assert!((drawn.p_value - p_value).abs() < 0.01, "{} against {p_value}", drawn.p_value);
    assert!(sign_flip(&[1.0; 40], 0).unwrap().p_value == 1.0 / 100_001.0);
}

#[test]
fn extremes_stay_finite() {
    for scale in [1e-300, 1e-170, 1e170, 1e299] {
        let values = [1.0, 2.0, -3.0, 4.0, 0.5, 1.5].map(|value: f64| value * scale);
        let interval = paired_interval(&values, 0.95).unwrap();
        // stats.ttest_1samp([1, 2, -3, 4, 0.5, 1.5], 0).pvalue
        assert!((interval.p_value - 0.33599530694).abs() < 1e-9, "{interval:?}");
        assert!(interval.low.is_finite() && interval.high.is_finite());
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
    assert_eq!(text(differences(&[1.0], &[]).unwrap_err()), "arm has 1 value(s) but baseline has 0");
    assert_eq!(text(paired_interval(&[1.0], 0.95).unwrap_err()), "paired interval: needs at least 2 value(s), got 1");
    assert!(text(paired_interval(&[1.0, 2.0], 95.0).unwrap_err()).contains("confidence level is 95"));
    assert_eq!(text(wilson_interval(3, 2, 0.95).unwrap_err()), "3 successes in 2 trials");
    assert_eq!(text(weighted_mean(&[1.0], &[0]).unwrap_err()), "weighted mean: all 1 weights are 0");

    let refuse = |seeds: &[u64], outcomes: &[Outcome], margin: f64| {
        let runs = arm("h8", outcomes);
        text(compare(seeds, &runs, std::slice::from_ref(&runs), &Settings::new(accuracy(), margin)).unwrap_err())
    };
    assert_eq!(refuse(&[3, 3], &[Missing, Missing], 0.0), "seed 3 is listed twice");
    assert_eq!(
        refuse(&[3, 4], &[Finished(0.1), Finished(f64::NAN)], 0.0),
        "arm `h8`, seed 4: result NaN of a finished run is not a finite number"
    );
    assert_eq!(refuse(&[3], &[Missing, Missing], 0.0), "the list of seeds has 1 value(s) but arm `h8` has 2");
    assert_eq!(refuse(&[3], &[Missing], -0.1), "margin is -0.1, must be finite and at least 0");
    assert!(refuse(&[3], &[Missing], f64::NAN).starts_with("margin is NaN"));
}

/// `results.json` is written from these and read back.
#[test]
fn results_can_be_written_and_read() {
    fn both_ways<T: serde::Serialize + for<'a> serde::Deserialize<'a>>() {}
    both_ways::<Comparison>();
    both_ways::<headcount_statistics::outcome::StepsToThreshold>();
    both_ways::<headcount_statistics::stability::Spikes>();
    both_ways::<headcount_statistics::stability::GradientTail>();
}
