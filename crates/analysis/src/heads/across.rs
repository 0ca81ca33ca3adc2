//! The content of an experiment's `heads.json`: every run's heads, and what can be said across seeds.
//!
//! Heads have no identity across seeds: head 3 of one run is not head 3 of another. So nothing here averages over a head's
//! number. What is averaged are means over all heads of a run, counts of flagged heads, values sorted within a run, and for
//! `registers` the best head of each register.

use serde::{Deserialize, Serialize};

use super::record::HeadAnalysis;

/// The content of an experiment's `heads.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentHeads {
    /// [`super::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the experiment.
    pub name: String,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmHeads>,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmHeads {
    /// Such as `h8`.
    pub name: String,
    /// Such as "8 heads".
    pub label: String,
    /// Across the runs that finished, before training; `null` if none did.
    pub untrained: Option<AcrossRuns>,
    /// The same at the end.
    pub last: Option<AcrossRuns>,
    /// Its runs, in the order of the pairs. The first one that finished has every analysed step, with maps; the others the
    /// untrained model and the last, without maps.
    pub runs: Vec<RunHeads>,
}

/// One run of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeads {
    /// The pair it belongs to.
    pub pair: u64,
    /// Its directory within the experiment's.
    pub directory: String,
    /// What its heads do; `null` where `problem` says why not.
    pub analysis: Option<HeadAnalysis>,
    /// Such as "diverged at step 12".
    pub problem: Option<String>,
}

/// The decoder's heads of one arm across its runs, all layers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossRuns {
    /// How many runs.
    pub runs: usize,
    /// Heads of a run: layers times H.
    pub heads: usize,
    /// Heads of a run that are flagged dead; spread over the runs, as everything below.
    pub dead: Spread,
    /// Heads of a run that have a duplicate.
    pub duplicates: Spread,
    /// Heads of a run that are sinks.
    pub sinks: Spread,
    /// Mean over the heads of a run of [`super::HeadMeasures::entropy`]; `null` where it has no meaning, as below.
    pub entropy: Option<Spread>,
    /// Mean over heads of the weight on the previous token.
    pub previous_token: Option<Spread>,
    /// The greatest induction score of a run's heads.
    pub induction: Option<Spread>,
    /// Mean over heads of the weight on position 0.
    pub first_position: Option<Spread>,
    /// Mean over pairs of heads of a layer of their divergence, in nats: 0 where all do the same.
    pub divergence: Option<Spread>,
    /// What removing a head costs, in nats: the costliest of each run, the second, and so on.
    pub removal_by_rank: Vec<Spread>,
    /// In `registers`: for each register, the weight that the head which reads it most puts on its latest write.
    pub best_of_register: Option<Vec<Spread>>,
}

/// A number of each run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    pub minimum: f64,
    pub maximum: f64,
}
