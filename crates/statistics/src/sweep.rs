//! A sweep: the smallest number that is enough, among those tried.

use serde::{Deserialize, Serialize};

use crate::describe::{Description, describe};
use crate::error::{StatisticsError, is_usable};
use crate::failures::{FailedPairs, clopper_pearson_upper, failed_pairs};
use crate::outcome::Outcome;
use crate::pairs::{ArmScores, PairedScores, check_arm, check_seeds, pair_scores};
use crate::robust::DifferenceEstimate;
use crate::rules::{FEWEST_PAIRS, Rules};
use crate::scale::MetricScale;

/// One arm of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The number that is swept: 4 heads.
    pub value: f64,
    pub scores: ArmScores,
}

/// Whether a number is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enough {
    /// Nothing tried is better by more than the margin, and the failure bound is low enough.
    Sufficient,
    /// Some other arm is better by more than the margin.
    Insufficient,
    /// Nothing tried is better by more than the margin, but pairs like these do not exclude that it fails too often.
    FailuresOpen,
    /// Neither is shown.
    Open,
}

/// What is known of one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    pub value: f64,
    pub name: String,
    pub enough: Enough,
    /// Over the pairs that are complete in every arm, values as they enter; `None` without any.
    pub description: Option<Description>,
    /// Runs, among those pairs, that diverged.
    pub diverged: usize,
    /// By how much every other arm is better, in the order of the arms; empty where there are too few pairs.
    pub others: Vec<Advantage>,
    /// Against the best arm ([`Sweep::best`]): the pairs that failed. The best arm has none against itself.
    pub failures: FailedPairs,
}

/// By how much another arm is better than this one, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Advantage {
    /// The number of the other arm.
    pub of: f64,
    pub mean: f64,
    /// L: above the margin, this arm is insufficient.
    pub lower: f64,
    /// U: at most the margin, this arm is not beaten.
    pub upper: f64,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SweepAnswer {
    /// The smallest sufficient number; every smaller one tried is insufficient.
    Number { value: f64 },
    /// Every number below `low` is insufficient, `high` is sufficient, and those from `low` to below it are open.
    Range { low: f64, high: f64 },
    /// No number tried is shown to be enough; those below `at_least` are insufficient.
    NoneShown { at_least: f64 },
    /// Too few pairs that are complete in every arm and of which a run finished.
    TooFewPairs { pairs: usize, needed: usize },
}

impl SweepAnswer {
    /// Whether the question is settled: lo = hi.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Number { .. })
    }
}

/// A sweep and its answer. Nothing in it is NaN or infinite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    pub answer: SweepAnswer,
    pub scale: MetricScale,
    /// With the number of arms of the sweep.
    pub rules: Rules,
    /// The arms from the smallest number to the largest.
    pub steps: Vec<StepResult>,
    /// The number with the best mean, the smallest of equals; `None` with too few pairs.
    pub best: Option<f64>,
    /// All sufficient numbers, rising.
    pub sufficient: Vec<f64>,
    /// Numbers shown to be insufficient above a sufficient one: too many also lose.
    pub too_many: Vec<f64>,
    /// Pairs complete in every arm.
    pub pairs: usize,
    /// Seeds of the others.
    pub incomplete: Vec<u64>,
}

/// Which numbers are enough, and the smallest; outcome i of every arm belongs to seed i. `rules` may have any number of
/// arms: that of the sweep takes its place.
///
/// For arms i and j, with K arms and n pairs, U is the upper limit of mean(y_j − y_i) at t(1 − alpha / (K − 1), n − 1),
/// L the lower at t(1 − alpha / (K (K − 1)), n − 1), neither widened by accidents ([`DifferenceEstimate`]): else one
/// failed run of any arm would leave all others open. Failures aside, any arm is falsely called sufficient in at most
/// alpha of all sweeps, and any falsely insufficient in at most alpha. For two arms these are the limits of
/// [`crate::statement::judge`].
///
/// Errors: fewer than two arms, a number twice or not finite, and what [`pair_scores`] refuses.
pub fn sweep(seeds: &[u64], arms: &[Step], scale: &MetricScale, rules: &Rules) -> Result<Sweep, StatisticsError> {
    let rules = rules.for_arms(arms.len());
    scale.check()?;
    if arms.len() < 2 {
        return Err(StatisticsError::TooFew { what: "arms of a sweep", needed: 2, got: arms.len() });
    }
    rules.check()?;
    check_seeds(seeds)?;
    let arms = in_order(arms)?;
    for arm in &arms {
        check_arm(seeds, &arm.scores, scale)?;
    }
    let (seeds, incomplete, arms) = complete(seeds, &arms);
    let table = Table { seeds, arms, scale, rules };
    let steps = table.describe()?;
    let pairs = table.seeds.len();
    let finished = table.with_a_finished_run();
    if finished < FEWEST_PAIRS {
        let answer = SweepAnswer::TooFewPairs { pairs: finished, needed: FEWEST_PAIRS };
        let (sufficient, too_many) = (Vec::new(), Vec::new());
        let (scale, best) = (scale.clone(), None);
        return Ok(Sweep { answer, scale, rules, steps, best, sufficient, too_many, pairs, incomplete });
    }
    let best = table.best(&steps);
    let steps = table.judge(steps, best)?;
    let that_are = |what: Enough| steps.iter().filter(move |step| step.enough == what);
    let sufficient: Vec<f64> = that_are(Enough::Sufficient).map(|step| step.value).collect();
    let is_beyond = |value: f64| sufficient.first().is_some_and(|smallest| value > *smallest);
    let too_many = that_are(Enough::Insufficient).map(|step| step.value).filter(|value| is_beyond(*value)).collect();
    Ok(Sweep {
        answer: answer(&steps),
        scale: scale.clone(),
        rules,
        best: Some(steps[best].value),
        too_many,
        sufficient,
        pairs,
        incomplete,
        steps,
    })
}

/// lo and hi of steps in rising order.
fn answer(steps: &[StepResult]) -> SweepAnswer {
    // The best arm is never insufficient: no mean lies above its own.
    let low = steps.iter().find(|step| step.enough != Enough::Insufficient).map_or(f64::MAX, |step| step.value);
    match steps.iter().find(|step| step.enough == Enough::Sufficient) {
        Some(step) if step.value == low => SweepAnswer::Number { value: low },
        Some(step) => SweepAnswer::Range { low, high: step.value },
        None => SweepAnswer::NoneShown { at_least: low },
    }
}

/// The arms from the smallest number to the largest.
fn in_order(arms: &[Step]) -> Result<Vec<Step>, StatisticsError> {
    let mut arms = arms.to_vec();
    if let Some(arm) = arms.iter().find(|arm| !is_usable(arm.value)) {
        return Err(StatisticsError::OutOfRange { what: "swept value", value: arm.value, must_be: "finite" });
    }
    arms.sort_by(|a, b| a.value.total_cmp(&b.value));
    match arms.windows(2).find(|two| two[0].value == two[1].value) {
        Some(two) => Err(StatisticsError::SweptTwice { value: two[0].value }),
        None => Ok(arms),
    }
}

/// The seeds of which every arm has a run, the other seeds, and the arms without the latter.
fn complete(seeds: &[u64], arms: &[Step]) -> (Vec<u64>, Vec<u64>, Vec<Step>) {
    let is_complete = |pair: usize| arms.iter().all(|arm| arm.scores.outcomes[pair] != Outcome::Missing);
    let (kept, left): (Vec<usize>, Vec<usize>) = (0..seeds.len()).partition(|pair| is_complete(*pair));
    let of = |pairs: &[usize]| pairs.iter().map(|pair| seeds[*pair]).collect::<Vec<u64>>();
    let shorten = |arm: &Step| Step {
        value: arm.value,
        scores: ArmScores {
            name: arm.scores.name.clone(),
            outcomes: kept.iter().map(|pair| arm.scores.outcomes[*pair]).collect(),
            sample_scores: if arm.scores.sample_scores.is_empty() {
                Vec::new()
            } else {
                kept.iter().map(|pair| arm.scores.sample_scores[*pair].clone()).collect()
            },
        },
    };
    (of(&kept), of(&left), arms.iter().map(shorten).collect())
}

/// The complete pairs of all arms.
struct Table<'a> {
    seeds: Vec<u64>,
    arms: Vec<Step>,
    scale: &'a MetricScale,
    rules: Rules,
}

impl Table<'_> {
    /// How many pairs have a run that finished, in whatever arm.
    fn with_a_finished_run(&self) -> usize {
        let finished = |pair: &usize| self.arms.iter().any(|arm| arm.scores.outcomes[*pair] != Outcome::Diverged);
        (0..self.seeds.len()).filter(finished).count()
    }

    /// What the arms reached; nothing is said of them yet.
    fn describe(&self) -> Result<Vec<StepResult>, StatisticsError> {
        let of = |arm: &Step| {
            let outcomes = &arm.scores.outcomes;
            let values: Vec<f64> = outcomes.iter().filter_map(|outcome| self.scale.entered(*outcome)).collect();
            Ok(StepResult {
                value: arm.value,
                name: arm.scores.name.clone(),
                enough: Enough::Open,
                description: (!values.is_empty()).then(|| describe(&values)).transpose()?,
                diverged: outcomes.iter().filter(|outcome| **outcome == Outcome::Diverged).count(),
                others: Vec::new(),
                failures: FailedPairs { seeds: Vec::new(), pairs: 0, bound: 1.0, level: 1.0 - self.rules.alpha },
            })
        };
        self.arms.iter().map(of).collect()
    }

    /// The index of the arm with the best mean, the smallest of equals.
    fn best(&self, steps: &[StepResult]) -> usize {
        let mean = |index: usize| {
            let mean = steps[index].description.as_ref().map_or(self.scale.penalty, |described| described.mean);
            self.scale.direction.advantage(mean)
        };
        (1..steps.len()).fold(0, |best, index| if mean(index) > mean(best) { index } else { best })
    }

    /// The pairs of an arm with another, advantages being those of the arm.
    fn paired(&self, arm: usize, other: usize) -> Result<PairedScores, StatisticsError> {
        pair_scores(&self.seeds, &self.arms[arm].scores, &self.arms[other].scores, self.scale)
    }

    fn judge(&self, steps: Vec<StepResult>, best: usize) -> Result<Vec<StepResult>, StatisticsError> {
        let estimates = self.estimates()?;
        let mut judged = Vec::with_capacity(steps.len());
        for (index, step) in steps.into_iter().enumerate() {
            let others = (0..self.arms.len()).filter(|other| *other != index);
            let others: Vec<Advantage> = others.map(|other| self.advantage(other, &estimates[other][index])).collect();
            let failures = if index == best {
                self.no_failures()?
            } else {
                failed_pairs(&self.paired(index, best)?, &self.rules)?
            };
            let enough = self.enough(&others, &failures);
            judged.push(StepResult { enough, others, failures, ..step });
        }
        Ok(judged)
    }

    /// The estimate of the advantage of arm i over arm j at `[i][j]`; an arm against itself is not looked at.
    fn estimates(&self) -> Result<Vec<Vec<DifferenceEstimate>>, StatisticsError> {
        let count = self.arms.len();
        let of = |arm: usize, other: usize| {
            let paired = self.paired(arm, other)?;
            DifferenceEstimate::of(&paired.advantages(), paired.samples, &self.rules)
        };
        (0..count).map(|arm| (0..count).map(|other| of(arm, other)).collect()).collect()
    }

    fn advantage(&self, other: usize, estimate: &DifferenceEstimate) -> Advantage {
        let [lower, _] = self.scale.clipped(estimate.interval(self.rules.difference_tail()));
        let [_, upper] = self.scale.clipped(estimate.interval(self.rules.equivalence_tail()));
        Advantage { of: self.arms[other].value, mean: estimate.plain.mean, lower, upper }
    }

    /// What is known of the best arm against itself: that so many pairs showed no failure.
    fn no_failures(&self) -> Result<FailedPairs, StatisticsError> {
        let pairs = self.with_a_finished_run();
        let bound = clopper_pearson_upper(0, pairs, self.rules.alpha)?;
        Ok(FailedPairs { seeds: Vec::new(), pairs, bound, level: 1.0 - self.rules.alpha })
    }

    fn enough(&self, others: &[Advantage], failures: &FailedPairs) -> Enough {
        let margin = self.rules.margin;
        if others.iter().any(|other| other.lower > margin) {
            Enough::Insufficient
        } else if others.iter().any(|other| other.upper > margin) {
            Enough::Open
        } else if failures.bound > self.rules.max_failure {
            Enough::FailuresOpen
        } else {
            Enough::Sufficient
        }
    }
}
