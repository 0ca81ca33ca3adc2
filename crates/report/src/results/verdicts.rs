//! The verdicts: each arm against the baseline, over all pairs and in each repetition.

use runs::Experiment;
use serde::{Deserialize, Serialize};

use super::{ArmResult, ResultsError, arms::outcome};
use crate::deciding;
use statistics::{
    comparison::{ArmRuns, Comparison, Settings, compare},
    interval::PairedInterval,
    verdict::Verdict,
};

/// Verdicts of an experiment that is repeated on other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetitions {
    /// How often each verdict came out, over all repetitions and arms.
    pub better: usize,
    pub worse: usize,
    pub equivalent: usize,
    pub undecided: usize,
    /// Each of them.
    pub each: Vec<Repetition>,
}

/// One part of the seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Its pairs.
    pub seeds: Vec<u64>,
    /// Name of the arm that is compared with the baseline.
    pub arm: String,
    /// The deciding interval of arm − baseline; `None` with fewer than two complete pairs.
    pub interval: Option<PairedInterval>,
    pub verdict: Verdict,
    pub sentence: String,
}

pub(super) struct Verdicts {
    pub sentences: Vec<String>,
    pub comparisons: Vec<Comparison>,
    pub repetitions: Option<Repetitions>,
}

pub(super) fn verdicts(experiment: &Experiment, arms: &[ArmResult]) -> Result<Verdicts, ResultsError> {
    let comparisons = compare_over(experiment, arms, &experiment.seeds)?;
    let sentences = sentences(experiment, arms, &comparisons);
    let mut each = vec![];
    if experiment.repetitions > 1 {
        for seeds in experiment.repetition_seeds() {
            let comparisons = compare_over(experiment, arms, seeds)?;
            let sentences = self::sentences(experiment, arms, &comparisons);
            let others = arms.iter().filter(|arm| arm.name != experiment.baseline);
            for ((comparison, sentence), arm) in comparisons.into_iter().zip(sentences).zip(others) {
                let (seeds, arm) = (seeds.to_vec(), arm.name.clone());
                let (interval, verdict) = (comparison.interval, comparison.verdict);
                each.push(Repetition { seeds, arm, interval, verdict, sentence });
            }
        }
    }
    let count = |is: fn(&Verdict) -> bool| each.iter().filter(|repetition| is(&repetition.verdict)).count();
    let repetitions = (!each.is_empty()).then(|| Repetitions {
        better: count(|verdict| matches!(verdict, Verdict::Better)),
        worse: count(|verdict| matches!(verdict, Verdict::Worse)),
        equivalent: count(|verdict| matches!(verdict, Verdict::Equivalent)),
        undecided: count(|verdict| matches!(verdict, Verdict::Undecided { .. })),
        each: each.clone(),
    });
    Ok(Verdicts { sentences, comparisons, repetitions })
}

/// Every arm but the baseline against it, over some of the pairs.
fn compare_over(experiment: &Experiment, arms: &[ArmResult], seeds: &[u64]) -> Result<Vec<Comparison>, ResultsError> {
    let runs = |arm: &ArmResult| {
        let of_seed = |seed: &u64| arm.runs.iter().find(|run| run.pair == *seed);
        let outcomes = seeds.iter().filter_map(of_seed).map(outcome).collect();
        ArmRuns { name: arm.label.clone(), outcomes }
    };
    let (baseline, others): (Vec<&ArmResult>, Vec<&ArmResult>) =
        arms.iter().partition(|arm| arm.name == experiment.baseline);
    let mut settings = Settings::new(deciding::metric(experiment), experiment.metric.margin);
    settings.solved_at = experiment.metric.threshold;
    let mut comparisons = vec![];
    for baseline in baseline {
        let others: Vec<ArmRuns> = others.iter().map(|arm| runs(arm)).collect();
        comparisons = compare(seeds, &runs(baseline), &others, &settings)?;
    }
    Ok(comparisons)
}

/// One sentence a comparison; where arms train for different numbers of steps, each label says its own.
fn sentences(experiment: &Experiment, arms: &[ArmResult], comparisons: &[Comparison]) -> Vec<String> {
    let others = arms.iter().filter(|arm| arm.name != experiment.baseline);
    let baseline = arms.iter().find(|arm| arm.name == experiment.baseline);
    let told = |(comparison, arm): (&Comparison, &ArmResult)| match baseline {
        Some(baseline) if baseline.steps != arm.steps => {
            let mut comparison = comparison.clone();
            comparison.arm.name += &format!(" (after {} steps)", arm.steps);
            comparison.baseline.name += &format!(" (after {} steps)", baseline.steps);
            let sentence = comparison.sentence(arm.steps);
            sentence.split_once(", ").map_or(sentence.clone(), |(_, rest)| rest.to_string())
        }
        _ => comparison.sentence(arm.steps),
    };
    comparisons.iter().zip(others).map(told).collect()
}
