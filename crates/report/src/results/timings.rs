//! Wall-clock figures, apart from everything that can be compared.

use runs::RunRecord;
use serde::{Deserialize, Serialize};
use statistics::describe::median;

use crate::reading::ExperimentRuns;

/// The content of `timings.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timings {
    /// As in `results.json`.
    pub schema_version: u32,
    /// Seconds of all runs, one after the other.
    pub seconds: f64,
    /// By arm.
    pub arms: Vec<ArmTiming>,
    /// By run.
    pub runs: Vec<RunTiming>,
}

/// The time of one arm's runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmTiming {
    pub arm: String,
    /// Median over its runs.
    pub seconds: Option<f64>,
    /// Median over its runs, training tokens a second.
    pub tokens_per_second: Option<f64>,
}

/// The time of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTiming {
    pub arm: String,
    pub pair: u64,
    /// Interruptions left out; up to the last evaluation.
    pub seconds: f64,
    /// Training tokens a second, evaluations included.
    pub tokens_per_second: f64,
    /// CPU threads that it had.
    pub threads: usize,
}

impl Timings {
    /// The time of the runs of an experiment.
    pub fn of(runs: &ExperimentRuns) -> Self {
        let (experiment, records) = (&runs.experiment, &runs.records);
        let timing = |record: &RunRecord| {
            let seconds = record.timings().last().map(|line| line.seconds).filter(|seconds| seconds.is_finite())?;
            let tokens = record.summary()?.tokens as f64;
            Some(RunTiming {
                arm: record.plan.arm.clone(),
                pair: record.plan.pair,
                seconds,
                tokens_per_second: if seconds > 0.0 { tokens / seconds } else { 0.0 },
                threads: record.manifest()?.threads,
            })
        };
        let runs: Vec<RunTiming> = records.iter().filter_map(timing).collect();
        let of = |arm: &str, value: fn(&RunTiming) -> f64| {
            let values: Vec<f64> = runs.iter().filter(|run| run.arm == arm).map(value).collect();
            median(&values).ok()
        };
        let arm = |arm: &runs::Arm| ArmTiming {
            arm: arm.name.clone(),
            seconds: of(&arm.name, |run| run.seconds),
            tokens_per_second: of(&arm.name, |run| run.tokens_per_second),
        };
        Timings {
            schema_version: super::SCHEMA_VERSION,
            seconds: runs.iter().map(|run| run.seconds).sum(),
            arms: experiment.arms.iter().map(arm).collect(),
            runs,
        }
    }
}
