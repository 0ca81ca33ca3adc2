//! What each attention head does, step by step, beside what it did untrained.
//!
//! A run's `heads.json` holds [`HeadAnalysis`], an experiment's [`ExperimentHeads`]. Everything is measured on the first
//! samples of the validation set, the same for every run of a task:
//!
//! - what a head reads: [`measures`] of its maps, and how alike two heads are ([`similarity`])
//! - what it is worth: its share of what the layer writes, the loss without it and with it alone, the gradient of its gate
//! - what is remarkable: [`mod@flags`]
//!
//! A removed head is replaced by its mean over the samples at each position, not by zero: the layers above are used to its
//! mean, and would be thrown off by its absence as much as by the loss of what it says. In an encoder-decoder, heads are
//! removed from the decoder's self-attention alone; of the encoder and of the cross-attention there are the measures of maps.
//!
//! Maps are an aid, not proof: what a head reads need not be what the answer depends on (Jain 2019, arXiv 1902.10186).

mod across;
mod contexts;
mod effects;
mod encode;
mod experiment;
pub mod flags;
pub mod maps;
pub mod measures;
mod record;
mod run;
mod samples;
pub mod similarity;
mod step;
mod table;

use std::path::PathBuf;

use architecture::ModelError;
use model::{CallError, parameters::LoadError};
use runs::{ConfigError, RunError};
use thiserror::Error;

use crate::results::ResultsError;

pub use across::{AcrossRuns, ArmHeads, ExperimentHeads, RunHeads, Spread};
pub use experiment::of_experiment;
pub use record::{
    AttentionAnalysis, Flag, HeadAnalysis, HeadMeasures, Nearest, Place, SCHEMA_VERSION, ShownMaps, ShownSample,
    ShownToken, StepAnalysis,
};
pub use run::{Steps, analyse, analyse_or_read};
pub use table::table;

/// Positions of a shown sample, on either side of its maps.
pub const SHOWN_POSITIONS: usize = 64;

/// Why the heads of a run can't be analysed.
#[derive(Debug, Error)]
pub enum HeadError {
    /// Half a run says nothing.
    #[error("{} isn't done: training it with the same command goes on from where it stopped", .path.display())]
    NotDone { path: PathBuf },
    /// Snapshots and checkpoints are gone.
    #[error("{} holds no weights of step {step}: neither a snapshot nor a checkpoint", .path.display())]
    NoWeights { path: PathBuf, step: u64 },
    /// A file of the run that is damaged.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The experiment's own file in its folder.
    #[error(transparent)]
    Experiment(#[from] ConfigError),
    /// The config describes no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Weights of another model.
    #[error("the weights of step {step} don't fit the run's config: {error}")]
    Weights { step: u64, error: LoadError },
    /// Samples that the model can't take.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing to average over.
    #[error("no position of the first validation samples is scored: there is nothing to measure heads by")]
    NothingScored,
    /// Weights beyond all bounds.
    #[error("the weights of step {step} give numbers that aren't finite")]
    NotFinite { step: u64 },
    /// A file that can't be written.
    #[error(transparent)]
    Write(#[from] ResultsError),
}
