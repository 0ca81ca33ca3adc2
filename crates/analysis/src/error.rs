//! What can go wrong with an analysis.

use std::path::PathBuf;

use architecture::ModelError;
use model::{CallError, parameters::LoadError};
use runs::RunError;
use thiserror::Error;

/// Why the heads of a run can't be analysed.
#[derive(Debug, Error)]
pub enum HeadError {
    /// Half a run says nothing.
    #[error("{} isn't done: training it with the same command goes on from where it stopped", .path.display())]
    NotDone { path: PathBuf },
    /// Snapshots and checkpoints are gone.
    #[error("{} holds no weights of step {step}: neither a snapshot nor a checkpoint", .path.display())]
    NoWeights { path: PathBuf, step: u64 },
    /// A file of the run that is damaged, or can't be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The config describes no model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Weights of another model.
    #[error("the weights of step {step} don't fit the run's config: {error}")]
    Weights { step: u64, error: LoadError },
    /// Samples that the model can't take.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing to read a model with fewer heads by.
    #[error("no position of the first test samples is scored: there is nothing to tell by which heads are used")]
    NoTest,
    /// Nothing to average over.
    #[error("no position of the first validation samples is scored: there is nothing to measure heads by")]
    NothingScored,
    /// Weights beyond all bounds.
    #[error("the weights of step {step} give numbers that aren't finite")]
    NotFinite { step: u64 },
}
