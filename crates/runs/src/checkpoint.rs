//! `checkpoints/step-N/`: where a run can go on from. A checkpoint is complete or absent.
//!
//! It is written to a temporary folder beside its place, synced, and renamed. Reading compares every file with its
//! BLAKE3 hash in `checkpoint.json`, which is written last and ends with its own; where the newest checkpoint is damaged,
//! the one before it is used.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use data::metrics::Scores;
use serde::{Deserialize, Serialize};

use crate::{
    error::RunError,
    files,
    layout::TEMPORARY,
    limits,
    origin::Origin,
    sealed,
    summary::Best,
    tensors::{self, Tensors},
};

const MODEL: &str = "model.safetensors";
const OPTIMISER: &str = "optimiser.safetensors";
const INDEX: &str = "checkpoint.json";
const FILES: [&str; 3] = [INDEX, MODEL, OPTIMISER];

/// Everything a run needs to go on: the rest follows from the config and the step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Optimiser steps done.
    pub step: u64,
    /// The validation set at this step, where it was measured.
    pub validation: Option<Scores>,
    /// The best step so far, this one included.
    pub best: Option<Best>,
    /// BLAKE3 of `metrics.jsonl` as it was then, 64 hex digits: a run goes on only where nothing of it is lost.
    pub metrics: String,
    /// The run that it belongs to.
    pub origin: Origin,
    /// Weights by parameter path.
    pub model: Tensors,
    /// The optimiser's state by parameter path and name.
    pub optimiser: Tensors,
}

/// The content of `checkpoint.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    step: u64,
    validation: Option<Scores>,
    best: Option<Best>,
    metrics: String,
    origin: Origin,
    files: BTreeMap<String, Stamp>,
}

/// What a file must be.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stamp {
    bytes: u64,
    blake3: String,
}

impl Stamp {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }
}

/// The newest complete checkpoint, and the newer ones that are damaged.
#[derive(Debug)]
pub struct Latest {
    /// The newest complete one.
    pub checkpoint: Checkpoint,
    /// Newer ones and why each can't be used.
    pub damaged: Vec<(u64, RunError)>,
}

/// The checkpoints of a run.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// Those in a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder of the checkpoint of `step`.
    pub fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step}"))
    }

    /// Steps that have a checkpoint, rising. Whether one is damaged is seen when it is loaded.
    ///
    /// # Errors
    /// Where the folder can't be read.
    pub fn steps(&self) -> Result<Vec<u64>, RunError> {
        let has_files = |step: &u64| FILES.iter().any(|name| self.path(*step).join(name).exists());
        let mut steps: Vec<u64> = self.names()?.iter().filter_map(|name| step_of(name)).filter(has_files).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Writes a checkpoint, replacing one of the same step.
    ///
    /// # Errors
    /// Where the disk is full or gone, or a tensor's shape doesn't fit its values. Then everything is as before, and nothing
    /// half-written takes space.
    pub fn save(&self, checkpoint: &Checkpoint) -> Result<(), RunError> {
        let saved = self.save_while(checkpoint, |_| true);
        if saved.is_err() {
            drop(remove_folder(&self.temporary(checkpoint.step)));
        }
        saved
    }

    /// Writes a checkpoint as long as `go_on` agrees; tests stop it between any two changes to the disk.
    fn save_while(&self, checkpoint: &Checkpoint, mut go_on: impl FnMut(&Path) -> bool) -> Result<(), RunError> {
        let (place, temporary) = (self.path(checkpoint.step), self.temporary(checkpoint.step));
        // It may be the only one: then it is not taken away to be written again.
        if self.load(checkpoint.step).is_ok_and(|present| present == *checkpoint) {
            return Ok(());
        }
        files::refuse_link(&self.folder)?;
        if !self.folder.is_dir() {
            fs::create_dir_all(&self.folder).map_err(RunError::io("create", &self.folder))?;
            files::sync_folder(self.folder.parent())?;
        }
        remove_folder(&temporary)?;
        if !go_on(&temporary) {
            return Ok(());
        }
        fs::create_dir(&temporary).map_err(RunError::io("create", &temporary))?;
        let mut stamps = BTreeMap::new();
        for (name, tensors) in [(MODEL, &checkpoint.model), (OPTIMISER, &checkpoint.optimiser)] {
            let path = temporary.join(name);
            if !go_on(&path) {
                return Ok(());
            }
            let bytes = tensors::to_bytes(tensors, &path)?;
            files::write_synced(&path, &bytes)?;
            stamps.insert(name.to_string(), Stamp::of(&bytes));
        }
        let Checkpoint { step, validation, best, .. } = *checkpoint;
        let (metrics, origin) = (checkpoint.metrics.clone(), checkpoint.origin.clone());
        let path = temporary.join(INDEX);
        if !go_on(&path) {
            return Ok(());
        }
        sealed::write(&path, &Index { step, validation, best, metrics, origin, files: stamps })?;
        if !go_on(&place) {
            return Ok(());
        }
        // Only the same step can be in the way; an older one is still there if this stops before the rename.
        self.remove(step)?;
        if !go_on(&place) {
            return Ok(());
        }
        fs::rename(&temporary, &place).map_err(RunError::io("write", &place))?;
        files::sync_folder(Some(&self.folder))
    }

    /// Reads the checkpoint of a step and verifies every byte of it. Whether it is of this run is for
    /// [`crate::OpenRun::checkpoint`] to say.
    ///
    /// # Errors
    /// Where it is absent, incomplete or damaged.
    pub fn load(&self, step: u64) -> Result<Checkpoint, RunError> {
        let folder = self.path(step);
        let index: Index = sealed::read(&folder.join(INDEX), limits::CHECKPOINT_INDEX)?;
        let Index { step: found, validation, best, metrics, origin, files: stamps } = index;
        if found != step {
            return Err(RunError::OtherStep { path: folder, expected: step, found });
        }
        let load = |name: &str| {
            let path = folder.join(name);
            let missing = Stamp { bytes: 0, blake3: "no entry".into() };
            let expected = stamps.get(name).unwrap_or(&missing);
            let differs = |expected: String, found: String| RunError::Damaged { path: path.clone(), expected, found };
            // The size comes first, so that a file that has grown is not read.
            let bytes = fs::metadata(&path).map_err(RunError::io("read", &path))?.len();
            if bytes != expected.bytes {
                return Err(differs(format!("{} bytes", expected.bytes), format!("{bytes} bytes")));
            }
            let content = files::read_at_most(&path, bytes)?;
            let found = Stamp::of(&content);
            if found != *expected {
                return Err(differs(format!("BLAKE3 {}", expected.blake3), format!("BLAKE3 {}", found.blake3)));
            }
            tensors::from_bytes(&content, &path)
        };
        Ok(Checkpoint { step, validation, best, metrics, origin, model: load(MODEL)?, optimiser: load(OPTIMISER)? })
    }

    /// The newest complete checkpoint; `None` where there is none at all.
    ///
    /// # Errors
    /// The newest one's, where there are some and all are damaged.
    pub fn latest(&self) -> Result<Option<Latest>, RunError> {
        let mut damaged = vec![];
        for step in self.steps()?.into_iter().rev() {
            match self.load(step) {
                Ok(checkpoint) => return Ok(Some(Latest { checkpoint, damaged })),
                Err(error) => damaged.push((step, error)),
            }
        }
        damaged.into_iter().next().map_or(Ok(None), |(_, error)| Err(error))
    }

    /// [`Checkpoints::latest`], where it must be that of the run `origin`.
    ///
    /// # Errors
    /// As [`Checkpoints::latest`], and [`RunError::OtherRun`].
    pub fn latest_of(&self, origin: &Origin) -> Result<Option<Latest>, RunError> {
        let latest = self.latest()?;
        if let Some(Latest { checkpoint, .. }) = &latest {
            checkpoint.origin.check(origin, &self.path(checkpoint.step))?;
        }
        Ok(latest)
    }

    /// Removes every checkpoint but those of the given steps, and what interrupted writing left. To be called after
    /// [`Checkpoints::save`] with the last and the best step, so that a complete one is there at any time.
    ///
    /// # Errors
    /// Where a folder can't be removed.
    pub fn keep_only(&self, steps: &[u64]) -> Result<(), RunError> {
        for name in self.names()? {
            match step_of(&name) {
                Some(step) if !steps.contains(&step) => self.remove(step)?,
                None if temporary_step_of(&name).is_some() => remove_folder(&self.folder.join(name))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes all checkpoints, and the folder if nothing else is in it.
    pub(crate) fn clear(&self) -> Result<(), RunError> {
        self.keep_only(&[])?;
        // Fails where something else is in it, which is as it should be.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// A checkpoint loses its name before its files, so that half of one is never found under that name.
    fn remove(&self, step: u64) -> Result<(), RunError> {
        let (place, removed) = (self.path(step), self.folder.join(format!(".step-{step}.old{}", TEMPORARY)));
        if fs::symlink_metadata(&place).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(());
        }
        remove_folder(&removed)?;
        fs::rename(&place, &removed).map_err(RunError::io("remove", &place))?;
        match remove_folder(&removed) {
            // Somebody else's file is in it: it goes back to where they put it.
            Err(RunError::Io { source, .. }) if source.kind() == ErrorKind::DirectoryNotEmpty => {
                fs::rename(&removed, &place).map_err(RunError::io("remove", &place))
            }
            result => result,
        }
    }

    fn temporary(&self, step: u64) -> PathBuf {
        self.folder.join(format!(".step-{step}.new{}", TEMPORARY))
    }

    /// Names of the real folders in the folder.
    fn names(&self) -> Result<Vec<String>, RunError> {
        let io = || RunError::io("read", &self.folder);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            entries => entries.map_err(io())?,
        };
        let mut names = vec![];
        for entry in entries {
            let entry = entry.map_err(io())?;
            if entry.file_type().map_err(io())?.is_dir() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }
}

/// `step-120` → 120; `None` for any other name.
fn step_of(name: &str) -> Option<u64> {
    let step: u64 = name.strip_prefix("step-")?.parse().ok()?;
    (format!("step-{step}") == name).then_some(step)
}

/// The step of a folder that was being written or removed.
fn temporary_step_of(name: &str) -> Option<u64> {
    let name = name.strip_prefix('.')?.strip_suffix(TEMPORARY)?;
    step_of(name.strip_suffix(".new").or_else(|| name.strip_suffix(".old"))?)
}

/// Removes the files that a checkpoint has, then the folder. A foreign file in it stays, and so does the folder; of a link
/// only itself is removed, whatever it leads to.
fn remove_folder(folder: &Path) -> Result<(), RunError> {
    if files::is_link(folder) {
        return files::remove(folder);
    }
    for name in FILES.map(String::from).into_iter().chain([format!("{INDEX}{}", TEMPORARY)]) {
        files::remove(&folder.join(name))?;
    }
    match fs::remove_dir(folder).map_err(RunError::io("remove", folder)) {
        Err(error) if !error.is_absent() => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
