//! The looks at an experiment while it grows: none but those planned, each at its share of alpha.
//!
//! ```
//! use headcount_statistics::looks::{Looks, complete_in_order};
//! use headcount_statistics::{ArmScores, Beside, MetricScale, Outcome, Rules, compare_two_arms};
//!
//! let runs = |name: &str, centre: f64| {
//!     let of_seed = |seed: u64| Outcome::Finished(centre + 0.001 * (seed % 3) as f64);
//!     ArmScores::new(name, (0..20).map(of_seed).collect())
//! };
//! let (arm, baseline) = (runs("8 heads", 0.99), runs("4 heads", 0.989));
//! let seeds: Vec<u64> = (0..20).collect();
//! let (scale, beside) = (MetricScale::accuracy("test accuracy"), Beside::default());
//! let complete = complete_in_order(&[&arm.outcomes, &baseline.outcomes]);
//! let looked = Looks::new(vec![6, 10, 15, 20])?.walk(
//!     complete,
//!     &Rules::new(0.02),
//!     |pairs, rules| {
//!         let (arm, baseline) = (arm.first(pairs), baseline.first(pairs));
//!         compare_two_arms(&seeds[..pairs], &arm, &baseline, &scale, rules, &beside)
//!     },
//!     |found| found.statement.is_decided(),
//! )?;
//! // Ten clean pairs do not bound failures at a quarter of 5 %; fifteen do.
//! assert_eq!(looked.taken.map(|taken| (taken.pairs, taken.further_pairs)), Some((15, 5)));
//! # Ok::<(), headcount_statistics::StatisticsError>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::error::StatisticsError;
use crate::outcome::Outcome;
use crate::rules::{FEWEST_PAIRS, Rules};

/// The numbers of pairs at which the runs may be looked at, rising; the last is the planned number of pairs.
///
/// Whoever looks again after every pair errs in 18 % instead of 5 %. With planned looks, each alpha is divided by their
/// number: all looks together err as often as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<usize>", into = "Vec<usize>")]
pub struct Looks(Vec<usize>);

impl Looks {
    /// Looks at these numbers of pairs.
    ///
    /// Errors: none, not rising, or the first below [`FEWEST_PAIRS`].
    pub fn new(pairs: Vec<usize>) -> Result<Self, StatisticsError> {
        let rises = pairs.windows(2).all(|two| two[0] < two[1]);
        match pairs.first() {
            Some(first) if rises && *first >= FEWEST_PAIRS => Ok(Self(pairs)),
            _ => Err(StatisticsError::LooksNotRising { looks: pairs, fewest: FEWEST_PAIRS }),
        }
    }

    /// A single look, at the planned number of pairs, however few they are (fewer than [`FEWEST_PAIRS`] decide nothing).
    pub fn once(pairs: usize) -> Self {
        Self(vec![pairs.max(1)])
    }

    /// How many there are, at least 1.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The planned number of pairs.
    pub fn planned(&self) -> usize {
        self.0[self.0.len() - 1]
    }

    /// The next number of pairs at which there is a look, after so many.
    pub fn next_after(&self, complete: usize) -> Option<usize> {
        self.0.iter().copied().find(|pairs| *pairs > complete)
    }

    /// Looks in their order, at `rules` with alpha divided by their number, and stops at the first that decides.
    /// `evaluate` gets the number of pairs to use (the first ones) and the rules.
    ///
    /// Errors: those of `evaluate`.
    pub fn walk<T>(
        &self,
        complete: usize,
        rules: &Rules,
        mut evaluate: impl FnMut(usize, &Rules) -> Result<T, StatisticsError>,
        is_decided: impl Fn(&T) -> bool,
    ) -> Result<Looked<T>, StatisticsError> {
        let rules = rules.for_looks(self.count());
        let mut last = None;
        for (index, pairs) in self.0.iter().copied().enumerate().take_while(|(_, pairs)| *pairs <= complete) {
            let result = evaluate(pairs, &rules)?;
            let decided = is_decided(&result);
            let further_pairs = complete - pairs;
            last = Some(Taken { look: index + 1, looks: self.count(), pairs, further_pairs, decided, result });
            if decided {
                break;
            }
        }
        let ends = last.as_ref().is_some_and(|taken| taken.decided || taken.look == self.count());
        let next = if ends { None } else { self.next_after(complete) };
        Ok(Looked { complete, next, taken: last })
    }
}

impl TryFrom<Vec<usize>> for Looks {
    type Error = StatisticsError;

    fn try_from(pairs: Vec<usize>) -> Result<Self, Self::Error> {
        if pairs.len() == 1 { Ok(Self::once(pairs[0])) } else { Self::new(pairs) }
    }
}

impl From<Looks> for Vec<usize> {
    fn from(looks: Looks) -> Self {
        looks.0
    }
}

/// What the looks so far have shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked<T> {
    /// Complete pairs, in the order of the seeds.
    pub complete: usize,
    /// Pairs at the next look; `None` once the experiment has ended.
    pub next: Option<usize>,
    /// The look that counts: the first that decided, or else the last taken; `None` before the first is due.
    pub taken: Option<Taken<T>>,
}

/// One look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Taken<T> {
    /// Which it is, from 1.
    pub look: usize,
    pub looks: usize,
    /// The pairs it saw: the first so many.
    pub pairs: usize,
    /// Complete pairs that it did not see.
    pub further_pairs: usize,
    /// Whether it decided, which ends the experiment.
    pub decided: bool,
    pub result: T,
}

/// How many pairs, from the first, are complete in every arm. It stops at the first missing run: pairs that happen to
/// end early may be those that diverge, and a look over them would change once the others end. Seeds that will never be
/// run again must be taken out of the list.
pub fn complete_in_order(arms: &[&[Outcome]]) -> usize {
    let complete = |pair: &usize| arms.iter().all(|arm| arm.get(*pair).is_some_and(|one| *one != Outcome::Missing));
    let most = arms.iter().map(|arm| arm.len()).min().unwrap_or(0);
    (0..most).take_while(complete).count()
}
