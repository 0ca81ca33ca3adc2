//! From run directories to what they hold.

use std::fs;

use runs::{
    Config, Experiment, Ledger, LedgerRun, Manifest, Metric, PlannedRun, RunDirectory, RunError, State, Status,
    Summary, read_metrics,
};

use super::RunProblem;

/// A planned run and what it left.
pub(crate) struct Record {
    pub plan: PlannedRun,
    ending: Result<Ended, String>,
}

/// A run that ended, well or not.
struct Ended {
    summary: Summary,
    manifest: Manifest,
    metrics: Vec<Metric>,
}

impl Record {
    /// How it ended; `None` if it has not.
    pub fn summary(&self) -> Option<&Summary> {
        self.ending.as_ref().ok().map(|ended| &ended.summary)
    }

    /// Its metrics, empty if it has not ended: half a run says nothing.
    pub fn metrics(&self) -> &[Metric] {
        self.ending.as_ref().map_or(&[], |ended| &ended.metrics)
    }

    /// Its manifest, if it ended.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.ending.as_ref().ok().map(|ended| &ended.manifest)
    }

    /// Why it did not finish; `None` if it did.
    pub fn problem(&self) -> Option<String> {
        match &self.ending {
            Err(reason) => Some(reason.clone()),
            Ok(ended) => match ended.summary.status {
                Status::Diverged { step } => Some(format!("diverged at step {step}")),
                Status::Finished => None,
            },
        }
    }

    /// The name of its directory.
    pub fn directory(&self) -> String {
        let name = self.plan.directory.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

/// Reads every planned run.
pub(crate) fn records(plans: &[PlannedRun]) -> Vec<Record> {
    let record = |plan: &PlannedRun| {
        let plan = PlannedRun { directory: located(plan), ..plan.clone() };
        Record { ending: ended(&plan), plan }
    };
    plans.iter().map(record).collect()
}

/// The run's directory. Its name ends in a hash of the config as the version that ran it wrote it; where a later version
/// writes another key or two, it is found by its config.
fn located(plan: &PlannedRun) -> RunDirectory {
    let expected = plan.directory.path();
    if plan.directory.config_path().exists() {
        return plan.directory.clone();
    }
    let start = format!("{}-seed{}-", plan.config.name, plan.config.seed);
    let entries = expected.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let mut alike: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
        .map(|entry| entry.path())
        .collect();
    alike.sort();
    let of_config =
        |run: &RunDirectory| Config::load(&run.config_path(), &[]).is_ok_and(|config| config == plan.config);
    alike.into_iter().map(RunDirectory::at).find(of_config).unwrap_or_else(|| plan.directory.clone())
}

fn ended(plan: &PlannedRun) -> Result<Ended, String> {
    let directory = &plan.directory;
    // Named within the run's directory, so that results don't depend on where that is.
    let parent = format!("{}{}", directory.path().display(), std::path::MAIN_SEPARATOR);
    let damaged = |error: RunError| format!("damaged: {}", error.to_string().replace(&parent, ""));
    match directory.state().map_err(damaged)? {
        State::Absent => Err("not run".into()),
        State::Started { last_step: None } => Err("stopped before its first step".into()),
        State::Started { last_step: Some(step) } => Err(format!("stopped after step {step}")),
        State::Finished(summary) => {
            let manifest = directory.check_finished(&plan.config, &summary).map_err(damaged)?;
            let metrics = read_metrics(&directory.metrics_path()).map_err(damaged)?;
            Ok(Ended { summary, manifest, metrics })
        }
    }
}

/// The ledger of all runs that ended.
pub(super) fn ledger(experiment: &Experiment, records: &[Record], mixed_ok: bool) -> Ledger {
    let ended = records.iter().filter_map(|record| Some((&record.plan, record.manifest()?)));
    let run = |(plan, manifest)| {
        let PlannedRun { arm, pair, config, .. }: &PlannedRun = plan;
        LedgerRun { arm, pair: *pair, config, manifest }
    };
    let runs: Vec<LedgerRun<'_>> = ended.map(run).collect();
    Ledger::new(experiment, &runs, mixed_ok)
}

/// Every run that did not finish.
pub(super) fn problems(records: &[Record]) -> Vec<RunProblem> {
    let problem = |record: &Record| {
        let (arm, pair) = (record.plan.arm.clone(), record.plan.pair);
        Some(RunProblem { arm, pair, directory: record.directory(), reason: record.problem()? })
    };
    records.iter().filter_map(problem).collect()
}
