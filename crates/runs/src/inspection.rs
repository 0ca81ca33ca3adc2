//! What state run directories are in, and whether their files are still what was written.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::{
    config::Config,
    directory::{RunDirectory, State},
    error::RunError,
    files, layout, limits, lines,
    manifest::Manifest,
    metrics::{self, Metric},
    summary::{Status, Summary},
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

/// Looks at a run directory. With `verify` every checksum is compared: of the config (in the directory's name), the manifest,
/// each checkpoint and snapshot, and the metrics. A run that is being written to is only listed.
pub fn inspect(run: &RunDirectory, verify: bool) -> Inspection {
    let config = load_config(run);
    let steps = config.as_ref().ok().map(|config| config.train.steps);
    let bytes = bytes_in(run.path(), 0);
    let mut inspection =
        Inspection { path: run.path().into(), state: Condition::Running, step: 0, steps, bytes, problems: vec![] };
    let checkpoint = run.checkpoints().steps().ok().and_then(|steps| steps.last().copied());
    if run.is_running() {
        // The last line may be half-written, and a checkpoint on its way.
        let last = lines::last::<Metric>(&run.metrics_path()).ok().flatten().map_or(0, |line| line.step);
        return Inspection { step: last.max(checkpoint.unwrap_or(0)), ..inspection };
    }
    let problems = &mut inspection.problems;
    problems.extend(config.err());
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
        verify_config(run, problems);
        verify_files(run, problems);
        problems.dedup();
    }
    if !problems.is_empty() {
        inspection.state = Condition::Damaged;
    }
    inspection
}

/// The config, or what is wrong with it.
fn load_config(run: &RunDirectory) -> Result<Config, String> {
    let path = run.config_path();
    // A config's reader takes pipes, which may never end.
    if let Err(error @ RunError::NoFile { .. }) = files::open(&path) {
        return Err(error.to_string());
    }
    Config::load(&path, &[]).map_err(|error| {
        let problem = error.diagnostics().first().map(|diagnostic| diagnostic.problem.to_string());
        format!("{}: {}", path.display(), problem.unwrap_or_default())
    })
}

/// The directory's name ends in the hash of `config.toml` as it was written.
fn verify_config(run: &RunDirectory, problems: &mut Vec<String>) {
    let path = run.config_path();
    let name = run.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let hash = name.rsplit_once("-").map_or("", |(_, hash)| hash);
    let is_hash = hash.len() == 8 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if let Ok(text) = files::read_at_most(&path, limits::CONFIG)
        && is_hash
        && name.contains("-seed")
        && !blake3::hash(&text).to_hex().starts_with(hash)
    {
        problems.push(format!("{}: not what the directory's name says: it was edited or damaged", path.display()));
    }
}

fn verify_files(run: &RunDirectory, problems: &mut Vec<String>) {
    let mut note = |result: Result<(), RunError>| problems.extend(result.err().map(|error| error.to_string()));
    let summary = Summary::read(&run.summary_path()).ok();
    let checkpoints = run.checkpoints();
    let steps = checkpoints.steps().unwrap_or_else(|error| {
        note(Err(error));
        vec![]
    });
    // It is written before the first step.
    if summary.is_some() || !steps.is_empty() || run.manifest_path().exists() {
        note(Manifest::read(&run.manifest_path()).map(drop));
    }
    for &step in &steps {
        note(checkpoints.load(step).map(drop));
    }
    match run.snapshots().steps() {
        Ok(steps) => steps.into_iter().for_each(|step| note(run.snapshots().load(step).map(drop))),
        Err(error) => note(Err(error)),
    }
    let then = match &summary {
        Some(summary) => summary.metrics.clone().map(|hash| (hash, run.metrics_hash())),
        // A run that is not done may have logged more than its checkpoint counts on.
        None => checkpoints.latest().ok().flatten().and_then(|latest| {
            let step = latest.checkpoint.step;
            latest.checkpoint.metrics.map(|hash| (hash, lines::hash_until::<Metric>(&run.metrics_path(), step)))
        }),
    };
    match then {
        Some((_, Err(error))) => note(Err(error)),
        Some((then, Ok(now))) if then != now => note(Err(RunError::MetricsChanged { path: run.metrics_path() })),
        _ => {}
    }
    match metrics::read_timings(&run.timing_path()) {
        Err(error) if !files::is_absent(&error) => note(Err(error)),
        _ => {}
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
