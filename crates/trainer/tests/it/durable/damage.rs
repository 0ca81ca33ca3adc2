//! Damaged checkpoints: refused by name, or harmless; never a panic, never a different result.

use runs::{Checkpoint, Checkpoints, Config};
use trainer::training::train::Ending;

use super::*;

/// A run that was stopped at step 50, with a checkpoint of 45 before it.
fn stopped() -> (tempfile::TempDir, Config, RunDirectory) {
    let config = Config::parse_with(TINY, "tiny.toml", &["train.steps=100".into()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = train_until(&config, folder.path(), 50);
    assert_eq!(run.checkpoints().steps().unwrap(), [45, 50]);
    (folder, config, run)
}

const FILES: [&str; 3] = ["checkpoint.json", "model.safetensors", "optimiser.safetensors"];

/// What going on would start from: exactly what was saved last, or exactly what was saved before that, with the damaged
/// file named.
fn assert_refused_or_harmless(checkpoints: &Checkpoints, sound: &[Checkpoint; 2], damaged: &str) -> bool {
    let latest = checkpoints.latest().unwrap().unwrap();
    match &latest.damaged[..] {
        [] => assert_eq!(latest.checkpoint, sound[1], "{damaged}"),
        [(50, error)] => {
            assert_eq!(latest.checkpoint, sound[0], "{damaged}");
            let error = error.to_string();
            assert!(error.contains("step-50") && error.contains(damaged), "{damaged}: {error}");
        }
        other => panic!("{other:?}"),
    }
    latest.damaged.is_empty()
}

#[test]
fn flipped_bits_and_lost_ends_are_refused_or_harmless() {
    let (_folder, config, run) = stopped();
    let checkpoints = run.checkpoints();
    let sound = [45, 50].map(|step| checkpoints.load(step).unwrap());
    let whole = tempfile::tempdir().unwrap();
    let (whole, _) = train_here(&config, whole.path());
    let mut random = Random::new();
    let contents = FILES.map(|name| fs::read(checkpoints.path(50).join(name)).unwrap());
    let (mut harmless, mut trained) = (0, 0);
    for case in 0..700 {
        let file = random.below(3);
        let path = checkpoints.path(50).join(FILES[file]);
        let mut bytes = contents[file].clone();
        let at = random.below(bytes.len());
        match case < 500 {
            true => bytes[at] ^= 1 << random.below(8),
            false => bytes.truncate(at),
        }
        fs::write(&path, &bytes).unwrap();
        harmless += usize::from(assert_refused_or_harmless(&checkpoints, &sound, FILES[file]));
        // Gone on with, it ends with the bytes of a run that nothing happened to.
        if trained < times(3, 30) && case % 23 == 0 {
            trained += 1;
            let copy = tempfile::tempdir().unwrap();
            let name = run.path().file_name().unwrap();
            copy_folder(run.path(), &copy.path().join(name));
            let (resumed, ending) = train_here(&config, copy.path());
            assert!(matches!(ending, Ending::Done(_)));
            assert_same_files(&whole, &resumed);
        }
        fs::write(&path, &contents[file]).unwrap();
    }
    assert!(harmless < 50, "{harmless} of 700 were not noticed");
    println!("500 bits and 200 ends: {harmless} harmless, the others refused; {trained} gone on with to the end");
}

#[test]
fn the_user_is_told_what_was_passed_over() {
    let (folder, config, run) = stopped();
    let place = Workplace::new();
    place.file("config.toml", config.to_toml());
    fs::remove_file(run.checkpoints().path(50).join("model.safetensors")).unwrap();
    let command = format!("--config config.toml --out {}", folder.path().display());
    let ran = place.run(&command).expect(0);
    for part in ["checkpoint of step 50 passed over", "model.safetensors", "going on after step 45"] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }

    // Where none is left, nothing is trained over them.
    let (folder, _, run) = stopped();
    for step in [45, 50] {
        fs::write(run.checkpoints().path(step).join("model.safetensors"), "junk").unwrap();
    }
    let command = format!("--config config.toml --out {}", folder.path().display());
    let ran = place.run(&command).expect(1);
    assert!(ran.stderr.contains("step-50/model.safetensors"), "{ran:?}");
    assert_eq!(run.checkpoints().steps().unwrap(), [45, 50]);
}

/// A checkpoint that was copied from another run is not gone on from, however intact it is.
#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let (folder, config, run) = stopped();
    let other = Config { seed: 1, ..config.clone() };
    let (theirs, _) = train_until(&other, folder.path(), 60);
    fs::rename(theirs.checkpoints().path(60), run.checkpoints().path(60)).unwrap();
    let place = Workplace::new();
    place.file("config.toml", config.to_toml());
    let ran = place.run(&format!("--config config.toml --out {}", folder.path().display())).expect(1);
    assert!(ran.stderr.contains("step-60 and manifest.json are of different runs: seed: 1 there, 0 in"), "{ran:?}");
    assert_eq!(run.checkpoints().steps().unwrap(), [45, 50, 60], "nothing was removed");
}

/// The best checkpoint is still the best after any number of resumes, also where all later ones are worse.
#[test]
fn a_worse_checkpoint_never_replaces_the_best() {
    let overrides = ["task.train_examples=8", "train.steps=200", "train.lr=1e-2", "train.schedule=constant"];
    let config = Config::parse_with(TINY, "tiny.toml", &overrides.map(String::from)).unwrap();
    let config = Config { train: runs::TrainConfig { eval_every: 10, ..config.train }, ..config };
    let whole = tempfile::tempdir().unwrap();
    let (whole, _) = train_here(&config, whole.path());
    let best = runs::Summary::read(&whole.summary_path()).unwrap().best.unwrap();
    assert!(best.step < 190, "it learns by heart: {best:?}");
    let folder = tempfile::tempdir().unwrap();
    for stop in [best.step + 3, best.step + 7, 198] {
        let (run, _) = train_until(&config, folder.path(), stop);
        assert_eq!(run.open().unwrap().best_checkpoint().unwrap().unwrap().step, best.step, "stopped at {stop}");
    }
    assert_same_files(&whole, &train_here(&config, folder.path()).0);
}

/// The last ones and the best are kept, at the steps that were asked for.
#[test]
fn as_many_checkpoints_are_kept_as_were_asked_for() {
    for (every, keep, expected) in [("7", "3", vec![91, 98, 100]), ("40", "2", vec![80, 100]), ("1000", "1", vec![100])]
    {
        let overrides = [
            format!("train.checkpoint_every={every}"),
            format!("train.keep_checkpoints={keep}"),
            "train.steps=100".into(),
        ];
        let config = Config::parse_with(TINY, "tiny.toml", &overrides).unwrap();
        let folder = tempfile::tempdir().unwrap();
        train_until(&config, folder.path(), 95);
        let (run, _) = train_here(&config, folder.path());
        let best = runs::Summary::read(&run.summary_path()).unwrap().best.unwrap().step;
        let mut expected = expected;
        expected.push(best);
        expected.sort();
        expected.dedup();
        assert_eq!(run.checkpoints().steps().unwrap(), expected, "every {every}, {keep} kept");
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
