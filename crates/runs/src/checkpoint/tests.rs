use super::*;
use architecture::HostTensor;
use data::metrics::{ACCURACY, LOSS};
use proptest::prelude::*;

fn checkpoint(step: u64, best: u64) -> Checkpoint {
    let tensor = |shape: &[usize]| HostTensor {
        shape: shape.to_vec(),
        values: (0..shape.iter().product()).map(|i| (i as u64 + step) as f32).collect(),
    };
    let scores = Scores::default().with(&LOSS, 1.0 / 3.0).with(&ACCURACY, 0.5);
    Checkpoint {
        step,
        validation: Some(scores),
        best: Some(Best { step: best, scores }),
        metrics: "0".repeat(64),
        origin: Origin { config: "seed = 1".into(), data: "2".repeat(64), weights: "3".repeat(64) },
        model: [("head.weight".to_string(), tensor(&[2, 3])), ("norm.scale".to_string(), tensor(&[2]))].into(),
        optimiser: [("head.weight.moment_1".to_string(), tensor(&[2, 3]))].into(),
    }
}

fn folder() -> (tempfile::TempDir, Checkpoints) {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"));
    (folder, checkpoints)
}

#[test]
fn checkpoints_go_both_ways() {
    let (_folder, checkpoints) = folder();
    assert_eq!(checkpoints.steps().unwrap(), [0; 0]);
    assert!(checkpoints.latest().unwrap().is_none());
    for step in [90, 100, 5] {
        checkpoints.save(&checkpoint(step, 90)).unwrap();
    }
    assert_eq!(checkpoints.steps().unwrap(), [5, 90, 100]);
    assert_eq!(checkpoints.load(5).unwrap(), checkpoint(5, 90));
    assert_eq!(checkpoints.latest().unwrap().unwrap().checkpoint, checkpoint(100, 90));
    checkpoints.keep_only(&[100, 90]).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [90, 100]);
    // The same step again replaces it.
    checkpoints.save(&checkpoint(100, 100)).unwrap();
    assert_eq!(checkpoints.load(100).unwrap(), checkpoint(100, 100));
    checkpoints.clear().unwrap();
    assert!(!checkpoints.folder.exists());
}

/// Killed between any two changes to the disk while a checkpoint is written: the previous complete one is used.
#[test]
fn transformers_27820_killed_while_writing_uses_the_previous_checkpoint() {
    let mut points = 0;
    for stop_at in 0.. {
        let (_folder, checkpoints) = folder();
        checkpoints.save(&checkpoint(100, 100)).unwrap();
        let mut point = 0;
        let mut stopped = false;
        let go_on = |_: &Path| {
            point += 1;
            stopped |= point > stop_at;
            !stopped
        };
        checkpoints.save_while(&checkpoint(200, 200), go_on).unwrap();
        if !stopped {
            assert_eq!(checkpoints.latest().unwrap().unwrap().checkpoint, checkpoint(200, 200));
            break;
        }
        points += 1;
        let latest = checkpoints.latest().unwrap().unwrap();
        assert_eq!(latest.checkpoint, checkpoint(100, 100), "stopped at {stop_at}");
        assert!(latest.damaged.is_empty());
        // The next attempt is not disturbed by what was left, and nothing stays behind.
        checkpoints.save(&checkpoint(200, 200)).unwrap();
        checkpoints.keep_only(&[200]).unwrap();
        assert_eq!(fs::read_dir(&checkpoints.folder).unwrap().count(), 1);
    }
    assert_eq!(points, 6);
}

/// The same where the disk lost some files, or the end of some, although the folder was renamed.
#[test]
fn transformers_27820_lost_or_cut_files_use_the_previous_checkpoint() {
    for (index, name) in [MODEL, OPTIMISER, INDEX].into_iter().enumerate() {
        for keep in [None, Some(0), Some(9), Some(150)] {
            let (_folder, checkpoints) = folder();
            checkpoints.save(&checkpoint(100, 100)).unwrap();
            checkpoints.save(&checkpoint(200, 200)).unwrap();
            let path = checkpoints.path(200).join(name);
            let bytes = fs::read(&path).unwrap();
            match keep {
                None => fs::remove_file(&path).unwrap(),
                Some(keep) => fs::write(&path, &bytes[..keep.min(bytes.len() - 1)]).unwrap(),
            }
            let latest = checkpoints.latest().unwrap().unwrap();
            assert_eq!(latest.checkpoint, checkpoint(100, 100), "{index} {keep:?}");
            let (step, error) = &latest.damaged[0];
            assert!(*step == 200 && error.to_string().contains(name), "{error}");
        }
    }
}

/// Saved again, as after a resume, and killed at any point: the only checkpoint there is stays.
#[test]
fn saving_the_same_again_never_loses_it() {
    let (_folder, checkpoints) = folder();
    checkpoints.save(&checkpoint(100, 100)).unwrap();
    checkpoints.save_while(&checkpoint(100, 100), |_| false).unwrap();
    assert_eq!(checkpoints.latest().unwrap().unwrap().checkpoint, checkpoint(100, 100));
}

#[test]
fn where_all_are_damaged_the_newest_one_is_named() {
    let (_folder, checkpoints) = folder();
    for step in [1, 2] {
        checkpoints.save(&checkpoint(step, step)).unwrap();
        fs::write(checkpoints.path(step).join(MODEL), "junk").unwrap();
    }
    let error = checkpoints.latest().unwrap_err().to_string();
    assert!(error.contains("step-2") && error.contains("4 bytes"), "{error}");
}

#[test]
fn a_checkpoint_under_another_name_is_refused() {
    let (_folder, checkpoints) = folder();
    checkpoints.save(&checkpoint(1, 1)).unwrap();
    fs::rename(checkpoints.path(1), checkpoints.path(2)).unwrap();
    assert!(matches!(checkpoints.load(2), Err(RunError::OtherStep { expected: 2, found: 1, .. })));
}

#[test]
fn only_exact_names_are_checkpoints() {
    for name in ["step-", "step-01", "step-+1", "step--1", "step-1.new", "xstep-1", "step-99999999999999999999"] {
        assert_eq!(step_of(name), None, "{name}");
    }
    assert_eq!(step_of("step-120"), Some(120));
    assert_eq!(temporary_step_of(".step-120.new.tmp"), Some(120));
    assert_eq!(temporary_step_of(".step-120.tmp"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One byte changed anywhere: an error or, within the index, other words; never other tensors and never a panic.
    #[test]
    fn a_changed_byte_never_gives_other_tensors(file in 0usize..3, at: prop::sample::Index, flip in 1u8..) {
        let (_folder, checkpoints) = folder();
        checkpoints.save(&checkpoint(7, 7)).unwrap();
        let path = checkpoints.path(7).join([MODEL, OPTIMISER, INDEX][file]);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        fs::write(&path, bytes).unwrap();
        match checkpoints.load(7) {
            Ok(read) => {
                prop_assert_eq!(file, 2);
                prop_assert_eq!(read.model, checkpoint(7, 7).model);
                prop_assert_eq!(read.optimiser, checkpoint(7, 7).optimiser);
            }
            Err(error) => prop_assert!(error.to_string().contains("step-7")),
        }
    }
}
