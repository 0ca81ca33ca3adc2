//! Who works on which run, where several processes, on one machine or on many, share an experiment's folder.
//!
//! A run is worked on in a folder of its own, `working/<attempt>/<run>/`, and comes to rest at `<run>/` by a rename, done or to be
//! gone on with. Who may work on it is whoever made the claim `working/<run>.<generation>`: a file made in one piece together
//! with its name, so that only one process can. The holder writes a beat into it now and then. Whoever waits judges by that alone,
//! on a clock of its own: where the content has not changed for a while the holder is taken for dead, and the next generation is
//! claimed. So clocks need not agree, and locks need not work; where they do, a process that died on the same machine is
//! known at once.
//!
//! A holder that was taken for dead too early does no harm: it writes into its own attempt, sees at its next beat that there is a
//! later claim, and puts nothing to rest. Exactly one attempt gets the run's name, as a rename onto a folder that is not empty is
//! refused.

mod token;

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    directory::{RunDirectory, State},
    error::RunError,
    files, layout, limits,
};

pub use token::Token;
use token::{NONCE, boot, generations, is_free, tidy};

/// The folder beside the runs that are worked on.
pub const WORKING: &str = "working";

/// How long a claim may stay as it is before its holder is taken for dead.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The claims that this process looks at: what it saw of them, and since when.
#[derive(Debug)]
pub struct Claims {
    patience: Duration,
    seen: BTreeMap<PathBuf, (Vec<u8>, Instant)>,
}

/// What came of asking for a run.
#[derive(Debug)]
pub enum Asked {
    /// It is this process's.
    Mine(Claim),
    /// Another one works on it; who, as far as it is known.
    Elsewhere { holder: String },
    /// It is done, by now or since long.
    Done,
}

/// The right to work on a run, and where.
#[derive(Debug)]
pub struct Claim {
    token: Token,
    /// Where the run comes to rest.
    run: RunDirectory,
    /// Where it is worked on.
    attempt: RunDirectory,
}

/// What came of asking for a name.
#[derive(Debug)]
enum Taken {
    Mine(Token),
    Elsewhere { holder: String },
}

impl Default for Claims {
    fn default() -> Self {
        Self::new(PATIENCE)
    }
}

impl Claims {
    /// With a patience that both sides must have.
    pub fn new(patience: Duration) -> Self {
        Self { patience, seen: BTreeMap::new() }
    }

    /// Asks for a run that is to be done, without waiting. What an earlier attempt has left is there to be gone on with.
    ///
    /// # Errors
    /// Where files can't be read or written, and [`RunError::NotARun`] where something else lies in its place.
    pub fn ask(&mut self, run: &RunDirectory) -> Result<Asked, RunError> {
        if matches!(run.state()?, State::Finished(_)) {
            return Ok(Asked::Done);
        }
        run.refuse_foreign()?;
        if run.is_running() {
            return Ok(Asked::Elsewhere { holder: "a process that trains it alone".into() });
        }
        let (working, name) = place(run);
        let token = match self.take(&working, &name)? {
            Taken::Elsewhere { holder } => return Ok(Asked::Elsewhere { holder }),
            Taken::Mine(token) => token,
        };
        // It may have come to rest since it was looked at.
        if matches!(run.state()?, State::Finished(_)) {
            token.give_back()?;
            return Ok(Asked::Done);
        }
        let attempt = RunDirectory::at(working.join(token.attempt()).join(&name));
        if let Err(error) = bring(run, &working, &name, &attempt) {
            token.give_back()?;
            return Err(error);
        }
        Ok(Asked::Mine(Claim { token, run: run.clone(), attempt }))
    }

    /// Asks for a name in a folder, without waiting; `None` where another process has it.
    ///
    /// # Errors
    /// Where files can't be read or written.
    pub fn token(&mut self, folder: &Path, name: &str) -> Result<Option<Token>, RunError> {
        Ok(match self.take(&folder.join(WORKING), name)? {
            Taken::Mine(token) => Some(token),
            Taken::Elsewhere { .. } => None,
        })
    }

    fn take(&mut self, working: &Path, name: &str) -> Result<Taken, RunError> {
        match self.try_to_take(working, name) {
            // The folder was tidied up this moment by whoever was the last to work there.
            Err(error) if error.is_absent() => Ok(Taken::Elsewhere { holder: "another process".into() }),
            taken => taken,
        }
    }

    fn try_to_take(&mut self, working: &Path, name: &str) -> Result<Taken, RunError> {
        files::check_folder(working)?;
        match fs::create_dir_all(working) {
            // It was there, and may have been tidied up since: what follows finds out.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => created.map_err(RunError::io("create", working))?,
        }
        let generation = match generations(working, name)?.pop() {
            None => 1,
            Some((generation, path)) => match self.holder(&path, working, name)? {
                Some(holder) => return Ok(Taken::Elsewhere { holder }),
                None => generation + 1,
            },
        };
        Ok(match Token::make(working, name, generation, self.patience)? {
            Some(token) => Taken::Mine(token),
            None => Taken::Elsewhere { holder: "another process".into() },
        })
    }

    /// Who holds a claim; `None` where nobody does any more.
    fn holder(&mut self, path: &Path, working: &Path, name: &str) -> Result<Option<String>, RunError> {
        let content = match files::read_at_most(path, limits::CLAIM) {
            Ok(content) => content,
            // Given back this moment; whoever asks again finds out how that ended.
            Err(error) if error.is_absent() => return Ok(Some("another process".into())),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&content).into_owned();
        let mut lines = text.lines();
        let holder = lines.next().filter(|line| !line.is_empty()).unwrap_or("another process").to_string();
        // On this machine, since it was started, a lock that is free is that of a process that is gone. Its worker may be about to
        // save what it did.
        let is_here = boot().is_some_and(|boot| lines.next() == Some(boot.as_str()));
        if is_here && is_free(path) && !attempts(working, name)?.iter().any(|run| RunDirectory::at(run).is_running()) {
            return Ok(None);
        }
        let now = Instant::now();
        let (last, since) = self.seen.entry(path.into()).or_insert_with(|| (content.clone(), now));
        if *last != content {
            (*last, *since) = (content, now);
        }
        Ok((since.elapsed() < self.patience).then_some(holder))
    }
}

impl Claim {
    /// Where the run is to be worked on.
    pub fn attempt(&self) -> &RunDirectory {
        &self.attempt
    }

    /// Shows that this process is alive, if it is time to. False where another process has taken the run over: then nothing of this
    /// attempt counts.
    ///
    /// # Errors
    /// Where the claim can't be written.
    pub fn beat(&mut self) -> Result<bool, RunError> {
        self.token.beat()
    }

    /// Puts the run to rest, done or to be gone on with, and lets go of it. False where another process has it, or has done it: what
    /// was done here is removed.
    ///
    /// # Errors
    /// Where files can't be moved; everything is still there then.
    pub fn rest(self) -> Result<bool, RunError> {
        let Self { token, run, attempt } = self;
        let (working, name) = place(&run);
        let is_mine = token.is_held()?;
        if !is_mine {
            discard(&attempt);
            tidy(&working);
            return Ok(false);
        }
        let rests = match attempt.path().is_dir().then(|| fs::rename(attempt.path(), run.path())) {
            None => true,
            Some(Ok(())) => true,
            Some(Err(error)) if is_taken(&error) => false,
            Some(Err(error)) => return Err(RunError::io("write", run.path())(error)),
        };
        files::sync_folder(run.path().parent())?;
        // Whatever earlier holders left; where somebody trained it by hand meanwhile and is not done, this attempt stays.
        if rests || matches!(run.state(), Ok(State::Finished(_))) {
            for earlier in attempts(&working, &name)? {
                discard(&RunDirectory::at(earlier));
            }
        }
        drop(attempt.path().parent().map(fs::remove_dir));
        token.give_back()?;
        Ok(rests)
    }
}

/// Where a run's files are now: at rest, or else where the latest attempt is; where it would rest if there are none.
pub fn latest(run: &RunDirectory) -> RunDirectory {
    if run.path().is_dir() {
        return run.clone();
    }
    let (working, name) = place(run);
    let latest = attempts(&working, &name).ok().and_then(|mut attempts| attempts.pop());
    latest.map_or_else(|| run.clone(), RunDirectory::at)
}

/// The folder of what is worked on, and the name of the run.
fn place(run: &RunDirectory) -> (PathBuf, String) {
    let parent = run.path().parent().unwrap_or(Path::new(""));
    let name = run.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    (parent.join(WORKING), name)
}

/// The attempts at a run that are there, the latest last.
fn attempts(working: &Path, name: &str) -> Result<Vec<PathBuf>, RunError> {
    let entries = match fs::read_dir(working) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(RunError::io("read", working))?,
    };
    let attempt = |entry: fs::DirEntry| {
        let folder = entry.file_name();
        let (generation, nonce) = folder.to_str()?.split_once('-')?;
        let generation: u64 = generation.parse().ok()?;
        let run = entry.path().join(name);
        let is_one = nonce.len() == NONCE && nonce.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is_one && run.is_dir() && !files::is_link(&entry.path()) && !files::is_link(&run)).then_some((generation, run))
    };
    let mut found: Vec<(u64, PathBuf)> = entries.flatten().filter_map(attempt).collect();
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Brings what there is of a run to where it is worked on now.
fn bring(run: &RunDirectory, working: &Path, name: &str, attempt: &RunDirectory) -> Result<(), RunError> {
    let folder = attempt.path().parent().unwrap_or(working);
    fs::create_dir_all(folder).map_err(RunError::io("create", folder))?;
    if run.path().is_dir() {
        return fs::rename(run.path(), attempt.path()).map_err(RunError::io("move", run.path()));
    }
    let Some(earlier) = attempts(working, name)?.pop().map(RunDirectory::at) else { return Ok(()) };
    // Its holder may only be slow, and go on writing: what it has is copied, whole or not at all.
    let temporary = folder.join(layout::TEMPORARY);
    for _ in 0..3 {
        drop(fs::remove_dir_all(&temporary));
        if copy(earlier.path(), &temporary, 0).is_ok() {
            return fs::rename(&temporary, attempt.path()).map_err(RunError::io("move", &temporary));
        }
    }
    // Something is always on its way there: it is done anew.
    drop(fs::remove_dir_all(&temporary));
    Ok(())
}

/// Copies a folder; links are left out, and so is the lock, which is the holder's.
fn copy(from: &Path, to: &Path, depth: usize) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() && depth < limits::DEPTH {
            copy(&entry.path(), &target, depth + 1)?;
        } else if kind.is_file() && entry.file_name() != layout::LOCK {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Removes an attempt. One that can't be removed, since its holder still writes, is left to whoever tidies up next.
fn discard(attempt: &RunDirectory) {
    drop(fs::remove_dir_all(attempt.path()));
    if let Some(folder) = attempt.path().parent() {
        drop(fs::remove_dir(folder));
    }
}

/// Whether a rename was refused since there is something in its place.
fn is_taken(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests;
