//! Many runs at once: each is a process of its own with its share of threads.
//!
//! Small matrices do not fill a processor's cores, so independent runs side by side use it better than one run on all
//! cores. A run's result depends on its config alone, never on how many others ran beside it.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use burn::train::Interrupter;
use runs::{Config, RunDirectory, RunError, State, Summary};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::batch::Tally;
use crate::observer::{Observer, Plan, Stepped};

/// One run to be done.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is called on the screen, such as `h8 seed 3`.
    pub label: String,
    /// What to train.
    pub config: Config,
    /// Where: [`RunDirectory::of`] the config in some folder.
    pub directory: RunDirectory,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its summary is there, from now or from before.
    Done(Summary),
    /// Stopped before its end, to be gone on with.
    Interrupted,
    /// Its process ended without a summary: what it said last.
    Failed(String),
}

/// How far a job is: a line of a worker's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Optimiser steps done.
    pub step: u64,
    /// Loss of the last step's batch, in nats.
    pub loss: f64,
    /// Accuracy on the validation set at the last evaluation.
    pub accuracy: f64,
    /// Training tokens a second since the worker started.
    pub tokens_per_second: f64,
}

/// Who watches many runs.
pub trait Board {
    /// A job's process has been started.
    fn started(&mut self, job: usize);
    /// A job is so far.
    fn reported(&mut self, job: usize, report: Report);
    /// A job has ended; `reused` if it was done before.
    fn ended(&mut self, job: usize, outcome: &Outcome, reused: bool);
}

/// A worker that can't be started, or a run directory that can't be prepared.
#[derive(Debug, Error)]
pub enum WorkerError {
    /// This program's own file is gone, or the system refuses another process.
    #[error("can't start a worker process: {0}")]
    Start(#[from] std::io::Error),
    /// The run directory can't be read or written.
    #[error(transparent)]
    Files(#[from] RunError),
}

/// Does every job that isn't done, `at_once` at a time on `threads` threads each; gives the outcomes in the order of the
/// jobs. After an interruption the jobs that have not begun are left out.
pub fn run(
    jobs: &[Job],
    at_once: usize,
    threads: usize,
    board: &mut dyn Board,
    interrupter: &Interrupter,
) -> Result<Vec<Outcome>, WorkerError> {
    let mut outcomes = vec![Outcome::Interrupted; jobs.len()];
    let mut waiting = VecDeque::new();
    for (index, job) in jobs.iter().enumerate() {
        match state(job) {
            Ok(State::Finished(summary)) => outcomes[index] = Outcome::Done(summary),
            Ok(_) => {
                waiting.push_back(index);
                continue;
            }
            Err(error) => outcomes[index] = Outcome::Failed(damaged(job, &error)),
        }
        board.ended(index, &outcomes[index], true);
    }
    let (sender, receiver) = channel();
    let mut running: Vec<Worker> = Vec::new();
    while !running.is_empty() || (!waiting.is_empty() && !interrupter.should_stop()) {
        while running.len() < at_once.max(1) && !interrupter.should_stop() {
            let Some(index) = waiting.pop_front() else { break };
            running.push(Worker::start(index, &jobs[index], threads, sender.clone())?);
            board.started(index);
        }
        if interrupter.should_stop() {
            // A worker stops after its step and saves when its standard input ends.
            running.iter_mut().for_each(|worker| worker.input = None);
        }
        for (index, report) in next(&receiver) {
            board.reported(index, report);
        }
        let (ended, still): (Vec<_>, Vec<_>) =
            running.into_iter().map(Worker::poll).partition(|(_, code)| code.is_some());
        running = still.into_iter().map(|(worker, _)| worker).collect();
        for (worker, _) in ended {
            let index = worker.index;
            let last_words = worker.last_words();
            let outcome = match state(&jobs[index]) {
                Ok(State::Finished(summary)) => Outcome::Done(summary),
                Ok(_) if interrupter.should_stop() => Outcome::Interrupted,
                Ok(_) => Outcome::Failed(last_words),
                Err(error) => Outcome::Failed(damaged(&jobs[index], &error)),
            };
            board.ended(index, &outcome, false);
            outcomes[index] = outcome;
        }
    }
    Ok(outcomes)
}

/// How far a job is; an error also where it is done and its files are no longer what it wrote.
fn state(job: &Job) -> Result<State, RunError> {
    let state = job.directory.state()?;
    if let State::Finished(_) = &state {
        job.directory.open_as(&job.config)?;
    }
    Ok(state)
}

fn damaged(job: &Job, error: &RunError) -> String {
    format!("{error}; remove {} to have it trained again", job.directory.path().display())
}

/// Reports that have come, after waiting a moment for the first.
fn next(receiver: &Receiver<(usize, Report)>) -> Vec<(usize, Report)> {
    let first = receiver.recv_timeout(Duration::from_millis(50)).ok();
    first.into_iter().chain(receiver.try_iter()).collect()
}

/// A running process.
struct Worker {
    index: usize,
    child: Child,
    /// Held open: its end tells the worker to stop, also where this process dies.
    input: Option<ChildStdin>,
    complaints: std::thread::JoinHandle<String>,
}

impl Worker {
    fn start(index: usize, job: &Job, threads: usize, sender: Sender<(usize, Report)>) -> Result<Self, WorkerError> {
        let directory = &job.directory;
        drop(directory.create(&job.config)?); // writes config.toml; the worker takes the lock
        let mut command = Command::new(std::env::current_exe()?);
        #[cfg(unix)]
        {
            // Ctrl-C on the terminal is for this process, which passes it on.
            use std::os::unix::process::CommandExt;
            command.process_group(0);
        }
        let mut child = command
            .arg("train")
            .arg("--worker")
            .arg("--config")
            .arg(directory.config_path())
            .arg("--out")
            .arg(directory.path().parent().unwrap_or(Path::new(".")))
            .args(["--threads", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take();
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if let Ok(report) = serde_json::from_str(&line) {
                        let _ = sender.send((index, report)); // nobody listens any more: nothing to report to
                    }
                }
            });
        }
        let errors = child.stderr.take();
        let complaints = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(errors) = errors {
                // What isn't text is no message.
                drop(BufReader::new(errors).read_to_string(&mut text));
            }
            text
        });
        Ok(Self { index, child, input, complaints })
    }

    /// Itself, with the exit status if the process has ended.
    fn poll(mut self) -> (Self, Option<String>) {
        let status = match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        };
        (self, status)
    }

    /// What the process complained of, or how it ended.
    fn last_words(mut self) -> String {
        let status = self.child.wait().map_or_else(|error| error.to_string(), ended);
        let complaints = self.complaints.join().unwrap_or_default();
        match complaints.trim() {
            "" => status,
            words => format!("{words} ({status})"),
        }
    }
}

/// How a process ended, and what a kill may mean that nobody asked for.
fn ended(status: ExitStatus) -> String {
    #[cfg(unix)]
    if std::os::unix::process::ExitStatusExt::signal(&status) == Some(9) {
        return format!("{status}: killed, perhaps for want of memory; fewer --jobs need less");
    }
    status.to_string()
}

/// A worker's side: reports to the process that started it, on standard output.
pub struct Reporter {
    started: std::time::Instant,
    last: Option<std::time::Instant>,
    tokens: u64,
    report: Report,
}

impl Reporter {
    /// Also sets off `interrupter` when standard input ends: the other process wants it, or is gone.
    pub fn new(interrupter: Interrupter) -> Self {
        std::thread::spawn(move || {
            // Nothing is ever sent: reading returns at the end.
            drop(std::io::stdin().read_to_end(&mut Vec::new()));
            interrupter.stop(Some("the process that started this one is gone or asks to stop"));
        });
        Self { started: std::time::Instant::now(), last: None, tokens: 0, report: Report::default() }
    }

    fn send(&mut self) {
        self.last = Some(std::time::Instant::now());
        self.report.tokens_per_second = self.tokens as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        if let Ok(line) = serde_json::to_string(&self.report) {
            use std::io::Write;
            // A reader that is gone is noticed on standard input.
            drop(writeln!(std::io::stdout(), "{line}"));
        }
    }
}

impl Observer for Reporter {
    fn start(&mut self, plan: &Plan) {
        self.report.step = plan.first_step;
        plan.notes.iter().for_each(crate::commands::tell);
    }

    fn stepped(&mut self, stepped: &Stepped) {
        self.tokens += stepped.tokens;
        (self.report.step, self.report.loss) = (stepped.step, stepped.loss);
        if self.last.is_none_or(|last| last.elapsed() > Duration::from_millis(500)) {
            self.send();
        }
    }

    fn validated(&mut self, _step: u64, tally: &Tally) {
        self.report.accuracy = tally.accuracy();
        self.send();
    }

    fn end(&mut self) {
        self.send();
    }
}
