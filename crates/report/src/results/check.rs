//! Whether the answer holds where the arms train longer: a curve that has flattened does not show it, as a schedule to zero
//! flattens every curve.

use runs::RunRecord;
use serde::{Deserialize, Serialize};
use statistics::{StatisticsError, describe::mean_of_checked, sweep::SweepAnswer};

use super::question::{Findings, Question};
use crate::{
    deciding,
    reading::ExperimentRuns,
    text::{capital, counted, decimals, number_word},
};

/// A few pairs that trained longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// In one sentence: "the answer holds with twice the steps (3 pairs)".
    pub sentence: String,
    /// Whether it holds; `None` where there was no answer to check.
    pub holds: Option<bool>,
    /// So many times the steps.
    pub times: u64,
    /// Pairs of which every arm's longer run has ended.
    pub pairs: usize,
    /// Mean of each arm over these pairs, longer and as reported; arms in their order.
    pub longer: Vec<f64>,
    pub reported: Vec<f64>,
}

/// `None` without a check, before a decision, and before one of its pairs is complete. Few pairs prove nothing: means are
/// held against the margin.
pub(super) fn of(
    runs: &ExperimentRuns,
    question: &Question,
    findings: &Findings,
) -> Result<Option<Checked>, StatisticsError> {
    let Some(check) = runs.experiment.check else { return Ok(None) };
    if findings.verdicts.is_empty() {
        return Ok(None);
    }
    let scale = &question.metric.scale;
    let of_pair = |pair: u64| -> Option<Vec<[f64; 2]>> {
        let of_arm = |(place, name): (usize, &String)| {
            let is_it = |record: &&RunRecord| record.plan.arm == *name && record.plan.pair == pair;
            let summary = runs.check.iter().find(is_it)?.summary()?;
            let longer = deciding::value(summary, &runs.experiment.metric)
                .map_or(statistics::Outcome::Diverged, statistics::Outcome::Finished);
            let at = question.seeds.iter().position(|seed| *seed == pair)?;
            let reported = *question.arms[place].scores.outcomes.get(at)?;
            Some([scale.entered(longer)?, scale.entered(reported)?])
        };
        question.arms.iter().map(|arm| &arm.name).enumerate().map(of_arm).collect()
    };
    let seeds = runs.experiment.seeds.iter().copied().take(check.pairs);
    let pairs: Vec<Vec<[f64; 2]>> = seeds.filter_map(of_pair).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let means = |which: usize| -> Vec<f64> {
        let of = |place: usize| mean_of_checked(&pairs.iter().map(|pair| pair[place][which]).collect::<Vec<_>>());
        (0..question.arms.len()).map(of).collect()
    };
    let (longer, reported) = (means(0), means(1));
    let times = match check.steps {
        2 => "twice the steps".into(),
        steps => format!("{} times the steps", number_word(steps)),
    };
    let moved = moved(question, findings, &longer);
    let of = counted(pairs.len(), "pair");
    let (holds, sentence) = match moved {
        None => (None, format!("there was no answer to check with {times} ({of})")),
        Some(moved) if moved.is_empty() => (Some(true), format!("the answer holds with {times} ({of})")),
        Some(moved) => (Some(false), format!("the answer moves: {} with {times} ({of})", moved.join(", "))),
    };
    let sentence = capital(&sentence);
    Ok(Some(Checked { sentence, holds, times: check.steps, pairs: pairs.len(), longer, reported }))
}

/// What is otherwise with longer training; `None` where nothing was decided.
fn moved(question: &Question, findings: &Findings, longer: &[f64]) -> Option<Vec<String>> {
    let (margin, direction) = (question.metric.margin, question.metric.scale.direction);
    let digits = decimals(margin);
    let place = |name: &str| question.arms.iter().position(|arm| arm.name == name);
    let mut moved = vec![];
    let mut is_any = false;
    for sweep in &findings.sweeps {
        let SweepAnswer::Number { value } = sweep.found.answer else { continue };
        is_any = true;
        let of_level = |place: &usize| question.arms[*place].level == sweep.level;
        let mut own: Vec<usize> = (0..question.arms.len()).filter(of_level).collect();
        own.sort_by(|a, b| {
            question.arms[*a].value.unwrap_or(f64::MAX).total_cmp(&question.arms[*b].value.unwrap_or(f64::MAX))
        });
        let best = own.iter().map(|place| direction.advantage(longer[*place])).fold(f64::NEG_INFINITY, f64::max);
        let enough = own.iter().copied().find(|place| best - direction.advantage(longer[*place]) <= margin);
        if let Some(now) = enough.filter(|now| question.arms[*now].value != Some(value)) {
            let name = &question.arms[now].scores.name;
            let at = sweep.at.as_ref().map(|at| format!(" {at}")).unwrap_or_default();
            moved.push(format!("{name} reach {:.digits$}{at}", longer[now]));
        }
    }
    if findings.sweeps.is_empty() {
        for verdict in findings.verdicts.iter().filter(|verdict| verdict.found.statement.is_decided()) {
            let (Some(arm), Some(against)) = (place(&verdict.arm), place(&verdict.against)) else { continue };
            is_any = true;
            let advantage = direction.advantage(longer[arm] - longer[against]);
            let holds = match verdict.found.statement {
                statistics::Statement::Better => advantage > margin,
                statistics::Statement::Worse => advantage < -margin,
                _ => advantage.abs() <= margin,
            };
            if !holds {
                let names = [arm, against].map(|place| &question.arms[place].scores.name);
                moved.push(format!(
                    "{} reach {:.digits$} against {:.digits$} of {}",
                    names[0], longer[arm], longer[against], names[1]
                ));
            }
        }
    }
    is_any.then_some(moved)
}
