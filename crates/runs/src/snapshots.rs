//! `snapshots/step-N.safetensors`: the weights at some steps of a run, for whoever wants to see how they came about.
//!
//! A run can't go on from them: that is what [`crate::Checkpoints`] are for. A snapshot is complete or absent, and the same
//! bytes whatever was interrupted on the way. Its metadata says which run and step it is of, and holds the fingerprint of its
//! weights, with which reading compares them. The untrained weights need none: they follow from the config.

use std::{fs, io::ErrorKind, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    error::RunError,
    files,
    layout::TEMPORARY,
    manifest::weights_fingerprint,
    origin::Origin,
    tensors::{self, Tensors},
};

/// Key of a file's metadata.
const HEADER: &str = "headcount";

/// The weights of a run at one step.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Optimiser steps done.
    pub step: u64,
    /// The run that it belongs to.
    pub origin: Origin,
    /// Weights by parameter path.
    pub model: Tensors,
}

/// A snapshot's metadata, in JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    step: u64,
    /// [`weights_fingerprint`] of the weights.
    weights_blake3: String,
    origin: Origin,
}

/// The snapshots of a run.
#[derive(Clone, Debug)]
pub struct Snapshots {
    folder: PathBuf,
}

impl Snapshots {
    /// Those in a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The file of the snapshot of `step`.
    pub fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("step-{step}.safetensors"))
    }

    /// Writes the weights at a step, whole or not at all.
    ///
    /// # Errors
    /// Where the disk is full or gone, or a tensor's shape doesn't fit its values.
    pub fn save(&self, snapshot: &Snapshot) -> Result<(), RunError> {
        files::refuse_link(&self.folder)?;
        fs::create_dir_all(&self.folder).map_err(RunError::io("create", &self.folder))?;
        let Snapshot { step, origin, model } = snapshot;
        let path = self.path(*step);
        let header = Header { step: *step, weights_blake3: fingerprint(model), origin: origin.clone() };
        // One key: of several the order, and so the bytes, would vary.
        let header = serde_json::to_string(&header).map_err(RunError::json(&path, 0))?;
        let bytes = tensors::to_bytes_with(model, Some([(HEADER.to_string(), header)].into()), &path)?;
        files::write_atomically(&path, &bytes)
    }

    /// Reads the weights at `step` and compares them with their fingerprint. Whether they are of this run is for
    /// [`crate::OpenRun::snapshot`] to say.
    ///
    /// # Errors
    /// Where there is no such snapshot, it is no valid file of tensors, or it was damaged.
    pub fn load(&self, step: u64) -> Result<Snapshot, RunError> {
        let path = self.path(step);
        let (model, metadata) = tensors::read(&path)?;
        let header = metadata.get(HEADER).and_then(|text| serde_json::from_str::<Header>(text).ok());
        match header {
            Some(header) if header.weights_blake3 != fingerprint(&model) => Err(RunError::Fingerprint { path }),
            Some(header) if header.step != step => {
                Err(RunError::OtherStep { path, expected: step, found: header.step })
            }
            Some(header) => Ok(Snapshot { step, origin: header.origin, model }),
            None => Err(RunError::Fingerprint { path }),
        }
    }

    /// Steps that have a snapshot, rising.
    ///
    /// # Errors
    /// Where the folder can't be read.
    pub fn steps(&self) -> Result<Vec<u64>, RunError> {
        let mut steps: Vec<u64> = self.names()?.iter().filter_map(|name| step_of(name)).collect();
        steps.sort_unstable();
        Ok(steps)
    }

    /// Removes all snapshots and what interrupted writing left, and the folder if nothing else is in it.
    pub(crate) fn clear(&self) -> Result<(), RunError> {
        for name in self.names()? {
            if step_of(name.strip_suffix(TEMPORARY).unwrap_or(&name)).is_some() {
                files::remove(&self.folder.join(name))?;
            }
        }
        // Fails where something else is in it, which is as it should be.
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// Names of the files in the folder; none where it is a link, which leads to somebody else's files.
    fn names(&self) -> Result<Vec<String>, RunError> {
        let io = || RunError::io("read", &self.folder);
        match fs::symlink_metadata(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(io()(error)),
            Ok(metadata) if !metadata.is_dir() => return Ok(vec![]),
            Ok(_) => {}
        }
        let mut names = vec![];
        for entry in fs::read_dir(&self.folder).map_err(io())? {
            let entry = entry.map_err(io())?;
            if entry.file_type().map_err(io())?.is_file() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    }
}

fn fingerprint(model: &Tensors) -> String {
    weights_fingerprint(model.iter().map(|(path, tensor)| (path.as_str(), &tensor.shape, &tensor.values))).all
}

/// `step-120.safetensors` → 120; `None` for any other name.
fn step_of(name: &str) -> Option<u64> {
    let step: u64 = name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok()?;
    (format!("step-{step}.safetensors") == name).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use architecture::HostTensor;

    fn snapshot(step: u64, value: f32) -> Snapshot {
        let tensor = HostTensor { shape: vec![2], values: vec![value, -value] };
        let origin = Origin { config: "seed = 1".into(), ..Default::default() };
        Snapshot { step, origin, model: [("blocks.0.x".to_string(), tensor)].into() }
    }

    #[test]
    fn snapshots_are_written_read_listed_and_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::new(folder.path().join("snapshots"));
        assert!(snapshots.steps().unwrap().is_empty());
        for step in [100, 50, 800] {
            snapshots.save(&snapshot(step, step as f32)).unwrap();
        }
        snapshots.save(&snapshot(50, 3.0)).unwrap();
        assert_eq!(snapshots.steps().unwrap(), [50, 100, 800]);
        assert_eq!(
            (snapshots.load(50).unwrap(), snapshots.load(800).unwrap()),
            (snapshot(50, 3.0), snapshot(800, 800.0))
        );
        fs::rename(snapshots.path(100), snapshots.path(150)).unwrap();
        assert!(matches!(snapshots.load(150), Err(RunError::OtherStep { expected: 150, found: 100, .. })));
        fs::rename(snapshots.path(150), snapshots.path(100)).unwrap();
        assert!(snapshots.load(51).unwrap_err().to_string().contains("step-51.safetensors"));

        fs::write(snapshots.path(7).with_extension("safetensors.tmp"), "half").unwrap();
        let foreign = ["notes.txt", "step-07.safetensors", "step-1.safetensors.old"];
        for name in foreign {
            fs::write(snapshots.folder.join(name), "mine").unwrap();
        }
        assert_eq!(snapshots.steps().unwrap(), [50, 100, 800]);
        snapshots.clear().unwrap();
        let left = snapshots.names().unwrap();
        assert!(left.len() == 3 && foreign.iter().all(|name| left.contains(&name.to_string())), "{left:?}");
        for name in foreign {
            fs::remove_file(snapshots.folder.join(name)).unwrap();
        }
        snapshots.clear().unwrap();
        assert!(!snapshots.folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = Snapshots::new(folder.path().join("elsewhere"));
        elsewhere.save(&snapshot(5, 1.0)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&elsewhere.folder, &link).unwrap();
        Snapshots::new(&link).clear().unwrap();
        assert_eq!(elsewhere.steps().unwrap(), [5]);
    }
}
