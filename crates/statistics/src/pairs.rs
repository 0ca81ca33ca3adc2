//! Runs in pairs: what each enters with, how the pairs differ, and what pairing was worth.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::describe::{scaled_deviations, standard_deviation};
use crate::error::{StatisticsError, is_usable};
use crate::outcome::Outcome;
use crate::scale::MetricScale;

/// The runs of one arm, in the order of the seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmScores {
    /// As it reads in a sentence: "8 heads".
    pub name: String,
    pub outcomes: Vec<Outcome>,
    /// Only where all runs share one test set: the metric of every test sample (documents or disjoint blocks, each of
    /// the same weight), one list a run, empty for a run that has none. Empty where each pair has a test set of its own.
    pub sample_scores: Vec<Vec<f64>>,
}

impl ArmScores {
    /// An arm whose pairs have their own test sets.
    pub fn new(name: impl Into<String>, outcomes: Vec<Outcome>) -> Self {
        Self { name: name.into(), outcomes, sample_scores: Vec::new() }
    }

    /// The arm with only its first `pairs` runs: what a look at so many pairs sees.
    pub fn first(&self, pairs: usize) -> Self {
        let shorter = |length: usize| length.min(pairs);
        Self {
            name: self.name.clone(),
            outcomes: self.outcomes[..shorter(self.outcomes.len())].to_vec(),
            sample_scores: self.sample_scores[..shorter(self.sample_scores.len())].to_vec(),
        }
    }
}

/// A pair of which neither run is missing; values in the unit of the metric, as they enter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoredPair {
    pub seed: u64,
    pub arm: f64,
    pub baseline: f64,
    /// By how much the arm is better: above 0 whichever way the metric improves.
    pub advantage: f64,
    pub arm_diverged: bool,
    pub baseline_diverged: bool,
}

impl ScoredPair {
    /// Two diverged runs tie, and show nothing.
    pub fn has_a_finished_run(&self) -> bool {
        !(self.arm_diverged && self.baseline_diverged)
    }
}

/// How the samples of a shared test set differ: the part of the uncertainty that more pairs do not take away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SampleSpread {
    /// N, the number of test samples, at least 2.
    pub samples: usize,
    /// Standard deviation over the samples of the mean difference of each (over the pairs of which both runs finished).
    pub standard_deviation: f64,
}

/// Two arms, pair by pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedScores {
    /// The complete pairs, in the order of the seeds.
    pub pairs: Vec<ScoredPair>,
    /// Seeds of pairs of which a run is missing: left out, as they say nothing about the arm.
    pub incomplete: Vec<u64>,
    /// `None` unless a test set is shared.
    pub samples: Option<SampleSpread>,
}

impl PairedScores {
    pub fn advantages(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.advantage).collect()
    }

    /// Values of arm and baseline.
    pub fn values(&self) -> [Vec<f64>; 2] {
        [self.pairs.iter().map(|pair| pair.arm).collect(), self.pairs.iter().map(|pair| pair.baseline).collect()]
    }

    /// How many of the complete pairs have a run that finished.
    pub fn with_a_finished_run(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.has_a_finished_run()).count()
    }

    /// Pearson's correlation of the two sides, −1 to 1: pairing divides the variance of the mean difference by about
    /// 1 − correlation. `None` with fewer than three pairs, or where a side does not vary.
    pub fn correlation(&self) -> Option<f64> {
        if self.pairs.len() < 3 {
            return None;
        }
        let [arm, baseline] = self.values().map(|values| scaled_deviations(&values));
        if arm.0 == 0.0 || baseline.0 == 0.0 {
            return None;
        }
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let norms = (dot(&arm.1, &arm.1) * dot(&baseline.1, &baseline.1)).sqrt();
        Some((dot(&arm.1, &baseline.1) / norms).clamp(-1.0, 1.0))
    }
}

/// Pairs the runs of two arms; outcome i of both belongs to seed i.
///
/// Errors: a seed twice; lengths or numbers of samples that differ; a finished run whose value is not finite, or better than
/// the metric allows.
pub fn pair_scores(
    seeds: &[u64],
    arm: &ArmScores,
    baseline: &ArmScores,
    scale: &MetricScale,
) -> Result<PairedScores, StatisticsError> {
    check_seeds(seeds)?;
    check_arm(seeds, arm, scale)?;
    check_arm(seeds, baseline, scale)?;
    let mut paired = PairedScores { pairs: Vec::new(), incomplete: Vec::new(), samples: None };
    for ((seed, ours), theirs) in seeds.iter().zip(&arm.outcomes).zip(&baseline.outcomes) {
        let (Some(arm), Some(baseline)) = (scale.entered(*ours), scale.entered(*theirs)) else {
            paired.incomplete.push(*seed);
            continue;
        };
        paired.pairs.push(ScoredPair {
            seed: *seed,
            arm,
            baseline,
            advantage: scale.direction.advantage(arm - baseline),
            arm_diverged: *ours == Outcome::Diverged,
            baseline_diverged: *theirs == Outcome::Diverged,
        });
    }
    paired.samples = sample_spread(arm, baseline)?;
    Ok(paired)
}

/// Errors: a seed twice, whose runs would count as if they were independent.
pub(crate) fn check_seeds(seeds: &[u64]) -> Result<(), StatisticsError> {
    let mut seen = BTreeSet::new();
    match seeds.iter().find(|seed| !seen.insert(**seed)) {
        Some(seed) => Err(StatisticsError::SeedTwice { seed: *seed }),
        None => Ok(()),
    }
}

/// Errors: not one outcome (and, where there are any, one list of sample scores) a seed; a finished run whose value is not
/// finite, or better than the metric allows; sample scores that are not finite.
pub(crate) fn check_arm(seeds: &[u64], arm: &ArmScores, scale: &MetricScale) -> Result<(), StatisticsError> {
    let per_seed = |what: &str, length: usize| {
        if length == seeds.len() {
            return Ok(());
        }
        Err(StatisticsError::LengthsDiffer {
            first: "the list of seeds".into(),
            first_length: seeds.len(),
            second: format!("{what} `{}`", arm.name),
            second_length: length,
        })
    };
    per_seed("arm", arm.outcomes.len())?;
    if !arm.sample_scores.is_empty() {
        per_seed("the list of sample scores of arm", arm.sample_scores.len())?;
    }
    for (seed, outcome) in seeds.iter().zip(&arm.outcomes) {
        let Outcome::Finished(value) = *outcome else { continue };
        let (name, seed) = (arm.name.clone(), *seed);
        if !is_usable(value) {
            return Err(StatisticsError::OutcomeNotFinite { arm: name, seed, value });
        }
        if let Some(best) = scale.best.filter(|_| scale.is_beyond_best(value)) {
            return Err(StatisticsError::OutcomeBeyondBest { arm: name, seed, value, best });
        }
    }
    for scores in &arm.sample_scores {
        crate::error::check_values("sample scores", scores, 0)?;
    }
    Ok(())
}

/// The spread over samples of the mean difference of each, over the pairs of which both runs finished and have scores.
fn sample_spread(arm: &ArmScores, baseline: &ArmScores) -> Result<Option<SampleSpread>, StatisticsError> {
    let finished = |outcome: &Outcome| matches!(outcome, Outcome::Finished(_));
    let mut sums: Vec<f64> = Vec::new();
    let mut pairs = 0;
    let both = arm.sample_scores.iter().zip(&baseline.sample_scores);
    for ((ours, theirs), outcomes) in both.zip(arm.outcomes.iter().zip(&baseline.outcomes)) {
        if ours.is_empty() || theirs.is_empty() || !finished(outcomes.0) || !finished(outcomes.1) {
            continue;
        }
        if sums.is_empty() {
            sums = vec![0.0; ours.len()];
        }
        for (side, scores) in [(arm, ours), (baseline, theirs)] {
            if scores.len() != sums.len() {
                return Err(StatisticsError::LengthsDiffer {
                    first: "the test set".into(),
                    first_length: sums.len(),
                    second: format!("a run of arm `{}`", side.name),
                    second_length: scores.len(),
                });
            }
        }
        for (sum, (a, b)) in sums.iter_mut().zip(ours.iter().zip(theirs)) {
            *sum += a - b;
        }
        pairs += 1;
    }
    if sums.len() < 2 {
        return Ok(None);
    }
    let means: Vec<f64> = sums.iter().map(|sum| sum / f64::from(pairs)).collect();
    Ok(Some(SampleSpread { samples: means.len(), standard_deviation: standard_deviation(&means)? }))
}
