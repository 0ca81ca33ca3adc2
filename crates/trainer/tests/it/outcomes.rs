//! What a finished, diverged, repeated or refused run leaves and says.

use data::metrics::LOSS;
use std::fs;

use burn::tensor::Device;
use model::{Decoder, parameters};
use runs::{Config, RunDirectory, Status, Summary};
use trainer::training::evaluate::FixedSet;

use crate::support::*;

#[test]
fn a_finished_run_is_shown_and_not_repeated() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let first = place.run("--config small.toml").expect(0);
    let run = place.only_run("runs");
    let files = result_files(&run);
    let timing = fs::read(run.timing_path()).unwrap();

    let second = place.run("--config small.toml").expect(0);
    assert!(second.stdout.contains("is done already (--force trains it again)"), "{second:?}");
    assert!(second.stdout.ends_with(&first.stdout), "the same summary\n{}\n{}", first.stdout, second.stdout);
    assert!(second.stderr.trim_start().starts_with("Next: trainer report runs/"), "{second:?}");
    assert_eq!(fs::read(run.timing_path()).unwrap(), timing, "nothing was trained");

    let third = place.run("--config small.toml --force").expect(0);
    assert_eq!(third.stdout, first.stdout);
    assert_ne!(fs::read(run.timing_path()).unwrap(), timing, "it was trained again");
    assert_eq!(result_files(&run), files);
}

#[test]
fn the_written_config_gives_the_same_run() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run("--config small.toml --set model.heads=4 --seed 7 --set train.lr=1e-2 --out first").expect(0);
    let first = place.only_run("first");
    let config = Config::load(&first.config_path(), &[]).unwrap();
    assert_eq!((config.model.heads, config.seed, config.train.lr), (4, 7, 1e-2));
    place.run(&format!("--config {} --out second", first.config_path().display())).expect(0);
    let second = place.only_run("second");
    assert_eq!(first.path().file_name(), second.path().file_name(), "name, seed and hash");
    assert_same_files(&first, &second);
    assert_eq!(fs::read(first.config_path()).unwrap(), fs::read(second.config_path()).unwrap());
}

#[test]
fn a_foreign_folder_is_refused() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let config = Config::load(&place.path().join("small.toml"), &[]).unwrap();
    let folder = RunDirectory::of(&place.path().join("runs"), &config);
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(folder.path().join("thesis.tex"), "").unwrap();
    for more in ["", "--force"] {
        let ran = place.run(&format!("--config small.toml {more}")).expect(1);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert!(ran.stderr.contains("`thesis.tex`"), "{ran:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The rate is so large that weight decay alone makes the weights grow ninefold a step.
const DIVERGING: &str = "--config small.toml --set train.lr=1000 --set train.clip_norm=0 --set train.warmup=0 \
    --set train.schedule=constant --set train.eval_every=1000 --quiet";

#[test]
fn a_diverged_run_counts_as_a_failure() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let ran = place.run(DIVERGING).expect(4);
    let run = place.only_run("runs");
    let summary = Summary::read(&run.summary_path()).unwrap();
    let Status::Diverged { step } = summary.status else { panic!("{summary:?}") };
    assert_eq!((summary.steps, summary.validation, summary.test), (step, None, None));
    assert!(ran.stdout.contains(&format!("diverged at step {step}")), "{ran:?}");
    for part in ["training samples of the step: ", "checkpoint", "try a smaller train.lr"] {
        assert!(ran.stderr.contains(part), "{part}\n{ran:?}");
    }
    assert!(metrics(&run).last().unwrap().diverged());
    // Shown again, it is a failure again.
    let again = place.run(DIVERGING).expect(4);
    assert!(again.stdout.contains("is done already"), "{again:?}");

    // Where the update of the very last step breaks the model, only the evaluation after it can tell.
    let ran = place.run(&format!("{DIVERGING} --set train.steps={} --out last", step - 1)).expect(4);
    let summary = Summary::read(&place.only_run("last").summary_path()).unwrap();
    assert_eq!(summary.status, Status::Diverged { step: step - 1 }, "{ran:?}");
    assert_eq!((summary.validation, summary.test), (None, None));
}

/// With 0 steps the untrained model is measured.
#[test]
fn no_steps_measure_the_untrained_model() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = train_here(&small(&["train.steps=0"]), folder.path());
    let summary = Summary::read(&run.summary_path()).unwrap();
    assert_eq!((summary.status, summary.steps, summary.tokens, summary.best), (Status::Finished, 0, 0, None));
    assert_eq!(metrics(&run).len(), 1);
    assert!(summary.test.unwrap().are_finite() && summary.validation.unwrap() == metrics(&run)[0].scores);
}

/// The best checkpoint stays where a later one is worse, and the last is there too.
#[test]
fn the_last_and_the_best_checkpoint_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    // So few samples that it soon learns them by heart.
    let config = small(&["task.train_examples=8", "train.steps=200", "train.lr=1e-2", "train.schedule=constant"]);
    let (run, _) = train_here(&config, folder.path());
    let summary = Summary::read(&run.summary_path()).unwrap();
    let best = summary.best.unwrap();
    assert!(best.step < 200);
    // Tested at both steps, each with its own weights.
    let tested = |step: u64| {
        let checkpoint = run.checkpoints().load(step).unwrap();
        let model = Decoder::new(&config.model, config.dims(), config.seed, &Device::flex()).unwrap();
        let model = parameters::from_host(model, &checkpoint.model).unwrap();
        let test = FixedSet::new(&config.task.task, data::Split::Test, config.seed, 40, 16);
        test.score(&model, &Device::flex()).unwrap().scores(&Default::default())
    };
    assert_eq!((summary.best_test, summary.test), (Some(tested(best.step)), Some(tested(200))));
    assert_ne!(summary.best_test, summary.test);
    assert_eq!(run.checkpoints().steps().unwrap(), [best.step, 200]);
    let smallest = metrics(&run)
        .into_iter()
        .filter(|line| line.split == data::Split::Validation && line.step > 0)
        .min_by(|a, b| a.scores.number(&LOSS).total_cmp(&b.scores.number(&LOSS)))
        .unwrap();
    assert_eq!((smallest.step, smallest.scores), (best.step, best.scores));
}

/// Weights alone, at evaluated steps, the last of which are the final checkpoint's; none where none are wanted.
#[test]
fn snapshots_are_kept_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = train_here(&small(&["train.snapshots=4"]), folder.path());
    let snapshots = run.snapshots();
    // 120·(k/4)² is 7.5, 30, 67.5 and 120; every 20th step is evaluated.
    assert_eq!(snapshots.steps().unwrap(), [20, 60, 120]);
    let last = run.checkpoints().load(120).unwrap().model;
    assert_eq!(snapshots.load(120).unwrap().model, last);
    let earlier = snapshots.load(20).unwrap().model;
    assert!(earlier.keys().eq(last.keys()) && earlier != last);

    let (run, _) = train_here(&small(&["train.snapshots=0"]), folder.path());
    assert!(run.snapshots().steps().unwrap().is_empty());
    assert!(!run.path().join("snapshots").exists());
}
