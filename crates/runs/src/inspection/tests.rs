use super::*;
use crate::{checkpoint::Checkpoint, config::Config, manifest::Manifest, snapshots::Snapshot, summary::Summary};
use data::Split;
use data::metrics::{ACCURACY, LOSS, Scores};

fn config() -> Config {
    Config::parse("name = \"h8\"\n[task]\nkind = \"registers\"\n[train]\nsteps = 100\n", "h8.toml").unwrap()
}

fn metric(step: u64) -> MetricLine {
    MetricLine {
        step,
        split: Split::Train,
        scores: Scores::default().with(&LOSS, 1.0).with(&ACCURACY, 0.5),
        lr: None,
        grad_norm: None,
        tokens: step,
    }
}

/// A run of 100 steps with a checkpoint at 60 that has logged 70.
fn partial(parent: &Path) -> RunDirectory {
    let run = RunDirectory::of(parent, &config());
    let _lock = run.create(&config()).unwrap();
    manifest().write(&run.manifest_path()).unwrap();
    let (mut log, _) = run.logs_after(None).unwrap();
    (1..=60).for_each(|step| log.append(&metric(step)).unwrap());
    log.sync().unwrap();
    let (metrics, origin) = (run.metrics_hash().unwrap(), manifest().origin());
    run.checkpoints().save(&Checkpoint { step: 60, metrics, origin, ..Default::default() }).unwrap();
    let tensor = architecture::HostTensor { shape: vec![100], values: (0..100).map(|i| i as f32).collect() };
    let model = [("x".to_string(), tensor)].into();
    run.snapshots().save(&Snapshot { step: 50, origin: manifest().origin(), model }).unwrap();
    (61..=70).for_each(|step| log.append(&metric(step)).unwrap());
    run
}

fn manifest() -> Manifest {
    Manifest {
        config: config().to_toml(),
        program: crate::Program { version: "0".into(), commit: None, dirty: None, build: None },
        backend: "flex".into(),
        device: "CPU".into(),
        threads: 1,
        parameters: Default::default(),
        flops_per_step: Default::default(),
        tokens_per_step: 1,
        resumed: vec![],
        files: vec![],
        simd: None,
        fingerprints: crate::Fingerprints { data: "".into(), weights: "".into(), tensors: Default::default() },
    }
}

fn finish(run: &RunDirectory, status: Status) {
    let (metrics, origin) = (run.metrics_hash().unwrap(), manifest().origin());
    for step in [50, 100] {
        let (metrics, origin) = (metrics.clone(), origin.clone());
        run.checkpoints().save(&Checkpoint { step, metrics, origin, ..Default::default() }).unwrap();
    }
    run.snapshots().save(&Snapshot { step: 100, origin: origin.clone(), model: Default::default() }).unwrap();
    let summary = Summary {
        status,
        steps: 100,
        tokens: 0,
        validation: None,
        test: None,
        best: None,
        best_test: None,
        metrics,
        origin,
    };
    summary.write(&run.summary_path()).unwrap();
}

#[test]
fn each_state_is_told() {
    let parent = tempfile::tempdir().unwrap();
    let run = partial(parent.path());
    for folder in [parent.path(), run.path()] {
        assert_eq!(find(folder).unwrap(), std::slice::from_ref(&run));
    }
    let seen = inspect(&run, true);
    assert_eq!((seen.state, seen.step, seen.steps), (Condition::Partial, 70, Some(100)), "{seen:?}");
    assert!(seen.bytes > 5000);
    let lock = run.lock().unwrap();
    assert_eq!(inspect(&run, true).state, Condition::Running);
    drop(lock);
    finish(&run, Status::Finished);
    let seen = inspect(&run, true);
    assert_eq!((seen.state, seen.step, &seen.problems[..]), (Condition::Done, 100, &[][..]));
    finish(&run, Status::Diverged { step: 100 });
    assert_eq!(inspect(&run, true).state, Condition::Failed);
}

/// Any file of a run: one bit flipped, the end lost, or the file gone.
#[test]
fn damage_to_any_file_is_named() {
    let names = [
        "config.toml",
        "manifest.json",
        "metrics.jsonl",
        "summary.json",
        "checkpoints/step-60/checkpoint.json",
        "checkpoints/step-60/model.safetensors",
        "snapshots/step-50.safetensors",
    ];
    for name in names {
        for is_done in [false, true] {
            if name == "summary.json" && !is_done {
                continue;
            }
            let parent = tempfile::tempdir().unwrap();
            let run = partial(parent.path());
            if is_done {
                finish(&run, Status::Finished);
            }
            assert_eq!(inspect(&run, true).problems, [""; 0]);
            let path = run.path().join(name);
            let bytes = fs::read(&path).unwrap();
            let mut flipped = bytes.clone();
            flipped[bytes.len() * 2 / 3] ^= 1;
            for (damage, content) in
                [("flipped", Some(&flipped[..])), ("cut", Some(&bytes[..bytes.len() / 2])), ("gone", None)]
            {
                match content {
                    Some(content) => fs::write(&path, content).unwrap(),
                    None => fs::remove_file(&path).unwrap(),
                }
                let seen = inspect(&run, true);
                // Without a summary a run is not done.
                if (damage, name) == ("gone", "summary.json") {
                    continue;
                }
                assert_eq!(seen.state, Condition::Damaged, "{name} {damage} {seen:?}");
                let file = Path::new(name).file_name().unwrap().to_str().unwrap();
                assert!(seen.problems.iter().any(|problem| problem.contains(file)), "{name} {damage} {seen:?}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    partial(&parent.path().join("elsewhere"));
    let folder = parent.path().join("runs");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(parent.path().join("elsewhere"), folder.join("link")).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("loop")).unwrap();
    assert_eq!(find(&folder).unwrap(), []);
    assert_eq!(bytes_in(&folder, 0), 0);
    assert!(find(&parent.path().join("nowhere")).is_err());
}
