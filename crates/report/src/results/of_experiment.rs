//! What an experiment asks, from its file: what is swept, what else differs, and what was fixed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use runs::{Arm, Experiment, ReadAt, differences};
use statistics::{
    ArmScores, StatisticsError,
    context::{Rates, Scope, Unit},
    grid::Level,
    looks::Looks,
    rules::MAX_FAILURE,
};

use super::{
    ArmResult,
    arms::{has_one_test_set, outcome, sample_scores},
    metric::DecidingMetric,
    question::{Contender, Question, Swept},
};
use crate::{deciding, reading::ExperimentRuns, text};

/// The deciding metric of an experiment.
pub(super) fn metric(experiment: &Experiment) -> DecidingMetric {
    let choice = &experiment.metric;
    DecidingMetric {
        name: choice.name.name(),
        key: choice.name.kind.key.into(),
        scale: deciding::scale(experiment),
        unit: choice.name.kind.unit.into(),
        axis: choice.name.kind.axis.into(),
        read: match choice.at {
            ReadAt::Final => "at the final step".into(),
            ReadAt::BestValidation => "at the step with the best validation".into(),
        },
        margin: choice.margin,
        threshold: choice.threshold,
        failure_difference: choice.failure_difference,
        max_failure: choice.max_failure.unwrap_or(MAX_FAILURE),
    }
}

/// What the runs are asked.
pub(super) fn question(runs: &ExperimentRuns, arms: &[ArmResult]) -> Result<Question, StatisticsError> {
    let experiment = &runs.experiment;
    let levels = levels(&runs.declared);
    let of = |((arm, declared), level): ((&ArmResult, &Arm), Level)| Contender {
        name: arm.name.clone(),
        scores: ArmScores {
            sample_scores: sample_scores(experiment, &runs.of_arm(&arm.name).collect::<Vec<_>>()),
            ..ArmScores::new(arm.label.clone(), arm.runs.iter().map(outcome).collect())
        },
        value: arm.sweep_value,
        condition: condition(declared, &level, experiment.sweep.as_deref()),
        level,
        steps: Some(arm.steps),
        first_steps: if experiment.metric.threshold.is_some() {
            arm.runs.iter().map(|run| run.first_step_at_threshold).collect()
        } else {
            vec![]
        },
    };
    // Pairs beyond those that were registered are exploratory: the looks are those that stood before the first run.
    let planned = registered(runs).filter(|planned| is_longer(&experiment.seeds, &planned.seeds));
    let planned = planned.as_ref().unwrap_or(experiment);
    let looks = match planned.looks.is_empty() {
        true => Looks::once(planned.seeds.len()),
        false => Looks::new(planned.looks.clone())?,
    };
    let lr = |arm: &Arm| arm.config.train.lr;
    let is_one_rate = experiment.arms.iter().all(|arm| lr(arm) == lr(&experiment.arms[0]));
    Ok(Question {
        metric: metric(experiment),
        looks,
        seeds: experiment.seeds.clone(),
        baseline: experiment.arms.iter().position(|arm| arm.name == experiment.baseline).unwrap_or_default(),
        arms: arms.iter().zip(&runs.declared.arms).zip(levels).map(of).collect(),
        sweep: experiment.sweep.as_deref().map(swept),
        scope: match (experiment.vary.is_empty(), has_one_test_set(experiment)) {
            (true, true) => Scope::OneTestSet { samples: experiment.arms[0].config.task.sets.test_examples as usize },
            (true, false) => Scope::OneInstance,
            (false, _) => Scope::Instances { instances: experiment.seeds.len() },
        },
        rates: match (&experiment.tuning, is_one_rate) {
            (Some(_), _) => Rates::Tuned,
            (None, true) => Rates::One,
            (None, false) => Rates::Unknown,
        },
    })
}

/// The experiment as it stood before the first run ended.
fn registered(runs: &ExperimentRuns) -> Option<Experiment> {
    let registration = runs.registration.as_ref().ok()?.as_ref()?;
    let before = registration.amendments.iter().take_while(|amendment| amendment.ended == 0).last();
    match before {
        Some(amendment) => Experiment::parse(&amendment.content, Path::new(runs::registration::FILE)).ok(),
        None => registration.experiment().ok(),
    }
}

/// Whether some seeds go on after others.
fn is_longer(seeds: &[u64], planned: &[u64]) -> bool {
    seeds.len() > planned.len() && seeds.starts_with(planned)
}

/// What a key counts.
fn swept(key: &str) -> Swept {
    let unit = |one: &str, many: &str| Unit::new(one, many);
    let (axis, unit) = match key {
        "model.heads" => ("attention heads".into(), unit("head", "heads")),
        "model.kv_heads" => ("key/value heads".into(), unit("key/value head", "key/value heads")),
        "model.layers" => ("layers".into(), unit("layer", "layers")),
        "model.d_model" => ("width of the model".into(), unit("dimension of width", "dimensions of width")),
        "model.d_head" => ("width of a head".into(), unit("dimension a head", "dimensions a head")),
        "train.steps" => ("optimiser steps".into(), unit("step", "steps")),
        _ => (key.to_string(), text::unit(&text::key_name(key).replace('_', " "))),
    };
    Swept { key: key.into(), axis, unit }
}

/// What is held fixed: the level, and the number of layers, on which any number of heads depends.
fn condition(arm: &Arm, level: &Level, sweep: Option<&str>) -> Option<String> {
    let mut all = level.clone();
    const LAYERS: &str = "model.layers";
    if sweep != Some(LAYERS) {
        all.entry(LAYERS.into()).or_insert_with(|| arm.config.model.layers.to_string());
    }
    // Layers first.
    let (layers, others): (Vec<_>, Vec<_>) = all.iter().partition(|(key, _)| *key == LAYERS);
    text::levels(layers.into_iter().chain(others))
}

/// Of every arm its values at the keys in which arms differ that have the same number at the sweep: the fewest keys that
/// tell them apart. What follows from these and the swept key, such as a chosen width, is none of them.
fn levels(experiment: &Experiment) -> Vec<Level> {
    let arms = &experiment.arms;
    let mut levels: Vec<Level> = vec![Level::new(); arms.len()];
    let Some(sweep) = experiment.sweep.as_deref() else { return levels };
    let Some(first) = arms.first() else { return levels };
    let number: Vec<Option<f64>> = arms.iter().map(|arm| runs::experiment::number_at(&arm.config, sweep)).collect();
    // The value of every key in which any arm differs from the first, by arm.
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, arm) in arms.iter().enumerate() {
        for difference in differences::between(&arm.config, &first.config) {
            let is_name = matches!(difference.key.as_str(), "name" | "seed") || difference.key == sweep;
            if !is_name {
                let of_key = values.entry(difference.key).or_insert_with(|| vec![difference.other.clone(); arms.len()]);
                of_key[place] = difference.value;
            }
        }
    }
    let distinct = |of_key: &[String]| of_key.iter().collect::<BTreeSet<_>>().len();
    let mut keys: Vec<(String, Vec<String>)> = values.into_iter().collect();
    keys.sort_by_key(|(_, of_key)| distinct(of_key));
    for (key, of_key) in keys {
        let tells_apart =
            |a: usize, b: usize| number[a] == number[b] && levels[a] == levels[b] && of_key[a] != of_key[b];
        let is_needed = (0..arms.len()).any(|a| (0..a).any(|b| tells_apart(a, b)));
        if is_needed {
            levels.iter_mut().zip(of_key).for_each(|(level, value)| {
                level.insert(key.clone(), value);
            });
        }
    }
    levels
}
