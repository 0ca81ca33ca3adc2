//! From runs to the facts of a ledger.

use std::collections::BTreeSet;

use architecture::{Init, Parts};
use serde::{Deserialize, Serialize};

use super::{DataMismatch, FlopsMismatch, Ledger, LedgerRun, WeightsMismatch};
use crate::{
    config::Config,
    differences::{self, Difference},
    experiment::{Arm, Experiment},
    manifest::Manifest,
    seen::SeenInTraining,
    sizes::nearest_d_ff,
};

/// One arm in numbers, from its run of the first pair that every arm has, or else from its first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmFacts {
    /// Such as `h8`.
    pub name: String,
    /// Such as "8 heads".
    pub label: String,
    /// Query heads, H.
    pub heads: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Width of a head, K; differs in regime `split`, as `d_model / heads` does.
    pub d_head: usize,
    /// Columns of a head that are rotated, where positions rotate; so each head has half as many frequencies.
    pub rotary_dimensions: Option<usize>,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the MLP.
    pub d_ff: usize,
    /// The `model.d_ff` that would come nearest to the baseline's parameters.
    pub nearest_d_ff: Option<usize>,
    /// Peak learning rate.
    pub lr: f64,
    /// Optimiser steps of a run.
    pub steps: u64,
    /// Trained numbers by part.
    pub parameters: Parts,
    /// FLOPs of an optimiser step by part; which positions are scored depends on the seed, and so may these.
    pub flops_per_step: Parts,
    /// The least and the most FLOPs of a step among all runs of the arm.
    pub flops_range: [u64; 2],
    /// Training tokens of a full step, padding included.
    pub tokens_per_step: u64,
    /// Seed of the run that these numbers are from.
    pub seed: u64,
    /// Fingerprint of its data.
    pub data: String,
    /// Fingerprint of its initial weights.
    pub weights: String,
    /// What computed.
    pub device: String,
}

/// A config key in which an arm differs from the baseline; values are TOML, [`differences::NOT_SET`] where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmDifference {
    pub arm: String,
    pub key: String,
    pub value: String,
    pub baseline_value: String,
}

/// What two arms differ in; names and seeds are not theirs.
fn arm_differences(arm: &str, ours: &Config, theirs: &Config) -> Vec<ArmDifference> {
    let named = |Difference { key, value, other }| ArmDifference { arm: arm.into(), key, value, baseline_value: other };
    let found = differences::between(ours, theirs).into_iter();
    found.filter(|difference| !matches!(difference.key.as_str(), "name" | "seed")).map(named).collect()
}

/// The pair whose runs stand for their arms: the first that every arm with a run has. Some facts depend on the seed, so that
/// those of different pairs say nothing about arms.
fn common_pair(runs: &[LedgerRun<'_>]) -> Option<u64> {
    let arms: BTreeSet<&str> = runs.iter().map(|run| run.arm).collect();
    let mut pairs: Vec<u64> = runs.iter().map(|run| run.pair).collect();
    pairs.dedup();
    let has = |arm: &str, pair: u64| runs.iter().any(|run| run.arm == arm && run.pair == pair);
    pairs.into_iter().find(|pair| arms.iter().all(|arm| has(arm, *pair)))
}

/// See [`Ledger::new`].
pub(super) fn ledger(experiment: &Experiment, runs: &[LedgerRun<'_>], mixed_ok: bool) -> Ledger {
    let common = common_pair(runs);
    let of = |arm: &str| {
        let mut of_arm = runs.iter().filter(|run| run.arm == arm);
        of_arm.clone().find(|run| Some(run.pair) == common).or(of_arm.next()).copied()
    };
    let baseline = of(&experiment.baseline);
    let target = baseline.map(|run| run.manifest.parameters.total());
    let facts = |arm: &Arm| {
        let LedgerRun { config, manifest, .. } = of(&arm.name)?;
        let model = &config.model;
        let flops = runs.iter().filter(|run| run.arm == arm.name).map(|run| run.manifest.flops_per_step.total());
        Some(ArmFacts {
            name: arm.name.clone(),
            label: arm.label.clone(),
            heads: model.heads,
            kv_heads: model.kv_heads(),
            d_head: model.d_head(),
            rotary_dimensions: model.positions.rotates().then(|| model.d_head()),
            d_model: model.d_model,
            layers: model.layers,
            d_ff: model.d_ff(),
            nearest_d_ff: target.and_then(|target| nearest_d_ff(config, target)),
            lr: config.train.lr,
            steps: config.train.steps,
            parameters: manifest.parameters.clone(),
            flops_per_step: manifest.flops_per_step.clone(),
            flops_range: [flops.clone().min().unwrap_or_default(), flops.max().unwrap_or_default()],
            tokens_per_step: manifest.tokens_per_step,
            seed: config.seed,
            data: manifest.fingerprints.data.clone(),
            weights: manifest.fingerprints.weights.clone(),
            device: manifest.device.clone(),
        })
    };
    let differences = experiment.arms.iter().filter(|arm| arm.name != experiment.baseline).flat_map(|arm| {
        let pair = of(&arm.name).zip(baseline);
        let found = pair.map(|(ours, theirs)| arm_differences(&arm.name, ours.config, theirs.config));
        // What varies from pair to pair is not the arms'; it shows where no pair has both.
        found.unwrap_or_default().into_iter().filter(|difference| !experiment.vary.contains(&difference.key))
    });
    let mut programs = vec![];
    for run in runs.iter().filter(|run| run.arm != experiment.baseline).chain(runs) {
        for program in run.manifest.programs() {
            if !programs.contains(program) {
                programs.push(program.clone());
            }
        }
    }
    programs
        .sort_by_key(|program| (program.version.clone(), program.commit.clone(), program.dirty, program.build.clone()));
    let backends: BTreeSet<String> = runs.iter().map(|run| run.manifest.backend.clone()).collect();
    let simd: BTreeSet<String> = runs.iter().flat_map(|run| run.manifest.levels().cloned()).collect();
    let mut files = vec![];
    for file in runs.iter().flat_map(|run| &run.manifest.files) {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    let mut ledger = Ledger {
        regime: experiment.regime,
        baseline: experiment.baseline.clone(),
        tuned: experiment.tuning.is_some(),
        mixed_ok,
        runs: runs.len(),
        arms: experiment.arms.iter().filter_map(facts).collect(),
        differences: differences.collect(),
        other_flops: vec![],
        other_data: vec![],
        other_weights: vec![],
        pairs_compared: 0,
        pairs_planned: experiment.arms.len().saturating_sub(1) * experiment.seeds.len(),
        programs,
        backends: backends.into_iter().collect(),
        simd: simd.into_iter().collect(),
        vary: experiment.vary.clone(),
        seen: SeenInTraining::of(
            experiment.arms.iter().filter_map(|arm| Some((arm.name.as_str(), of(&arm.name)?.config))),
        ),
        files,
    };
    for run in runs.iter().filter(|run| run.arm != experiment.baseline) {
        let theirs = runs.iter().find(|other| other.arm == experiment.baseline && other.pair == run.pair);
        if let Some(theirs) = theirs {
            hold_against(&mut ledger, *run, *theirs);
        }
    }
    ledger
}

fn hold_against(ledger: &mut Ledger, ours: LedgerRun<'_>, theirs: LedgerRun<'_>) {
    ledger.pairs_compared += 1;
    let (arm, pair) = (ours.arm.to_string(), ours.pair);
    let flops = |manifest: &Manifest| manifest.flops_per_step.total();
    let (found, baseline) = (flops(ours.manifest), flops(theirs.manifest));
    if found != baseline {
        ledger.other_flops.push(FlopsMismatch { arm: arm.clone(), pair, found, baseline });
    }
    let data = |manifest: &Manifest| manifest.fingerprints.data.clone();
    let (found, baseline) = (data(ours.manifest), data(theirs.manifest));
    if found != baseline {
        ledger.other_data.push(DataMismatch { arm: arm.clone(), pair, found, baseline });
    }
    let common = ours.manifest.fingerprints.tensors.iter().filter_map(|(path, print)| {
        let other = theirs.manifest.fingerprints.tensors.get(path)?;
        Some((path, &print.blake3, &other.blake3))
    });
    let shared: Vec<_> = common.filter(|(path, ..)| drawn_from(path, ours) == drawn_from(path, theirs)).collect();
    let differing: Vec<String> =
        shared.iter().filter(|(_, print, other)| print != other).map(|(path, ..)| path.to_string()).collect();
    if !differing.is_empty() {
        ledger.other_weights.push(WeightsMismatch { arm, pair, shared: shared.len(), differing });
    }
}

/// What decides a tensor's initial values besides seed and path: its shape, that of the weight beside it (whose inputs give the
/// range of a bias), the distribution, and under gpt2, for what ends on the residual stream, the depth that divides it. Tensors
/// of one path are drawn alike where these agree.
fn drawn_from<'a>(path: &str, run: LedgerRun<'a>) -> (Option<&'a [usize]>, Option<&'a [usize]>, Init, usize) {
    let tensors = &run.manifest.fingerprints.tensors;
    let shape = |path: &str| tensors.get(path).map(|print| print.shape.as_slice());
    let weight = path.strip_suffix(".bias").and_then(|layer| shape(&format!("{layer}.weight")));
    let model = &run.config.model;
    let is_divided = model.init == Init::Gpt2 && RESIDUAL.iter().any(|layer| path.ends_with(layer));
    (shape(path), weight, model.init, if is_divided { model.layers } else { 0 })
}

/// Weights that end on the residual stream: `Weights::residual_linear` makes them.
const RESIDUAL: [&str; 2] = ["attention.output.weight", "mlp.down.weight"];
