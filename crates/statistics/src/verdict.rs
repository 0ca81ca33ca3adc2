//! The rules that turn an interval into a verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::distributions::student_t_two_sided;
use crate::interval::PairedInterval;
use crate::outcome::Direction;

pub use crate::rules::FEWEST_PAIRS;

/// What a comparison says of an arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies beyond the margin, on the arm's side.
    Better,
    /// The whole interval lies beyond the margin, on the baseline's side.
    Worse,
    /// The whole interval lies within ± margin, ends included.
    Equivalent,
    /// Anything else.
    Undecided { reason: Undecided },
}

/// Why a comparison does not decide.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Undecided {
    /// Too few pairs of which neither run is missing.
    TooFewPairs { pairs: usize, needed: usize },
    /// Too few pairs of which at least one run finished: two diverged runs tie, and show nothing.
    TooFewFinished { pairs: usize, needed: usize },
    /// The interval lies neither beyond nor within the margin.
    IntervalCrossesMargin { low: f64, high: f64, margin: f64 },
}

impl fmt::Display for Undecided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewPairs { pairs, needed } => {
                write!(formatter, "only {pairs} of the {needed} pairs that a verdict needs")
            }
            Self::TooFewFinished { pairs, needed } => {
                write!(formatter, "only {pairs} pairs in which a run finished, of the {needed} that a verdict needs")
            }
            Self::IntervalCrossesMargin { low, high, margin } => write!(
                formatter,
                "the interval from {low} to {high} lies neither beyond nor within the margin of {margin}"
            ),
        }
    }
}

/// How many pairs stand behind an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCounts {
    /// Pairs of which neither run is missing.
    pub complete: usize,
    /// Those of them in which at least one run finished.
    pub with_a_finished_run: usize,
}

/// The verdict from the interval of arm − baseline, in the unit of the metric, and the margin (at least 0, same unit).
/// `interval` is `None` with fewer than two complete pairs.
///
/// Without multiple arms and at level 0.95, a wrong "better" or "worse" comes about as often as the interval misses:
/// at most 5 % for normal differences of mean 0 and any margin; see [`crate::interval::paired_interval`] for others.
pub fn decide(interval: Option<&PairedInterval>, pairs: PairCounts, margin: f64, direction: Direction) -> Verdict {
    let undecided = |reason| Verdict::Undecided { reason };
    let needed = FEWEST_PAIRS;
    let interval = match interval {
        Some(interval) if pairs.complete >= needed => interval,
        _ => {
            let pairs = pairs.complete;
            return undecided(Undecided::TooFewPairs { pairs, needed });
        }
    };
    if pairs.with_a_finished_run < needed {
        let pairs = pairs.with_a_finished_run;
        return undecided(Undecided::TooFewFinished { pairs, needed });
    }
    let (low, high) = (interval.low, interval.high);
    if low > margin || high < -margin {
        return if direction.advantage(interval.mean_difference) > 0.0 { Verdict::Better } else { Verdict::Worse };
    }
    if low >= -margin && high <= margin {
        return Verdict::Equivalent;
    }
    undecided(Undecided::IntervalCrossesMargin { low, high, margin })
}

/// The p value of the verdict itself: the smallest α at which the interval of level 1 − α decides, be it beyond the
/// margin or within it. With a margin of 0 it is the two-sided p of "no difference". It is 0 where all differences are
/// equal: such an interval is a point and always decides.
///
/// It is the p value that Holm's correction orders and adjusts, so that with several arms, too, an interval decides
/// exactly where the adjusted p value is below 0.05.
pub fn decision_p_value(interval: &PairedInterval, margin: f64) -> f64 {
    if interval.standard_error == 0.0 {
        return 0.0;
    }
    // Either way the interval must not reach from its mean to the nearer of ± margin.
    let distance = (interval.mean_difference.abs() - margin).abs();
    student_t_two_sided(distance / interval.standard_error, interval.degrees_of_freedom)
}
