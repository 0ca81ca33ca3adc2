//! From run directories to what they hold.

use std::fs;

use runs::{
    Config, Experiment, Ledger, LedgerRun, Manifest, MetricLine, PlannedRun, RunDirectory, RunError, State, Status,
    Summary, TimingLine,
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
    metrics: Vec<MetricLine>,
    timings: Vec<TimingLine>,
}

impl Record {
    /// How it ended; `None` if it has not.
    pub fn summary(&self) -> Option<&Summary> {
        self.ending.as_ref().ok().map(|ended| &ended.summary)
    }

    /// Its metrics, empty if it has not ended: half a run says nothing.
    pub fn metrics(&self) -> &[MetricLine] {
        self.ending.as_ref().map_or(&[], |ended| &ended.metrics)
    }

    /// Its wall-clock figures, as far as they are there.
    pub fn timings(&self) -> &[TimingLine] {
        self.ending.as_ref().map_or(&[], |ended| &ended.timings)
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
            let run = directory.open_as(&plan.config).map_err(damaged)?;
            let metrics = run.metrics().map_err(damaged)?;
            let timings = match run.timings() {
                // A run without times is no less a run.
                Err(error) if error.is_absent() => vec![],
                timings => timings.map_err(damaged)?,
            };
            Ok(Ended { summary, manifest: run.manifest().clone(), metrics, timings })
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
