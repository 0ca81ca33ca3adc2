//! How one run ended, what its metric means, and what can be said of outcomes without pairing them: probability of
//! improvement, solve rate, steps to a threshold.

use serde::{Deserialize, Serialize};

use crate::error::{StatisticsError, check_values, is_usable};
use crate::interval::{WilsonInterval, wilson_interval};

/// How one run ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The run ended; the primary metric at its final step.
    Finished(f64),
    /// The loss left the finite numbers: a failure of the arm, and counted as one.
    Diverged,
    /// Killed, or not run: says nothing about the arm.
    Missing,
}

/// Which way a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Such as an accuracy.
    HigherIsBetter,
    /// Such as a loss.
    LowerIsBetter,
}

impl Direction {
    /// `difference` (arm − baseline) as an advantage of the arm: above 0 is better.
    pub fn advantage(self, difference: f64) -> f64 {
        match self {
            Self::HigherIsBetter => difference,
            Self::LowerIsBetter => -difference,
        }
    }

    /// Whether `value` is at `threshold` or on its better side.
    pub fn reaches(self, value: f64, threshold: f64) -> bool {
        self.advantage(value) >= self.advantage(threshold)
    }

    /// The worse of two values.
    pub fn worse(self, a: f64, b: f64) -> f64 {
        if self.reaches(a, b) { b } else { a }
    }
}

/// The chance that a run of `arm` beats a run of `baseline`, each drawn at random, ties counting half: in [0, 1], 0.5
/// for arms alike. Agarwal et al. 2021 (arXiv 2108.13264), section 4.3; all runs against all, pairing unused.
///
/// Errors: no values on a side, or one that is not finite.
pub fn probability_of_improvement(arm: &[f64], baseline: &[f64], direction: Direction) -> Result<f64, StatisticsError> {
    check_values("arm", arm, 1)?;
    check_values("baseline", baseline, 1)?;
    let mut halves = 0_u64;
    for value in arm {
        for other in baseline {
            let advantage = direction.advantage(value - other);
            halves += u64::from(advantage > 0.0) + u64::from(advantage >= 0.0);
        }
    }
    Ok(halves as f64 / (2 * arm.len() * baseline.len()) as f64)
}

/// The share of runs that ended at `threshold` or better, with its Wilson interval. A diverged run did not solve the
/// task; a missing one is no trial. `None` if all runs are missing.
///
/// Errors: a threshold that is not finite, a level outside (0, 1).
pub fn solve_rate(
    outcomes: &[Outcome],
    threshold: f64,
    direction: Direction,
    level: f64,
) -> Result<Option<WilsonInterval>, StatisticsError> {
    check_values("threshold of the solve rate", &[threshold], 1)?;
    let (mut solved, mut trials) = (0, 0);
    for outcome in outcomes {
        let (is_solved, is_trial) = match outcome {
            Outcome::Finished(value) => (direction.reaches(*value, threshold), true),
            Outcome::Diverged => (false, true),
            Outcome::Missing => (false, false),
        };
        solved += u64::from(is_solved);
        trials += u64::from(is_trial);
    }
    if trials == 0 {
        return Ok(None);
    }
    wilson_interval(solved, trials, level).map(Some)
}

/// How soon the runs of an arm reached a threshold, in optimiser steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepsToThreshold {
    pub threshold: f64,
    /// One entry a run: the first logged step at the threshold or better; `None` if it never got there.
    pub first_step: Vec<Option<u64>>,
    pub reached: usize,
    pub never_reached: usize,
    /// The median over all runs, those that never got there counting as later than any step: `None` if that is
    /// where the median falls, or if there are no runs.
    pub median: Option<f64>,
}

/// The first logged step at which each run's metric is at `threshold` or better. `curves` holds one curve a run,
/// (step, value) in the order logged. A later fall below does not count against a run, nor does a step between two
/// logged ones count for it; a value that is not a number does not reach. A run that diverged has its curve up to there.
///
/// Errors: a threshold that is not finite, steps that do not rise.
pub fn steps_to_threshold(
    curves: &[&[(u64, f64)]],
    threshold: f64,
    direction: Direction,
) -> Result<StepsToThreshold, StatisticsError> {
    check_values("threshold", &[threshold], 1)?;
    let mut first_step = Vec::with_capacity(curves.len());
    for curve in curves {
        if let Some(pair) = curve.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(StatisticsError::StepsNotRising { previous: pair[0].0, step: pair[1].0 });
        }
        let reaches = |(_, value): &&(u64, f64)| is_usable(*value) && direction.reaches(*value, threshold);
        first_step.push(curve.iter().find(reaches).map(|(step, _)| *step));
    }
    let mut reached: Vec<u64> = first_step.iter().flatten().copied().collect();
    reached.sort_unstable();
    Ok(StepsToThreshold {
        threshold,
        reached: reached.len(),
        never_reached: first_step.len() - reached.len(),
        median: censored_median(&reached, first_step.len()),
        first_step,
    })
}

/// The median of `runs` values of which the smallest are `reached`, sorted, and the rest beyond all of them.
fn censored_median(reached: &[u64], runs: usize) -> Option<f64> {
    let upper = *reached.get(runs / 2)?;
    let lower = if runs % 2 == 1 { upper } else { reached[runs / 2 - 1] };
    Some((lower as f64 + upper as f64) / 2.0)
}
