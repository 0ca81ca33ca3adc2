use super::*;
use crate::{checkpoint::Checkpoint, metrics::TimingLine, snapshots::Snapshot, summary::Status};
use data::metrics::{ACCURACY, LOSS, Scores};

fn config() -> Config {
    Config::parse("name = \"h8\"\nseed = 3\n[task]\nkind = \"registers\"\n", "h8.toml").unwrap()
}

fn summary() -> Summary {
    let best = None;
    Summary {
        status: Status::Finished,
        steps: 800,
        tokens: 1,
        validation: None,
        test: None,
        best,
        best_test: None,
        metrics: String::new(),
        origin: Default::default(),
    }
}

fn metric(step: u64) -> MetricLine {
    let split = data::Split::Train;
    MetricLine {
        step,
        split,
        scores: Scores::default().with(&LOSS, 1.0).with(&ACCURACY, 0.5),
        lr: None,
        grad_norm: None,
        tokens: step,
    }
}

#[test]
fn a_run_goes_from_absent_to_finished_and_back() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(&parent.path().join("deep/runs"), &config());
    let name = run.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("h8-seed3-{}", config().hash()));
    assert_eq!(run.state().unwrap(), State::Absent);

    let lock = run.create(&config()).unwrap();
    assert_eq!(Config::load(&run.config_path(), &[]).unwrap(), config());
    assert_eq!(run.state().unwrap(), State::Started { last_step: None });

    let (mut metrics, mut timings) = run.logs_after(None).unwrap();
    for step in 1..=7 {
        metrics.append(&metric(step)).unwrap();
        timings.append(&TimingLine { step, seconds: 1.0, tokens_per_second: 1.0, run: String::new() }).unwrap();
    }
    drop((metrics, timings));
    assert_eq!(run.state().unwrap(), State::Started { last_step: Some(7) });
    let (metrics, timings) = run.logs_after(Some(5)).unwrap();
    assert_eq!((metrics.last_step(), timings.last_step()), (Some(5), Some(5)));

    run.checkpoints().save(&Checkpoint { step: 5, ..Default::default() }).unwrap();
    run.snapshots().save(&Snapshot { step: 5, origin: Default::default(), model: Default::default() }).unwrap();
    summary().write(&run.summary_path()).unwrap();
    fs::write(run.heads_path(), "{}").unwrap();
    assert_eq!(run.state().unwrap(), State::Finished(Box::new(summary())));
    drop(lock);
    let lock = run.create(&config()).unwrap();
    assert_eq!(run.state().unwrap(), State::Finished(Box::new(summary())));

    run.clean(&lock).unwrap();
    assert_eq!(run.state().unwrap(), State::Started { last_step: None });
    let mut left: Vec<_> = fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [LOCK, CONFIG]);
}

#[test]
fn cleaning_keeps_foreign_files() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    let lock = run.create(&config()).unwrap();
    run.checkpoints().save(&Checkpoint { step: 5, ..Default::default() }).unwrap();
    let foreign = [
        "notes.txt",
        "checkpoints/notes.txt",
        "checkpoints/step-5/notes.txt",
        "checkpoints/step-x/model.safetensors",
        "snapshots/notes.txt",
    ];
    for name in foreign {
        let path = run.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "mine").unwrap();
    }
    run.clean(&lock).unwrap();
    assert!(run.checkpoints().latest().unwrap().is_none());
    for name in foreign {
        assert_eq!(fs::read_to_string(run.path().join(name)).unwrap(), "mine", "{name}");
    }
}

#[cfg(unix)]
#[test]
fn cleaning_follows_no_link() {
    let parent = tempfile::tempdir().unwrap();
    let elsewhere = Checkpoints::new(parent.path().join("elsewhere"));
    elsewhere.save(&Checkpoint { step: 5, ..Default::default() }).unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    let lock = run.create(&config()).unwrap();
    std::os::unix::fs::symlink(parent.path().join("elsewhere"), run.path().join(CHECKPOINTS)).unwrap();
    run.clean(&lock).unwrap();
    assert_eq!(elsewhere.steps().unwrap(), [5]);
}

#[test]
fn a_folder_that_is_not_a_run_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    fs::create_dir(run.path()).unwrap();
    fs::write(run.path().join("thesis.tex"), "").unwrap();
    let error = run.create(&config()).unwrap_err().to_string();
    assert!(error.contains("thesis.tex") && error.contains("h8-seed3-"), "{error}");
    let lock = run.lock().unwrap();
    assert!(matches!(run.clean(&lock), Err(RunError::NotARun { .. })));
}

#[test]
fn another_config_in_the_folder_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    drop(run.create(&config()).unwrap());
    let other = Config { seed: 4, ..config() };
    assert!(matches!(run.create(&other), Err(RunError::OtherConfig { .. })));
}

#[test]
fn a_locked_run_names_its_holder() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    let lock = run.create(&config()).unwrap();
    let error = run.create(&config()).unwrap_err().to_string();
    let holder = format!("process {}", std::process::id());
    assert!(error.contains(&holder) && error.contains("h8-seed3-"), "{error}");
    drop(lock);
    run.create(&config()).unwrap();
}

#[test]
fn a_run_interrupted_before_its_config_was_written_can_start() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDirectory::of(parent.path(), &config());
    fs::create_dir(run.path()).unwrap();
    fs::write(run.path().join(LOCK), "").unwrap();
    fs::write(run.path().join("config.toml.tmp"), "name = ").unwrap();
    assert_eq!(run.state().unwrap(), State::Absent);
    run.create(&config()).unwrap();
}
