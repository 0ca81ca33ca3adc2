//! What is trained, one after the other: runs that choose learning rates, reported runs as far as a look decides, runs that
//! train longer.

use std::path::Path;

use ::report::{Decision, TunedExperiment};
use runs::{Experiment, PlannedRun};

use super::arguments::Workers;
use super::programs::refuse_others;
use crate::machine::exit::{Failure, Success};
use crate::machine::stop::Stop;
use crate::screen::output::{print, tell};
use crate::screen::text::count;
use crate::workers::job::{JobEnd, Saved};

/// What trains the runs of an experiment.
pub struct Stages<'a> {
    pub folder: &'a Path,
    pub workers: Workers,
    /// Runs of other builds are taken, too.
    pub mixed: bool,
    pub stop: &'a Stop,
}

/// How all stages ended.
pub enum Trained {
    /// With every run that a decision needs, or that is planned.
    Ended {
        experiment: Box<TunedExperiment>,
        /// Runs that failed, of those that were to be trained.
        failed: usize,
        runs: usize,
    },
    /// On request.
    Stopped(Success),
}

impl Stages<'_> {
    /// Trains what the experiment needs.
    pub fn train(&self, declared: Experiment) -> Result<Trained, Failure> {
        let tuned = loop {
            let tuned = TunedExperiment::read(declared.clone(), self.folder);
            let next = tuned.next_tuning_runs();
            if next.is_empty() {
                break tuned;
            }
            let ends = self.part(&next)?;
            if self.stop.is_asked() {
                return Ok(Trained::Stopped(stopped(&ends)));
            }
            let missing = failures(&ends);
            if missing > 0 {
                return Err(Failure::failed(format!(
                    "{missing} of the runs that choose learning rates failed; the same command tries them again"
                )));
            }
        };
        refuse_others(&tuned.tuning_runs(), self.mixed)?;
        if let Some(table) = tuned.tuning() {
            if !table.extended.is_empty() {
                let rates: Vec<String> = table.extended.iter().map(f64::to_string).collect();
                tell(format!("the best rate of an arm was at an end of the grid: {} tried, too", rates.join(", ")));
            }
            for (arm, lr) in table.chosen() {
                tell(format!("{arm}: learning rate {lr}, by its validation results"));
            }
        }

        let (runs, arms) = (tuned.runs(), declared.arms.len());
        let mut looks = declared.looks.clone();
        if looks.is_empty() {
            looks.push(declared.seeds.len());
        }
        let (mut done, mut failed) = (0, 0);
        for look in looks {
            let end = (look * arms).min(runs.len());
            let ends = self.part(&runs[done..end])?;
            if self.stop.is_asked() {
                return Ok(Trained::Stopped(stopped(&ends)));
            }
            failed += failures(&ends);
            done = end;
            // Where a run failed there is nothing to decide until it is tried again; further pairs may not be needed.
            if end < runs.len() && (failed > 0 || self.is_decided(&tuned, look)?) {
                break;
            }
        }
        let mut trained = done;
        if failed == 0 {
            let longer = tuned.check_runs();
            let ends = self.part(&longer)?;
            if self.stop.is_asked() {
                return Ok(Trained::Stopped(stopped(&ends)));
            }
            failed += failures(&ends);
            trained += longer.len();
        }
        Ok(Trained::Ended { experiment: Box::new(tuned), failed, runs: trained })
    }

    fn part(&self, runs: &[PlannedRun]) -> Result<Vec<JobEnd>, Failure> {
        refuse_others(runs, self.mixed)?;
        self.workers.train(runs, self.stop)
    }

    fn is_decided(&self, tuned: &TunedExperiment, look: usize) -> Result<bool, Failure> {
        let decision = ::report::decision(&tuned.clone().read_runs()).map_err(Failure::failed)?;
        match decision {
            Decision::Decided { pairs } => {
                tell(format!("decided after {}: no further ones are needed", count(pairs, "pair")));
                Ok(true)
            }
            Decision::Open { .. } | Decision::NotBefore { .. } => {
                tell(format!("not decided after {}", count(look, "pair")));
                Ok(false)
            }
        }
    }
}

fn failures(ends: &[JobEnd]) -> usize {
    ends.iter().filter(|end| !matches!(end, JobEnd::Done(_))).count()
}

/// What is on disk of runs that were stopped, by what was found there.
fn stopped(ends: &[JobEnd]) -> Success {
    let is_lost =
        |end: &&JobEnd| matches!(end, JobEnd::Stopped(Saved::UpTo { .. } | Saved::Nothing) | JobEnd::Failed(_));
    print(match ends.iter().filter(is_lost).count() {
        0 if ends.iter().all(|end| matches!(end, JobEnd::Done(_))) => {
            "Stopped; every run of this part is done. The same command goes on from there.".to_string()
        }
        0 => "Stopped; every run has saved what it did. The same command goes on from there.".to_string(),
        lost => format!(
            "Stopped; {} could not save all that it did, see above. The same command goes on from what is saved.",
            count(lost, "run")
        ),
    });
    Success::Interrupted
}
