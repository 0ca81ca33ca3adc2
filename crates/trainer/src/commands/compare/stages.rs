//! What is trained, one stage after the other: runs that choose learning rates, reported runs as far as a look decides, runs that
//! train longer. No process begins a stage before all runs of the one before are done, whoever did them.

use std::ops::ControlFlow;
use std::path::Path;

use ::report::{Decision, TunedExperiment};
use runs::{Experiment, PlannedRun, State};

use super::arguments::Workers;
use super::programs::refuse_others;
use super::share::Share;
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
    /// Which runs are this process's.
    pub share: Share,
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
    /// This process's share of a stage, of which other runs are not done.
    Shared { stage: String, missing: usize, runs: usize },
}

impl Stages<'_> {
    /// Trains what the experiment needs.
    pub fn train(&self, declared: Experiment) -> Result<Trained, Failure> {
        let mut is_first = true;
        let tuned = loop {
            let tuned = TunedExperiment::read(declared.clone(), self.folder);
            let next = tuned.next_tuning_runs();
            if next.is_empty() {
                break tuned;
            }
            let stage = if std::mem::take(&mut is_first) { "learning rates" } else { "learning rates beyond the grid" };
            let ends = match self.part(stage, &next)? {
                ControlFlow::Continue(ends) => ends,
                ControlFlow::Break(trained) => return Ok(trained),
            };
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
            let ends = match self.part(&format!("pairs up to {look}"), &runs[done..end])? {
                ControlFlow::Continue(ends) => ends,
                ControlFlow::Break(trained) => return Ok(trained),
            };
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
            let ends = match self.part("check", &longer)? {
                ControlFlow::Continue(ends) => ends,
                ControlFlow::Break(trained) => return Ok(trained),
            };
            failed += failures(&ends);
            trained += longer.len();
        }
        Ok(Trained::Ended { experiment: Box::new(tuned), failed, runs: trained })
    }

    /// Trains this process's share of a stage, and goes on where all of it is done.
    fn part(&self, stage: &str, runs: &[PlannedRun]) -> Result<ControlFlow<Trained, Vec<JobEnd>>, Failure> {
        refuse_others(runs, self.mixed)?;
        let share = self.share.of(runs);
        let ends = self.workers.train(&share, self.stop)?;
        if self.stop.is_asked() {
            return Ok(ControlFlow::Break(Trained::Stopped(stopped(&ends))));
        }
        if self.share != Share::All && failures(&ends) == 0 {
            let is_missing = |run: &&PlannedRun| !matches!(run.directory.state(), Ok(State::Finished(_)));
            let missing = runs.iter().filter(is_missing).count();
            if missing > 0 {
                let (stage, runs) = (stage.to_string(), runs.len());
                return Ok(ControlFlow::Break(Trained::Shared { stage, missing, runs }));
            }
        }
        Ok(ControlFlow::Continue(ends))
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
