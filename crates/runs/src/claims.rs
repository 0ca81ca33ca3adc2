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

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Seek, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    directory::{RunDirectory, State},
    error::RunError,
    files, layout, limits,
};

/// The folder beside the runs that are worked on.
pub const WORKING: &str = "working";

/// How long a claim may stay as it is before its holder is taken for dead.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// How many beats a holder has in that time.
const BEATS: u32 = 12;

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

/// A name that only one process holds.
#[derive(Debug)]
pub struct Token {
    path: PathBuf,
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
        let attempt = RunDirectory::at(working.join(format!("{}-{}", token.generation, token.nonce)).join(&name));
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
        fs::create_dir_all(working).map_err(RunError::io("create", working))?;
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

impl Token {
    /// Makes the claim; `None` where it is there.
    fn make(working: &Path, name: &str, generation: u64, patience: Duration) -> Result<Option<Self>, RunError> {
        let nonce = nonce();
        let path = working.join(format!("{name}.{generation}"));
        let temporary = working.join(format!("{name}.{nonce}{}", layout::TEMPORARY));
        let create = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = create(&temporary).map_err(RunError::io("create", &temporary))?;
        let mut token =
            Self { path, name: name.into(), generation, nonce, file, beats: 0, last: Instant::now(), patience };
        // With its lock and its content, so that nobody finds it without.
        let _ = token.file.try_lock(); // where there are none, beats tell
        let written = token.write();
        let linked = written.map(|()| fs::hard_link(&temporary, &token.path));
        // The answer to a link that was made can get lost on a network, and asking again finds it there.
        let has_two_names = has_two_names(&token.file);
        files::remove(&temporary)?;
        match linked? {
            Ok(()) => Ok(Some(token)),
            Err(_) if has_two_names => Ok(Some(token)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            // A file system without second names.
            Err(_) => match create(&token.path) {
                Ok(file) => {
                    token.file = file;
                    let _ = token.file.try_lock();
                    token.write()?;
                    Ok(Some(token))
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
                Err(error) => Err(RunError::io("create", &token.path)(error)),
            },
        }
    }

    fn write(&mut self) -> Result<(), RunError> {
        let (process, host, boot) = (std::process::id(), host(), boot().unwrap_or_default());
        let content = format!("process {process} on {host}\n{boot}\n{}\n{:020}\n", self.nonce, self.beats);
        let rewound = self.file.rewind();
        let written =
            rewound.and_then(|()| self.file.write_all(content.as_bytes())).and_then(|()| self.file.sync_data());
        written.map_err(RunError::io("write", &self.path))
    }

    /// See [`Claim::beat`].
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
    fn is_held(&self) -> Result<bool, RunError> {
        let next = self.path.with_file_name(format!("{}.{}", self.name, self.generation + 1));
        if fs::symlink_metadata(&next).is_ok() {
            return Ok(false);
        }
        match files::read_at_most(&self.path, limits::CLAIM) {
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
        let working = self.path.parent().unwrap_or(Path::new(""));
        if self.is_held()? {
            // Those of earlier holders, who are gone, before the one that outranks them.
            for (generation, path) in generations(working, &self.name)? {
                if generation < self.generation {
                    files::remove(&path)?;
                }
            }
            files::remove(&self.path)?;
            for path in left_half_made(working, &self.name, self.patience)? {
                files::remove(&path)?;
            }
        }
        tidy(working);
        Ok(())
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

/// The claims of a name, the latest last.
fn generations(working: &Path, name: &str) -> Result<Vec<(u64, PathBuf)>, RunError> {
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

/// Removes the folder where nobody works any more.
fn tidy(working: &Path) {
    drop(fs::remove_dir(working));
}

/// Whether a rename was refused since there is something in its place.
fn is_taken(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists)
}

/// Whether nobody has a lock on a claim that still stands, where there are locks. Who gives one back removes it before the lock
/// goes, so that it stands with a free lock only where its holder is gone.
fn is_free(path: &Path) -> bool {
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
const NONCE: usize = 16;

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
fn boot() -> Option<String> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::Config;

    const SOON: Duration = Duration::from_millis(60);

    fn config() -> Config {
        Config::parse("name = \"h1\"\n[task]\nkind = \"registers\"\n", "test.toml").unwrap()
    }

    fn run_in(folder: &Path) -> RunDirectory {
        RunDirectory::of(folder, &config())
    }

    #[track_caller]
    fn mine(asked: Asked) -> Claim {
        match asked {
            Asked::Mine(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    fn is_elsewhere(asked: &Asked) -> bool {
        matches!(asked, Asked::Elsewhere { .. })
    }

    /// A claim whose holder can't be asked whether it lives: from another machine.
    fn from_elsewhere(claim: &Claim) {
        let text = fs::read_to_string(&claim.token.path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let other = format!("process 1 on elsewhere\nanother boot\n{}\n{}\n", lines[2], lines[3]);
        fs::write(&claim.token.path, other).unwrap();
    }

    /// What a worker would have written.
    fn work(attempt: &RunDirectory, name: &str, content: &str) {
        drop(attempt.create(&config()).unwrap());
        fs::write(attempt.path().join(name), content).unwrap();
    }

    #[test]
    fn one_holds_a_run_and_what_it_did_comes_to_rest() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let mut one = Claims::default();
        let mut other = Claims::default();
        let claim = mine(one.ask(&run).unwrap());
        assert!(is_elsewhere(&other.ask(&run).unwrap()) && is_elsewhere(&one.ask(&run).unwrap()));
        work(claim.attempt(), "notes", "half");
        assert_eq!(latest(&run), *claim.attempt());
        assert!(claim.rest().unwrap());
        assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "half");
        assert!(!folder.path().join(WORKING).exists());
        // Gone on with from there.
        let claim = mine(other.ask(&run).unwrap());
        assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "half");
        assert!(!run.path().exists());
    }

    /// A process that is gone on this machine is known at once, where there are locks.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_holder_that_is_gone_is_known_by_its_lock() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let claim = mine(Claims::default().ask(&run).unwrap());
        work(claim.attempt(), "notes", "half");
        drop(claim); // as a kill would
        let claim = mine(Claims::default().ask(&run).unwrap());
        assert_eq!(claim.token.generation, 2);
        assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "half");
        assert!(claim.rest().unwrap());
        assert!(run.path().is_dir() && !folder.path().join(WORKING).exists());
    }

    /// One that was stopped for longer than its claim and continued: what it writes then reaches nobody.
    #[test]
    fn a_holder_that_wakes_up_too_late_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let mut late = mine(Claims::new(SOON).ask(&run).unwrap());
        work(late.attempt(), "notes", "late");
        from_elsewhere(&late);
        let mut claims = Claims::new(SOON);
        assert!(is_elsewhere(&claims.ask(&run).unwrap()), "not judged by what was before it was looked at");
        std::thread::sleep(2 * SOON);
        let claim = mine(claims.ask(&run).unwrap());
        assert_eq!(fs::read_to_string(claim.attempt().path().join("notes")).unwrap(), "late");
        work(claim.attempt(), "notes", "mine");
        // It goes on writing, and sees that its claim is another's.
        work(late.attempt(), "notes", "too late");
        assert!(!late.beat().unwrap());
        assert!(!late.rest().unwrap());
        assert!(claim.rest().unwrap());
        assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "mine");
        assert!(!folder.path().join(WORKING).exists());
    }

    /// The other order: the one that took over is done before the first one wakes up, and somebody asks again under the first
    /// one's number.
    #[test]
    fn a_number_that_comes_again_is_not_taken_for_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let mut late = mine(Claims::new(SOON).ask(&run).unwrap());
        from_elsewhere(&late);
        let mut claims = Claims::new(SOON);
        assert!(is_elsewhere(&claims.ask(&run).unwrap()));
        std::thread::sleep(2 * SOON);
        let claim = mine(claims.ask(&run).unwrap());
        work(claim.attempt(), "notes", "mine");
        assert!(claim.rest().unwrap());
        let again = mine(claims.ask(&run).unwrap());
        assert_eq!((again.token.generation, late.token.generation), (1, 1));
        assert!(!late.beat().unwrap() && !late.rest().unwrap());
        assert!(again.rest().unwrap());
        assert_eq!(fs::read_to_string(run.path().join("notes")).unwrap(), "mine");
    }

    #[test]
    fn a_holder_that_beats_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let mut claim = mine(Claims::new(SOON).ask(&run).unwrap());
        let mut claims = Claims::new(SOON);
        let until = Instant::now() + 8 * SOON;
        while Instant::now() < until {
            assert!(claim.beat().unwrap());
            assert!(is_elsewhere(&claims.ask(&run).unwrap()));
            std::thread::sleep(SOON / 12);
        }
    }

    #[test]
    fn what_is_no_run_is_not_moved() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        fs::create_dir(run.path()).unwrap();
        fs::write(run.path().join("mine.txt"), "x").unwrap();
        assert!(matches!(Claims::default().ask(&run), Err(RunError::NotARun { .. })));
        assert!(run.path().join("mine.txt").is_file());
        // Nor one that somebody trains by hand at this moment.
        fs::remove_dir_all(run.path()).unwrap();
        let lock = run.create(&config()).unwrap();
        assert!(is_elsewhere(&Claims::default().ask(&run).unwrap()));
        drop(lock);
        mine(Claims::default().ask(&run).unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

        /// Many at once on few names: never do two hold one.
        #[test]
        fn two_never_hold_one_name(threads in 2usize..6, names in 1usize..4) {
            let folder = tempfile::tempdir().unwrap();
            let held: Vec<std::sync::atomic::AtomicUsize> = (0..names).map(|_| 0.into()).collect();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (folder, held) = (folder.path(), &held);
                    scope.spawn(move || {
                        let mut claims = Claims::default();
                        for turn in 0..20 {
                            let at = (thread + turn) % names;
                            if let Some(token) = claims.token(folder, &format!("name{at}")).unwrap() {
                                std::thread::yield_now();
                                assert_eq!(held[at].fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                                held[at].fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                                token.give_back().unwrap();
                            }
                        }
                    });
                }
            });
        }
    }
}
