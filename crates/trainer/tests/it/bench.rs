//! `trainer bench` as its users meet it. What it measures differs from call to call; that it adds up does not.

use std::fs;
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;
use trainer::bench::Measurement;

use crate::support::*;

const TINY: &str = "--d-model 8 --layers 1 --heads 2 --batch 3 --seq 5 --vocab 7 --threads 1";

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}: {value}"))
}

fn assert_close(one: f64, other: f64) {
    assert!((one / other - 1.0).abs() < 1e-9, "{one} {other}");
}

#[test]
fn json_has_every_number_and_they_agree() {
    let place = Workplace::new();
    let ran = place.run(&format!("bench {TINY} --steps 12 --json")).expect(0);
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""), "{ran:?}");
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    for (path, expected) in [
        ("/d_model", 8.0),
        ("/layers", 1.0),
        ("/heads", 2.0),
        ("/batch", 3.0),
        ("/seq", 5.0),
        ("/vocab", 7.0),
        ("/threads", 1.0),
        ("/steps", 9.0),
        ("/warm_up_steps", 3.0),
        ("/evaluation_samples", 3.0),
        ("/tokens_per_step", 15.0),
        // Embeddings, four projections with biases, MLP, three norms, logits.
        ("/parameters", (7 * 8 + 5 * 8 + 4 * 72 + (2 * 8 * 32 + 40) + 6 * 8 + 9 * 7) as f64),
        // Three times 2mnk: projections, scores and contexts, MLP, logits.
        ("/flops_per_step", (3 * (2 * 15 * 8 * 32 + 4 * 3 * 25 * 8 + 4 * 15 * 8 * 32 + 2 * 15 * 8 * 7)) as f64),
    ] {
        assert_eq!(number(&value, path), expected, "{path}");
    }
    let seconds = number(&value, "/ms_per_step") / 1e3;
    assert_close(number(&value, "/tokens_per_s"), 15.0 / seconds);
    assert_close(number(&value, "/gflops"), number(&value, "/flops_per_step") / seconds / 1e9);
    assert_close(number(&value, "/share_of_peak"), number(&value, "/gflops") / number(&value, "/matmul_gflops"));
    assert!(number(&value, "/ms_quartiles/0") <= seconds * 1e3 && seconds * 1e3 <= number(&value, "/ms_quartiles/1"));
    for part in ["data", "forward", "backward", "optimiser", "rest"] {
        let milliseconds = number(&value, &format!("/ms_parts/{part}"));
        assert!(milliseconds > 0.0 && milliseconds < 1e6, "{part}: {milliseconds}");
    }
    assert!(number(&value, "/ms_evaluation") > 0.0);
    assert!(number(&value, "/matmul_size") >= 256.0);
    assert_eq!((value["backend"].as_str(), value["name"].as_str()), (Some("flex"), Some("decoder")));
    assert!(value["program"].as_str().unwrap().starts_with("headcount "));
    assert!(!value["device"].as_str().unwrap().is_empty());
    if cfg!(target_os = "linux") {
        let (peak, before) = (number(&value, "/peak_memory"), number(&value, "/memory_before"));
        assert!(before > 1e6 && before <= peak && peak < 1e9, "{before} {peak}");
    }
    let measured: Measurement = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(serde_json::to_value(&measured).unwrap(), value, "it can be read back");
}

#[test]
fn a_config_is_measured_and_told() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let ran = place.run("bench --config small.toml --set model.heads=4 --steps 4 --threads 1").expect(0);
    let starts: Vec<String> =
        ran.stdout.lines().map(|line| line.chars().take(11).collect::<String>().trim().to_string()).collect();
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("small: d_model 16, 1 layer, 4 heads, batch 8, length 12, vocabulary 6;"), "{first}");
    for start in
        ["step", "data", "forward", "backward", "optimiser", "the rest", "evaluation", "tokens", "arithmetic", "memory"]
    {
        assert_eq!(starts.iter().filter(|found| *found == start).count(), 1, "{start}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("a batch of 16 samples") && !ran.stdout.contains("NaN"), "{}", ran.stdout);
    assert!(!place.path().join("runs").exists(), "nothing is left behind");
    // Without anything named: the config of the README.
    let ran = place.run("bench --steps 4 --threads 1 --json --backend ndarray").expect(0);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((value["name"].as_str(), value["backend"].as_str()), (Some("h8"), Some("ndarray")));
    assert_eq!(number(&value, "/parameters"), 53_640.0);
}

#[test]
fn growth_writes_a_table_and_figures() {
    let place = Workplace::new();
    let sweeps = "--sweep heads=2,1 --sweep batch=2,4,8";
    let ran = place.run(&format!("bench --growth out {TINY} {sweeps} --seconds 0.01")).expect(0);
    assert_eq!(ran.stderr.lines().count(), 5, "each point is told once: {}", ran.stderr);
    let csv = fs::read_to_string(place.path().join("out/growth.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), vec![rows[0].len(); 6], "{csv}");
    let keys: Vec<String> = rows.iter().map(|row| row[..2].join(" ")).collect();
    assert_eq!(keys, ["sweep value", "heads 1", "heads 2", "batch 2", "batch 4", "batch 8"]);
    let column = rows[0].iter().position(|name| *name == "flops_per_step").unwrap();
    let flops: Vec<u64> = rows[1..].iter().map(|row| row[column].parse().unwrap()).collect();
    assert_eq!((flops[0], flops[3]), (flops[1], 2 * flops[2]), "equal in heads, in proportion to the batch");

    let json: Value = serde_json::from_slice(&fs::read(place.path().join("out/growth.json")).unwrap()).unwrap();
    assert_eq!(json["sweeps"][1]["slopes"].as_array().unwrap().len(), 2, "{json}");
    assert_close(number(&json, "/sweeps/1/slopes/0/flops"), 1.0);
    for name in ["growth-heads", "growth-batch"] {
        let svg = fs::read_to_string(place.path().join(format!("out/{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg") && svg.matches("<circle").count() >= 2, "{svg}");
    }
}

/// A point too large for the machine's memory is left out, named, and doesn't end the others.
#[test]
#[cfg(target_os = "linux")]
fn growth_leaves_out_what_does_not_fit() {
    let place = Workplace::new();
    let ran = place.run(&format!("bench --growth out {TINY} --sweep length=5,1000000 --seconds 0.01")).expect(0);
    assert!(ran.stdout.contains("1000000  not measured: it needs about"), "{}", ran.stdout);
    let csv = fs::read_to_string(place.path().join("out/growth.csv")).unwrap();
    assert_eq!(csv.lines().last().unwrap().matches(',').count(), csv.lines().next().unwrap().matches(',').count() + 1);
}

/// `scripts/bench_peers.sh` is a script, and its table has medians of what both programs print, or says that one failed.
#[test]
#[cfg(unix)]
fn peers_are_set_side_by_side() {
    let scripts = configs().parent().unwrap().join("scripts");
    let checked = Command::new("bash").arg("-n").arg(scripts.join("bench_peers.sh")).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");

    let place = Workplace::new();
    let ours = place.run(&format!("bench {TINY} --steps 4 --json")).expect(0).stdout;
    let ours = |milliseconds: f64| {
        let mut figure: Value = serde_json::from_str(&ours).unwrap();
        for (key, value) in [("device", "a processor".into()), ("cores", 2.into()), ("commit", Value::Null)] {
            figure[key] = value;
        }
        (figure["vector_extensions"], figure["share_waiting"]) = (serde_json::json!(["avx"]), 0.25.into());
        (figure["program"], figure["ms_per_step"]) = ("headcount 0".into(), milliseconds.into());
        figure
    };
    let peer = |mode: &str, heads: u64, milliseconds: f64| {
        serde_json::json!({
            "program": "torch 2", "d_model": 8, "layers": 1, "heads": heads, "batch": 3, "seq": 5, "vocab": 7, "steps": 4,
            "threads": 1, "mode": mode, "ms_per_step": milliseconds, "tokens_per_s": 1,
        })
    };
    let figures =
        [ours(3.0), peer("sdpa", 2, 4.0), peer("compile", 2, 2.0), ours(9.0), peer("sdpa", 2, 5.0), ours(4.0)];
    let figures = figures.into_iter().chain([peer("sdpa", 4, 1.0)]);
    place.file("figures.jsonl", figures.map(|figure| format!("{figure}\n")).collect::<String>());
    let mut table = Command::new("python3");
    table.arg(scripts.join("bench_table.py")).arg("figures.jsonl");
    let Ok(ran) = table.current_dir(place.path()).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    assert_snapshot!(Ran::of(ran).expect(0).stdout, @r"
    | d_model | layers | heads | batch | length | vocabulary | threads | Headcount | PyTorch sdpa | PyTorch compile | ratio |
    |---|---|---|---|---|---|---|---|---|---|---|
    | 8 | 1 | 2 | 3 | 5 | 7 | 1 | 4.0 (3.0 to 9.0) | 4.5 (4.0 to 5.0) | 2.0 (2.0 to 2.0) | 2.00 |
    | 8 | 1 | 4 | 3 | 5 | 7 | 1 | failed | 1.0 (1.0 to 1.0) | failed |  |

    Milliseconds of a training step: median of the repetitions (smallest to largest). Ratio: Headcount over the faster PyTorch.
    headcount 0 on flex, torch 2; a processor, 2 cores, avx.
    Note: up to 25% of the time Headcount waited for a core: something else ran.
    ");
}

#[test]
fn mistakes_are_named() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("taken", "");
    for (arguments, code, words) in [
        ("bench --d-model 30 --heads 4", 2, vec!["d_model = 30", "heads = 4"]),
        ("bench --config small.toml --heads 4", 2, vec!["--config"]),
        ("bench --set model.heads=3", 2, vec!["heads = 3", "d_model = 64"]),
        ("bench --steps 3", 2, vec!["--steps"]),
        ("bench --seconds -1", 2, vec![]),
        ("bench --sweep heads=1", 2, vec!["--growth"]),
        ("bench --growth out --sweep width", 2, vec!["`width`", "length, d_model, heads, vocabulary, batch"]),
        ("bench --growth out --sweep heads=1,x", 2, vec!["`x`"]),
        ("bench --growth out --sweep heads=1,3", 2, vec!["heads = 3", "d_model = 64"]),
        ("bench --growth taken --sweep heads=1", 1, vec!["taken"]),
    ] {
        let ran = place.run(arguments).expect(code);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments}: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments}");
    }
    assert!(!place.path().join("out").exists(), "refused before anything is written");
}
