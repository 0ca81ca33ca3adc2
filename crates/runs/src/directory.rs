//! The directory of one run: its name, its state, its lock.
//!
//! `<parent>/<name>-seed<seed>-<hash of the resolved config>/`

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{ErrorKind, Read, Seek, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    checkpoint::Checkpoints,
    config::Config,
    differences,
    error::RunError,
    files,
    layout::{
        CHECKPOINTS, CONFIG, EVENTS, HEADS, LOCK, MANIFEST, METRICS, OWN, SNAPSHOTS, SUMMARY, TEMPORARY, TENSORBOARD,
        TEST_SCORES, TIMING,
    },
    limits, log,
    metrics::{MetricLine, MetricsLog, TimingLog},
    origin::Origin,
    sealed::{self, Named},
    snapshots::Snapshots,
    summary::Summary,
    test_scores::TestScores,
};

/// Where a run's files are. Nothing is created before [`RunDirectory::create`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// There is no such run.
    Absent,
    /// It was started and isn't done.
    Started {
        /// The last step in `metrics.jsonl`, if there is one. Where it can go on from is the checkpoints' to say.
        last_step: Option<u64>,
    },
    /// It is done.
    Finished(Box<Summary>),
}

/// The right to write to a run's directory, held until dropped, also where the process is killed.
#[derive(Debug)]
pub struct Lock {
    // The operating system releases the lock with the file.
    _file: File,
    unprotected: Option<String>,
}

impl Lock {
    /// Where the file system has no locks, what is therefore not protected: a sentence for the user.
    pub fn unprotected(&self) -> Option<&str> {
        self.unprotected.as_deref()
    }
}

impl RunDirectory {
    /// The directory of a config's run within `parent`.
    pub fn of(parent: &Path, config: &Config) -> Self {
        Self::at(parent.join(format!("{}-seed{}-{}", config.name, config.seed, config.hash())))
    }

    /// An existing directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `config.toml`: the resolved config.
    pub fn config_path(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    /// `manifest.json`: see [`crate::Manifest`].
    pub fn manifest_path(&self) -> PathBuf {
        self.path.join(MANIFEST)
    }

    /// `metrics.jsonl`: see [`MetricLine`].
    pub fn metrics_path(&self) -> PathBuf {
        self.path.join(METRICS)
    }

    /// `timing.jsonl`: see [`crate::TimingLine`].
    pub fn timing_path(&self) -> PathBuf {
        self.path.join(TIMING)
    }

    /// `summary.json`: see [`Summary`].
    pub fn summary_path(&self) -> PathBuf {
        self.path.join(SUMMARY)
    }

    /// `checkpoints/`.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(self.path.join(CHECKPOINTS))
    }

    /// `snapshots/`.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::new(self.path.join(SNAPSHOTS))
    }

    /// `heads.json`: what the run's heads do, made from the run by whoever analyses it.
    pub fn heads_path(&self) -> PathBuf {
        self.path.join(HEADS)
    }

    /// `test_scores.json`: see [`crate::TestScores`].
    pub fn test_scores_path(&self) -> PathBuf {
        self.path.join(TEST_SCORES)
    }

    /// How far the run is.
    ///
    /// # Errors
    /// Where a file of it can't be read or is damaged.
    pub fn state(&self) -> Result<State, RunError> {
        if !self.exists(CONFIG)? {
            return Ok(State::Absent);
        }
        match Summary::read(&self.summary_path()) {
            Ok(summary) => return Ok(State::Finished(Box::new(summary))),
            Err(error) if !error.is_absent() => return Err(error),
            Err(_) => {}
        }
        match log::last::<MetricLine>(&self.metrics_path()) {
            Ok(last) => Ok(State::Started { last_step: last.map(|metric| metric.step) }),
            Err(error) if error.is_absent() => Ok(State::Started { last_step: None }),
            Err(error) => Err(error),
        }
    }

    /// The resolved config of `config.toml`.
    ///
    /// # Errors
    /// Where there is none, or it is refused.
    pub fn config(&self) -> Result<Config, RunError> {
        let path = self.config_path();
        // A config's reader takes pipes, which may never end.
        match files::open(&path) {
            Err(error @ RunError::NoFile { .. }) => Err(error),
            _ => Ok(Config::load(&path, &[])?),
        }
    }

    /// Creates the directory and its parents, takes its lock and writes `config.toml`. A run that was started is left
    /// as it is, to be resumed.
    ///
    /// # Errors
    /// [`RunError::Locked`], [`RunError::NotARun`] for a folder with other things in it, [`RunError::OtherConfig`],
    /// [`RunError::Link`] where one of its files is a link, and where the disk is full or gone.
    pub fn create(&self, config: &Config) -> Result<Lock, RunError> {
        let text = config.to_toml();
        self.refuse_foreign()?;
        files::check_folder(&self.path)?;
        fs::create_dir_all(&self.path).map_err(RunError::io("create", &self.path))?;
        let lock = self.lock()?;
        let path = self.config_path();
        match files::read_at_most(&path, limits::CONFIG) {
            Ok(present) if present == text.as_bytes() => {}
            // Only written otherwise, as with a comment.
            Ok(_) if Config::load(&path, &[]).is_ok_and(|present| present == *config) => {}
            Ok(_) | Err(RunError::TooLarge { .. }) => return Err(self.other_config(config)),
            Err(error) if error.is_absent() => files::write_atomically(&path, text.as_bytes())?,
            Err(error) => return Err(error),
        }
        Ok(lock)
    }

    /// Refuses a folder in which other things lie than a run.
    pub(crate) fn refuse_foreign(&self) -> Result<(), RunError> {
        files::refuse_link(&self.path)?;
        if !self.exists(CONFIG)?
            && let Some(entry) = self.foreign_entries()?.into_iter().next()
        {
            return Err(RunError::NotARun { path: self.path.clone(), entry });
        }
        Ok(())
    }

    /// Names what the config there has otherwise.
    pub(crate) fn other_config(&self, config: &Config) -> RunError {
        let differences = match self.config() {
            Ok(present) => differences::render(&differences::between(&present, config), "there", "here"),
            Err(_) => "it can't be read".into(),
        };
        RunError::OtherConfig { path: self.path.clone(), differences }
    }

    /// Runs of the same name and seed in the same folder that have another config, at most `most` of them.
    pub fn beside(&self, config: &Config, most: usize) -> Vec<(PathBuf, Config)> {
        let start = format!("{}-seed{}-", config.name, config.seed);
        let entries = self.path.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let names = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&start));
        let mut paths: Vec<PathBuf> = names.map(|entry| entry.path()).filter(|path| *path != self.path).collect();
        paths.sort();
        let load = |path: PathBuf| Config::load(&path.join(CONFIG), &[]).ok().map(|config| (path, config));
        paths.into_iter().filter_map(load).filter(|(_, other)| other != config).take(most).collect()
    }

    /// Takes the lock of an existing directory, without waiting.
    ///
    /// # Errors
    /// [`RunError::Locked`] where another process (or another part of this one) has it.
    pub fn lock(&self) -> Result<Lock, RunError> {
        files::refuse_link(&self.path)?;
        OWN.iter().try_for_each(|name| files::refuse_link(&self.path.join(name)))?;
        let path = self.path.join(LOCK);
        let io = || RunError::io("lock", &path);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(io())?;
        let mut locked = file.try_lock();
        if matches!(locked, Err(TryLockError::WouldBlock)) {
            // Who only looks (see `is_running`) has it for a moment.
            std::thread::sleep(Duration::from_millis(20));
            locked = file.try_lock();
        }
        let unprotected = match locked {
            Ok(()) => None,
            // BOINC#1563: on some network file systems no run could begin.
            Err(TryLockError::Error(error)) if files::is_not_offered(&error, &[files::ENOLCK]) => Some(format!(
                "{}: this file system has no locks ({error}), so nothing keeps two processes from writing to one run at once",
                self.path.display()
            )),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Where the system also keeps others from reading, the holder has no name.
                let _ = file.take(100).read_to_string(&mut holder);
                let holder = holder.lines().next().map_or("another process", str::trim).to_string();
                return Err(RunError::Locked { path: self.path.clone(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(io()(error)),
        };
        let holder = format!("process {}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(holder.as_bytes()));
        written.map_err(io())?;
        Ok(Lock { _file: file, unprotected })
    }

    /// Whether a process writes to the run at this moment.
    pub fn is_running(&self) -> bool {
        let file = files::open(&self.path.join(LOCK)).ok();
        file.is_some_and(|(file, _)| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Removes what Headcount itself wrote, `config.toml` and the lock aside, so that the run can be repeated. Any other
    /// file stays where it is. Takes the lock as proof that nobody else writes.
    ///
    /// # Errors
    /// [`RunError::NotARun`] where there is no run, and where a file can't be removed.
    pub fn clean(&self, _lock: &Lock) -> Result<(), RunError> {
        if !self.exists(CONFIG)? {
            let entry = self.foreign_entries()?.into_iter().next().unwrap_or_else(|| "no config.toml".into());
            return Err(RunError::NotARun { path: self.path.clone(), entry });
        }
        // The summary goes first: whatever interrupts this, the run no longer counts as done.
        let files = [SUMMARY, TEST_SCORES, HEADS, METRICS, TIMING, MANIFEST].map(String::from);
        for name in files.into_iter().chain(temporaries()) {
            files::remove(&self.path.join(name))?;
        }
        self.snapshots().clear()?;
        let board = self.path.join(TENSORBOARD);
        if !files::is_link(&board) {
            files::remove(&board.join(EVENTS))?;
            drop(fs::remove_dir(&board)); // unless something else is in it, or it is not there
        }
        // A link leads to somebody else's files.
        if files::is_link(&self.path.join(CHECKPOINTS)) { Ok(()) } else { self.checkpoints().clear() }
    }

    /// Opens `metrics.jsonl` and `timing.jsonl` to go on after `step`, without the lines of later steps;
    /// `None` starts both anew.
    ///
    /// # Errors
    /// Where a file can't be written, or a line of it is damaged.
    pub fn logs_after(&self, step: Option<u64>) -> Result<(MetricsLog, TimingLog), RunError> {
        match step {
            Some(step) => {
                let metrics = MetricsLog::open_until(&self.metrics_path(), step)?;
                Ok((metrics, TimingLog::open_until(&self.timing_path(), step)?))
            }
            None => {
                for path in [self.metrics_path(), self.timing_path()] {
                    files::remove(&path)?;
                }
                Ok((MetricsLog::open(&self.metrics_path())?, TimingLog::open(&self.timing_path())?))
            }
        }
    }

    /// Writes `test_scores.json` of the run `origin`, with a seal.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write_test_scores(&self, origin: &Origin, scores: &TestScores) -> Result<(), RunError> {
        sealed::write_compact(&self.test_scores_path(), &Named { origin, content: scores })
    }

    /// BLAKE3 of `metrics.jsonl` as it is on disk, 64 hex digits.
    ///
    /// # Errors
    /// Where there is no such file.
    pub fn metrics_hash(&self) -> Result<String, RunError> {
        let path = self.metrics_path();
        let mut hasher = blake3::Hasher::new();
        let (file, _) = files::open(&path)?;
        hasher.update_reader(file).map_err(RunError::io("read", &path))?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn exists(&self, name: &str) -> Result<bool, RunError> {
        let path = self.path.join(name);
        match fs::metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(RunError::io("read", &path)(error)),
        }
    }

    /// Names in the directory that aren't a run's, sorted.
    fn foreign_entries(&self) -> Result<Vec<String>, RunError> {
        let entries = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(vec![]),
            entries => entries.map_err(RunError::io("read", &self.path))?,
        };
        let own: Vec<String> = [LOCK.to_string()].into_iter().chain(temporaries()).collect();
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut foreign: Vec<String> = names.filter(|name| !own.contains(name)).collect();
        foreign.sort();
        Ok(foreign)
    }
}

/// Names of files that may be left where writing was interrupted.
fn temporaries() -> impl Iterator<Item = String> {
    [CONFIG, MANIFEST, SUMMARY, TEST_SCORES, HEADS].into_iter().map(|name| format!("{name}{TEMPORARY}"))
}

#[cfg(test)]
mod tests;
