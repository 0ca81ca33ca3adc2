//! Whether a decision is due for an experiment, and whether it has come.

use runs::experiment::number_at;
use serde::{Deserialize, Serialize};
use statistics::{
    ArmScores, Beside, MetricScale, Outcome, Rules, StatisticsError, compare_two_arms,
    looks::{Looks, complete_in_order},
    rules::MAX_FAILURE,
    sweep::{Step, sweep},
};

use crate::{deciding, reading::ExperimentRuns, results::ResultsError};

/// Whether a decision is due, and whether it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Not due before `pairs` pairs are complete in every arm, in their order.
    NotBefore { pairs: usize, complete: usize },
    /// A look was taken and has left the question open. With `next` the experiment goes on to that many pairs; without, it
    /// has ended.
    Open { pairs: usize, next: Option<usize> },
    /// Decided, over the first `pairs` pairs: no further ones are needed.
    Decided { pairs: usize },
}

/// Whether a decision is due, and whether it has come: whoever runs an experiment may stop there.
///
/// # Errors
/// A statistic that can't be computed.
pub fn decision(runs: &ExperimentRuns) -> Result<Decision, ResultsError> {
    let experiment = &runs.experiment;
    let metric = deciding::metric(experiment);
    let scale = MetricScale { name: metric.name, direction: metric.direction, best: None, penalty: metric.worst };
    let outcome = |arm: &str, pair: u64| {
        let record = runs.of_arm(arm).find(|record| record.plan.pair == pair);
        match record.and_then(|record| record.summary()) {
            None => Outcome::Missing,
            Some(summary) => {
                deciding::final_value(summary, experiment.metric.name).map_or(Outcome::Diverged, Outcome::Finished)
            }
        }
    };
    let scores = |arm: &runs::Arm| {
        let outcomes = experiment.seeds.iter().map(|pair| outcome(&arm.name, *pair)).collect();
        ArmScores::new(arm.label.clone(), outcomes)
    };
    let arms: Vec<ArmScores> = experiment.arms.iter().map(scores).collect();
    let baseline = experiment.arms.iter().position(|arm| arm.name == experiment.baseline).unwrap_or_default();
    let value = |arm: &runs::Arm| number_at(&arm.config, experiment.sweep.as_deref()?);
    let values: Option<Vec<f64>> = experiment.arms.iter().map(value).collect();
    let rules = Rules {
        max_failure: experiment.metric.max_failure.unwrap_or(MAX_FAILURE),
        failure_difference: experiment.metric.failure_difference,
        ..Rules::new(experiment.metric.margin)
    };
    let looks = match experiment.looks.is_empty() {
        true => Looks::once(experiment.seeds.len()),
        false => Looks::new(experiment.looks.clone())?,
    };
    let outcomes: Vec<&[Outcome]> = arms.iter().map(|arm| arm.outcomes.as_slice()).collect();
    let complete = complete_in_order(&outcomes);
    let is_decided = |pairs: usize, rules: &Rules| -> Result<bool, StatisticsError> {
        let seeds = &experiment.seeds[..pairs];
        let first: Vec<ArmScores> = arms.iter().map(|arm| arm.first(pairs)).collect();
        if let Some(values) = &values {
            let steps = values.iter().zip(&first).map(|(value, scores)| Step { value: *value, scores: scores.clone() });
            return Ok(sweep(seeds, &steps.collect::<Vec<_>>(), &scale, rules)?.answer.is_decided());
        }
        let rules = rules.for_arms(arms.len());
        for (_, arm) in first.iter().enumerate().filter(|(place, _)| *place != baseline) {
            let found = compare_two_arms(seeds, arm, &first[baseline], &scale, &rules, &Beside::default())?;
            if !found.statement.is_decided() {
                return Ok(false);
            }
        }
        Ok(true)
    };
    let looked = looks.walk(complete, &rules, is_decided, |decided| *decided)?;
    Ok(match looked.taken {
        None => Decision::NotBefore { pairs: looks.next_after(0).unwrap_or_default(), complete },
        Some(taken) if taken.decided => Decision::Decided { pairs: taken.pairs },
        Some(taken) => Decision::Open { pairs: taken.pairs, next: looked.next },
    })
}
