//! Runs that a command reads, and files that it writes.

use std::path::{Path, PathBuf};

use runs::{Checkpoint, OpenRun, RunDirectory, RunError};

use crate::cli::names;
use crate::machine::exit::Failure;
use crate::screen::output::tell;

/// The run directory in `folder`, which its user named.
///
/// # Errors
/// A folder that is none.
pub fn run_directory(folder: &Path) -> Result<RunDirectory, Failure> {
    Ok(RunDirectory::at(names::run(folder)?))
}

/// The run in `folder`, which its user named, whose files must belong together.
///
/// # Errors
/// A folder that is none, a config that is refused, and files that are damaged or of different runs.
pub fn open_run(folder: &Path) -> Result<OpenRun, Failure> {
    run_directory(folder)?.open().map_err(|error| match error {
        RunError::Config(error) => Failure::usage(error),
        error => Failure::failed(error),
    })
}

/// The newest checkpoint of a run; what had to be passed over is named, since what follows is then of an earlier step.
///
/// # Errors
/// A run that has none, or none that can be used.
pub fn latest_checkpoint(run: &OpenRun) -> Result<Checkpoint, Failure> {
    let latest = run.latest_checkpoint().map_err(Failure::failed)?.ok_or_else(|| no_checkpoint(run))?;
    for (step, error) in &latest.damaged {
        tell(format!("checkpoint of step {step} passed over: {error}"));
    }
    Ok(latest.checkpoint)
}

/// The checkpoint of a run with the smallest validation loss.
///
/// # Errors
/// A run that has none, or one that is no longer there or damaged.
pub fn best_checkpoint(run: &OpenRun) -> Result<Checkpoint, Failure> {
    run.best_checkpoint().map_err(Failure::failed)?.ok_or_else(|| no_checkpoint(run))
}

fn no_checkpoint(run: &OpenRun) -> Failure {
    Failure::failed(format!("{} holds no checkpoint yet", run.directory().path().display()))
}

/// Refuses what is a link, where a file is going to be written, or a folder is going to be written into.
///
/// # Errors
/// The link's name.
pub fn refuse_linked(path: &Path) -> Result<(), Failure> {
    // Without a separator or a dot at the end, with which a link would not be seen as one.
    let path: PathBuf = path.components().collect();
    runs::files::refuse_link(&path).map_err(Failure::failed)
}

/// Writes what a command makes: see [`runs::files::write_output`].
///
/// # Errors
/// A place that belongs to a run, a link, a full disk.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    runs::files::write_output(path, bytes).map_err(|error| match error {
        RunError::OfARun { .. } => Failure::usage(error),
        error => Failure::failed(error),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_belongs_to_a_run_is_refused_however_it_is_spelt() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("checkpoints/step-5")).unwrap();
        fs::create_dir_all(run.join("snapshots")).unwrap();
        fs::write(run.join("config.toml"), "").unwrap();
        fs::write(run.join(".lock"), "").unwrap();
        for name in [
            "checkpoints/step-5/model.safetensors",
            "checkpoints/../checkpoints/step-5/model.safetensors",
            "checkpoints/./x.safetensors",
            "../run/snapshots/step-5.safetensors",
            "snapshots/../manifest.json",
            "config.toml",
        ] {
            let error = write_output(&run.join(name), b"x").unwrap_err();
            assert!(error.message().contains("nothing else is written there"), "{name}: {error:?}");
        }
        for name in ["step-5.safetensors", "../elsewhere.safetensors", "checkpoints/../report.html"] {
            write_output(&run.join(name), b"x").unwrap();
        }
        assert_eq!(fs::read(folder.path().join("elsewhere.safetensors")).unwrap(), b"x");
        assert_eq!(fs::read(run.join("config.toml")).unwrap(), b"");
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        fs::create_dir(at("folder")).unwrap();
        std::os::unix::fs::symlink(at("theirs"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("folder"), at("folder-link")).unwrap();
        assert!(write_output(&at("link"), b"mine").is_err());
        assert_eq!(fs::read(at("theirs")).unwrap(), b"theirs");
        for name in ["folder-link", "folder-link/", "folder-link/."] {
            assert!(refuse_linked(&at(name)).is_err(), "{name}");
        }
        assert!(refuse_linked(&at("folder")).is_ok() && refuse_linked(&at("folder/")).is_ok());
    }
}
