//! A planned run and everything that it left, each file read once.

use std::path::MAIN_SEPARATOR;

use crate::{
    claims,
    directory::State,
    error::RunError,
    experiment::PlannedRun,
    heads::HeadAnalysis,
    manifest::Manifest,
    metrics::{MetricLine, TimingLine},
    open::OpenRun,
    summary::{Status, Summary},
    test_scores::TestScores,
};

/// A planned run and what it left. Results, figures, pages and the analysis of heads are made from it, and read nothing again
/// but weights.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// What was to be run, and where.
    pub plan: PlannedRun,
    ending: Result<EndedRun, String>,
}

/// The files of a run that ended, well or not.
#[derive(Clone, Debug)]
struct EndedRun {
    open: OpenRun,
    metrics: Vec<MetricLine>,
    timings: Vec<TimingLine>,
    heads: Option<HeadAnalysis>,
    test_scores: Option<TestScores>,
}

impl RunRecord {
    /// Reads the run's directory. A run that is missing, not done or damaged is no error: see [`RunRecord::problem`].
    pub fn read(plan: PlannedRun) -> Self {
        let ending = ended(&plan);
        Self { plan, ending }
    }

    /// How it ended; `None` if it has not, here and below.
    pub fn summary(&self) -> Option<&Summary> {
        self.open().and_then(OpenRun::summary)
    }

    /// Its files, which belong together.
    pub fn open(&self) -> Option<&OpenRun> {
        self.ended().map(|ended| &ended.open)
    }

    /// What it was.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.open().map(OpenRun::manifest)
    }

    /// Its metrics, none if it has not ended: half a run says nothing.
    pub fn metrics(&self) -> &[MetricLine] {
        self.ended().map_or(&[], |ended| &ended.metrics)
    }

    /// Its wall-clock figures, none where they are lost: a run without times is no less a run.
    pub fn timings(&self) -> &[TimingLine] {
        self.ended().map_or(&[], |ended| &ended.timings)
    }

    /// The analysis of its heads that lies there, if one of the present version does.
    pub fn heads(&self) -> Option<&HeadAnalysis> {
        self.ended().and_then(|ended| ended.heads.as_ref())
    }

    /// What it scored on each part of a test set that all runs share; see [`OpenRun::test_scores`].
    pub fn test_scores(&self) -> Option<&TestScores> {
        self.ended().and_then(|ended| ended.test_scores.as_ref())
    }

    /// Why it did not finish, such as "diverged at step 12" or "stopped after step 300"; `None` if it did.
    pub fn problem(&self) -> Option<String> {
        match &self.ending {
            Err(reason) => Some(reason.clone()),
            Ok(ended) => match ended.open.summary()?.status {
                Status::Diverged { step } => Some(format!("diverged at step {step}")),
                Status::Finished => None,
            },
        }
    }

    /// The name of its directory.
    pub fn directory_name(&self) -> String {
        let name = self.plan.directory.path().file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    fn ended(&self) -> Option<&EndedRun> {
        self.ending.as_ref().ok()
    }
}

fn ended(plan: &PlannedRun) -> Result<EndedRun, String> {
    // What is worked on, or was until its process was killed, is told of where it is.
    let directory = &claims::latest(&plan.directory);
    // Named within the run's directory, so that results don't depend on where that is.
    let parent = format!("{}{MAIN_SEPARATOR}", directory.path().display());
    let damaged = |error: RunError| format!("damaged: {}", error.to_string().replace(&parent, ""));
    match directory.state().map_err(damaged)? {
        State::Absent => Err("not run".into()),
        State::Started { last_step: None } => Err("stopped before its first step".into()),
        State::Started { last_step: Some(step) } => Err(format!("stopped after step {step}")),
        State::Finished(_) => {
            let open = directory.open_as(&plan.config).map_err(damaged)?;
            let metrics = open.metrics().map_err(damaged)?;
            let timings = match open.timings() {
                Err(error) if error.is_absent() => vec![],
                timings => timings.map_err(damaged)?,
            };
            // What is damaged or of another version is made anew, by whoever needs it.
            let heads = open.heads().unwrap_or_default();
            let test_scores = open.test_scores().map_err(damaged)?;
            Ok(EndedRun { open, metrics, timings, heads, test_scores })
        }
    }
}
