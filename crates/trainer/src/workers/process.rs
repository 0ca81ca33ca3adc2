//! The process of a worker, as the one that started it sees it.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use runs::{Claim, RunError};
use thiserror::Error;

use super::job::{Job, JobProgress};
use crate::machine::exit::INTERRUPTED;
use crate::machine::stop::Workers;
use crate::training::manifest::BUILD;

/// A worker that can't be started, or a run directory that can't be prepared.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// This program's own file is gone, or the system refuses another process.
    #[error("can't start a worker process from {}: {source}; the same command goes on from what is saved", program.display())]
    Start { program: PathBuf, source: std::io::Error },
    /// The run directory can't be read or written.
    #[error(transparent)]
    Files(#[from] RunError),
}

/// The program that runs. On Linux that is what runs, also where its file has been replaced or removed since it started;
/// elsewhere its file, and a worker of another build says so and ends.
fn this_program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => PathBuf::from("/proc/self/exe"),
        false => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("trainer")),
    }
}

/// A running process.
pub(super) struct Worker {
    index: usize,
    child: Child,
    /// Held open: its end tells the worker to stop, also where this process dies.
    input: Option<ChildStdin>,
    reports: JoinHandle<()>,
    complaints: JoinHandle<String>,
    workers: Workers,
    claim: Claim,
}

impl Worker {
    /// Starts a process for job number `index`, which is claimed, among `workers`; what it reports goes to `sender`.
    pub fn start(
        index: usize,
        job: &Job,
        claim: Claim,
        threads: usize,
        sender: Sender<(usize, JobProgress)>,
        workers: &Workers,
    ) -> Result<Self, WorkerError> {
        let directory = claim.attempt();
        // Writes config.toml; the worker takes the lock.
        let created = directory.create(&job.config).map(drop);
        let program = this_program();
        let mut command = Command::new(&program);
        #[cfg(unix)]
        {
            // Ctrl-C on the terminal is for this process, which passes it on.
            use std::os::unix::process::CommandExt;
            command.process_group(0).arg0("trainer");
        }
        command
            .arg("train")
            .args(["--worker", "--build", BUILD])
            .arg("--config")
            .arg(directory.config_path())
            .arg("--out")
            .arg(directory.path().parent().unwrap_or(Path::new(".")))
            .args(["--threads", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = created.map_err(WorkerError::from).and_then(|()| {
            let mut ids = workers.ids();
            let child = command.spawn().map_err(|source| WorkerError::Start { program, source })?;
            ids.push(child.id());
            Ok(child)
        });
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                claim.rest()?;
                return Err(error);
            }
        };
        let input = child.stdin.take();
        let output = child.stdout.take();
        let reports = std::thread::spawn(move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok) {
                if let Ok(progress) = serde_json::from_str(&line) {
                    let _ = sender.send((index, progress)); // nobody listens any more: nothing to report to
                }
            }
        });
        let errors = child.stderr.take();
        let complaints = std::thread::spawn(move || {
            let mut text = vec![];
            if let Some(errors) = errors {
                // What could be read is what there is to tell.
                drop(BufReader::new(errors).read_to_end(&mut text));
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Self { index, child, input, reports, complaints, workers: workers.clone(), claim })
    }

    /// The number of its job.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Shows that its run is worked on. Where another process has taken that over, what this one does is for nothing, and it is
    /// ended.
    pub fn beat(&mut self) {
        // A claim that can't be written may be taken over, which does no harm.
        if matches!(self.claim.beat(), Ok(false)) {
            drop(self.child.kill());
        }
    }

    /// Its standard input ends: it stops after its step and saves.
    pub fn ask_to_stop(&mut self) {
        self.input = None;
    }

    /// Itself, and whether the process has ended.
    pub fn poll(mut self) -> (Self, bool) {
        let mut ids = self.workers.ids();
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        if has_ended {
            ids.retain(|id| *id != self.child.id());
        }
        drop(ids);
        (self, has_ended)
    }

    /// Of a process that has ended; all its reports have been sent by then.
    pub fn last_words(mut self) -> LastWords {
        drop(self.reports.join());
        let status = self.child.wait();
        let has_saved = status.as_ref().is_ok_and(|status| status.code() == Some(INTERRUPTED.into()));
        let status = status.map_or_else(|error| error.to_string(), ended);
        let complaints = self.complaints.join().unwrap_or_default();
        let words = match complaints.trim() {
            "" => status,
            words => format!("{words} ({status})"),
        };
        LastWords { has_saved, words, rest: self.claim.rest() }
    }
}

/// What a process left behind.
pub(super) struct LastWords {
    /// Whether it said that it had stopped and saved.
    pub has_saved: bool,
    /// What it complained of, or how it ended.
    pub words: String,
    /// Whether what it did has come to rest; not where another process has the run.
    pub rest: Result<bool, RunError>,
}

/// How a process ended, and what a kill may mean that nobody asked for.
fn ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
        return format!("{status}: killed, perhaps for want of memory; fewer --jobs need less");
    }
    status.to_string()
}
