//! Whether what was predicted before the runs has come true.

use serde::{Deserialize, Serialize};

use crate::statement::Statement;
use crate::sweep::{Enough, Sweep, SweepAnswer};

/// How a prediction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Held,
    Failed,
    Undecided,
}

impl Fate {
    /// As it reads: "held".
    pub fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "failed",
            Self::Undecided => "undecided",
        }
    }
}

/// The fate of "this arm is better" by the statement about it.
pub fn fate_of_better(statement: Statement) -> Fate {
    match statement {
        Statement::Better => Fate::Held,
        Statement::Worse | Statement::Equivalent => Fate::Failed,
        Statement::NoDifferenceSeen | Statement::Undecided { .. } => Fate::Undecided,
    }
}

/// The fate of "the two are equivalent".
pub fn fate_of_equivalent(statement: Statement) -> Fate {
    match statement {
        Statement::Equivalent => Fate::Held,
        Statement::Better | Statement::Worse => Fate::Failed,
        Statement::NoDifferenceSeen | Statement::Undecided { .. } => Fate::Undecided,
    }
}

/// The fate of "this is the smallest number that is enough". It fails as soon as it is excluded: where the number itself
/// is insufficient, was not tried, or a smaller one is sufficient.
pub fn fate_of_sufficient(value: f64, sweep: &Sweep) -> Fate {
    if matches!(sweep.answer, SweepAnswer::TooFewPairs { .. }) {
        return Fate::Undecided;
    }
    let own = sweep.steps.iter().find(|step| step.value == value);
    let smaller_is_enough = sweep.sufficient.first().is_some_and(|smallest| *smallest < value);
    match (own, sweep.answer) {
        (None, _) => Fate::Failed,
        (Some(own), _) if own.enough == Enough::Insufficient || smaller_is_enough => Fate::Failed,
        (Some(_), SweepAnswer::Number { value: found }) if found == value => Fate::Held,
        _ => Fate::Undecided,
    }
}
