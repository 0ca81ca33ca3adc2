//! What the page of a single run shows.

use std::path::{Path, PathBuf};

use architecture::Parts;
use data::{Split, metrics::Scores};
use runs::{
    Best, RunDirectory, RunError, State, Status,
    files::write_output,
    forward::ForwardPass,
    heads::{ExperimentHeads, HeadAnalysis, RunHeads},
};
use serde::Serialize;
use statistics::stability::{gradient_tail, spikes};
use thiserror::Error;

use super::context::{PageContext, RunCurves, SourceFile, TaskFacts, machines, metrics_of, run_curves};
use crate::{heads::of_arm, text::counted};

/// A single run, done or not.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Name of its directory.
    pub name: String,
    /// Name of its arm, such as `h8`.
    pub arm: String,
    /// Such as "8 heads".
    pub label: String,
    pub seed: u64,
    /// Such as "finished" or "diverged at step 12".
    pub status: String,
    /// Whether all steps were done.
    pub finished: bool,
    /// Whether it ended, well or not.
    pub done: bool,
    /// Optimiser steps done, and those of the whole run.
    pub steps: u64,
    pub steps_planned: u64,
    /// At the final step; `None` unless it finished.
    pub validation: Option<Scores>,
    pub test: Option<Scores>,
    /// The smallest validation loss so far and its step.
    pub best_step: Option<u64>,
    pub best_validation_loss: Option<f64>,
    /// Loss spikes; neighbouring ones are one episode.
    pub spike_episodes: usize,
    /// 99th percentile of the gradient norm over its median.
    pub gradient_tail: Option<f64>,
    pub parameters: Parts,
    /// Of one optimiser step.
    pub flops_per_step: Parts,
    /// Training tokens of a full step.
    pub tokens_per_step: u64,
    #[serde(skip)]
    pub(crate) context: PageContext,
}

/// Why a run has no page.
#[derive(Debug, Error)]
pub enum RunReportError {
    /// A file of it.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It has measured nothing.
    #[error("{path}: the run has measured nothing yet")]
    Nothing { path: String },
}

impl RunReport {
    /// Reads a run's directory; one that has stopped half-way shows what there is.
    ///
    /// # Errors
    /// Where a file is missing or damaged, and where nothing has been measured yet.
    pub fn read(directory: &RunDirectory) -> Result<Self, RunReportError> {
        let path = directory.path();
        if matches!(directory.state()?, State::Started { last_step: None } | State::Absent) {
            return Err(RunReportError::Nothing { path: path.display().to_string() });
        }
        let run = directory.open()?;
        let (config, manifest, summary) = (run.config(), run.manifest().clone(), run.summary());
        let metrics = run.metrics()?;
        let steps = metrics.last().map_or(0, |metric| metric.step);
        let (status, finished) = match summary.map(|summary| summary.status) {
            Some(Status::Finished) => ("finished".to_string(), true),
            Some(Status::Diverged { step }) => (format!("diverged at step {step}"), false),
            None => (format!("stopped after step {steps}"), false),
        };
        let heads = config.model.heads;
        let training = || metrics.iter().filter(|metric| metric.split == Split::Train);
        let losses: Vec<f64> = training().map(|metric| metric.scores.goal()).collect();
        let norms: Vec<f64> = training().filter_map(|metric| metric.grad_norm).collect();
        let validated = metrics.iter().filter(|metric| metric.split == Split::Validation);
        let best = validated.fold(None, |best, metric| Best::of(best, metric.step, metric.scores));
        let (metrics_shown, columns) = metrics_of(&[config]);
        let done = summary.filter(|_| finished);
        let curves = RunCurves { arm: config.name.clone(), pair: config.seed, curves: run_curves(&metrics, 0) };
        Ok(Self {
            name: path
                .canonicalize()
                .unwrap_or_else(|_| path.into())
                .file_name()
                .map_or_else(|| config.name.clone(), |name| name.to_string_lossy().into_owned()),
            arm: config.name.clone(),
            label: counted(heads, "head"),
            seed: config.seed,
            status,
            finished,
            done: summary.is_some(),
            steps,
            steps_planned: config.train.steps,
            validation: done.and_then(|summary| summary.validation),
            test: done.and_then(|summary| summary.test),
            best_step: best.map(|best| best.step),
            best_validation_loss: best.map(|best| best.scores.goal()),
            spike_episodes: spikes(&losses).episodes,
            gradient_tail: gradient_tail(&norms).and_then(|tail| tail.ratio),
            context: PageContext {
                curves: vec![curves],
                machines: machines([&manifest].into_iter()),
                file: SourceFile { name: "config.toml".into(), text: config.to_toml() },
                command: "cargo run -p trainer -- --config config.toml".into(),
                tasks: vec![TaskFacts::of(config)],
                metrics: metrics_shown,
                columns,
            },
            parameters: manifest.parameters,
            flops_per_step: manifest.flops_per_step,
            tokens_per_step: manifest.tokens_per_step,
        })
    }

    /// Writes the page into the run's folder, `heads` shown where they were analysed, and a forward pass where there is one, and returns its path.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write(
        &self,
        folder: &Path,
        heads: Option<HeadAnalysis>,
        forward: Option<&ForwardPass>,
    ) -> Result<PathBuf, RunError> {
        let heads = heads.map(|analysis| {
            let (schema_version, name) = (analysis.schema_version, self.name.clone());
            let (pair, directory) = (self.seed, String::new());
            let run = RunHeads { pair, directory, analysis: Some(analysis), problem: None };
            ExperimentHeads { schema_version, name, arms: vec![of_arm(&self.arm, &self.label, vec![run])] }
        });
        let path = folder.join(super::FILE);
        write_output(&path, super::of_run(self, heads.as_ref(), forward).as_bytes())?;
        Ok(path)
    }

    /// The same with what came out, for whoever lists the page.
    pub(super) fn description(&self) -> String {
        let told =
            |scores: Scores| scores.iter().rev().map(|(kind, value)| kind.told(value)).collect::<Vec<_>>().join(", ");
        match self.test {
            Some(test) => format!("{} Test: {}.", self.lead(), told(test)),
            None => self.lead(),
        }
    }

    /// What the run is, in one sentence.
    pub fn lead(&self) -> String {
        let Self { label, seed, status, steps, steps_planned, .. } = self;
        let kind = self.context.tasks.iter().map(|task| task.kind.as_str()).collect::<String>();
        format!(
            "One run: {label} on {kind}, seed {seed}, {status} ({steps} of {steps_planned} steps). No comparison, so no verdict."
        )
    }
}
