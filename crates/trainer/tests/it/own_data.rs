//! Data from files and tasks in numbers, from `trainer new` to the verdict; and a task of another crate.

use std::fmt::Write as _;
use std::fs;

use data::metrics::{ACCURACY, BITS_PER_BYTE, MAE, MSE, MetricKind, NMSE};
use runs::{Config, RunDirectory, Summary};
use trainer::training::train::Ending;

use crate::support::*;

#[path = "../../examples/own_task.rs"]
#[allow(dead_code, clippy::duplicate_mod)]
mod own_task;

/// Sequences whose label is the first token plus the last, modulo 4: two places to look at.
fn records(lines: u32) -> String {
    let mut text = String::new();
    let mut state = 1u32;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) % below
    };
    for _ in 0..lines {
        let tokens: Vec<u32> = (0..4 + draw(4)).map(|_| draw(4)).collect();
        let label = (tokens[0] + tokens[tokens.len() - 1]) % 4;
        let _ = writeln!(text, "{{\"tokens\": {tokens:?}, \"label\": {label}}}");
    }
    text
}

fn series(rows: u32) -> String {
    let row = |t: u32| format!("{t},{:.4},{:.4}\n", (f64::from(t) / 5.0).sin(), (f64::from(t) / 3.0).cos());
    "time,load,heat\n".to_string() + &(0..rows).map(row).collect::<String>()
}

const SHORT: &str = "[train]\nsteps = 12\nbatch_size = 8\nwarmup = 2\neval_every = 4\neval_batch = 16\nsnapshots = 2\n";
const MODEL: &str = "[model]\nd_model = 16\nheads = 2\n";

/// A config of each kind, and the metrics of its runs.
fn configs_of_files(place: &Workplace) -> Vec<(String, Vec<&'static MetricKind>)> {
    place.file("data.jsonl", records(300));
    place.file("data.csv", series(600));
    place.file("data.txt", "the cat sat on the mat, and the dog ran.\n".repeat(60));
    let rows: String = (0..200).map(|n| format!("{{\"x\": [[{n}, 1], [2, 0.5]], \"y\": {}.5}}\n", n % 7)).collect();
    place.file("data.vectors.jsonl", rows);
    let both_ways = "causal = false\nreadout = true\n";
    let classes = vec![&ACCURACY];
    let numbers = vec![&MSE, &NMSE, &MAE];
    let small = "validation_examples = 30\ntest_examples = 25\n";
    [
        ("records", "data.jsonl", String::new(), both_ways, classes.clone()),
        ("text", "data.txt", "seq_len = 12\n".into(), "", vec![&ACCURACY, &BITS_PER_BYTE]),
        ("series", "data.csv", "window = 8\nhorizon = 2\ncolumns = [\"load\", \"heat\"]\n".into(), "", numbers.clone()),
        ("vectors", "data.vectors.jsonl", String::new(), both_ways, numbers),
    ]
    .into_iter()
    .map(|(kind, file, task, model, metrics)| {
        let text = format!("[task]\nkind = \"{kind}\"\nfiles = \"{file}\"\n{small}{task}{MODEL}{model}{SHORT}");
        (place.file(&format!("{kind}.toml"), text), metrics)
    })
    .collect()
}

/// Whatever was interrupted: the same bytes, and what was scored on each part of the one test set.
#[test]
fn files_of_every_kind_are_trained_on_and_gone_on_with() {
    let place = Workplace::new();
    let out = |name: &str| place.path().join(name);
    let mut configs = configs_of_files(&place);
    let farthest = format!(
        "[task]\nkind = \"farthest\"\ndim = 16\nvalidation_examples = 30\ntest_examples = 25\n{MODEL}d_ff = 32\ncausal = false\n\
         positions = \"none\"\nnorm = \"post\"\nnorm_kind = \"length\"\nactivation = \"relu\"\ninput_layers = 0\n\
         output_layer = false\n{SHORT}"
    );
    configs.push((place.file("farthest.toml", farthest), vec![&MSE, &NMSE, &MAE]));
    for (file, kinds) in configs {
        let config = Config::load(&place.path().join(&file), &[]).unwrap();
        let (whole, _) = train_here(&config, &out("whole"));
        let (part, ending) = train_until(&config, &out("part"), 6);
        assert!(matches!(ending, Ending::Interrupted { step: 6 }), "{file}: {ending:?}");
        train_here(&config, &out("part"));
        assert_same_files(&whole, &part);

        let summary = Summary::read(&whole.summary_path()).unwrap();
        let test = summary.test.unwrap();
        assert!(kinds.iter().all(|kind| test.get(kind).is_some_and(f64::is_finite)), "{file}: {test:?}");
        assert!(test.get(&ACCURACY).is_some() != test.get(&NMSE).is_some(), "{file}: {test:?}");
        let first = metrics(&whole).iter().find(|line| line.step == 0).unwrap().scores;
        // Of sixteen pairs of tokens twelve small batches teach nothing.
        let learns = summary.validation.unwrap().goal() < first.goal();
        assert!(learns || file == "records.toml", "{file}: it learns");

        let by_unit = whole.open().unwrap().test_scores().unwrap();
        assert_eq!(by_unit.is_some(), config.task.task.stored().is_some(), "{file}");
        if let Some(scores) = by_unit {
            for kind in kinds {
                let values = scores.last.of_equal_weight(kind).unwrap();
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let told = test.number(kind);
                assert!((mean - told).abs() <= 1e-5 * told.abs().max(1.0), "{file}: {mean} {told}");
            }
        }
    }
}

#[test]
fn the_program_knows_what_to_do_with_them() {
    let place = Workplace::new();
    for (file, _) in configs_of_files(&place) {
        let name = file.trim_end_matches(".toml");
        let seen = place.run(&format!("doctor --config {file}"));
        assert!(!seen.stdout.contains("FAILED"), "{}", seen.stdout);
        place.run(&format!("--config {file} --out {name} --quiet")).expect(0);
        let run = place.only_run(name);
        let path = run.path().display();
        let shown = place.run(&format!("heads {path} --prune")).expect(0).stdout;
        assert!(shown.contains("1 layer of 2 heads"), "{shown}");
        place.run(&format!("report {path}")).expect(0);
        place.run(&format!("export {path} --output {name}.safetensors")).expect(0);
        let asked = place.run(&format!("generate {path} --sample 0"));
        match name {
            "series" | "vectors" => {
                let refused = asked.expect(2).stderr;
                assert!(refused.contains(&format!("`{name}` is a task in numbers")), "{refused}");
            }
            _ => drop(asked.expect(0)),
        }
    }
    let listed = place.run("tasks records --set files=data.jsonl --show 1 --split test").expect(0).stdout;
    assert!(listed.contains("4 tokens, 4 classes, length 7"), "{listed}");
}

/// What was said by a program that failed.
#[track_caller]
fn refusal(ran: Ran) -> String {
    assert!(ran.code.is_some_and(|code| code > 0), "{ran:?}");
    ran.stderr
}

/// A file that changed is noticed, whatever is asked of the run, with both values.
#[test]
fn a_file_that_changed_is_noticed() {
    let place = Workplace::new();
    configs_of_files(&place);
    place.run("--config records.toml --quiet").expect(0);
    let run = place.only_run("runs");
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().chars().take(16).collect::<String>();
    let (then, now) = (records(300), records(301));
    place.file("data.jsonl", &now);
    for command in ["--config records.toml", &format!("heads {}", run.path().display())] {
        let refused = refusal(place.run(command));
        assert!(refused.contains(&hash(&then)) && refused.contains(&hash(&now)), "{command}: {refused}");
    }
    place.file("data.jsonl", &then);
    place.run("--config records.toml --quiet").expect(0);
    fs::remove_file(place.path().join("data.jsonl")).unwrap();
    let refused = refusal(place.run("--config records.toml"));
    assert!(refused.contains("data.jsonl: can't be read"), "{refused}");
}

/// From a file to the number of heads.
#[test]
fn new_writes_what_compare_runs() {
    let place = Workplace::new();
    configs_of_files(&place);
    let shown = place.run("new ends --from data.jsonl --minutes 0.05").expect(0).stdout;
    for part in [
        "records: 4 tokens, 4 classes, length 8",
        "training sample 2, as the model sees it",
        "said at a read-out token",
        "answers: ",
        "all classes equally likely",
        "loss 1.3863 nats",
        "trainer compare ends-heads.toml",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let refused = place.run("new ends --from data.jsonl").expect(2).stderr;
    assert!(refused.contains("ends.toml is there already"), "{refused}");
    let quick =
        "--set train.steps=10 --set train.eval_every=5 --set task.test_examples=20 --seeds 3 --set why_seeds=short";
    let compared = place.run(&format!("compare ends-heads.toml {quick} --jobs 2")).expect(0).stdout;
    assert!(compared.contains("3 pairs on one test set of 20 samples"), "{compared}");
    assert!(compared.contains("data.jsonl"), "the ledger names the file: {compared}");
    for (name, file, part) in [
        ("novel", "data.txt", "bits per byte"),
        ("load", "data.csv", "the last value read"),
        ("points", "data.vectors.jsonl", "the mean of the training set"),
    ] {
        let shown = place.run(&format!("new {name} --from {file} --minutes 0.05")).expect(0).stdout;
        assert!(shown.contains(part) && shown.contains(&format!("{name}-heads.toml")), "{part}: {shown}");
    }
    let refused = place.run("new absent --from nowhere.jsonl").expect(2).stderr;
    assert!(refused.contains("nowhere.jsonl can't be read"), "{refused}");
}

#[test]
fn a_task_of_another_crate_is_trained_on() {
    data::register::<own_task::TwoEnds>().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("name = \"ends\"\n[task]\nkind = \"two_ends\"\ntokens = 4\n{MODEL}{SHORT}");
    let config = Config::parse(&text, "ends.toml").unwrap();
    let sample = data::Generator::new(&config.task.task, data::Split::Test, 0).sample(3);
    assert_eq!(config.task.task.expected(&sample.tokens), Some(sample.targets.clone()));
    let (run, ending) = train_here(&config, folder.path());
    assert!(matches!(ending, Ending::Done(_)), "{ending:?}");
    assert_eq!(RunDirectory::at(run.path()).config().unwrap(), config);
}
