//! Whether one arm solves the task more often than the other: a question of its own, beside the verdict.

use serde::{Deserialize, Serialize};

use crate::distributions::fair_coin_at_most;
use crate::error::{StatisticsError, check_values};
use crate::estimate::MeanEstimate;
use crate::outcome::Direction;
use crate::pairs::{PairedScores, ScoredPair};
use crate::rules::Rules;

/// Who solved the task in how many of the complete pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Solving {
    /// A run at this value or better solved the task.
    pub threshold: f64,
    pub pairs: usize,
    pub arm_solved: usize,
    pub baseline_solved: usize,
    /// Discordant pairs: only the arm solved the task.
    pub only_arm: usize,
    /// Discordant pairs: only the baseline did.
    pub only_baseline: usize,
    /// Two-sided exact McNemar p of "both solve it as often"; 1 without discordant pairs, never 0.
    pub p_value: f64,
    /// Whether p is at most alpha.
    pub decided: bool,
    /// How the arms differ where both solved the task: descriptive, as which pairs those are depends on the arms.
    pub where_both_solved: Option<BothSolved>,
}

/// The advantage of the arm over the pairs that both solved, in the unit of the metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BothSolved {
    pub pairs: usize,
    pub mean: f64,
    /// Student t interval of level [`BothSolved::level`].
    pub low: f64,
    pub high: f64,
    pub level: f64,
}

/// Counts who solved the task. A diverged run did not, whatever its penalty.
///
/// Errors: a threshold that is not finite.
pub fn solving(
    paired: &PairedScores,
    threshold: f64,
    direction: Direction,
    rules: &Rules,
) -> Result<Solving, StatisticsError> {
    check_values("threshold of solving", &[threshold], 1)?;
    let arm = |pair: &ScoredPair| !pair.arm_diverged && direction.reaches(pair.arm, threshold);
    let baseline = |pair: &ScoredPair| !pair.baseline_diverged && direction.reaches(pair.baseline, threshold);
    let count = |is: &dyn Fn(&ScoredPair) -> bool| paired.pairs.iter().filter(|pair| is(pair)).count();
    let only_arm = count(&|pair| arm(pair) && !baseline(pair));
    let only_baseline = count(&|pair| baseline(pair) && !arm(pair));
    let both = paired.pairs.iter().filter(|pair| arm(pair) && baseline(pair));
    let both: Vec<f64> = both.map(|pair| pair.advantage).collect();
    let p_value = mcnemar(only_arm as u64, only_baseline as u64);
    Ok(Solving {
        threshold,
        pairs: paired.pairs.len(),
        arm_solved: only_arm + both.len(),
        baseline_solved: only_baseline + both.len(),
        only_arm,
        only_baseline,
        p_value,
        decided: p_value <= rules.alpha,
        where_both_solved: where_both_solved(&both, rules)?,
    })
}

/// The exact McNemar test (`statsmodels.stats.contingency_tables.mcnemar(exact=True)`): were the arms alike, a discordant
/// pair would fall to either with probability a half. Two-sided p, in (0, 1].
pub fn mcnemar(only_arm: u64, only_baseline: u64) -> f64 {
    let fewer = fair_coin_at_most(only_arm.min(only_baseline), only_arm + only_baseline);
    (2.0 * fewer).clamp(f64::MIN_POSITIVE, 1.0)
}

fn where_both_solved(advantages: &[f64], rules: &Rules) -> Result<Option<BothSolved>, StatisticsError> {
    if advantages.len() < 2 {
        return Ok(None);
    }
    let estimate = MeanEstimate::of(advantages, None)?;
    let [low, high] = estimate.interval(rules.alpha / 2.0);
    Ok(Some(BothSolved { pairs: estimate.pairs, mean: estimate.mean, low, high, level: 1.0 - rules.alpha }))
}
