//! Arms against a baseline over paired seeds: everything a report shows, from the outcomes of the runs.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::bootstrap::{BootstrapInterval, RESAMPLES, bootstrap_interval};
use crate::describe::{Description, describe};
use crate::error::{StatisticsError, is_usable};
use crate::holm::{holm_adjusted, holm_levels};
use crate::interval::{LEVEL, PairedInterval, WilsonInterval, differences, paired_interval};
use crate::outcome::{Direction, Outcome, probability_of_improvement, solve_rate};
use crate::sign_flip::{SignFlip, sign_flip};
use crate::verdict::{FEWEST_PAIRS, PairCounts, Verdict, decide, decision_p_value};

/// The primary metric of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// As it reads in a sentence: "test accuracy".
    pub name: String,
    pub direction: Direction,
    /// What a diverged run enters with: the worst possible value (0 for an accuracy) or, for a metric without one,
    /// what guessing gives (the logarithm of the number of classes for a loss). See [`compare`].
    pub worst: f64,
}

/// What is fixed before the runs, and the repeatability of the random parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub metric: Metric,
    /// The smallest difference that matters, at least 0, in the unit of the metric.
    pub margin: f64,
    /// Confidence level of all intervals, before correction for several arms.
    pub level: f64,
    /// A run at this value or better solved the task; without it there are no solve rates.
    pub solved_at: Option<f64>,
    /// Bootstrap resamples.
    pub resamples: usize,
    /// Seed of the bootstrap and of a drawn sign-flip test.
    pub random_seed: u64,
}

impl Settings {
    /// Level 95 %, no solve rates, [`RESAMPLES`] resamples from seed 0.
    pub fn new(metric: Metric, margin: f64) -> Self {
        Self { metric, margin, level: LEVEL, solved_at: None, resamples: RESAMPLES, random_seed: 0 }
    }
}

/// The runs of one arm, in the order of the seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmRuns {
    /// As it reads in a sentence: "8 heads".
    pub name: String,
    pub outcomes: Vec<Outcome>,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    pub name: String,
    /// How its runs ended, whether or not their pairs are complete.
    pub finished: usize,
    pub diverged: usize,
    pub missing: usize,
    /// Over the complete pairs, diverged runs entering as in [`compare`]; `None` without any.
    pub description: Option<Description>,
    /// Over all runs that are not missing; `None` without a threshold or without runs.
    pub solve_rate: Option<WilsonInterval>,
}

/// A pair of which neither run is missing; values in the unit of the metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub seed: u64,
    pub arm: f64,
    pub baseline: f64,
    /// Arm − baseline.
    pub difference: f64,
    pub arm_diverged: bool,
    pub baseline_diverged: bool,
}

/// A pair that says nothing, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompletePair {
    pub seed: u64,
    pub arm_missing: bool,
    pub baseline_missing: bool,
}

/// Holm's correction for the number of arms, as it bears on this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Arms compared with the baseline, this one included.
    pub arms: usize,
    /// See [`decision_p_value`]; 1 where there are too few pairs for a verdict.
    pub decision_p_value: f64,
    /// Holm-adjusted over the arms: the verdict decides where it is below 1 − level.
    pub adjusted_p_value: f64,
}

/// One arm against the baseline. Nothing in it is NaN or infinite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub verdict: Verdict,
    pub metric: Metric,
    pub margin: f64,
    pub arm: ArmSummary,
    pub baseline: ArmSummary,
    /// The complete pairs, in the order of the seeds.
    pub pairs: Vec<Pair>,
    /// The others.
    pub incomplete: Vec<IncompletePair>,
    /// What diverged runs entered with; `None` if no run in a complete pair diverged.
    pub diverged_entered_as: Option<f64>,
    /// The deciding interval of arm − baseline, at the level that Holm's correction leaves to this arm; `None` with
    /// fewer than two complete pairs. The same holds for the bootstrap interval, which has the same level.
    pub interval: Option<PairedInterval>,
    pub correction: Correction,
    /// `None`, here and below, without complete pairs.
    pub sign_flip: Option<SignFlip>,
    pub bootstrap: Option<BootstrapInterval>,
    pub probability_of_improvement: Option<f64>,
    /// Complete pairs that the arm won, tied and lost.
    pub won: usize,
    pub tied: usize,
    pub lost: usize,
}

/// Compares each arm with the baseline, Holm-corrected for their number; one comparison an arm, in their order.
///
/// `seeds` name the pairs: outcome i of every arm belongs to seed i. No run is dropped for how it went:
/// - A diverged run enters with `metric.worst` or, if a finished run of any arm is worse than that, with the worst of
///   those, so that diverging never looks better than finishing. It did not solve the task.
/// - A pair in which both runs diverged has difference 0, but a verdict needs [`FEWEST_PAIRS`] pairs with a finished run.
/// - A missing run makes its pair incomplete: named in the result and left out, as it says nothing about the arm. With
///   fewer than [`FEWEST_PAIRS`] complete pairs the comparison is undecided.
/// - An arm with too few pairs still counts in Holm's correction: the number of arms was fixed before the runs.
///
/// Errors: outcomes and seeds of different lengths, a seed twice, a finished run with a value that is not finite, a
/// margin below 0, a level outside (0, 1), no resamples, `worst` or `solved_at` not finite.
pub fn compare(
    seeds: &[u64],
    baseline: &ArmRuns,
    arms: &[ArmRuns],
    settings: &Settings,
) -> Result<Vec<Comparison>, StatisticsError> {
    check_settings(settings)?;
    check_seeds(seeds)?;
    for runs in arms.iter().chain([baseline]) {
        check_runs(seeds, runs)?;
    }
    let worst = worst_value(arms.iter().chain([baseline]), &settings.metric);
    let paired: Vec<Paired> = arms.iter().map(|arm| pair_up(seeds, arm, baseline, worst)).collect();

    let mut p_values = Vec::with_capacity(arms.len());
    for pairs in &paired {
        p_values.push(pairs.decision_p_value(settings)?);
    }
    let adjusted = holm_adjusted(&p_values)?;
    let levels = holm_levels(&p_values, settings.level)?;

    let mut comparisons = Vec::with_capacity(arms.len());
    for (index, pairs) in paired.into_iter().enumerate() {
        let correction =
            Correction { arms: arms.len(), decision_p_value: p_values[index], adjusted_p_value: adjusted[index] };
        let sides = [&arms[index], baseline];
        comparisons.push(summarise(sides, pairs, levels[index], correction, worst, settings)?);
    }
    Ok(comparisons)
}

/// The pairs of one arm with the baseline.
struct Paired {
    complete: Vec<Pair>,
    incomplete: Vec<IncompletePair>,
}

impl Paired {
    fn differences(&self) -> Vec<f64> {
        self.complete.iter().map(|pair| pair.difference).collect()
    }

    fn counts(&self) -> PairCounts {
        let with_a_finished_run = self.complete.iter().filter(|pair| !(pair.arm_diverged && pair.baseline_diverged));
        PairCounts { complete: self.complete.len(), with_a_finished_run: with_a_finished_run.count() }
    }

    fn decision_p_value(&self, settings: &Settings) -> Result<f64, StatisticsError> {
        if self.counts().with_a_finished_run < FEWEST_PAIRS {
            return Ok(1.0);
        }
        let interval = paired_interval(&self.differences(), settings.level)?;
        Ok(decision_p_value(&interval, settings.margin))
    }
}

fn pair_up(seeds: &[u64], arm: &ArmRuns, baseline: &ArmRuns, worst: f64) -> Paired {
    let value = |outcome: Outcome| match outcome {
        Outcome::Finished(value) => Some(value),
        Outcome::Diverged => Some(worst),
        Outcome::Missing => None,
    };
    let mut paired = Paired { complete: Vec::new(), incomplete: Vec::new() };
    for ((seed, ours), theirs) in seeds.iter().zip(&arm.outcomes).zip(&baseline.outcomes) {
        match (value(*ours), value(*theirs)) {
            (Some(arm), Some(baseline)) => paired.complete.push(Pair {
                seed: *seed,
                arm,
                baseline,
                difference: arm - baseline,
                arm_diverged: *ours == Outcome::Diverged,
                baseline_diverged: *theirs == Outcome::Diverged,
            }),
            (ours, theirs) => paired.incomplete.push(IncompletePair {
                seed: *seed,
                arm_missing: ours.is_none(),
                baseline_missing: theirs.is_none(),
            }),
        }
    }
    paired
}

fn summarise(
    [arm, baseline]: [&ArmRuns; 2],
    paired: Paired,
    level: f64,
    correction: Correction,
    worst: f64,
    settings: &Settings,
) -> Result<Comparison, StatisticsError> {
    let ours: Vec<f64> = paired.complete.iter().map(|pair| pair.arm).collect();
    let theirs: Vec<f64> = paired.complete.iter().map(|pair| pair.baseline).collect();
    let direction = settings.metric.direction;
    let any = !ours.is_empty();
    let differences = if any { differences(&ours, &theirs)? } else { Vec::new() };
    let interval = if ours.len() > 1 { Some(paired_interval(&differences, level)?) } else { None };
    let bootstrap = if ours.len() > 1 {
        let (resamples, seed) = (settings.resamples, settings.random_seed);
        Some(bootstrap_interval(&differences, level, resamples, seed)?)
    } else {
        None
    };
    let diverged = paired.complete.iter().any(|pair| pair.arm_diverged || pair.baseline_diverged);
    let advantages = differences.iter().map(|difference| direction.advantage(*difference));
    Ok(Comparison {
        verdict: decide(interval.as_ref(), paired.counts(), settings.margin, direction),
        metric: settings.metric.clone(),
        margin: settings.margin,
        arm: summarise_arm(arm, &ours, settings)?,
        baseline: summarise_arm(baseline, &theirs, settings)?,
        diverged_entered_as: diverged.then_some(worst),
        interval,
        correction,
        sign_flip: any.then(|| sign_flip(&differences, settings.random_seed)).transpose()?,
        bootstrap,
        probability_of_improvement: any.then(|| probability_of_improvement(&ours, &theirs, direction)).transpose()?,
        won: advantages.clone().filter(|advantage| *advantage > 0.0).count(),
        tied: advantages.clone().filter(|advantage| *advantage == 0.0).count(),
        lost: advantages.filter(|advantage| *advantage < 0.0).count(),
        pairs: paired.complete,
        incomplete: paired.incomplete,
    })
}

fn summarise_arm(runs: &ArmRuns, paired_values: &[f64], settings: &Settings) -> Result<ArmSummary, StatisticsError> {
    let count = |is: fn(&Outcome) -> bool| runs.outcomes.iter().filter(|outcome| is(outcome)).count();
    let direction = settings.metric.direction;
    let solve_rate = match settings.solved_at {
        Some(threshold) => solve_rate(&runs.outcomes, threshold, direction, settings.level)?,
        None => None,
    };
    Ok(ArmSummary {
        name: runs.name.clone(),
        finished: count(|outcome| matches!(outcome, Outcome::Finished(_))),
        diverged: count(|outcome| matches!(outcome, Outcome::Diverged)),
        missing: count(|outcome| matches!(outcome, Outcome::Missing)),
        description: (!paired_values.is_empty()).then(|| describe(paired_values)).transpose()?,
        solve_rate,
    })
}

/// `metric.worst`, or the worst finished value where that is worse.
fn worst_value<'a>(arms: impl Iterator<Item = &'a ArmRuns>, metric: &Metric) -> f64 {
    let finished = arms.flat_map(|runs| &runs.outcomes).filter_map(|outcome| match outcome {
        Outcome::Finished(value) => Some(*value),
        Outcome::Diverged | Outcome::Missing => None,
    });
    finished.fold(metric.worst, |worst, value| metric.direction.worse(worst, value))
}

fn check_settings(settings: &Settings) -> Result<(), StatisticsError> {
    crate::error::check_level(settings.level)?;
    crate::error::check_values("worst value of the metric", &[settings.metric.worst], 1)?;
    let margin = settings.margin;
    if !(margin >= 0.0 && is_usable(margin)) {
        return Err(StatisticsError::OutOfRange { what: "margin", value: margin, must_be: "finite and at least 0" });
    }
    if settings.resamples == 0 {
        return Err(StatisticsError::OutOfRange {
            what: "number of bootstrap resamples",
            value: 0.0,
            must_be: "at least 1",
        });
    }
    Ok(())
}

fn check_seeds(seeds: &[u64]) -> Result<(), StatisticsError> {
    let mut seen = BTreeSet::new();
    match seeds.iter().find(|seed| !seen.insert(**seed)) {
        Some(seed) => Err(StatisticsError::SeedTwice { seed: *seed }),
        None => Ok(()),
    }
}

fn check_runs(seeds: &[u64], runs: &ArmRuns) -> Result<(), StatisticsError> {
    if seeds.len() != runs.outcomes.len() {
        return Err(StatisticsError::LengthsDiffer {
            first: "the list of seeds".into(),
            first_length: seeds.len(),
            second: format!("arm `{}`", runs.name),
            second_length: runs.outcomes.len(),
        });
    }
    for (seed, outcome) in seeds.iter().zip(&runs.outcomes) {
        if let Outcome::Finished(value) = outcome
            && !is_usable(*value)
        {
            return Err(StatisticsError::OutcomeNotFinite { arm: runs.name.clone(), seed: *seed, value: *value });
        }
    }
    Ok(())
}
