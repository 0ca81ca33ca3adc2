//! Curves over training: mean and spread across seeds.

use std::collections::BTreeMap;

use data::{
    Split,
    metrics::{METRICS, SplitMetric},
};
use runs::{Experiment, MetricLine, RunRecord, Status};
use serde::{Deserialize, Serialize};

use statistics::{
    StatisticsError,
    describe::{mean_of_checked, quantile_of_sorted, sorted},
    mean_curve::{RunCurve, values_by_step},
};

use crate::{deciding, limits::CURVE_POINTS};

/// One split of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Which set was measured.
    pub split: Split,
    /// Logged steps of a run that were averaged to a point: 1, or more for a thinned training curve.
    pub averaged_steps: usize,
    /// In the order of the steps.
    pub points: Vec<CurvePoint>,
}

/// One step of a curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Optimiser steps done, the last of those averaged.
    pub step: u64,
    /// Runs in the numbers: those that logged there, and those that had diverged.
    pub runs: usize,
    /// Of them, runs that had diverged before, and stand at the penalty of each metric.
    pub diverged: usize,
    /// Each metric that was measured there, by its key.
    #[serde(flatten)]
    pub bands: BTreeMap<String, Band>,
}

/// Spread across runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Band {
    pub mean: f64,
    pub minimum: f64,
    /// Quantile 0.25, type 7.
    pub lower_quartile: f64,
    pub median: f64,
    /// Quantile 0.75, type 7.
    pub upper_quartile: f64,
    pub maximum: f64,
}

impl Band {
    /// Of at least one finite value.
    pub(crate) fn of(values: &[f64]) -> Self {
        let sorted = sorted(values);
        let quantile = |probability| quantile_of_sorted(&sorted, probability);
        Self {
            mean: mean_of_checked(values),
            minimum: quantile(0.0),
            lower_quartile: quantile(0.25),
            median: quantile(0.5),
            upper_quartile: quantile(0.75),
            maximum: quantile(1.0),
        }
    }
}

/// The curves of the runs of one arm. A run that diverged stands at each metric's penalty from then on: leaving it out would
/// make the arm that diverges look best.
pub(super) fn curves(experiment: &Experiment, runs: &[&&RunRecord]) -> Result<Vec<Curve>, StatisticsError> {
    let mut curves = vec![];
    for split in [Split::Train, Split::Validation] {
        let of_split = |record: &&&RunRecord| {
            let lines = record.metrics().iter().filter(|metric| metric.split == split);
            let diverged = record.summary().is_some_and(|summary| summary.status != Status::Finished);
            (lines.cloned().collect::<Vec<_>>(), diverged)
        };
        let runs: Vec<(Vec<MetricLine>, bool)> = runs.iter().map(of_split).collect();
        let longest = runs.iter().map(|(lines, _)| lines.len()).max().unwrap_or_default();
        let averaged_steps = if split == Split::Train { longest.div_ceil(CURVE_POINTS).max(1) } else { 1 };
        let mut points: BTreeMap<u64, CurvePoint> = BTreeMap::new();
        for kind in METRICS {
            let is_measured = runs.iter().any(|(lines, _)| lines.iter().any(|line| line.scores.get(kind).is_some()));
            if !is_measured {
                continue;
            }
            let thinned = |(lines, diverged): &(Vec<MetricLine>, bool)| {
                let chunks = lines.chunks(averaged_steps);
                // The end of a run that diverged would be a point of its own, between those of the others.
                let whole = chunks.filter(|chunk| chunk.len() == averaged_steps || lines.len() == longest);
                let point = |chunk: &[MetricLine]| {
                    let sum: f64 = chunk.iter().map(|metric| metric.scores.number(kind)).sum();
                    Some((chunk.last()?.step, sum / chunk.len() as f64))
                };
                RunCurve { points: whole.filter_map(point).collect(), diverged: *diverged }
            };
            let scale = deciding::scale_of(experiment, SplitMetric { split, kind });
            for at in values_by_step(&runs.iter().map(thinned).collect::<Vec<_>>(), &scale)? {
                let empty = CurvePoint { step: at.step, runs: 0, diverged: 0, bands: BTreeMap::new() };
                let point = points.entry(at.step).or_insert(empty);
                point.runs = point.runs.max(at.values.len());
                point.diverged = point.diverged.max(at.at_penalty);
                point.bands.insert(kind.key.into(), Band::of(&at.values));
            }
        }
        curves.push(Curve { split, averaged_steps, points: points.into_values().collect() });
    }
    curves.retain(|curve| !curve.points.is_empty());
    Ok(curves)
}
