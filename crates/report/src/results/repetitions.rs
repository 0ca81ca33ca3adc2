//! Verdicts of an experiment that is repeated on other seeds: how often does one find a difference?

use runs::Experiment;
use serde::{Deserialize, Serialize};
use statistics::{Statement, StatisticsError, two_arms::Limits};

use super::question::{ArmVerdict, Question};

/// How often each statement came out, over all repetitions and arms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetitions {
    pub better: usize,
    pub worse: usize,
    pub equivalent: usize,
    /// Undecided, or no difference seen.
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
    /// Mean advantage of the arm, above 0 where it is better, and the interval that decides "better" and "worse"; `None` with
    /// fewer than two complete pairs.
    pub mean: Option<f64>,
    pub interval: Option<Limits>,
    pub statement: Statement,
    pub sentence: String,
}

impl Repetition {
    /// Whether it found one.
    pub fn finds_a_difference(&self) -> bool {
        matches!(self.statement, Statement::Better | Statement::Worse)
    }
}

impl Repetitions {
    /// In words: "20 repetitions: none found a difference, 17 equivalent, 3 undecided".
    pub fn words(&self) -> String {
        let found = self.better + self.worse;
        let (all, equivalent, undecided) = (self.each.len(), self.equivalent, self.undecided);
        format!("{all} repetitions: {found} found a difference, {equivalent} equivalent, {undecided} undecided")
    }
}

/// `None` for an experiment that is not repeated.
pub(super) fn of(experiment: &Experiment, question: &Question) -> Result<Option<Repetitions>, StatisticsError> {
    if experiment.repetitions < 2 {
        return Ok(None);
    }
    let mut each = vec![];
    for seeds in experiment.repetition_seeds() {
        let of_verdict = |verdict: ArmVerdict| Repetition {
            seeds: seeds.to_vec(),
            arm: verdict.arm,
            mean: verdict.found.estimate.map(|estimate| estimate.mean),
            interval: verdict.found.interval,
            statement: verdict.found.statement,
            sentence: verdict.sentence,
        };
        each.extend(question.verdicts_over(seeds)?.into_iter().map(of_verdict));
    }
    let count = |is: fn(&Statement) -> bool| each.iter().filter(|repetition| is(&repetition.statement)).count();
    Ok(Some(Repetitions {
        better: count(|statement| *statement == Statement::Better),
        worse: count(|statement| *statement == Statement::Worse),
        equivalent: count(|statement| *statement == Statement::Equivalent),
        undecided: count(|statement| matches!(statement, Statement::NoDifferenceSeen | Statement::Undecided { .. })),
        each,
    }))
}
