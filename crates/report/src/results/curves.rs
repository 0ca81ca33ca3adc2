//! Curves over training: mean and spread across seeds.

use std::collections::BTreeMap;

use data::{
    Split,
    metrics::{ByMetric, Scores},
};
use runs::MetricLine;
use serde::{Deserialize, Serialize};

use statistics::describe::{mean_of_checked, quantile_of_sorted, sorted};

use crate::{deciding::finite, limits::CURVE_POINTS};

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
    /// Runs that have finite numbers there; a diverged run ends before.
    pub runs: usize,
    /// Each metric that was measured there.
    #[serde(flatten)]
    pub bands: ByMetric<Band>,
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
    fn of(values: &[f64]) -> Self {
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

/// The curves of the runs of one arm.
pub(super) fn curves(runs: &[&[MetricLine]]) -> Vec<Curve> {
    let curve = |split| {
        let of_split =
            |run: &&[MetricLine]| run.iter().filter(|metric| metric.split == split).cloned().collect::<Vec<_>>();
        let runs: Vec<Vec<MetricLine>> = runs.iter().map(of_split).collect();
        let longest = runs.iter().map(Vec::len).max().unwrap_or_default();
        let averaged_steps = if split == Split::Train { longest.div_ceil(CURVE_POINTS).max(1) } else { 1 };
        Curve { split, averaged_steps, points: points(&runs, averaged_steps, longest) }
    };
    [curve(Split::Train), curve(Split::Validation)].into_iter().filter(|curve| !curve.points.is_empty()).collect()
}

fn points(runs: &[Vec<MetricLine>], averaged_steps: usize, longest: usize) -> Vec<CurvePoint> {
    let mut at: BTreeMap<u64, Vec<Scores>> = BTreeMap::new();
    for run in runs {
        for chunk in run.chunks(averaged_steps) {
            // The end of a run that diverged would be a point of its own, between those of the others.
            let is_whole = chunk.len() == averaged_steps || run.len() == longest;
            let (Some(last), true) = (chunk.last(), is_whole) else { continue };
            let count = chunk.len() as f64;
            let mean = |kind| chunk.iter().map(|metric| metric.scores.number(kind)).sum::<f64>() / count;
            let means = last.scores.iter().fold(Scores::default(), |means, (kind, _)| means.with(kind, mean(kind)));
            if means.iter().all(|(_, mean)| finite(mean).is_some()) {
                at.entry(last.step).or_default().push(means);
            }
        }
    }
    let point = |(step, runs): (u64, Vec<Scores>)| {
        let bands = ByMetric::new(|kind| {
            let values: Vec<f64> = runs.iter().filter_map(|scores| scores.get(kind)).collect();
            (!values.is_empty()).then(|| Band::of(&values))
        });
        CurvePoint { step, runs: runs.len(), bands }
    };
    at.into_iter().map(point).collect()
}
