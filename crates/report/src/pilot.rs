//! What the pairs of a pilot say about how many an experiment will need.

use runs::experiment::number_at;
use serde::{Deserialize, Serialize};
use statistics::{
    ArmScores, MetricScale, Outcome, Rules,
    pairs::pair_scores,
    plan::{Plan, plan},
    rules::MAX_FAILURE,
};

use crate::{deciding, reading::ExperimentRuns, results::ResultsError};

/// What one arm against another will need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmPlan {
    /// As the arm reads in a sentence.
    pub arm: String,
    /// The arm that it is held against.
    pub against: String,
    /// The numbers; `None` with fewer than two complete pairs.
    pub plan: Option<Plan>,
}

/// Plans from a pilot, for an experiment of so many looks: every arm against the baseline, or, in a sweep of one key, against
/// the arm that was best in the pilot, which is what a number must keep up with to be enough.
///
/// # Errors
/// A statistic that can't be computed.
pub fn plans(pilot: &ExperimentRuns, looks: usize) -> Result<Vec<ArmPlan>, ResultsError> {
    let experiment = &pilot.experiment;
    let scale = deciding::scale(experiment);
    let outcome = |arm: &str, pair: u64| {
        let record = pilot.of_arm(arm).find(|record| record.plan.pair == pair);
        match record.and_then(|record| record.summary()) {
            None => Outcome::Missing,
            Some(summary) => deciding::value(summary, &experiment.metric).map_or(Outcome::Diverged, Outcome::Finished),
        }
    };
    let scores = |arm: &runs::Arm| {
        let outcomes = experiment.seeds.iter().map(|pair| outcome(&arm.name, *pair)).collect();
        ArmScores::new(arm.label.clone(), outcomes)
    };
    let arms: Vec<ArmScores> = experiment.arms.iter().map(scores).collect();
    let against = best_of_a_sweep(pilot, &arms, &scale)
        .or_else(|| experiment.arms.iter().position(|arm| arm.name == experiment.baseline))
        .unwrap_or_default();
    let rules = Rules {
        max_failure: experiment.metric.max_failure.unwrap_or(MAX_FAILURE),
        failure_difference: experiment.metric.failure_difference,
        ..Rules::new(experiment.metric.margin).for_arms(arms.len())
    };
    let mut plans = vec![];
    for (_, arm) in arms.iter().enumerate().filter(|(place, _)| *place != against) {
        let paired = pair_scores(&experiment.seeds, arm, &arms[against], &scale)?;
        let plan = if paired.pairs.len() < 2 { None } else { Some(plan(&paired, &rules, looks)?) };
        plans.push(ArmPlan { arm: arm.name.clone(), against: arms[against].name.clone(), plan });
    }
    Ok(plans)
}

/// The arm with the best mean, the smallest of equals, where each has a number of its own.
fn best_of_a_sweep(pilot: &ExperimentRuns, arms: &[ArmScores], scale: &MetricScale) -> Option<usize> {
    let key = pilot.experiment.sweep.as_deref()?;
    let mut values: Vec<f64> =
        pilot.experiment.arms.iter().map(|arm| number_at(&arm.config, key)).collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    if values.windows(2).any(|two| two[0] == two[1]) {
        return None;
    }
    let mean = |arm: &ArmScores| {
        let entered: Vec<f64> = arm.outcomes.iter().filter_map(|outcome| scale.entered(*outcome)).collect();
        let mean = entered.iter().sum::<f64>() / entered.len().max(1) as f64;
        (!entered.is_empty()).then(|| scale.direction.advantage(mean))
    };
    let means = arms.iter().enumerate().filter_map(|(place, arm)| Some((place, mean(arm)?)));
    // The first of equals.
    means.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place)
}
