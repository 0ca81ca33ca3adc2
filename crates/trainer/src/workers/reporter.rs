//! A worker's side: it reports to the process that started it, and stops where that wants it or is gone.

use std::io::Read;
use std::time::{Duration, Instant};

use burn::train::Interrupter;
use data::metrics::Scores;

use super::job::JobProgress;
use crate::screen::output::{print_json, tell};
use crate::training::observer::{Observer, Plan, Stepped};

/// Reports on standard output.
pub struct Reporter {
    started: Instant,
    last: Option<Instant>,
    tokens: u64,
    progress: JobProgress,
}

impl Reporter {
    /// Also sets off `interrupter` when standard input ends: the other process wants it, or is gone.
    pub fn new(interrupter: Interrupter) -> Self {
        std::thread::spawn(move || {
            // Nothing is ever sent: reading returns at the end.
            drop(std::io::stdin().read_to_end(&mut Vec::new()));
            interrupter.stop(Some("the process that started this one is gone or asks to stop"));
        });
        Self { started: Instant::now(), last: None, tokens: 0, progress: JobProgress::default() }
    }

    fn send(&mut self) {
        self.last = Some(Instant::now());
        self.progress.tokens_per_second = self.tokens as f64 / self.started.elapsed().as_secs_f64().max(1e-9);
        // A reader that is gone is noticed on standard input.
        print_json(&self.progress);
    }
}

impl Observer for Reporter {
    fn start(&mut self, plan: &Plan) {
        self.progress.step = plan.first_step;
        plan.notes.iter().for_each(tell);
    }

    fn stepped(&mut self, stepped: &Stepped) {
        self.tokens += stepped.tokens;
        (self.progress.step, self.progress.training) = (stepped.step, stepped.scores);
        if self.last.is_none_or(|last| last.elapsed() > Duration::from_millis(500)) {
            self.send();
        }
    }

    fn validated(&mut self, _step: u64, scores: &Scores) {
        self.progress.validation = *scores;
        self.send();
    }

    fn end(&mut self) {
        self.send();
    }
}
