//! Whether one arm reaches a threshold in fewer steps than another: said with the paired interval, or not at all.

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::estimate::MeanEstimate;
use crate::rules::{FEWEST_PAIRS, Rules};

/// Steps to a threshold of an arm against the baseline, pair by pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepsCompared {
    /// Pairs of which both runs ended.
    pub pairs: usize,
    /// Of them, those in which the arm, and in which the baseline, got there.
    pub arm_reached: usize,
    pub baseline_reached: usize,
    /// Arm − baseline, in optimiser steps: below 0, the arm was sooner. `None` unless both got there in every pair, and
    /// there are enough pairs: which runs get there is no accident.
    pub difference: Option<StepsDifference>,
}

/// The mean difference in steps with its Student t interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepsDifference {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
    /// 1 − alpha.
    pub level: f64,
    /// Whether the interval excludes 0, so that "sooner" or "later" may be said.
    pub differs: bool,
}

/// Compares first steps at the threshold. `first_steps` holds (arm, baseline) of each pair of which both runs ended, `None`
/// for a run that never got there. Steps are those logged, so a difference below their distance means nothing.
///
/// Errors: rules out of range.
pub fn compare_steps(
    first_steps: &[(Option<u64>, Option<u64>)],
    rules: &Rules,
) -> Result<StepsCompared, StatisticsError> {
    rules.check()?;
    let both = first_steps.iter().filter_map(|(arm, baseline)| arm.zip(*baseline));
    let differences: Vec<f64> = both.map(|(arm, baseline)| arm as f64 - baseline as f64).collect();
    let difference = if differences.len() == first_steps.len() && differences.len() >= FEWEST_PAIRS {
        let estimate = MeanEstimate::of(&differences, None)?;
        let [low, high] = estimate.interval(rules.difference_tail());
        let differs = low > 0.0 || high < 0.0;
        Some(StepsDifference { mean: estimate.mean, low, high, level: rules.difference_level(), differs })
    } else {
        None
    };
    Ok(StepsCompared {
        pairs: first_steps.len(),
        arm_reached: first_steps.iter().filter(|(arm, _)| arm.is_some()).count(),
        baseline_reached: first_steps.iter().filter(|(_, baseline)| baseline.is_some()).count(),
        difference,
    })
}
