//! Pairs unlike the others, and how frequent they may be for all that was seen of them.

use serde::{Deserialize, Serialize};

use crate::describe::median;
use crate::distributions::beta_quantile;
use crate::error::StatisticsError;
use crate::pairs::PairedScores;
use crate::rules::Rules;
use crate::search::first_that;

/// How many pairs failed, and how many of all pairs may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedPairs {
    /// Seeds of the failed pairs.
    pub seeds: Vec<u64>,
    /// Pairs judged: those of which at least one run finished.
    pub pairs: usize,
    /// The Clopper-Pearson upper bound of the probability that a pair fails, at [`FailedPairs::level`]; 1 without pairs.
    pub bound: f64,
    /// 1 − alpha: one-sided.
    pub level: f64,
}

/// Finds the failed pairs: exactly one of the two runs diverged, or the difference lies further than
/// [`Rules::failure_distance`] from the median difference. A large difference in all pairs is no failure; a pair unlike
/// the others is.
///
/// Errors: none but numbers that are not finite, which [`crate::pairs::pair_scores`] does not let through.
pub fn failed_pairs(paired: &PairedScores, rules: &Rules) -> Result<FailedPairs, StatisticsError> {
    let judged: Vec<_> = paired.pairs.iter().filter(|pair| pair.has_a_finished_run()).collect();
    let level = 1.0 - rules.alpha;
    if judged.is_empty() {
        return Ok(FailedPairs { seeds: Vec::new(), pairs: 0, bound: 1.0, level });
    }
    let advantages: Vec<f64> = judged.iter().map(|pair| pair.advantage).collect();
    let centre = median(&advantages)?;
    let distance = rules.failure_distance();
    let is_far = |advantage: f64| distance.is_some_and(|distance| (advantage - centre).abs() > distance);
    let failed = judged.iter().filter(|pair| pair.arm_diverged || pair.baseline_diverged || is_far(pair.advantage));
    let seeds: Vec<u64> = failed.map(|pair| pair.seed).collect();
    let bound = clopper_pearson_upper(seeds.len(), judged.len(), rules.alpha)?;
    Ok(FailedPairs { seeds, pairs: judged.len(), bound, level })
}

/// The one-sided upper bound of a rate of which `events` of `trials` were seen: the rate at which no more would be seen
/// with probability `alpha` (Clopper and Pearson 1934; `scipy.stats.beta.ppf(1 - alpha, events + 1, trials - events)`).
///
/// Errors: no trials, more events than trials, an alpha outside (0, 1).
pub fn clopper_pearson_upper(events: usize, trials: usize, alpha: f64) -> Result<f64, StatisticsError> {
    crate::error::check_level(alpha)?;
    if trials == 0 {
        return Err(StatisticsError::TooFew { what: "Clopper-Pearson bound", needed: 1, got: 0 });
    }
    if events > trials {
        let (successes, trials) = (events as u64, trials as u64);
        return Err(StatisticsError::MoreSuccessesThanTrials { successes, trials });
    }
    Ok(match trials - events {
        0 => 1.0,
        // The same in closed form.
        all if all == trials => 1.0 - alpha.powf(1.0 / trials as f64),
        rest => beta_quantile(1.0 - alpha, (events + 1) as f64, rest as f64),
    })
}

/// The fewest pairs, `failed` of them failed, whose bound is at most `max_failure`; `None` beyond `most`.
pub fn pairs_for_bound(failed: usize, max_failure: f64, alpha: f64, most: usize) -> Option<usize> {
    let is_enough = |pairs: usize| clopper_pearson_upper(failed, pairs, alpha).is_ok_and(|bound| bound <= max_failure);
    first_that(failed.max(1), most, is_enough)
}
