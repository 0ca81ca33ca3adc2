//! What can go wrong with the files of a run, other than its config.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::{
    differences::{self, Difference},
    document::ConfigError,
};

/// Why a file of a run can't be read or written. Every variant names the file.
#[derive(Debug, Error)]
pub enum RunError {
    /// The operating system refuses.
    #[error("can't {action} {}: {source}{}", path.display(), advice(source))]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// Not JSON, or not the JSON that belongs there. Lines and columns count from 1.
    #[error("{}:{line}:{column}: {message}", path.display())]
    Json { path: PathBuf, line: usize, column: usize, message: String },
    /// A file far larger than anything that belongs there.
    #[error("{}: {bytes} bytes is too large: at most {most}", path.display())]
    TooLarge { path: PathBuf, bytes: u64, most: u64 },
    /// Another process writes to this run.
    #[error("{} is in use by {holder}: wait for it, or stop it", path.display())]
    Locked { path: PathBuf, holder: String },
    /// A folder with something else in it.
    #[error("{} holds `{entry}` and isn't a run of Headcount: nothing is written there", path.display())]
    NotARun { path: PathBuf, entry: String },
    /// The folder belongs to another run.
    #[error("{} holds another config than this run's ({differences}): it was edited or moved there", path.display())]
    OtherConfig { path: PathBuf, differences: String },
    /// A link where a run writes.
    #[error("{} is a link: nothing is written through it; put a real file or folder there, or remove it", path.display())]
    Link { path: PathBuf },
    /// A folder, a pipe or a device where a file is to be written.
    #[error("{} is not a regular file: nothing is written there", path.display())]
    Special { path: PathBuf },
    /// An output where a run has its own files.
    #[error("{} is a place of the run {}: nothing else is written there", path.display(), run.display())]
    OfARun { path: PathBuf, run: PathBuf },
    /// A folder, a pipe or a device.
    #[error("{} is not a regular file: it is not read", path.display())]
    NoFile { path: PathBuf },
    /// A line that is no line of ours.
    #[error("{}:{line}: longer than {most} bytes: the file is damaged", path.display())]
    LineTooLong { path: PathBuf, line: usize, most: usize },
    /// A file that changed after it was written.
    #[error("{}: it doesn't end with the BLAKE3 hash of its text: it was edited or damaged", path.display())]
    Seal { path: PathBuf },
    /// A file of another run.
    #[error("{} and {beside} are of different runs: {}", path.display(), differences::render(differences, "there", &format!("in {beside}")))]
    OtherRun { path: PathBuf, beside: &'static str, differences: Vec<Difference> },
    /// Wall-clock figures of another run.
    #[error("{} holds figures of the run {found}, and this is {expected}", path.display())]
    OtherTimings { path: PathBuf, found: String, expected: String },
    /// A run's config that can't be read.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A file of samples that is not what it was.
    #[error(
        "{}: the file that its samples come from has changed: it was {then}, and is {now}; put the file back, or train in \
         another folder (--out) or under another name",
        run.display()
    )]
    FileChanged { run: PathBuf, then: String, now: String },
    /// A log that is not the one that the run ended with.
    #[error("{} is not what the run wrote: it was edited or damaged since it ended", path.display())]
    MetricsChanged { path: PathBuf },
    /// A line that goes back, or that is already there.
    #[error("{}: step {step} ({what}) can't follow step {last}: no step is written twice", path.display())]
    OutOfOrder { path: PathBuf, what: &'static str, step: u64, last: u64 },
    /// A tensor file that can't be read.
    #[error("{}: not a valid tensor file: {message}", path.display())]
    Tensors { path: PathBuf, message: String },
    /// A file that changed after it was written.
    #[error("{}: {found} differs from {expected} in checkpoint.json: the file is damaged", path.display())]
    Damaged { path: PathBuf, expected: String, found: String },
    /// Weights that are not those that were written.
    #[error("{}: the weights don't have the fingerprint in the file's metadata: the file is damaged", path.display())]
    Fingerprint { path: PathBuf },
    /// A checkpoint under another checkpoint's name.
    #[error("{}: this is that of step {found}, not of step {expected}", path.display())]
    OtherStep { path: PathBuf, expected: u64, found: u64 },
}

impl RunError {
    /// Whether there is no such file.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the operating system lets nothing be written there: a folder of another user, a file system that is only to be
    /// read. What was to be written can still be shown.
    pub fn is_read_only(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        matches!(self, Self::Io { action, source, .. }
            if *action != "read" && matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem))
    }

    /// Whether something that was to be written could not be, for want of room or of permission.
    pub fn is_unwritten(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        self.is_read_only()
            || matches!(self, Self::Io { action, source, .. }
                if *action != "read" && matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }

    /// What was written and is no longer there.
    pub(crate) fn absent(path: &Path) -> Self {
        Self::io("read", path)(io::Error::new(io::ErrorKind::NotFound, "it was written and is missing"))
    }

    /// For `map_err` on what the operating system answers.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// For `map_err` on serde_json's answer; `line_offset` is the number of lines before the text.
    pub(crate) fn json(path: &Path, line_offset: usize) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_path_buf();
        move |error| {
            let text = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let message = text.strip_suffix(&place).unwrap_or(&text).to_string();
            Self::Json { path, line: error.line().max(1) + line_offset, column: error.column().max(1), message }
        }
    }
}

/// What may help.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space: what was complete is intact, and the same command goes on from it"
        }
        io::ErrorKind::FileTooLarge => {
            "; the system allows no larger files here: what was complete is intact, and the same command goes on from it"
        }
        _ => "",
    }
}
