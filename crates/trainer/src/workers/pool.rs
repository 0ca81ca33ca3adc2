//! Does many jobs, some at a time, each in a process of its own.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use runs::State;

use super::job::{Job, JobEnd, JobProgress, Saved};
pub use super::process::WorkerError;
use super::process::{LastWords, Worker};
use crate::machine::stop::Stop;
use crate::screen::jobs::JobTable;

/// Does every job that isn't done, `at_once` at a time on `threads` threads each, and shows it on `table`; gives the ends in
/// the order of the jobs. Once `stop` is asked, jobs that have not begun are left out.
///
/// # Errors
/// See [`WorkerError`], after those that ran have finished; that a run fails is none.
pub fn run(
    jobs: &[Job],
    at_once: usize,
    threads: usize,
    table: &mut JobTable,
    stop: &Stop,
) -> Result<Vec<JobEnd>, WorkerError> {
    let mut ends = vec![JobEnd::Stopped(Saved::NotBegun); jobs.len()];
    let mut waiting = VecDeque::new();
    for (index, job) in jobs.iter().enumerate() {
        match job.state() {
            Ok(State::Finished(summary)) => ends[index] = JobEnd::Done(summary),
            Ok(_) => {
                waiting.push_back(index);
                continue;
            }
            Err(error) => ends[index] = JobEnd::Failed(job.damaged(&error)),
        }
        table.ended(index, &ends[index], true);
    }
    let (sender, receiver) = channel();
    let mut has_trained = vec![false; jobs.len()];
    let mut running: Vec<Worker> = Vec::new();
    let mut has_warned = false; // once for all runs, which are on one file system
    let mut refused = None; // why no further process can be started; those that run finish
    while !running.is_empty() || (!waiting.is_empty() && !stop.is_asked() && refused.is_none()) {
        while running.len() < at_once.max(1) && !stop.is_asked() && refused.is_none() {
            let Some(index) = waiting.pop_front() else { break };
            match Worker::start(index, &jobs[index], threads, sender.clone(), stop.workers()) {
                Ok(worker) => {
                    if let Some(sentence) = worker.unprotected().filter(|_| !std::mem::replace(&mut has_warned, true)) {
                        table.note(sentence);
                    }
                    running.push(worker);
                    table.started(index);
                }
                Err(error) => refused = Some(error),
            }
        }
        if stop.is_asked() {
            running.iter_mut().for_each(Worker::ask_to_stop);
        }
        for (index, progress) in next(&receiver) {
            has_trained[index] = true;
            table.progressed(index, progress);
        }
        let (ended, still): (Vec<_>, Vec<_>) =
            running.into_iter().map(Worker::poll).partition(|(_, has_ended)| *has_ended);
        running = still.into_iter().map(|(worker, _)| worker).collect();
        for (worker, _) in ended {
            let index = worker.index();
            let said = worker.last_words();
            // All that it reported has come by now.
            for (index, progress) in receiver.try_iter() {
                has_trained[index] = true;
                table.progressed(index, progress);
            }
            ends[index] = end(&jobs[index], said, has_trained[index], stop);
            table.ended(index, &ends[index], false);
        }
    }
    refused.map_or(Ok(ends), Err)
}

/// How the job of a process that has ended stands: by what is on disk, whatever the process said.
fn end(job: &Job, said: LastWords, has_trained: bool, stop: &Stop) -> JobEnd {
    let LastWords { has_saved, words } = said;
    let end = match job.state() {
        Ok(State::Finished(summary)) => Ok(JobEnd::Done(summary)),
        Ok(_) if has_saved || stop.is_asked() => job.saved(has_trained, has_saved).map(JobEnd::Stopped),
        Ok(_) => Ok(JobEnd::Failed(words)),
        Err(error) => Err(error),
    };
    end.unwrap_or_else(|error| JobEnd::Failed(job.damaged(&error)))
}

/// What has come, after waiting a moment for the first.
fn next(receiver: &Receiver<(usize, JobProgress)>) -> Vec<(usize, JobProgress)> {
    let first = receiver.recv_timeout(Duration::from_millis(50)).ok();
    first.into_iter().chain(receiver.try_iter()).collect()
}
