//! From runs to the facts of a ledger.

use std::collections::BTreeSet;

use architecture::{Init, Merge, Parts};
use serde::{Deserialize, Serialize};

use super::{DataMismatch, Ledger, LedgerRun, WeightsMismatch, nearest_d_ff};
use crate::{
    config::Config,
    experiment::{Experiment, config_leaves},
    manifest::Manifest,
};

/// One arm in numbers, from its first run.
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
    /// FLOPs of an optimiser step by part.
    pub flops_per_step: Parts,
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

/// A config key in which an arm differs from the baseline; values are TOML, "not set" where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub arm: String,
    pub key: String,
    pub value: String,
    pub baseline_value: String,
}

/// What differs between two configs in words, name and seed included: "train.lr: 0.003 there, 0.01 here".
pub(crate) fn differences(there: &Config, here: &Config) -> String {
    let named =
        [("name", there.name.clone(), here.name.clone()), ("seed", there.seed.to_string(), here.seed.to_string())];
    let keys = difference("", here, there);
    let keys = keys.into_iter().map(|Difference { key, value, baseline_value, .. }| (key, baseline_value, value));
    let all = named.map(|(key, there, here)| (key.to_string(), there, here)).into_iter().chain(keys);
    let shown: Vec<String> = all
        .filter(|(_, there, here)| there != here)
        .map(|(key, there, here)| format!("{key}: {there} there, {here} here"))
        .collect();
    shown.join("; ")
}

/// Config keys in which two configs differ, name and seed aside, in the order of the file.
pub fn differing_keys(first: &Config, second: &Config) -> Vec<String> {
    difference("", first, second).into_iter().map(|difference| difference.key).collect()
}

fn difference(arm: &str, config: &Config, baseline: &Config) -> Vec<Difference> {
    let (ours, theirs) = (config_leaves(config), config_leaves(baseline));
    let value = |leaves: &[(String, String)], key: &str| {
        leaves.iter().find(|(name, _)| name == key).map_or("not set".to_string(), |(_, value)| value.clone())
    };
    let mut seen = BTreeSet::new();
    let keys = ours.iter().chain(&theirs).map(|(key, _)| key).filter(|key| seen.insert(key.as_str()));
    let both = keys.map(|key| Difference {
        arm: arm.into(),
        key: key.clone(),
        value: value(&ours, key),
        baseline_value: value(&theirs, key),
    });
    both.filter(|difference| difference.value != difference.baseline_value).collect()
}

/// See [`Ledger::new`].
pub(super) fn ledger(experiment: &Experiment, runs: &[LedgerRun<'_>], mixed_ok: bool) -> Ledger {
    let of = |arm: &str| runs.iter().find(|run| run.arm == arm).copied();
    let baseline = of(&experiment.baseline);
    let target = baseline.map(|run| run.manifest.parameters.total());
    let facts = |arm: &crate::experiment::Arm| {
        let LedgerRun { config, manifest, .. } = of(&arm.name)?;
        let model = &config.model;
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
            tokens_per_step: manifest.tokens_per_step,
            seed: config.seed,
            data: manifest.fingerprints.data.clone(),
            weights: manifest.fingerprints.weights.clone(),
            device: manifest.device.clone(),
        })
    };
    let differences = experiment.arms.iter().filter(|arm| arm.name != experiment.baseline).flat_map(|arm| {
        let pair = of(&arm.name).zip(baseline);
        pair.map(|(ours, theirs)| difference(&arm.name, ours.config, theirs.config)).unwrap_or_default()
    });
    let mut programs = vec![];
    for run in runs.iter().filter(|run| run.arm != experiment.baseline).chain(runs) {
        if !programs.contains(&run.manifest.program) {
            programs.push(run.manifest.program.clone());
        }
    }
    programs.sort_by_key(|program| (program.version.clone(), program.commit.clone(), program.dirty));
    let backends: BTreeSet<String> = runs.iter().map(|run| run.manifest.backend.clone()).collect();
    let mut ledger = Ledger {
        regime: experiment.regime,
        baseline: experiment.baseline.clone(),
        tuned: experiment.tuning.is_some(),
        mixed_ok,
        runs: runs.len(),
        arms: experiment.arms.iter().filter_map(facts).collect(),
        differences: differences.collect(),
        other_data: vec![],
        other_weights: vec![],
        pairs_compared: 0,
        programs,
        backends: backends.into_iter().collect(),
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
    let data = |manifest: &Manifest| manifest.fingerprints.data.clone();
    let (found, baseline) = (data(ours.manifest), data(theirs.manifest));
    if found != baseline {
        ledger.other_data.push(DataMismatch { arm: arm.clone(), pair, found, baseline });
    }
    let others = &theirs.manifest.fingerprints.tensors;
    let tensors = ours.manifest.fingerprints.tensors.iter();
    let common = tensors.filter_map(|(path, print)| Some((path, print, others.get(path)?)));
    let shared: Vec<_> =
        common.filter(|(path, ..)| decided_by(path, ours.config) == decided_by(path, theirs.config)).collect();
    let differing: Vec<String> =
        shared.iter().filter(|(_, print, other)| print != other).map(|(path, ..)| path.to_string()).collect();
    if !differing.is_empty() {
        ledger.other_weights.push(WeightsMismatch { arm, pair, shared: shared.len(), differing });
    }
}

/// The sizes that decide a tensor's shape and the range of its initial values (both follow from what it reads and
/// writes). Tensors of one path are drawn alike where these agree.
fn decided_by(path: &str, config: &Config) -> Vec<usize> {
    let (model, dims) = (&config.model, config.dims());
    let query = model.heads * model.d_head();
    let merged = if model.merge == Merge::Concat { query } else { model.d_head() };
    let has = |part: &str| path.contains(part);
    // Under gpt2, what ends on the residual stream is divided by sqrt(2·layers).
    let depth = if model.init == Init::Gpt2 { model.layers } else { 0 };
    let source = dims.source.map_or((0, 0), |source| (source.vocab, source.length));
    let own = match () {
        () if path.starts_with("encoder.token") => vec![source.0],
        () if path.starts_with("encoder.position") => vec![source.1],
        () if path.starts_with("token") => vec![dims.vocab],
        () if path.starts_with("position") => vec![dims.length],
        () if path.starts_with("logits") => vec![dims.outputs],
        // `cross_attention` too: it has the shapes of every attention, in the encoder as well.
        () if has("attention.query") => vec![query],
        () if has("attention.key") || has("attention.value") => vec![model.kv_heads() * model.d_head()],
        () if has("attention.output") => vec![merged, depth],
        () if has("mlp.up") => vec![model.d_ff()],
        () if has("mlp.down") => vec![model.d_ff(), depth],
        () => vec![],
    };
    [own, vec![model.d_model, usize::from(model.init == Init::Gpt2)]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(task: &str, model: &str) -> Config {
        let text = format!(
            "[task]\nkind = \"sort\"\n{task}\n[model]\narchitecture = \"encoder_decoder\"\nd_model = 32\n{model}\n"
        );
        Config::parse(&text, "test.toml").unwrap()
    }

    /// Which of an encoder-decoder's tensors two configs draw alike.
    #[test]
    fn an_encoder_and_its_decoder_are_decided_by_their_own_sizes() {
        let base = config("", "");
        let differing = |other: &Config| -> Vec<&str> {
            let paths = [
                "encoder.token.weight",
                "encoder.position.weight",
                "encoder.blocks.0.attention.key.weight",
                "encoder.blocks.0.mlp.up.weight",
                "encoder.norm.gamma",
                "token.weight",
                "position.weight",
                "blocks.0.attention.query.weight",
                "blocks.0.cross_attention.query.weight",
                "blocks.0.cross_attention.value.weight",
                "blocks.0.cross_attention.output.weight",
                "blocks.0.norm_cross.gamma",
                "logits.weight",
            ];
            paths.into_iter().filter(|path| decided_by(path, &base) != decided_by(path, other)).collect()
        };
        assert_eq!(differing(&config("", "heads = 4")), [""; 0], "heads alone change no shape");
        assert_eq!(differing(&config("max_len = 14", "")), ["encoder.position.weight", "position.weight"]);
        assert_eq!(differing(&config("vocab = 9", "")), ["encoder.token.weight", "token.weight", "logits.weight"]);
        let shared = ["encoder.blocks.0.attention.key.weight", "blocks.0.cross_attention.value.weight"];
        assert_eq!(differing(&config("", "kv_heads = 2")), shared);
        let wide = ["blocks.0.attention.query.weight", "blocks.0.cross_attention.query.weight"];
        let wide = [&shared[..1], &wide, &shared[1..], &["blocks.0.cross_attention.output.weight"]].concat();
        assert_eq!(differing(&config("", "d_head = 8")), wide);
        assert_eq!(differing(&config("", "d_ff = 8")), ["encoder.blocks.0.mlp.up.weight"]);
    }
}
