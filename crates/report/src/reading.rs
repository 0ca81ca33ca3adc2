//! An experiment's folder, read once.
//!
//! Each step consumes the one before it, so that nothing is read twice: the tuning runs tell the learning rates, and only then
//! is known which runs are the reported ones.

use std::path::{Path, PathBuf};

use runs::{Experiment, PlannedRun, Registration, RunRecord};

use crate::tuning::TuningTable;

/// An experiment whose learning rates are chosen: all that its reported runs follow from.
#[derive(Clone, Debug)]
pub struct TunedExperiment {
    /// Where its runs are.
    folder: PathBuf,
    /// As its file has it.
    declared: Experiment,
    /// With the learning rates that were chosen.
    experiment: Experiment,
    tuning: Option<TuningTable>,
    /// Rates whose runs are to be trained next.
    next_rates: Vec<f64>,
}

impl TunedExperiment {
    /// Reads the tuning runs in the experiment's folder, if it has any, and chooses from them.
    pub fn read(declared: Experiment, folder: &Path) -> Self {
        let (tuning, next_rates) = TuningTable::read(&declared, folder).unzip();
        let experiment = match &tuning {
            Some(table) => declared.tuned(&table.chosen()),
            None => declared.clone(),
        };
        Self { folder: folder.into(), declared, experiment, tuning, next_rates: next_rates.unwrap_or_default() }
    }

    /// The runs that are to be trained before a rate can be chosen for good: those of the grid that are missing, or of what it
    /// is to be extended by; what has ended is among them. None where the choice stands.
    pub fn next_tuning_runs(&self) -> Vec<PlannedRun> {
        match self.next_rates.is_empty() {
            true => vec![],
            false => self.declared.tuning_runs_at(&self.folder, &self.next_rates),
        }
    }

    /// The runs of every rate that was tried.
    pub fn tuning_runs(&self) -> Vec<PlannedRun> {
        let Some(table) = &self.tuning else { return vec![] };
        let mut rates = self.declared.tuning.as_ref().map_or(vec![], |tuning| tuning.lr.clone());
        rates.extend(&table.extended);
        self.declared.tuning_runs_at(&self.folder, &rates)
    }

    /// The runs that train longer, to be trained after the reported ones.
    pub fn check_runs(&self) -> Vec<PlannedRun> {
        self.experiment.check_runs_in(&self.folder)
    }

    /// What the tuning runs showed; `None` without tuning.
    pub fn tuning(&self) -> Option<&TuningTable> {
        self.tuning.as_ref()
    }

    /// The reported runs.
    pub fn runs(&self) -> Vec<PlannedRun> {
        self.experiment.runs_in(&self.folder)
    }

    /// Reads every file of the reported runs but their weights.
    pub fn read_runs(self) -> ExperimentRuns {
        let records = self.runs().into_iter().map(RunRecord::read).collect();
        let check = self.experiment.check_runs_in(&self.folder).into_iter().map(RunRecord::read).collect();
        let registration = Registration::read(&self.folder).map_err(|error| error.to_string());
        let Self { folder, declared, experiment, tuning, next_rates: _ } = self;
        ExperimentRuns { folder, declared, experiment, tuning, records, check, registration }
    }
}

/// An experiment and what its runs left: all that results, figures, pages and the analysis of heads are made from.
#[derive(Clone, Debug)]
pub struct ExperimentRuns {
    /// Where its runs are, and where results go.
    pub folder: PathBuf,
    /// As its file has it.
    pub declared: Experiment,
    /// With the learning rates that were chosen.
    pub experiment: Experiment,
    /// What the tuning runs showed; `None` without tuning.
    pub tuning: Option<TuningTable>,
    /// The reported runs, all arms of one pair together.
    pub records: Vec<RunRecord>,
    /// Runs that train longer, to see whether the answer holds; none without `[check]`.
    pub check: Vec<RunRecord>,
    /// What stood before the first run; `None` where nothing was registered, and why where that can't be read.
    pub registration: Result<Option<Registration>, String>,
}

impl ExperimentRuns {
    /// The runs of an arm, in the order of the pairs.
    pub fn of_arm<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a RunRecord> {
        self.records.iter().filter(move |record| record.plan.arm == arm)
    }

    /// How many of the reported runs have ended, and how many there are.
    pub fn ended(&self) -> (usize, usize) {
        (self.records.iter().filter(|record| record.summary().is_some()).count(), self.records.len())
    }
}
