use std::path::Path;

use super::*;
use crate::manifest::Fingerprints;

fn experiment(head: &str, arms: &str) -> Experiment {
    let text = format!("baseline = \"h1\"\n{head}\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n{arms}");
    Experiment::parse(&text, Path::new("test.toml")).unwrap()
}

const SPLIT: &str = "[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.heads = 8\n";

/// What a run would write: numbers from the config, tensors equal where their sizes are.
fn manifest(config: &Config) -> Manifest {
    let flops = cost::step_flops(&config.model, config.dims(), 64, 1000);
    let model = &config.model;
    let print = |path: &str, size: usize| (format!("blocks.0.{path}"), format!("{path} {} {size}", config.seed));
    Manifest {
        program: Program { version: "0.1.0".into(), commit: Some("0123456789abcdef".into()), dirty: Some(false) },
        backend: config.backend.to_string(),
        device: "CPU".into(),
        threads: 1,
        parameters: cost::parameters(model, config.dims()),
        flops_per_step: flops,
        tokens_per_step: 2048,
        fingerprints: Fingerprints {
            data: format!("data {}", config.seed),
            weights: "weights".into(),
            tensors: [
                print("attention.query.weight", model.heads * model.d_head()),
                print("mlp.up.weight", model.d_ff()),
                print("norm1.gamma", model.d_model),
            ]
            .into(),
        },
    }
}

/// The ledger of one run an arm, the manifests changed by `change`.
fn ledger_of(experiment: &Experiment, mixed_ok: bool, change: impl Fn(&str, &mut Manifest)) -> Ledger {
    let planned = experiment.runs(Path::new("runs"));
    let manifests: Vec<Manifest> = planned
        .iter()
        .map(|run| {
            let mut manifest = manifest(&run.config);
            change(&run.arm, &mut manifest);
            manifest
        })
        .collect();
    let runs: Vec<LedgerRun<'_>> = planned
        .iter()
        .zip(&manifests)
        .map(|(run, manifest)| LedgerRun { arm: &run.arm, pair: run.pair, config: &run.config, manifest })
        .collect();
    Ledger::new(experiment, &runs, mixed_ok)
}

fn told(ledger: &Ledger) -> String {
    let mismatches = ledger.check(ledger.regime).unwrap_err();
    mismatches.iter().map(Mismatch::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn heads_alone_match_and_what_follows_is_said() {
    let ledger = ledger_of(&experiment("", &format!("[base.model]\npositions = \"rope\"\n{SPLIT}")), false, |_, _| {});
    assert_eq!(ledger.check(Regime::Split), Ok(()));
    assert_eq!(ledger.pairs_compared, 10);
    insta::assert_snapshot!(ledger, @r"
    regime split: only model.heads and model.kv_heads to differ
    parameters     51,592 equal
    FLOPs a step   657.383 M equal
    tokens a step  2,048 equal
    steps          800 equal
    differs        model.heads: 1 in h1, 8 in h8
    differs        width of a head, which follows: 64 in h1, 8 in h8
    differs        rotary dimensions of a head, which follow: 64 in h1, 8 in h8
    data           equal in 10 pairs
    first weights  equal in 10 pairs
    program        0.1.0, commit 0123456789
    backend        flex
    ");
    let text = serde_json::to_string(&ledger).unwrap();
    assert_eq!(serde_json::from_str::<Ledger>(&text).unwrap(), ledger);
}

#[test]
fn everything_that_does_not_match_is_named_with_its_numbers() {
    let arms = format!("{SPLIT}train.steps = 6400\nmodel.d_ff = 300\n");
    let ledger = ledger_of(&experiment("seeds = [3]\nwhy_seeds = \"test\"", &arms), false, |arm, manifest| {
        if arm == "h8" {
            manifest.fingerprints.data = "other".into();
            manifest.program.commit = None;
            manifest.backend = "wgpu".into();
            manifest.fingerprints.tensors.values_mut().for_each(|print| print.push('x'));
        }
    });
    insta::assert_snapshot!(told(&ledger), @r#"
    model.d_ff is 300 in `h8` and not set in `h1`: regime "split" allows only model.heads and model.kv_heads to differ
    train.steps is 6400 in `h8` and 800 in `h1`: regime "split" allows only model.heads and model.kv_heads to differ
    `h8` has 59316 parameters and `h1` 53640: 5676 apart, at most 0 allowed
    `h8` takes 726589440 FLOPs a step and `h1` 657383424
    pair 3: `h8` sees other data than `h1`: other and data 3
    pair 3: 2 of the 2 initial tensors that `h8` shares with `h1` differ, such as blocks.0.attention.query.weight
    runs of different programs are not compared: 0.1.0, commit unknown; 0.1.0, commit 0123456789
    runs of different backends are not compared: flex, wgpu
    "#);
    let free = ledger.check(Regime::Free).unwrap_err();
    assert_eq!(free.len(), 2, "programs and backends are never mixed unasked");
}

#[test]
fn mixing_is_allowed_when_asked_and_said() {
    let other = |arm: &str, manifest: &mut Manifest| {
        if arm == "h8" {
            manifest.backend = "wgpu".into();
        }
    };
    let ledger = ledger_of(&experiment("", SPLIT), true, other);
    assert_eq!(ledger.check(Regime::Split), Ok(()));
    assert!(ledger.to_string().contains("flex, wgpu (mixed!)"), "{ledger}");
}

#[test]
fn params_allows_half_an_mlp_unit_a_layer_and_advises() {
    let arms = "[base.model]\nd_head = 8\nlayers = 2\n[arms.h1]\nmodel.heads = 1\n[arms.h4]\nmodel.heads = 4\n";
    let plain = ledger_of(&experiment("regime = \"params\"", arms), false, |_, _| {});
    let advice = told(&plain);
    insta::assert_snapshot!(advice, @r"`h4` has 87048 parameters and `h1` 74664: 12384 apart, at most 129 allowed; model.d_ff = 208 comes nearest");
    let matched = ledger_of(&experiment("regime = \"params\"\nmatch_d_ff = true", arms), false, |_, _| {});
    assert_eq!(matched.check(Regime::Params), Ok(()));
    assert!(matched.other_weights.is_empty());
}

#[test]
fn tuned_learning_rates_may_differ_and_are_said() {
    let tuned = experiment("[tuning]\nlr = [0.1]\nseeds = [99]", SPLIT).tuned(&[("h8".to_string(), 0.1)].into());
    let ledger = ledger_of(&tuned, false, |_, _| {});
    assert_eq!(ledger.check(Regime::Split), Ok(()));
    assert!(ledger.to_string().contains("train.lr: 0.003 in h1, 0.1 in h8 (tuned for each arm)"), "{ledger}");
}

#[test]
fn the_nearest_width_is_within_half_a_unit_or_there_is_none() {
    let config = experiment("", SPLIT).arms[0].config.clone();
    let target = parameters(&config);
    assert_eq!(nearest_d_ff(&config, target), Some(256));
    assert_eq!(nearest_d_ff(&config, target + 64), Some(256));
    assert_eq!(nearest_d_ff(&config, target + 65), Some(257));
    assert_eq!(nearest_d_ff(&config, 10), None);
    let mut bare = config;
    bare.model.mlp = false;
    assert_eq!(nearest_d_ff(&bare, target), None);
}
