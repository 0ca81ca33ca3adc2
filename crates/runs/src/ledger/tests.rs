use std::path::Path;

use super::*;
use architecture::cost;

use crate::manifest::{Fingerprints, TensorFingerprint};

fn experiment(head: &str, arms: &str) -> Experiment {
    let text = format!("baseline = \"h1\"\n{head}\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n{arms}");
    Experiment::parse(&text, Path::new("test.toml")).unwrap()
}

const SPLIT: &str = "[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.heads = 8\n";

/// What a run would write: numbers from the config, tensors equal where their sizes are.
fn manifest(config: &Config) -> Manifest {
    let flops = cost::step_flops(&config.model, config.dims(), 64, 1000);
    let model = &config.model;
    let print = |path: &str, shape: &[usize]| {
        let blake3 = format!("{path} {} {shape:?}", config.seed);
        (format!("blocks.0.{path}"), TensorFingerprint { shape: shape.to_vec(), blake3 })
    };
    Manifest {
        config: config.to_toml(),
        program: Program {
            version: "0.1.0".into(),
            commit: Some("0123456789abcdef".into()),
            dirty: Some(false),
            build: None,
        },
        backend: config.backend.to_string(),
        device: "CPU".into(),
        threads: 1,
        parameters: cost::parameters(model, config.dims()),
        flops_per_step: flops,
        tokens_per_step: 2048,
        resumed: vec![],
        files: vec![],
        simd: None,
        fingerprints: Fingerprints {
            data: format!("data {}", config.seed),
            weights: "weights".into(),
            tensors: [
                print("attention.query.weight", &[model.d_model, model.heads * model.d_head()]),
                print("mlp.up.weight", &[model.d_model, model.d_ff()]),
                print("norm1.gamma", &[model.d_model]),
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
            manifest.fingerprints.tensors.values_mut().for_each(|print| print.blake3.push('x'));
        }
    });
    insta::assert_snapshot!(told(&ledger), @r#"
    model.d_ff is 300 in `h8` and not set in `h1`: regime "split" allows only model.heads and model.kv_heads to differ
    train.steps is 6400 in `h8` and 800 in `h1`: regime "split" allows only model.heads and model.kv_heads to differ
    `h8` has 59316 parameters and `h1` 53640: 5676 apart, at most 0 allowed
    pair 3: `h8` takes 726589440 FLOPs a step and `h1` 657383424
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

/// The runs of an experiment in which FLOPs depend on the seed, without those that `is_missing`.
fn ledger_without(is_missing: impl Fn(&str, u64) -> bool, change: impl Fn(&str, u64, &mut Manifest)) -> Ledger {
    let experiment = experiment("", SPLIT);
    let planned = experiment.runs(Path::new("runs"));
    let kept: Vec<_> = planned.iter().filter(|run| !is_missing(&run.arm, run.pair)).collect();
    let manifests: Vec<Manifest> = kept
        .iter()
        .map(|run| {
            let mut manifest = manifest(&run.config);
            manifest.flops_per_step.add("logits", 1000 * run.pair);
            change(&run.arm, run.pair, &mut manifest);
            manifest
        })
        .collect();
    let runs: Vec<LedgerRun<'_>> = kept
        .iter()
        .zip(&manifests)
        .map(|(run, manifest)| LedgerRun { arm: &run.arm, pair: run.pair, config: &run.config, manifest })
        .collect();
    Ledger::new(&experiment, &runs, false)
}

/// `rm -r EXP/h8-seed0*; trainer report EXP`: whichever run is missing, runs are compared within their pairs.
#[test]
fn a_missing_run_is_no_mismatch() {
    for missing in [None, Some(("h8", 0)), Some(("h1", 0)), Some(("h8", 9)), Some(("h1", 5))] {
        let ledger = ledger_without(|arm, pair| Some((arm, pair)) == missing, |_, _, _| {});
        assert_eq!(ledger.check(Regime::Split), Ok(()), "{missing:?}");
        assert_eq!(ledger.pairs_compared, 10 - usize::from(missing.is_some()));
        // What stands for the arms is from one pair.
        let seeds: Vec<u64> = ledger.arms.iter().map(|arm| arm.seed).collect();
        assert_eq!(seeds[0], seeds[1], "{missing:?}");
        assert_eq!(ledger.arms[0].flops_per_step, ledger.arms[1].flops_per_step, "{missing:?}");
    }
    let ledger = ledger_without(|arm, pair| arm == "h8" && pair == 0, |_, _, _| {});
    assert!(
        ledger.to_string().contains("FLOPs a step   657.383 M to 657.392 M by seed, equal in 9 pairs looked at, of 10"),
        "{ledger}"
    );
    // No pair at all is whole.
    let ledger = ledger_without(|arm, pair| (arm == "h8") == (pair < 5), |_, _, _| {});
    assert_eq!((ledger.check(Regime::Split), ledger.pairs_compared), (Ok(()), 0));
    assert!(ledger.to_string().contains("no complete pair"), "{ledger}");
}

/// A difference within a pair is still one, and its pair is named.
#[test]
fn other_flops_within_a_pair_are_told() {
    let more = |arm: &str, pair: u64, manifest: &mut Manifest| {
        if arm == "h8" && pair == 3 {
            manifest.flops_per_step.add("logits", 1);
        }
    };
    let ledger = ledger_without(|arm, pair| arm == "h8" && pair == 0, more);
    assert_eq!(told(&ledger), "pair 3: `h8` takes 657386425 FLOPs a step and `h1` 657386424");
}

/// A bias is drawn from the range that its layer's inputs give, and under gpt2 depth divides what ends on the residual stream.
#[test]
fn tensors_are_shared_where_what_they_are_drawn_from_agrees() {
    let arms = "[base.model]\ninit = \"gpt2\"\n[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.layers = 2\n";
    let experiment = experiment("regime = \"params\"", arms);
    let shared = |paths: &[(&str, &[usize], &[usize])]| -> usize {
        let prints = |arm: &str| {
            let tensors = paths.iter().map(|(path, one, eight)| {
                let shape = if arm == "h1" { one } else { eight }.to_vec();
                (path.to_string(), TensorFingerprint { shape, blake3: arm.into() })
            });
            tensors.collect::<std::collections::BTreeMap<_, _>>()
        };
        let ledger = ledger_of(&experiment, false, |arm, manifest| manifest.fingerprints.tensors = prints(arm));
        ledger.other_weights.first().map_or(0, |other| other.shared)
    };
    assert_eq!(shared(&[("token.weight", &[16, 64], &[16, 64])]), 1);
    assert_eq!(shared(&[("token.weight", &[16, 64], &[17, 64])]), 0);
    assert_eq!(shared(&[("blocks.0.mlp.down.weight", &[256, 64], &[256, 64])]), 0, "divided by another depth");
    assert_eq!(shared(&[("blocks.0.attention.output.weight", &[64, 64], &[64, 64])]), 0);
    let (up, bias) = ("blocks.0.mlp.up.weight", "blocks.0.mlp.up.bias");
    assert_eq!(shared(&[(up, &[64, 256], &[64, 256]), (bias, &[256], &[256])]), 2);
    assert_eq!(shared(&[(up, &[32, 256], &[64, 256]), (bias, &[256], &[256])]), 0, "another number of inputs");
}

/// pytorch#155423: last bits depend on the vectors, and nothing said that half the runs had others.
#[test]
fn pytorch_155423_other_vectors_and_builds_are_said() {
    let other = |arm: &str, manifest: &mut Manifest| {
        manifest.simd = Some(if arm == "h8" { "avx2" } else { "avx512" }.into());
    };
    let ledger = ledger_of(&experiment("", SPLIT), false, other);
    assert!(told(&ledger).contains("different vector instructions") && told(&ledger).contains("avx2, avx512"));
    let ledger = ledger_of(&experiment("", SPLIT), true, other);
    assert_eq!(ledger.check(Regime::Split), Ok(()));
    assert!(ledger.to_string().ends_with("vectors        avx2, avx512 (mixed!)"), "{ledger}");
    // A run that another build went on with.
    let resumed = |arm: &str, manifest: &mut Manifest| {
        if arm == "h8" {
            let mut now = manifest.clone();
            now.program.build = Some("0123456789abcdef".into());
            assert_eq!(manifest.go_on(5, &now).len(), 1);
            assert!(manifest.go_on(9, &now).is_empty(), "the same as before");
        }
    };
    let ledger = ledger_of(&experiment("", SPLIT), false, resumed);
    assert!(told(&ledger).contains("different programs") && told(&ledger).contains("build 0123456789abcdef"));
}

/// A regime that can't match was told in 24 lines, none of which named the one that can.
#[test]
fn what_does_not_match_is_told_shortly_with_the_way_out() {
    let keys = "train.steps = 10\ntrain.batch_size = 2\ntrain.warmup = 3\ntask.seq_len = 16\n";
    let arms: String = (2..8).map(|heads| format!("[arms.a{heads}]\nmodel.heads = 1\n{keys}")).collect();
    let ledger = ledger_of(&experiment("", &format!("[arms.h1]\nmodel.heads = 1\n{arms}")), false, |_, _| {});
    let mismatches = ledger.check(Regime::Split).unwrap_err();
    assert!(mismatches.len() >= 24);
    let text = explain(Regime::Split, &mismatches);
    assert!(text.lines().count() <= 8 && text.contains("in 5 other arms") && text.contains("more"), "{text}");
    assert!(text.contains("`regime = \"free\"`"), "{text}");
    // What no regime allows is not answered with one.
    let backends = [Mismatch::Backends { backends: vec!["flex".into(), "wgpu".into()] }];
    assert!(!explain(Regime::Split, &backends).contains("free"));
}

/// 24 arms took a dozen screens.
#[test]
fn many_arms_are_told_by_value() {
    let grid = "[grid]\n\"model.layers\" = [1, 2, 3]\n\"model.heads\" = [1, 2, 4, 8]\n\"task.registers\" = [2, 4]\n";
    let text = format!(
        "baseline = \"l1-h1-registers2\"\nregime = \"free\"\nseeds = [0]\nwhy_seeds = \"test\"\n\
                        [metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n{grid}"
    );
    let ledger = ledger_of(&Experiment::parse(&text, Path::new("test.toml")).unwrap(), false, |_, _| {});
    insta::assert_snapshot!(ledger, @r"
    regime free: anything to differ
    parameters     53,128 in 4 arms, 53,640 in 4 arms, 103,048 in 4 arms, 103,560 in 4 arms, 152,968 in 4 arms, 153,480 in 4 arms
    FLOPs a step   657.383 M in 8 arms, 1.312 G in 8 arms, 1.966 G in 8 arms
    tokens a step  2,048 each
    steps          800 each
    differs        task.registers: 2 in 12 arms, 4 in 12 arms
    differs        model.heads: 1 in 6 arms, 2 in 6 arms, 4 in 6 arms, 8 in 6 arms
    differs        model.layers: 1 in 8 arms, 2 in 8 arms, 3 in 8 arms
    differs        width of a head, which follows: 64 in 6 arms, 32 in 6 arms, 16 in 6 arms, 8 in 6 arms
    data           equal in 23 pairs
    first weights  equal in 23 pairs
    program        0.1.0, commit 0123456789
    backend        flex
    ");
}

/// arithmetic#2: `sort` with 2 values and lengths up to 3 has 14 sources, and nothing said so.
#[test]
fn arithmetic_2_test_samples_that_training_shows_are_told() {
    let text = "baseline = \"h1\"\nregime = \"free\"\nseeds = [0]\nwhy_seeds = \"test\"\n[metric]\nmargin = 0.02\n\
                [base.model]\narchitecture = \"encoder_decoder\"\n[base.task]\nkind = \"sort\"\nvocab = 2\nmin_len = 1\n\
                max_len = 3\n[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.heads = 8\n[arms.long]\nmodel.heads = 8\n\
                task.vocab = 16\ntask.min_len = 20\ntask.max_len = 24\n";
    let ledger = ledger_of(&Experiment::parse(text, Path::new("test.toml")).unwrap(), false, |_, _| {});
    let said = "in h1 and h8: 2048 of 2048 test samples are among those that training shows; 14 of the 2048 differ; there are 14 \
                different samples in all: a score on them may be memory";
    assert_eq!(ledger.warnings(), [said]);
    assert!(ledger.to_string().contains(&format!("memory         {said}")), "{ledger}");
    assert_eq!(ledger.seen[0].share, 1.0);
}

/// Before training only the first pair has been looked at, which read as if there were no other.
#[test]
fn a_plan_says_how_many_pairs_it_has_not_looked_at() {
    let experiment = experiment("", SPLIT);
    let planned = experiment.runs(Path::new("runs"));
    let manifests: Vec<Manifest> = planned[..2].iter().map(|run| manifest(&run.config)).collect();
    let runs: Vec<LedgerRun> = planned
        .iter()
        .zip(&manifests)
        .map(|(run, manifest)| LedgerRun { arm: &run.arm, pair: run.pair, config: &run.config, manifest })
        .collect();
    let text = Ledger::new(&experiment, &runs, false).to_string();
    assert!(text.contains("data           equal in 1 pair looked at, of 10"), "{text}");
}
