//! How much of the test set a run reads in training too, where that matters.

use data::{Overlap, Split, overlap};
use serde::{Deserialize, Serialize};

use crate::Config;

/// Share of the test set from which on it is said.
const NOTABLE: f64 = 0.01;

/// Test samples that training shows: a score on them may be memory.
///
/// Up to a second or two (see [`overlap`]); `None` where there are hardly any.
pub fn seen_in_training(config: &Config) -> Option<Overlap> {
    let train = &config.train;
    let trained = train.steps.saturating_mul(train.batch_size as u64).saturating_mul(train.accumulate as u64);
    let found = overlap(&config.task.task, &config.task.sets, Split::Test, config.seed, trained);
    (found.share() >= NOTABLE).then_some(found)
}

/// What is said of them, in a sentence without its full stop.
pub fn told(overlap: &Overlap) -> String {
    format!("{overlap}: a score on them may be memory")
}

/// Test samples that some arms of an experiment read in training too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenInTraining {
    /// The arms that it is about; in the experiment's order.
    pub arms: Vec<String>,
    /// See [`told`].
    pub words: String,
    /// Of the test set, 0 to 1.
    pub share: f64,
}

impl SeenInTraining {
    /// Of the configs of several arms, by name; those that train alike on the same data are looked at once.
    pub(crate) fn of<'a>(arms: impl Iterator<Item = (&'a str, &'a Config)>) -> Vec<Self> {
        let mut groups: Vec<(&Config, Vec<String>)> = vec![];
        let shown = |config: &Config| (config.train.steps, config.train.batch_size, config.train.accumulate);
        let is_alike = |a: &Config, b: &Config| a.seed == b.seed && a.task == b.task && shown(a) == shown(b);
        for (arm, config) in arms {
            match groups.iter_mut().find(|(other, _)| is_alike(other, config)) {
                Some((_, names)) => names.push(arm.into()),
                None => groups.push((config, vec![arm.into()])),
            }
        }
        let of_group = |(config, arms): (&Config, Vec<String>)| {
            let found = seen_in_training(config)?;
            Some(Self { arms, words: told(&found), share: found.share() })
        };
        groups.into_iter().filter_map(of_group).collect()
    }
}
