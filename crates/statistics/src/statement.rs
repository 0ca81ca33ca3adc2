//! What is said of two arms, and when: the core of every verdict.

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::failures::{FailedPairs, failed_pairs};
use crate::pairs::PairedScores;
use crate::robust::DifferenceEstimate;
use crate::rules::{FEWEST_PAIRS, Rules};

/// What is said of an arm against the other. The first three exclude one another.
///
/// They are about runs that do not fail, and about failures more frequent than [`Rules::max_failure`]; see
/// `docs/statistics.md` for how often each is wrong, rarer failures included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Statement {
    /// The interval of level 1 − alpha ([`DifferenceEstimate`]) lies beyond the margin, on the arm's side.
    Better,
    /// The same, on the other side.
    Worse,
    /// The interval of level 1 − 2 alpha lies within ± margin, ends included, and the failure bound is low enough.
    Equivalent,
    /// The interval lies within the margin, but pairs like these do not exclude one that fails more often than allowed.
    NoDifferenceSeen,
    /// Anything else.
    Undecided { because: Because },
}

/// Why nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Because {
    /// Too few pairs of which neither run is missing.
    TooFewPairs { pairs: usize, needed: usize },
    /// Too few pairs of which at least one run finished.
    TooFewFinished { pairs: usize, needed: usize },
    /// The interval lies neither beyond nor within the margin.
    IntervalCrossesMargin,
}

impl Statement {
    /// Whether it settles the question, so that an experiment with several looks can end.
    pub fn is_decided(self) -> bool {
        matches!(self, Self::Better | Self::Worse | Self::Equivalent)
    }
}

/// The statement with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub statement: Statement,
    /// Of the advantage of the arm; `None` with fewer than two complete pairs.
    pub estimate: Option<DifferenceEstimate>,
    pub failures: FailedPairs,
}

/// Says what the pairs say, by `rules`.
///
/// Errors: rules out of range.
pub fn judge(paired: &PairedScores, rules: &Rules) -> Result<Judged, StatisticsError> {
    rules.check()?;
    let failures = failed_pairs(paired, rules)?;
    let (pairs, needed) = (paired.pairs.len(), FEWEST_PAIRS);
    let estimate =
        if pairs < 2 { None } else { Some(DifferenceEstimate::of(&paired.advantages(), paired.samples, rules)?) };
    let finished = paired.with_a_finished_run();
    let statement = match &estimate {
        Some(estimate) if finished >= needed => state(estimate, &failures, rules),
        _ if pairs < needed => Statement::Undecided { because: Because::TooFewPairs { pairs, needed } },
        _ => Statement::Undecided { because: Because::TooFewFinished { pairs: finished, needed } },
    };
    Ok(Judged { statement, estimate, failures })
}

/// What an estimate of enough pairs says.
fn state(estimate: &DifferenceEstimate, failures: &FailedPairs, rules: &Rules) -> Statement {
    let [low, high] = estimate.interval(rules.difference_tail());
    if low > rules.margin {
        return Statement::Better;
    }
    if high < -rules.margin {
        return Statement::Worse;
    }
    let [low, high] = estimate.interval(rules.equivalence_tail());
    if low < -rules.margin || high > rules.margin {
        return Statement::Undecided { because: Because::IntervalCrossesMargin };
    }
    if failures.bound <= rules.max_failure { Statement::Equivalent } else { Statement::NoDifferenceSeen }
}
