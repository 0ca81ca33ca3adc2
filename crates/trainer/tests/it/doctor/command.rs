//! `trainer doctor` as its users meet it.

use insta::assert_snapshot;
use runs::{Config, RunDirectory};
use serde_json::Value;

use crate::support::*;

/// What was said, with every number that a machine may compute otherwise replaced.
fn redacted(text: &str) -> String {
    let text = text.replace(&configs().display().to_string(), "configs");
    let is_measured = |line: &str| {
        ["ok      environment", "ok      memory"].iter().any(|start| line.starts_with(start))
            || line.contains("nothing wrong found")
    };
    let mut lines = vec![];
    for line in text.lines() {
        match (is_measured(line), line.starts_with("ok ")) {
            (true, _) if line.contains("nothing wrong") => lines.push(line.split(" (").next().unwrap().to_string()),
            (true, _) => lines.push(format!("{}...", line.chars().take(24).collect::<String>())),
            (false, true) => lines.push(line.split_whitespace().map(unmeasured).collect::<Vec<_>>().join(" ")),
            (false, false) => lines.push(line.to_string()),
        }
    }
    lines.join("\n")
}

/// A word, or `#` for a number with a decimal point or an exponent.
fn unmeasured(word: &str) -> String {
    let number: String = word.trim_matches(|c| c == ',' || c == ';').into();
    if number.parse::<f64>().is_ok() && number.contains(['.', 'e']) { word.replace(&number, "#") } else { word.into() }
}

#[test]
fn a_healthy_config() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let ran = place.run("doctor --config small.toml --threads 1").expect(0);
    assert_snapshot!("doctor_healthy", redacted(&ran.stdout));
    // On a machine that is busy with something else a check may take long enough to be named.
    assert!(ran.stderr.lines().all(|line| line.starts_with("doctor: ")), "{ran:?}");
    assert!(!place.path().join("runs").exists(), "nothing is left behind");
}

/// arithmetic#2: `sort` with 2 values and lengths up to 3 has 14 sources. No fault of the model, and nobody may miss it.
#[test]
fn arithmetic_2_test_samples_that_training_shows_are_a_warning() {
    let place = Workplace::new();
    let task = "[task]\nkind = \"sort\"\nvocab = 2\nmin_len = 1\nmax_len = 3\n";
    place.file("tiny.toml", format!("{task}[model]\narchitecture = \"encoder_decoder\"\nd_model = 16\nheads = 2\n"));
    let ran = place.run("doctor --config tiny.toml --threads 1").expect(0);
    let said = "2048 of 2048 test samples are among those that training shows";
    assert!(ran.stdout.contains(&format!("WARNING test samples    {said}")), "{ran:?}");
    assert!(ran.stdout.contains("nothing wrong found, but see the warning on test samples"), "{ran:?}");
    let ran = place.run("--config tiny.toml --dry-run").expect(0);
    assert!(ran.stderr.contains(&format!("warning: {said}")), "{ran:?}");
}

#[test]
fn a_config_that_is_refused_is_a_finding() {
    let place = Workplace::new();
    place.file("width.toml", "[task]\nkind = \"registers\"\n\n[model]\nd_model = 30\nheads = 4\n");
    let ran = place.run("doctor --config width.toml").expect(3);
    assert!(ran.stdout.contains("d_model = 30") && ran.stdout.contains("1 failed: config"), "{ran:?}");
    // A file that is not there is a mistake in the command.
    place.run("doctor --config absent.toml").expect(2);
    place.run("doctor .").expect(2);
    for arguments in ["doctor", "doctor runs/x --config width.toml", "doctor runs/x --set seed=1"] {
        place.run(arguments).expect(2);
    }
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_backend_that_is_not_built_is_a_finding() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let ran = place.run("doctor --config small.toml --backend cuda").expect(3);
    assert!(ran.stdout.contains("FAILED  environment") && ran.stdout.contains("--features cuda"), "{ran:?}");
}

fn json(place: &Workplace, arguments: &str, code: i32) -> Value {
    serde_json::from_str(&place.run(arguments).expect(code).stdout).unwrap()
}

fn outcome<'a>(report: &'a Value, check: &str) -> &'a Value {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|found| found["check"] == check)
        .unwrap_or_else(|| panic!("{check}"))
}

/// A trained run is healthy; a weight that is not a number, and one that was never trained, are found.
#[test]
fn a_run_and_its_weights() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run("--config small.toml --quiet").expect(0);
    let run = place.only_run("runs");
    let arguments = format!("doctor {} --json", run.path().display());
    let report = json(&place, &arguments, 0);
    for check in ["finite weights", "dead weights", "mask", "decoding", "overfit"] {
        assert_eq!(outcome(&report, check)["outcome"], "ok", "{report}");
    }
    assert_eq!(report["nodes"][0]["node"], "embedding");

    let save = |change: &dyn Fn(&mut runs::Tensors)| {
        let mut checkpoint = run.checkpoints().load(120).unwrap();
        change(&mut checkpoint.model);
        run.checkpoints().save(&checkpoint).unwrap();
    };
    let initial = initial_weights(&run);
    save(&|model| {
        // The third column as weight decay alone would leave it.
        let (tensor, before) = (model.get_mut("blocks.0.mlp.up.weight").unwrap(), &initial["blocks.0.mlp.up.weight"]);
        let columns = tensor.shape[1];
        let config = Config::load(&run.config_path(), &[]).unwrap();
        let rate = |step| trainer::training::schedule::learning_rate(&config.train, Some(25), step);
        let decay: f64 = (1..=120).map(|step| 1.0 - rate(step) * config.train.weight_decay).product();
        for row in 0..tensor.shape[0] {
            tensor.values[row * columns + 2] = (f64::from(before.values[row * columns + 2]) * decay) as f32;
        }
    });
    let report = json(&place, &arguments, 3);
    let found = outcome(&report, "dead weights");
    assert_eq!(found["outcome"], "failed");
    let seen = found["seen"].as_str().unwrap();
    assert!(
        seen.contains("1 of 64 columns of blocks.0.mlp.up.weight") && seen.ends_with("the first of them 2"),
        "{seen}"
    );

    save(&|model| model.get_mut("norm.beta").unwrap().values[0] = f32::NAN);
    let report = json(&place, &arguments, 3);
    let found = outcome(&report, "finite weights");
    assert!(found["outcome"] == "failed" && found["seen"].as_str().unwrap().contains("norm.beta"), "{found}");
}

fn initial_weights(run: &RunDirectory) -> runs::Tensors {
    let config = Config::load(&run.config_path(), &[]).unwrap();
    let model = trainer::training::arm::Arm::new(&config).model(&burn::tensor::Device::flex()).unwrap();
    model::parameters::to_host(&model)
}
