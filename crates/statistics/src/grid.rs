//! Several keys: the answer of a sweep for each value of the others, and whether two keys interact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::estimate::MeanEstimate;
use crate::outcome::Outcome;
use crate::pairs::{ArmScores, check_arm, check_seeds};
use crate::rules::Rules;
use crate::scale::MetricScale;
use crate::sweep::{Step, Sweep, sweep};

/// The values of the keys that are not swept, as they read: `{"model.layers": "2"}`.
pub type Level = BTreeMap<String, String>;

/// One arm of a grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub level: Level,
    pub step: Step,
}

/// The sweep at one level of the other keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSweep {
    pub level: Level,
    pub sweep: Sweep,
}

/// A sweep within each level, levels in the order in which they first come. Arms of different levels are not compared.
///
/// Each sweep errs in at most alpha; a map of many errs somewhere more often.
///
/// Errors: as [`sweep`], for any level.
pub fn sweep_levels(
    seeds: &[u64],
    cells: &[Cell],
    scale: &MetricScale,
    rules: &Rules,
) -> Result<Vec<LevelSweep>, StatisticsError> {
    let mut levels: Vec<(Level, Vec<Step>)> = Vec::new();
    for cell in cells {
        match levels.iter_mut().find(|(level, _)| *level == cell.level) {
            Some((_, steps)) => steps.push(cell.step.clone()),
            None => levels.push((cell.level.clone(), vec![cell.step.clone()])),
        }
    }
    let of = |(level, steps): (Level, Vec<Step>)| Ok(LevelSweep { sweep: sweep(seeds, &steps, scale, rules)?, level });
    levels.into_iter().map(of).collect()
}

/// Whether one change is worth more with another: the mean over pairs of (y11 − y10) − (y01 − y00), in the unit of the
/// metric, above 0 where the two help each other whichever way the metric improves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// Seeds of the pairs of which all four runs are there.
    pub seeds: Vec<u64>,
    /// One a seed.
    pub contrasts: Vec<f64>,
    /// `None`, here and below, with fewer than two.
    pub mean: Option<f64>,
    /// Student t interval of level [`Interaction::level`].
    pub interval: Option<[f64; 2]>,
    /// 1 − alpha.
    pub level: f64,
}

/// The interaction of two changes, `arms[first][second]` with 0 without and 1 with each.
///
/// Errors: as [`crate::pairs::pair_scores`].
pub fn interaction(
    seeds: &[u64],
    arms: [[&ArmScores; 2]; 2],
    scale: &MetricScale,
    rules: &Rules,
) -> Result<Interaction, StatisticsError> {
    scale.check()?;
    rules.check()?;
    check_seeds(seeds)?;
    for arm in arms.iter().flatten() {
        check_arm(seeds, arm, scale)?;
    }
    let mut found =
        Interaction { seeds: vec![], contrasts: vec![], mean: None, interval: None, level: 1.0 - rules.alpha };
    for (pair, seed) in seeds.iter().enumerate() {
        let value = |arm: &ArmScores| -> Option<f64> {
            let outcome: Outcome = arm.outcomes[pair];
            Some(scale.direction.advantage(scale.entered(outcome)?))
        };
        let [[neither, second], [first, both]] = arms.map(|row| row.map(value));
        if let (Some(neither), Some(second), Some(first), Some(both)) = (neither, second, first, both) {
            found.seeds.push(*seed);
            found.contrasts.push((both - first) - (second - neither));
        }
    }
    if found.contrasts.len() > 1 {
        let estimate = MeanEstimate::of(&found.contrasts, None)?;
        found.mean = Some(estimate.mean);
        found.interval = Some(estimate.interval(rules.alpha / 2.0));
    }
    Ok(found)
}
