//! What state run directories are in, and whether their files are still what was written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    directory::{RunDirectory, State},
    error::RunError,
    layout, limits, log,
    metrics::MetricLine,
    summary::Status,
};

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// All steps were done.
    Done,
    /// Begun, not done; the same command goes on with it.
    Partial,
    /// A process writes to it at this moment.
    Running,
    /// It diverged.
    Failed,
    /// A file of it can't be read, or is not what was written.
    Damaged,
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Done, Self::Partial, Self::Running, Self::Failed, Self::Damaged];

    /// The name in lists and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Damaged => "damaged",
        }
    }
}

/// What was found in a run directory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The directory.
    pub path: PathBuf,
    /// How the run stands.
    pub state: Condition,
    /// Optimiser steps done.
    pub step: u64,
    /// Optimiser steps in all; `None` where the config can't be read.
    pub steps: Option<u64>,
    /// Bytes of all files in it; what links lead to isn't counted.
    pub bytes: u64,
    /// What is damaged, a sentence each, naming the file.
    pub problems: Vec<String>,
}

/// The run directories in `folder`, itself included, sorted by path. Links within it are not followed.
///
/// # Errors
/// Where `folder` can't be read. Folders in it that can't be are passed over.
pub fn find(folder: &Path) -> Result<Vec<RunDirectory>, RunError> {
    fs::read_dir(folder).map_err(RunError::io("read", folder))?;
    let mut found = vec![];
    collect(folder, 0, &mut found);
    found.sort();
    Ok(found.into_iter().map(RunDirectory::at).collect())
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if layout::is_run(folder) {
        found.push(folder.into());
    } else if depth < limits::DEPTH {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                collect(&entry.path(), depth + 1, found);
            }
        }
    }
}

/// Looks at a run directory. With `verify` every checksum is compared, and whether its files belong to one run. A run that is being written to is only listed.
pub fn inspect(run: &RunDirectory, verify: bool) -> Inspection {
    let config = run.config();
    let steps = config.as_ref().ok().map(|config| config.train.steps);
    let bytes = bytes_in(run.path(), 0);
    let mut inspection =
        Inspection { path: run.path().into(), state: Condition::Running, step: 0, steps, bytes, problems: vec![] };
    let checkpoint = run.checkpoints().steps().ok().and_then(|steps| steps.last().copied());
    if run.is_running() {
        // The last line may be half-written, and a checkpoint on its way.
        let last = log::last::<MetricLine>(&run.metrics_path()).ok().flatten().map_or(0, |line| line.step);
        return Inspection { step: last.max(checkpoint.unwrap_or(0)), ..inspection };
    }
    let problems = &mut inspection.problems;
    problems.extend(config.err().map(|error| line(&error, &run.config_path())));
    (inspection.state, inspection.step) = match run.state() {
        Ok(State::Finished(summary)) => match summary.status {
            Status::Finished => (Condition::Done, summary.steps),
            Status::Diverged { .. } => (Condition::Failed, summary.steps),
        },
        Ok(State::Started { last_step }) => (Condition::Partial, last_step.unwrap_or(0).max(checkpoint.unwrap_or(0))),
        Ok(State::Absent) => (Condition::Damaged, checkpoint.unwrap_or(0)),
        Err(error) => {
            problems.push(error.to_string());
            (Condition::Damaged, checkpoint.unwrap_or(0))
        }
    };
    if verify {
        for error in problems_of(run) {
            let problem = line(&error, &run.config_path());
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
    }
    if !problems.is_empty() {
        inspection.state = Condition::Damaged;
    }
    inspection
}

/// Every checksum that a run has, and whether its files belong together: the problems, those of its config aside.
fn problems_of(run: &RunDirectory) -> Vec<RunError> {
    match run.open() {
        Ok(run) => run.verify(),
        // Before its first step a run has neither manifest nor anything that could be another's.
        Err(error) if error.is_absent() && !has_begun(run) => vec![],
        Err(RunError::Config(_)) => vec![],
        // What can be compared with itself still is.
        Err(error) => {
            let steps = run.checkpoints().steps().unwrap_or_default();
            let checkpoints = steps.into_iter().filter_map(|step| run.checkpoints().load(step).err());
            let steps = run.snapshots().steps().unwrap_or_default();
            let snapshots = steps.into_iter().filter_map(|step| run.snapshots().load(step).err());
            [error].into_iter().chain(checkpoints).chain(snapshots).collect()
        }
    }
}

/// Whether anything was computed.
fn has_begun(run: &RunDirectory) -> bool {
    let has_steps = !run.checkpoints().steps().is_ok_and(|steps| steps.is_empty());
    has_steps || run.manifest_path().exists() || run.summary_path().exists()
}

/// A problem in one line.
fn line(error: &RunError, path: &Path) -> String {
    match error {
        RunError::Config(error) => {
            let problem = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
            format!("{}: {}", path.display(), problem.unwrap_or_default())
        }
        error => error.to_string(),
    }
}

/// Bytes of the regular files in a folder.
fn bytes_in(folder: &Path, depth: usize) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() && depth < limits::DEPTH => bytes_in(&entry.path(), depth + 1),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    });
    bytes.sum()
}

#[cfg(test)]
mod tests;
