//! One arm against another: the statement with all that a report shows beside it.

use serde::{Deserialize, Serialize};

use crate::bootstrap::{BootstrapInterval, RESAMPLES, bootstrap_interval};
use crate::describe::{Description, describe};
use crate::error::StatisticsError;
use crate::estimate::MeanEstimate;
use crate::failures::FailedPairs;
use crate::interval::WilsonInterval;
use crate::outcome::{Outcome, probability_of_improvement, solve_rate};
use crate::pairs::{ArmScores, SampleSpread, ScoredPair, pair_scores};
use crate::power::{FurtherPairs, further_pairs};
use crate::rules::Rules;
use crate::scale::MetricScale;
use crate::sign_flip::{SignFlip, sign_flip};
use crate::solving::{Solving, solving};
use crate::statement::{Because, Statement, judge};

/// What is asked beside the statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// A run at this value or better solved the task; without it nothing is said of solving.
    pub solved_at: Option<f64>,
    /// Bootstrap resamples, at least 1.
    pub resamples: usize,
    /// Seed of the bootstrap and of a drawn sign-flip test.
    pub random_seed: u64,
}

impl Default for Beside {
    fn default() -> Self {
        Self { solved_at: None, resamples: RESAMPLES, random_seed: 0 }
    }
}

/// An interval of the mean advantage of the arm, cut to what the metric allows; in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Confidence level, such as 0.95.
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub name: String,
    /// How its runs ended, whether or not their pairs are complete.
    pub finished: usize,
    pub diverged: usize,
    pub missing: usize,
    /// Over the complete pairs, values as they enter; `None` without any.
    pub description: Option<Description>,
    /// Over all runs that are not missing; `None` without a threshold or without runs.
    pub solve_rate: Option<WilsonInterval>,
}

/// One arm against the baseline. Nothing in it is NaN or infinite, and no p value is 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TwoArms {
    pub statement: Statement,
    pub scale: MetricScale,
    pub rules: Rules,
    pub arm: Side,
    pub baseline: Side,
    /// The complete pairs, in the order of the seeds.
    pub pairs: Vec<ScoredPair>,
    /// Seeds of the others.
    pub incomplete: Vec<u64>,
    /// Of the two sides, −1 to 1; `None` where one does not vary or there are fewer than three pairs.
    pub correlation: Option<f64>,
    /// Where one test set is shared: how its samples differ.
    pub samples: Option<SampleSpread>,
    /// Mean advantage of the arm: above 0 whichever way the metric improves. `None`, here and for what rests on it, with
    /// fewer than two complete pairs.
    pub estimate: Option<MeanEstimate>,
    /// The interval that decides "better" and "worse": [`crate::robust::DifferenceEstimate`].
    pub interval: Option<Limits>,
    /// The interval that decides "equivalent", by the same limits.
    pub equivalence: Option<Limits>,
    /// Two-sided p of "no difference" by plain paired t; `None` too where all differences are equal.
    pub p_value: Option<f64>,
    pub failures: FailedPairs,
    /// `None` without a threshold or without pairs.
    pub solving: Option<Solving>,
    /// Only where the question is open and the interval is what leaves it so.
    pub further: Option<FurtherPairs>,
    /// `None`, here and below, without complete pairs. Of the advantages.
    pub sign_flip: Option<SignFlip>,
    /// Of the advantages, at the level of `interval`.
    pub bootstrap: Option<BootstrapInterval>,
    pub probability_of_improvement: Option<f64>,
    /// Complete pairs that the arm won, tied and lost.
    pub won: usize,
    pub tied: usize,
    pub lost: usize,
}

/// Compares an arm with a baseline; outcome i of both belongs to seed i. No run is dropped for how it went: a diverged run
/// enters with the penalty ([`MetricScale::entered`]); a pair with a missing run is named and left out.
///
/// Where the arm is one of more than two, `rules` say so ([`Rules::for_arms`]): limits are then wide enough for all pairs
/// of arms together, and agree with those of a sweep.
///
/// Errors: numbers out of range or not finite, named; lengths that differ; a seed twice; no resamples.
pub fn compare_two_arms(
    seeds: &[u64],
    arm: &ArmScores,
    baseline: &ArmScores,
    scale: &MetricScale,
    rules: &Rules,
    beside: &Beside,
) -> Result<TwoArms, StatisticsError> {
    scale.check()?;
    let paired = pair_scores(seeds, arm, baseline, scale)?;
    let judged = judge(&paired, rules)?;
    let advantages = paired.advantages();
    let [ours, theirs] = paired.values();
    let any = !advantages.is_empty();
    let limits = |level: f64, interval: [f64; 2]| {
        let [low, high] = scale.clipped(interval);
        Limits { level, low, high }
    };
    let interval =
        judged.estimate.map(|estimate| limits(rules.difference_level(), estimate.interval(rules.difference_tail())));
    let estimate = judged.estimate.map(|estimate| estimate.plain);
    let equivalence =
        estimate.map(|estimate| limits(rules.equivalence_level(), estimate.interval(rules.equivalence_tail())));
    let bootstrap = match estimate {
        Some(_) => {
            Some(bootstrap_interval(&advantages, rules.difference_level(), beside.resamples, beside.random_seed)?)
        }
        None => None,
    };
    let solving = match beside.solved_at {
        Some(threshold) if any => Some(solving(&paired, threshold, scale.direction, rules)?),
        _ => None,
    };
    let is_open = matches!(
        judged.statement,
        Statement::NoDifferenceSeen | Statement::Undecided { because: Because::IntervalCrossesMargin }
    );
    let further = estimate.filter(|_| is_open);
    let count = |is: fn(f64) -> bool| advantages.iter().filter(|advantage| is(**advantage)).count();
    Ok(TwoArms {
        statement: judged.statement,
        scale: scale.clone(),
        rules: *rules,
        arm: side(arm, &ours, scale, rules, beside)?,
        baseline: side(baseline, &theirs, scale, rules, beside)?,
        correlation: paired.correlation(),
        samples: paired.samples,
        estimate,
        interval,
        equivalence,
        p_value: estimate.and_then(|estimate| estimate.p_value()),
        further: further.map(|estimate| further_pairs(&estimate, &judged.failures, rules)),
        failures: judged.failures,
        solving,
        sign_flip: any.then(|| sign_flip(&advantages, beside.random_seed)).transpose()?,
        bootstrap,
        probability_of_improvement: any
            .then(|| probability_of_improvement(&ours, &theirs, scale.direction))
            .transpose()?,
        won: count(|advantage| advantage > 0.0),
        tied: count(|advantage| advantage == 0.0),
        lost: count(|advantage| advantage < 0.0),
        pairs: paired.pairs,
        incomplete: paired.incomplete,
    })
}

fn side(
    arm: &ArmScores,
    paired_values: &[f64],
    scale: &MetricScale,
    rules: &Rules,
    beside: &Beside,
) -> Result<Side, StatisticsError> {
    let count = |is: fn(&Outcome) -> bool| arm.outcomes.iter().filter(|outcome| is(outcome)).count();
    let solve_rate = match beside.solved_at {
        Some(threshold) => solve_rate(&arm.outcomes, threshold, scale.direction, 1.0 - rules.alpha)?,
        None => None,
    };
    Ok(Side {
        name: arm.name.clone(),
        finished: count(|outcome| matches!(outcome, Outcome::Finished(_))),
        diverged: count(|outcome| matches!(outcome, Outcome::Diverged)),
        missing: count(|outcome| matches!(outcome, Outcome::Missing)),
        description: (!paired_values.is_empty()).then(|| describe(paired_values)).transpose()?,
        solve_rate,
    })
}
