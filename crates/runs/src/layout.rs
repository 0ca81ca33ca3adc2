//! Names of the files of a run, and how its folder is known from others.

use std::path::{Path, PathBuf};

pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const METRICS: &str = "metrics.jsonl";
pub(crate) const TIMING: &str = "timing.jsonl";
pub(crate) const CHECKPOINTS: &str = "checkpoints";
pub(crate) const SNAPSHOTS: &str = "snapshots";
pub(crate) const SUMMARY: &str = "summary.json";
pub(crate) const HEADS: &str = "heads.json";
pub(crate) const TEST_SCORES: &str = "test_scores.json";
pub(crate) const LOCK: &str = ".lock";
/// The folder of the event file, where one is kept.
pub(crate) const TENSORBOARD: &str = "tensorboard";
/// The event file: TensorBoard reads what has `tfevents` in its name.
pub(crate) const EVENTS: &str = "events.out.tfevents.0.headcount";
/// Ending of a file that is not complete yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// What a run writes.
pub(crate) const OWN: [&str; 10] =
    [CONFIG, MANIFEST, METRICS, TIMING, CHECKPOINTS, SNAPSHOTS, SUMMARY, TEST_SCORES, HEADS, LOCK];

/// Whether a folder is that of a run, however little of it is there or readable.
pub(crate) fn is_run(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|found| !found.is_dir());
    [MANIFEST, METRICS, SUMMARY].into_iter().any(has) || has(CONFIG) && has(LOCK)
}

/// The run to which a path belongs that is its own to write: its config, logs, checkpoints and all, not what else lies in
/// its folder. `folder`, where the file `name` is or would be, must be canonical. `heads.json` is not among them: it follows
/// from the others and is made again wherever it is not what it should be.
pub(crate) fn owner(folder: &Path, name: &str) -> Option<PathBuf> {
    let run = folder.ancestors().find(|ancestor| is_run(ancestor))?;
    let first = match folder.strip_prefix(run).ok()?.components().next() {
        Some(inner) => inner.as_os_str().to_str()?,
        None => name.strip_suffix(TEMPORARY).unwrap_or(name),
    };
    (first != HEADS && OWN.contains(&first)).then(|| run.into())
}
