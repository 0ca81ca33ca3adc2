//! A run to be done, how far it is, and how it ended.

use data::metrics::Scores;
use runs::{Config, RunDirectory, RunError, State, Summary};
use serde::{Deserialize, Serialize};

/// One run to be done.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called on the screen, such as `h8 seed 3`.
    pub label: String,
    /// What to train.
    pub config: Config,
    /// Where: [`RunDirectory::of`] the config in some folder.
    pub directory: RunDirectory,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum JobEnd {
    /// Its summary is there, from now or from before.
    Done(Box<Summary>),
    /// Stopped before its end, to be gone on with from what is on disk.
    Stopped(Saved),
    /// Its process ended without a summary: what it said last.
    Failed(String),
}

/// What a job that was stopped has on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// It never began.
    NotBegun,
    /// Its last step.
    All { step: u64 },
    /// A checkpoint of this step; what came after it is to be done again.
    UpTo { step: u64 },
    /// No checkpoint.
    Nothing,
}

/// How far a job is: a line of a worker's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobProgress {
    /// Optimiser steps done.
    pub step: u64,
    /// Of the last step's batch.
    pub training: Scores,
    /// On the validation set at the last evaluation.
    pub validation: Scores,
    /// Training tokens a second since the worker started.
    pub tokens_per_second: f64,
}

impl Job {
    /// How far its directory is; an error also where it is done and its files are no longer what it wrote.
    pub(super) fn state(&self) -> Result<State, RunError> {
        let state = self.directory.state()?;
        if let State::Finished(_) = &state {
            self.directory.open_as(&self.config)?;
        }
        Ok(state)
    }

    /// What is on disk of a job whose process has ended; `has_trained` where that did something, `has_saved` where it said
    /// that it had saved it.
    pub(super) fn saved(&self, has_trained: bool, has_saved: bool) -> Result<Saved, RunError> {
        let is_whole = has_saved || !has_trained;
        Ok(match self.directory.checkpoints().latest()? {
            None if !has_trained => Saved::NotBegun,
            None => Saved::Nothing,
            Some(latest) if is_whole && latest.damaged.is_empty() => Saved::All { step: latest.checkpoint.step },
            Some(latest) => Saved::UpTo { step: latest.checkpoint.step },
        })
    }

    /// What is to be done about files that are not what they should be.
    pub(super) fn damaged(&self, error: &RunError) -> String {
        format!("{error}; remove {} to have it trained again", self.directory.path().display())
    }
}
