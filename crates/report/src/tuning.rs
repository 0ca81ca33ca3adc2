//! The choice of learning rates, on seeds and a set of their own.

use std::collections::BTreeMap;

use data::{Split, metrics::SplitMetric};
use runs::{Experiment, RunRecord};
use serde::{Deserialize, Serialize};
use statistics::describe::mean_of_checked;

use crate::deciding::{self, final_value};

/// What the tuning runs showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TuningTable {
    /// The metric that chose: the primary one on the validation set, at the final step.
    pub metric: SplitMetric,
    /// Seeds of the tuning runs.
    pub seeds: Vec<u64>,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmTuning>,
}

/// One arm's learning rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmTuning {
    /// Name of the arm.
    pub arm: String,
    /// As it reads in a sentence.
    pub label: String,
    /// Every rate of the grid, rising.
    pub rates: Vec<RateResult>,
    /// The rate with the best mean, the smallest of equal ones; `None` while a run is missing.
    pub chosen: Option<f64>,
}

/// One learning rate of one arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateResult {
    /// Peak learning rate.
    pub lr: f64,
    /// The metric of each seed's run; `None` where it diverged or is missing.
    pub values: Vec<Option<f64>>,
    pub diverged: usize,
    pub missing: usize,
    /// Over the runs that ended, a diverged one entering with the worst value; `None` if none did.
    pub mean: Option<f64>,
}

impl ArmTuning {
    /// Whether the rate that was chosen is the smallest or the largest of several: one beyond the grid may be better.
    pub fn is_at_edge(&self) -> bool {
        let ends = [self.rates.first(), self.rates.last()].map(|rate| rate.map(|rate| rate.lr));
        self.rates.len() > 1 && self.chosen.is_some() && ends.contains(&self.chosen)
    }
}

impl TuningTable {
    /// What the tuning runs of an experiment come to; `None` if it has no tuning.
    pub fn of(experiment: &Experiment, records: &[RunRecord]) -> Option<Self> {
        let tuning = experiment.tuning.as_ref()?;
        let metric = SplitMetric { split: Split::Validation, ..experiment.metric.name };
        let worst = deciding::metric(experiment).worst;
        let arm = |arm: &runs::Arm| {
            let rate = |lr: &f64| {
                let tried = records.iter().filter(|r| r.plan.arm == arm.name && r.plan.tuned_lr == Some(*lr));
                self::rate(*lr, &tried.collect::<Vec<_>>(), metric, worst)
            };
            let rates: Vec<RateResult> = tuning.lr.iter().map(rate).collect();
            ArmTuning { arm: arm.name.clone(), label: arm.label.clone(), chosen: choose(&rates, metric), rates }
        };
        Some(Self { metric, seeds: tuning.seeds.clone(), arms: experiment.arms.iter().map(arm).collect() })
    }

    /// How many tuning runs have not ended yet.
    pub fn missing(&self) -> usize {
        self.arms.iter().flat_map(|arm| &arm.rates).map(|rate| rate.missing).sum()
    }

    /// The learning rate of every arm for which one could be chosen, for [`Experiment::tuned`].
    pub fn chosen(&self) -> BTreeMap<String, f64> {
        self.arms.iter().filter_map(|arm| Some((arm.arm.clone(), arm.chosen?))).collect()
    }
}

fn rate(lr: f64, tried: &[&RunRecord], metric: SplitMetric, worst: f64) -> RateResult {
    let value = |summary| final_value(summary, metric);
    let ended: Vec<Option<f64>> = tried.iter().filter_map(|record| record.summary()).map(value).collect();
    let values = tried.iter().map(|record| record.summary().and_then(value)).collect();
    let direction = deciding::direction(metric);
    let worst = ended.iter().flatten().fold(worst, |worst, value| direction.worse(worst, *value));
    let entered: Vec<f64> = ended.iter().map(|value| value.unwrap_or(worst)).collect();
    RateResult {
        lr,
        values,
        diverged: ended.iter().filter(|value| value.is_none()).count(),
        missing: tried.len() - ended.len(),
        mean: (!entered.is_empty()).then(|| mean_of_checked(&entered)),
    }
}

fn choose(rates: &[RateResult], metric: SplitMetric) -> Option<f64> {
    if rates.iter().any(|rate| rate.missing > 0) {
        return None;
    }
    let direction = deciding::direction(metric);
    let mut best: Option<(f64, f64)> = None;
    for rate in rates {
        let mean = rate.mean?;
        if best.is_none_or(|(_, other)| direction.advantage(mean - other) > 0.0) {
            best = Some((rate.lr, mean));
        }
    }
    best.map(|(lr, _)| lr)
}
