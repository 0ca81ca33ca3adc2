//! MarinFold#184: a run's files were believed without asking whether they belong together.

use std::{fs, path::PathBuf};

use architecture::{HostTensor, Parts};
use data::Split;
use data::metrics::{ACCURACY, LOSS, Scores};

use super::*;
use crate::{
    heads::StepAnalysis,
    manifest::{DataFile, Fingerprints, Program},
    snapshots::Snapshot,
    summary::Status,
};

const TEXT: &str = "name = \"h8\"\n[task]\nkind = \"registers\"\n[train]\nsteps = 20\neval_every = 10\n";

fn config(overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Config::parse_with(TEXT, "h8.toml", &overrides).unwrap()
}

/// What a run of `config` was.
pub(crate) fn manifest(config: &Config) -> Manifest {
    let seed = config.seed;
    Manifest {
        config: config.to_toml(),
        program: Program { version: "0".into(), commit: None, dirty: None, build: None },
        backend: "flex".into(),
        device: "CPU".into(),
        threads: 1,
        parameters: Parts::default(),
        flops_per_step: Parts::default(),
        tokens_per_step: 1,
        resumed: vec![],
        files: DataFile::of(&config.task.task),
        simd: None,
        fingerprints: Fingerprints {
            data: format!("data {seed}"),
            weights: format!("weights {seed}"),
            tensors: Default::default(),
        },
    }
}

/// A run of `config` with every file that a run can have; not done where `is_done` is false.
fn write(parent: &Path, config: &Config, is_done: bool) -> RunDirectory {
    let run = RunDirectory::of(parent, config);
    let _lock = run.create(config).unwrap();
    let seed = config.seed;
    let manifest = manifest(config);
    manifest.write(&run.manifest_path()).unwrap();
    let origin = manifest.origin();
    let (mut metrics, mut timings) = run.logs_after(None).unwrap();
    for step in 1..=20 {
        let scores = Scores::default().with(&LOSS, 1.0 / (step + seed) as f64).with(&ACCURACY, 0.5);
        let line = MetricLine { step, split: Split::Train, scores, lr: None, grad_norm: None, tokens: step };
        metrics.append(&line).unwrap();
        timings.append(&TimingLine { step, seconds: 1.0, tokens_per_second: 1.0, run: origin.id() }).unwrap();
    }
    metrics.sync().unwrap();
    timings.sync().unwrap();
    let tensor = HostTensor { shape: vec![2], values: vec![1.0, seed as f32] };
    let model: crate::Tensors = [("token.weight".to_string(), tensor)].into();
    let metrics = run.metrics_hash().unwrap();
    for step in [10, 20] {
        let snapshot = Snapshot { step, origin: origin.clone(), model: model.clone() };
        run.snapshots().save(&snapshot).unwrap();
        let (metrics, origin, model) = (metrics.clone(), origin.clone(), model.clone());
        run.checkpoints().save(&Checkpoint { step, metrics, origin, model, ..Default::default() }).unwrap();
    }
    if is_done {
        let status = Status::Finished;
        let summary = Summary {
            status,
            steps: 20,
            tokens: 1,
            validation: None,
            test: None,
            best: None,
            best_test: None,
            metrics,
            origin,
        };
        summary.write(&run.summary_path()).unwrap();
    }
    run.open().unwrap().write_heads(&heads()).unwrap();
    run
}

fn heads() -> HeadAnalysis {
    let steps = vec![StepAnalysis {
        step: 20,
        scores: Scores::default().with(&LOSS, 0.5).with(&ACCURACY, 0.25),
        answers: None,
        attentions: vec![],
    }];
    HeadAnalysis { schema_version: heads::SCHEMA_VERSION, steps, ..Default::default() }
}

/// What reading every file of the run says.
fn read_all(run: &RunDirectory) -> Result<(), RunError> {
    let open = run.open()?;
    open.metrics()?;
    open.timings()?;
    open.latest_checkpoint()?;
    open.best_checkpoint()?;
    open.checkpoint_steps()?.into_iter().try_for_each(|step| open.checkpoint(step).map(drop))?;
    open.snapshot_steps()?.into_iter().try_for_each(|step| open.snapshot(step).map(drop))?;
    open.heads().map(drop)
}

fn problems(run: &RunDirectory) -> Vec<String> {
    crate::inspection::inspect(run, true).problems
}

#[test]
fn a_run_reads_as_it_was_written() {
    let parent = tempfile::tempdir().unwrap();
    for is_done in [false, true] {
        let run = write(&parent.path().join(is_done.to_string()), &config(&[]), is_done);
        read_all(&run).unwrap();
        assert_eq!(problems(&run), [""; 0]);
        let open = run.open_as(&config(&[])).unwrap();
        assert_eq!((open.summary().is_some(), open.config()), (is_done, &config(&[])));
        assert_eq!(open.heads().unwrap(), Some(heads()));
        let error = run.open_as(&config(&["train.lr=0.5"])).unwrap_err().to_string();
        assert!(error.contains("train.lr: 0.003 there, 0.5 here"), "{error}");
    }
}

/// `sed -i 's/^heads = 8/heads = 4/' RUN/config.toml`, and every other key alike.
#[test]
fn marinfold_184_an_edited_config_is_refused_with_both_values() {
    let parent = tempfile::tempdir().unwrap();
    for is_done in [false, true] {
        let run = write(&parent.path().join(is_done.to_string()), &config(&[]), is_done);
        let path = run.config_path();
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, expected) in [
            ("heads = 8", "heads = 4", "model.heads: 4 there, 8 in manifest.json"),
            ("causal = true", "causal = false", "model.causal: false there, true in manifest.json"),
            ("residual = true", "residual = false", "model.residual: false there, true in manifest.json"),
            ("\nseed = 0", "\nseed = 7", "seed: 7 there, 0 in manifest.json"),
            ("table_seed = 0", "table_seed = 7", "task.table_seed: 7 there, 0 in manifest.json"),
            ("steps = 20", "steps = 30", "train.steps: 30 there, 20 in manifest.json"),
            ("lr = 0.003", "lr = 0.03", "train.lr: 0.03 there, 0.003 in manifest.json"),
            ("name = \"h8\"", "name = \"h4\"", "name: \"h4\" there, \"h8\" in manifest.json"),
            ("backend = \"flex\"", "backend = \"wgpu\"", "backend: \"wgpu\" there, \"flex\" in manifest.json"),
            ("bias = true", "bias = true\nd_ff = 9", "model.d_ff: 9 there, not set in manifest.json"),
        ] {
            assert!(text.contains(from), "{from}");
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let error = read_all(&run).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("config.toml"), "{error}");
            assert!(problems(&run).iter().any(|problem| problem.contains(expected)), "{:?}", problems(&run));
        }
        fs::write(&path, format!("# only written otherwise\n{text}")).unwrap();
        read_all(&run).unwrap();
    }
}

/// Each file of another run, intact, in the place of this one's.
#[test]
fn marinfold_184_a_file_of_another_run_is_refused_and_named() {
    let files = [
        "config.toml",
        "manifest.json",
        "summary.json",
        "metrics.jsonl",
        "timing.jsonl",
        "heads.json",
        "checkpoints/step-10",
        "checkpoints/step-20",
        "snapshots/step-10.safetensors",
        "snapshots/step-20.safetensors",
    ];
    for is_done in [false, true] {
        for override_ in ["seed=1", "model.heads=4", "train.lr=0.1", "name=other"] {
            for name in files.into_iter().filter(|name| is_done || *name != "summary.json") {
                let parent = tempfile::tempdir().unwrap();
                let run = write(&parent.path().join("mine"), &config(&[]), is_done);
                let other = write(&parent.path().join("theirs"), &config(&[override_]), is_done);
                // The same numbers in both: nothing of another run can be told from this one's.
                let is_same = fs::read(run.metrics_path()).unwrap() == fs::read(other.metrics_path()).unwrap();
                if name == "metrics.jsonl" && is_same {
                    continue;
                }
                let (from, to) = (other.path().join(name), run.path().join(name));
                if from.is_dir() {
                    fs::remove_dir_all(&to).unwrap();
                } else {
                    fs::remove_file(&to).unwrap();
                }
                fs::rename(&from, &to).unwrap();
                let error = read_all(&run).unwrap_err().to_string();
                let key = override_.split_once('=').unwrap().0;
                let file = PathBuf::from(name);
                let file = file.file_name().unwrap().to_str().unwrap();
                let expected = if name == "manifest.json" { "config.toml" } else { file };
                assert!(error.contains(expected), "{name} {override_}: {error}");
                let tells_key = !matches!(name, "metrics.jsonl" | "timing.jsonl");
                assert!(!tells_key || error.contains(&format!("{key}: ")), "{name} {override_}: {error}");
                let problems = problems(&run);
                assert!(problems.iter().any(|problem| problem.contains(expected)), "{name} {override_}: {problems:?}");
            }
        }
    }
}

/// Both that say what the run is, of another run: the others still tell.
#[test]
fn marinfold_184_config_and_manifest_of_another_run_are_refused() {
    let parent = tempfile::tempdir().unwrap();
    for is_done in [false, true] {
        let run = write(&parent.path().join(format!("mine {is_done}")), &config(&[]), is_done);
        let other = write(&parent.path().join(format!("theirs {is_done}")), &config(&["model.causal=false"]), is_done);
        for name in ["config.toml", "manifest.json"] {
            fs::copy(other.path().join(name), run.path().join(name)).unwrap();
        }
        let error = read_all(&run).unwrap_err().to_string();
        assert!(error.contains("model.causal: true there, false in manifest.json"), "{error}");
        assert!(!problems(&run).is_empty());
    }
}

/// A run is known by its files: `.` inside it, another name and a link are all checked alike.
#[cfg(unix)]
#[test]
fn marinfold_184_a_renamed_or_linked_run_is_checked_like_any_other() {
    let parent = tempfile::tempdir().unwrap();
    let run = write(parent.path(), &config(&[]), true);
    let (renamed, link) = (parent.path().join("my best run"), parent.path().join("link"));
    fs::rename(run.path(), &renamed).unwrap();
    std::os::unix::fs::symlink(&renamed, &link).unwrap();
    let spellings = [renamed.clone(), link, renamed.join("."), renamed.join("checkpoints/..")];
    for path in &spellings {
        read_all(&RunDirectory::at(path)).unwrap();
        let found = crate::inspection::find(path).unwrap();
        assert_eq!(found.len(), 1, "{path:?}");
        assert_eq!(problems(&found[0]), [""; 0]);
    }
    let path = renamed.join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("heads = 8", "heads = 4")).unwrap();
    for path in &spellings {
        assert!(read_all(&RunDirectory::at(path)).is_err(), "{path:?}");
        let found = crate::inspection::find(path).unwrap();
        assert!(problems(&found[0])[0].contains("model.heads: 4 there, 8 in manifest.json"), "{path:?}");
    }
}

/// What a run that is done must have, and lacks: it is found, and no earlier one is taken for it in silence.
#[test]
fn a_checkpoint_or_snapshot_that_is_missing_is_found() {
    for (status, steps, kept, best) in [
        (Status::Finished, 20, vec![20, 10], 10),
        (Status::Finished, 20, vec![20, 10], 20),
        (Status::Diverged { step: 15 }, 15, vec![10], 10),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let run = write(parent.path(), &config(&["train.keep_checkpoints=2"]), true);
        let scores =
            data::metrics::Scores::default().with(&data::metrics::LOSS, 0.5).with(&data::metrics::ACCURACY, 0.5);
        let best = Some(crate::Best { step: best, scores });
        Summary { status, steps, best, ..Summary::read(&run.summary_path()).unwrap() }
            .write(&run.summary_path())
            .unwrap();
        assert_eq!(problems(&run), [""; 0]);
        for step in kept {
            let (place, away) = (run.checkpoints().path(step), parent.path().join("away"));
            fs::rename(&place, &away).unwrap();
            let name = format!("step-{step}");
            assert!(problems(&run).iter().any(|problem| problem.contains(&name)), "{status:?} {:?}", problems(&run));
            let latest = run.open().unwrap().latest_checkpoint().unwrap().unwrap();
            if step == 20 {
                assert_eq!((latest.checkpoint.step, latest.damaged[0].0), (10, 20));
            }
            if best.is_some_and(|best| best.step == step) {
                let error = run.open().unwrap().best_checkpoint().unwrap_err().to_string();
                assert!(error.contains(&name), "{error}");
            }
            fs::rename(&away, &place).unwrap();
        }
        let made: Vec<u64> = [10, 20].into_iter().filter(|step| *step <= steps).collect();
        for step in made {
            let (place, away) = (run.snapshots().path(step), parent.path().join("away"));
            fs::rename(&place, &away).unwrap();
            assert!(problems(&run)[0].contains(&format!("step-{step}.safetensors")), "{:?}", problems(&run));
            fs::rename(&away, &place).unwrap();
        }
        fs::remove_dir_all(run.checkpoints().path(10)).unwrap();
        fs::remove_dir_all(run.checkpoints().path(20)).unwrap();
        assert!(run.open().unwrap().latest_checkpoint().unwrap_err().is_absent());
    }
}

/// A checkpoint or a snapshot of another step of the same run.
#[test]
fn a_file_of_another_step_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let run = write(parent.path(), &config(&[]), true);
    fs::rename(run.snapshots().path(10), run.snapshots().path(20)).unwrap();
    assert!(matches!(run.open().unwrap().snapshot(20), Err(RunError::OtherStep { expected: 20, found: 10, .. })));
    fs::remove_dir_all(run.checkpoints().path(20)).unwrap();
    fs::rename(run.checkpoints().path(10), run.checkpoints().path(20)).unwrap();
    assert!(matches!(run.open().unwrap().checkpoint(20), Err(RunError::OtherStep { expected: 20, found: 10, .. })));
}
