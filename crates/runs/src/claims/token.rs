//! A name that only one process holds: a file that is made in one piece together with its name, and into which its holder writes a
//! beat now and then.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{error::RunError, files, layout, limits};

/// How many beats a holder has in that time.
const BEATS: u32 = 12;

/// A name that only one process holds.
#[derive(Debug)]
pub struct Token {
    /// The folder that it is in.
    working: PathBuf,
    /// The name without its generation.
    name: String,
    generation: u64,
    nonce: String,
    /// Locked, where the file system has locks: the system lets go of it when this process ends.
    file: File,
    beats: u64,
    last: Instant,
    patience: Duration,
}

impl Token {
    /// Makes the claim; `None` where it is there.
    pub(super) fn make(
        working: &Path,
        name: &str,
        generation: u64,
        patience: Duration,
    ) -> Result<Option<Self>, RunError> {
        let nonce = nonce();
        let temporary = working.join(format!("{name}.{nonce}{}", layout::TEMPORARY));
        let create = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = create(&temporary).map_err(RunError::io("create", &temporary))?;
        let mut token = Self {
            working: working.into(),
            name: name.into(),
            generation,
            nonce,
            file,
            beats: 0,
            last: Instant::now(),
            patience,
        };
        let path = token.path();
        // With its lock and its content, so that nobody finds it without.
        let _ = token.file.try_lock(); // where there are none, beats tell
        let written = token.write();
        let linked = written.map(|()| fs::hard_link(&temporary, &path));
        // The answer to a link that was made can get lost on a network, and asking again finds it there.
        let has_two_names = has_two_names(&token.file);
        files::remove(&temporary)?;
        match linked? {
            Ok(()) => Ok(Some(token)),
            Err(_) if has_two_names => Ok(Some(token)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            // A file system without second names.
            Err(_) => match create(&path) {
                Ok(file) => {
                    token.file = file;
                    let _ = token.file.try_lock();
                    token.write()?;
                    Ok(Some(token))
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
                Err(error) => Err(RunError::io("create", &path)(error)),
            },
        }
    }

    /// The claim's file.
    pub(super) fn path(&self) -> PathBuf {
        claim(&self.working, &self.name, self.generation)
    }

    /// What the attempt under this claim is called: no other has the same, whenever and wherever it is made.
    pub(super) fn attempt(&self) -> String {
        format!("{}-{}", self.generation, self.nonce)
    }

    fn write(&mut self) -> Result<(), RunError> {
        let (process, host, boot) = (std::process::id(), host(), boot().unwrap_or_default());
        let content = format!("process {process} on {host}\n{boot}\n{}\n{:020}\n", self.nonce, self.beats);
        let rewound = self.file.rewind();
        let written =
            rewound.and_then(|()| self.file.write_all(content.as_bytes())).and_then(|()| self.file.sync_data());
        written.map_err(RunError::io("write", &self.path()))
    }

    /// Shows that its holder is alive, if it is time to. False where another process has it by now.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn beat(&mut self) -> Result<bool, RunError> {
        if self.last.elapsed() < self.patience / BEATS {
            return Ok(true);
        }
        if !self.is_held()? {
            return Ok(false);
        }
        self.last = Instant::now();
        self.beats += 1;
        self.write()?;
        Ok(true)
    }

    /// Whether this is the latest claim, and still the one that was made.
    pub(super) fn is_held(&self) -> Result<bool, RunError> {
        if fs::symlink_metadata(claim(&self.working, &self.name, self.generation + 1)).is_ok() {
            return Ok(false);
        }
        match files::read_at_most(&self.path(), limits::CLAIM) {
            Ok(content) => Ok(String::from_utf8_lossy(&content).lines().nth(2) == Some(&self.nonce)),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets go of it.
    ///
    /// # Errors
    /// Where its file can't be removed.
    pub fn give_back(self) -> Result<(), RunError> {
        if self.is_held()? {
            // Before the claim, which keeps the folder from being tidied up: those of earlier holders, who are gone, and what they did
            // not come to make.
            let claims = generations(&self.working, &self.name)?.into_iter();
            let earlier = claims.filter(|(generation, _)| *generation < self.generation).map(|(_, path)| path);
            for path in earlier.chain(left_half_made(&self.working, &self.name, self.patience)?) {
                files::remove(&path)?;
            }
            files::remove(&self.path())?;
        }
        tidy(&self.working);
        Ok(())
    }
}

/// The file of a claim.
fn claim(working: &Path, name: &str, generation: u64) -> PathBuf {
    working.join(format!("{name}.{generation}"))
}

/// The claims of a name, the latest last.
pub(super) fn generations(working: &Path, name: &str) -> Result<Vec<(u64, PathBuf)>, RunError> {
    let entries = match fs::read_dir(working) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(RunError::io("read", working))?,
    };
    let generation = |entry: fs::DirEntry| {
        let file = entry.file_name();
        let generation = file.to_str()?.strip_prefix(name)?.strip_prefix('.')?.parse().ok()?;
        Some((generation, entry.path()))
    };
    let mut found: Vec<(u64, PathBuf)> = entries.flatten().filter_map(generation).collect();
    found.sort();
    Ok(found)
}

/// Claims of a name that a process which is gone did not come to make.
fn left_half_made(working: &Path, name: &str, patience: Duration) -> Result<Vec<PathBuf>, RunError> {
    let is_one = |file: &std::ffi::OsStr| {
        let nonce = file.to_str()?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(layout::TEMPORARY)?;
        (nonce.len() == NONCE).then_some(())
    };
    let is_old = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|found| found.modified()).ok();
        modified.and_then(|time| time.elapsed().ok()).is_some_and(|age| age > patience)
    };
    let entries = fs::read_dir(working).map_err(RunError::io("read", working))?.flatten();
    let left =
        entries.filter(|entry| is_one(&entry.file_name()).is_some() && (is_free(&entry.path()) || is_old(entry)));
    Ok(left.map(|entry| entry.path()).collect())
}

/// Removes the folder where nobody works any more.
pub(super) fn tidy(working: &Path) {
    drop(fs::remove_dir(working));
}

/// Whether nobody has a lock on a claim that still stands, where there are locks. Who gives one back removes it before the lock
/// goes, so that it stands with a free lock only where its holder is gone.
pub(super) fn is_free(path: &Path) -> bool {
    let file = OpenOptions::new().read(true).write(true).open(path);
    file.is_ok_and(|file| file.try_lock().is_ok() && names_it(path, &file))
}

/// Whether a path still leads to the file that was opened there.
fn names_it(path: &Path, file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let both = fs::symlink_metadata(path).ok().zip(file.metadata().ok());
        both.is_some_and(|(named, opened)| (named.dev(), named.ino()) == (opened.dev(), opened.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.exists()
    }
}

/// Hex digits of a nonce.
pub(super) const NONCE: usize = 16;

/// Random enough that no two claims anywhere have the same.
fn nonce() -> String {
    use std::hash::{BuildHasher, RandomState};
    let number = RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now(), host()));
    format!("{number:016x}")
}

/// The name of this machine.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    name.map_or_else(|| "another machine".into(), |name| name.trim().into())
}

/// This machine since it was started; no other has the same. `None` where the system does not tell.
pub(super) fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_string()).filter(|id| !id.is_empty())
}

/// Whether a file has a second name.
fn has_two_names(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|metadata| metadata.nlink() > 1)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}
