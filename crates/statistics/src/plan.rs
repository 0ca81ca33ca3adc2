//! How many pairs which statement will need, from the pairs of a pilot.

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::estimate::MeanEstimate;
use crate::looks::Looks;
use crate::pairs::PairedScores;
use crate::power::{Noise, Target, pairs_needed};
use crate::rules::Rules;

/// True differences, in margins, for which a plan names the pairs beside the one the pilot has seen.
const DIFFERENCES: [f64; 4] = [1.5, 2.0, 3.0, 5.0];

/// What two arms will need, from a pilot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Pairs of the pilot.
    pub pilot_pairs: usize,
    /// Mean advantage of the arm in the pilot, in the unit of the metric.
    pub mean: f64,
    pub standard_deviation: f64,
    /// The standard deviation planned with: its upper limit of level 80 %.
    pub planned_deviation: f64,
    pub rows: Vec<PlanRow>,
}

/// The pairs that one statement needs if the truth is so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    pub target: Target,
    /// The true difference supposed, in the unit of the metric.
    pub difference: f64,
    /// Whether that is the difference that the pilot has seen.
    pub seen: bool,
    /// Pairs with which the statement comes with a chance of 90 %; `None` beyond 10,000.
    pub pairs: Option<usize>,
}

/// Plans from the pairs of a pilot (at least two), whose seeds are not used again. `looks` are those planned: each costs
/// some pairs.
///
/// Errors: fewer than two pairs, rules out of range.
pub fn plan(pilot: &PairedScores, rules: &Rules, looks: usize) -> Result<Plan, StatisticsError> {
    rules.check()?;
    let rules = rules.for_looks(looks);
    let estimate = MeanEstimate::of(&pilot.advantages(), pilot.samples)?;
    let noise = Noise::cautious(&estimate);
    let row = |target, difference, seen| {
        let pairs = pairs_needed(target, difference, noise, 0, &rules);
        PlanRow { target, difference, seen, pairs }
    };
    let is_beyond = estimate.mean.abs() > rules.margin;
    let mut rows = vec![
        row(if is_beyond { Target::Better } else { Target::Equivalent }, estimate.mean.abs(), true),
        row(Target::Equivalent, 0.0, false),
    ];
    if rules.margin > 0.0 {
        rows.extend(DIFFERENCES.map(|margins| row(Target::Better, margins * rules.margin, false)));
    }
    Ok(Plan {
        pilot_pairs: estimate.pairs,
        mean: estimate.mean,
        standard_deviation: estimate.standard_deviation,
        planned_deviation: noise.standard_deviation,
        rows,
    })
}

/// Looks for a plan: about a third, a half and three quarters of the pairs, and all; fewer where they would come close.
pub fn looks_for(pairs: usize) -> Result<Looks, StatisticsError> {
    let fewest = crate::rules::FEWEST_PAIRS;
    let mut looks: Vec<usize> = [3, 5, 8].iter().map(|tenths| (pairs * tenths).div_ceil(10).max(fewest)).collect();
    looks.push(pairs.max(fewest));
    looks.dedup();
    Looks::new(looks)
}
