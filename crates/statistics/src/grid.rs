//! Several keys: what is not swept, and whether two keys interact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::estimate::MeanEstimate;
use crate::outcome::Outcome;
use crate::pairs::{ArmScores, check_arm, check_seeds};
use crate::rules::Rules;
use crate::scale::MetricScale;

/// The values of the keys that are not swept, as they read: `{"model.layers": "2"}`.
pub type Level = BTreeMap<String, String>;

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
