//! What the page shows beside results and timings: the curve of every run, where it ran, and how to repeat it.

use std::collections::BTreeMap;

use data::{
    Split,
    metrics::{Better, METRICS, MetricKind, SplitMetric},
};
use runs::{Config, Manifest, MetricLine, Program, RunRecord, experiment};
use serde::Serialize;

use crate::{
    limits::{CURVE_POINTS, VALIDATED_POINTS},
    reading::ExperimentRuns,
};

/// Everything that a page needs beside results and timings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageContext {
    /// The curves of every run that ended, in the order of the pairs.
    pub curves: Vec<RunCurves>,
    /// What computed, each kind once.
    pub machines: Vec<Machine>,
    /// The file that all of it can be repeated from.
    pub file: SourceFile,
    /// The command that does it.
    pub command: String,
    /// What the models had to do, each task once: arms may differ in it.
    pub tasks: Vec<TaskFacts>,
    /// What the models are measured by, what people read first at the beginning.
    pub metrics: Vec<MetricInfo>,
    /// The same on each set of a finished run.
    pub columns: Vec<Column>,
}

/// A metric, as the page tells of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricInfo {
    /// Its name in scores and in the points of curves.
    pub key: String,
    /// As it reads in a sentence.
    pub words: String,
    /// As it follows a number: a space and the unit, or nothing.
    pub unit: String,
    /// As it reads on an axis.
    pub axis: String,
    /// Decimals where there is little room.
    pub digits: usize,
    /// The value that is called the best of several: "smallest" or "greatest".
    pub best: &'static str,
    /// What it says, for the glossary.
    #[serde(skip)]
    pub about: String,
}

/// A metric on a set, as the runs of an experiment have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    /// Its field.
    pub name: String,
    pub words: String,
}

/// What the models of any of some configs are measured by, on no set and on each.
pub(crate) fn metrics_of(configs: &[&Config]) -> (Vec<MetricInfo>, Vec<Column>) {
    let applies = |kind: &MetricKind| configs.iter().any(|config| kind.applies(&config.task.task));
    let info = |kind: &MetricKind| MetricInfo {
        key: kind.key.into(),
        words: kind.words.into(),
        unit: kind.unit_told(),
        axis: kind.axis.into(),
        digits: kind.digits,
        best: match kind.better {
            Better::Higher => "greatest",
            Better::Lower => "smallest",
        },
        about: kind.about.into(),
    };
    let column = |metric: SplitMetric| Column { name: metric.name(), words: metric.words() };
    (
        METRICS.iter().rev().filter(|kind| applies(kind)).map(info).collect(),
        SplitMetric::all().filter(|metric| applies(metric.kind)).map(column).collect(),
    )
}

/// The curves of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunCurves {
    /// Name of its arm.
    pub arm: String,
    /// The pair it belongs to.
    pub pair: u64,
    /// Training, thinned as in [`crate::results::Curve`], then validation.
    pub curves: Vec<RunCurve>,
}

/// One split of one run, in columns. Single precision: it is for the eye. `null` where a number was not finite.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunCurve {
    pub split: Split,
    /// Optimiser steps done, the last of those averaged.
    pub step: Vec<u64>,
    /// Training tokens read by then, padding included.
    pub tokens: Vec<u64>,
    /// Each metric that was measured.
    #[serde(flatten)]
    pub columns: BTreeMap<String, Vec<Option<f32>>>,
}

/// What computed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Machine {
    pub program: Program,
    pub backend: String,
    pub device: String,
    /// CPU threads of a run.
    pub threads: usize,
    /// How many runs it did.
    pub runs: usize,
}

/// A file as text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceFile {
    pub name: String,
    pub text: String,
}

/// A task in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskFacts {
    pub kind: String,
    pub about: String,
    /// What to expect of different head counts.
    pub prediction: String,
}

impl TaskFacts {
    /// Of a config's task.
    pub(crate) fn of(config: &Config) -> Self {
        let task = &config.task.task;
        Self { kind: task.kind().into(), about: task.about().into(), prediction: task.prediction().into() }
    }
}

impl PageContext {
    /// The context of an experiment.
    pub fn of(runs: &ExperimentRuns) -> Self {
        let longest = |arm: &str| runs.of_arm(arm).map(|record| trained(record.metrics())).max().unwrap_or_default();
        let curves = |record: &RunRecord| RunCurves {
            arm: record.plan.arm.clone(),
            pair: record.plan.pair,
            curves: run_curves(record.metrics(), longest(&record.plan.arm)),
        };
        let mut tasks: Vec<TaskFacts> = runs.experiment.arms.iter().map(|arm| TaskFacts::of(&arm.config)).collect();
        tasks.sort_by(|a, b| a.kind.cmp(&b.kind));
        tasks.dedup();
        let configs: Vec<&Config> = runs.experiment.arms.iter().map(|arm| &arm.config).collect();
        let (metrics, columns) = metrics_of(&configs);
        Self {
            curves: runs.records.iter().filter(|record| record.summary().is_some()).map(curves).collect(),
            machines: machines(runs.records.iter().filter_map(RunRecord::manifest)),
            file: SourceFile { name: experiment::FILE.into(), text: runs.declared.to_toml() },
            command: format!("cargo run -p trainer -- compare {}", experiment::FILE),
            tasks,
            metrics,
            columns,
        }
    }
}

fn trained(metrics: &[MetricLine]) -> usize {
    metrics.iter().filter(|metric| metric.split == Split::Train).count()
}

/// Training and validation of one run; those that it lacks are left out. `longest` is the number of training lines of
/// the longest run that it stands beside, so that all are thinned alike.
pub(crate) fn run_curves(metrics: &[MetricLine], longest: usize) -> Vec<RunCurve> {
    let of = |split| metrics.iter().filter(|metric| metric.split == split).collect::<Vec<_>>();
    let (training, validation) = (of(Split::Train), of(Split::Validation));
    let averaged = longest.max(training.len()).div_ceil(CURVE_POINTS).max(1);
    let every = validation.len().div_ceil(VALIDATED_POINTS).max(1);
    let last = validation.len().saturating_sub(1);
    let kept: Vec<&[&MetricLine]> =
        validation.chunks(1).enumerate().filter(|(i, _)| i % every == 0 || *i == last).map(|(_, c)| c).collect();
    let curves = [curve(Split::Train, &training.chunks(averaged).collect::<Vec<_>>()), curve(Split::Validation, &kept)];
    curves.into_iter().filter(|curve| !curve.step.is_empty()).collect()
}

fn curve(split: Split, chunks: &[&[&MetricLine]]) -> RunCurve {
    let lasts = || chunks.iter().filter_map(|chunk| chunk.last());
    let mean = |kind, chunk: &[&MetricLine]| {
        let mean = chunk.iter().map(|metric| metric.scores.number(kind)).sum::<f64>() / chunk.len() as f64;
        Some(mean as f32).filter(|mean| mean.is_finite())
    };
    let is_measured = |kind: &&MetricKind| lasts().any(|metric| metric.scores.get(kind).is_some());
    let column = |kind| chunks.iter().map(|chunk| mean(kind, chunk)).collect();
    let columns = METRICS.iter().filter(is_measured).map(|kind| (kind.key.to_string(), column(kind))).collect();
    let (step, tokens) = lasts().map(|last| (last.step, last.tokens)).unzip();
    RunCurve { split, step, tokens, columns }
}

/// What computed the runs of these manifests, each kind once, in the order of its first run.
pub(crate) fn machines<'a>(manifests: impl Iterator<Item = &'a Manifest>) -> Vec<Machine> {
    let mut machines: Vec<Machine> = vec![];
    for manifest in manifests {
        let Manifest { program, backend, device, threads, .. } = manifest.clone();
        let machine = Machine { program, backend, device, threads, runs: 1 };
        match machines.iter_mut().find(|other| Machine { runs: 1, ..(**other).clone() } == machine) {
            Some(same) => same.runs += 1,
            None => machines.push(machine),
        }
    }
    machines
}

#[cfg(test)]
mod tests {
    use data::metrics::{LOSS, Scores};

    use super::*;

    #[test]
    fn long_curves_are_thinned_and_keep_their_last_point() {
        let metric = |step: u64, split| MetricLine {
            step,
            split,
            scores: Scores::default().with(&LOSS, if step == 1000 { f64::NAN } else { step as f64 }),
            lr: None,
            grad_norm: None,
            tokens: 10 * step,
        };
        let metrics: Vec<MetricLine> =
            (1..=1000).flat_map(|step| [metric(step, Split::Train), metric(step, Split::Validation)]).collect();
        let curves = run_curves(&metrics, 0);
        assert_eq!(curves.len(), 2);
        let loss = &curves[0].columns["loss"];
        // 1000 lines in means of 7; 1000 validations, every fifth and the last.
        assert_eq!((curves[0].step[0], loss[0]), (7, Some(4.0)));
        assert_eq!((curves[0].step.len(), curves[0].step.last()), (143, Some(&1000)));
        assert_eq!(loss.last(), Some(&None));
        assert_eq!((curves[1].step.len(), curves[1].step[1]), (201, 6));
        assert_eq!((curves[1].step.last(), curves[1].tokens.last()), (Some(&1000), Some(&10_000)));
        assert!(run_curves(&[], 10).is_empty());
    }
}
