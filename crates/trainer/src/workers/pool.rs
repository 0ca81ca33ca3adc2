//! Does many jobs, some at a time, each in a process of its own. Other processes, here or on other machines, may be doing the same
//! jobs: what one has claimed the others leave alone (see [`runs::claims`]), and wait for.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use runs::{Asked, Claims, State};

use super::job::{Job, JobEnd, JobProgress, Saved};
pub use super::process::WorkerError;
use super::process::{LastWords, Worker};
use crate::machine::stop::Stop;
use crate::screen::jobs::JobTable;

/// How often it is asked for jobs that others do.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Does every job that isn't done, `at_once` at a time on `threads` threads each, and shows it on `table`; gives the ends in
/// the order of the jobs. Jobs that other processes do are waited for, and taken over where nothing was heard of their process for
/// `patience`. Once `stop` is asked, jobs that have not begun are left out.
///
/// # Errors
/// See [`WorkerError`], after those that ran have finished; that a run fails is none.
pub fn run(
    jobs: &[Job],
    at_once: usize,
    threads: usize,
    patience: Duration,
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
    let mut claims = Claims::new(patience);
    let mut elsewhere: Vec<usize> = vec![];
    let mut asked = Instant::now();
    let mut refused = None; // why no further process can be started; those that run finish
    while !running.is_empty()
        || ((!waiting.is_empty() || !elsewhere.is_empty()) && !stop.is_asked() && refused.is_none())
    {
        if asked.elapsed() > ASK_AGAIN {
            asked = Instant::now();
            waiting.extend(elsewhere.drain(..));
        }
        while running.len() < at_once.max(1) && !stop.is_asked() && refused.is_none() {
            let Some(index) = waiting.pop_front() else { break };
            let job = &jobs[index];
            let started = match claims.ask(&job.directory) {
                Ok(Asked::Mine(claim)) => Worker::start(index, job, claim, threads, sender.clone(), stop.workers()),
                Ok(Asked::Elsewhere { holder }) => {
                    table.elsewhere(index, &holder);
                    elsewhere.push(index);
                    continue;
                }
                Ok(Asked::Done) => {
                    ends[index] = at_rest(job);
                    table.ended(index, &ends[index], true);
                    continue;
                }
                Err(error) => Err(error.into()),
            };
            match started {
                Ok(worker) => {
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
        // One whose run another process has taken over, since nothing was heard of this one, has nothing to end with.
        running.iter_mut().for_each(Worker::beat);
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
            match said.rest {
                Ok(false) if !stop.is_asked() => {
                    table.elsewhere(index, "another process, which has taken it over");
                    elsewhere.push(index);
                    continue;
                }
                Ok(_) => ends[index] = end(&jobs[index], said, has_trained[index], stop),
                Err(error) => ends[index] = JobEnd::Failed(error.to_string()),
            }
            table.ended(index, &ends[index], false);
        }
    }
    refused.map_or(Ok(ends), Err)
}

/// How the job of a process that has ended stands: by what is on disk, whatever the process said.
fn end(job: &Job, said: LastWords, has_trained: bool, stop: &Stop) -> JobEnd {
    let LastWords { has_saved, words, .. } = said;
    let end = match job.state() {
        Ok(State::Finished(summary)) => Ok(JobEnd::Done(summary)),
        Ok(_) if has_saved || stop.is_asked() => job.saved(has_trained, has_saved).map(JobEnd::Stopped),
        Ok(_) => Ok(JobEnd::Failed(words)),
        Err(error) => Err(error),
    };
    end.unwrap_or_else(|error| JobEnd::Failed(job.damaged(&error)))
}

/// How a job stands that is done.
fn at_rest(job: &Job) -> JobEnd {
    match job.state() {
        Ok(State::Finished(summary)) => JobEnd::Done(summary),
        Ok(_) => JobEnd::Stopped(Saved::NotBegun),
        Err(error) => JobEnd::Failed(job.damaged(&error)),
    }
}

/// What has come, after waiting a moment for the first.
fn next(receiver: &Receiver<(usize, JobProgress)>) -> Vec<(usize, JobProgress)> {
    let first = receiver.recv_timeout(Duration::from_millis(50)).ok();
    first.into_iter().chain(receiver.try_iter()).collect()
}
