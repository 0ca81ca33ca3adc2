//! Stopped, killed, and gone on with: the files end as if nothing had happened.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use burn::train::Interrupter;
use runs::RunDirectory;
use trainer::training::observer::Silent;
use trainer::training::train::{Ending, train};

use crate::support::*;

/// Long enough to be caught in the middle; a pass over the fixed set takes 25 steps.
const ARGUMENTS: &str = "--config small.toml --set train.steps=900 --set train.eval_every=60";

fn quiet_run(place: &Workplace) -> RunDirectory {
    place.run(&format!("{ARGUMENTS} --out whole --quiet")).expect(0);
    place.only_run("whole")
}

fn has_checkpoint(place: &Workplace, out: &str) -> bool {
    let Ok(mut entries) = fs::read_dir(place.path().join(out)) else { return false };
    entries.any(|entry| !RunDirectory::at(entry.unwrap().path()).checkpoints().steps().unwrap().is_empty())
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_with_the_same_bytes() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let child = place.start(&format!("{ARGUMENTS} --out stopped"));
    wait_until("a checkpoint", || has_checkpoint(&place, "stopped"));
    signal(&child, "INT");
    let stopped = finish(child).expect(130);
    assert!(stopped.stderr.contains("Stopping after this step"), "{stopped:?}");
    let (_, rest) = stopped.stdout.split_once("Stopped after step ").unwrap();
    assert!(rest.contains("saved. The same command goes on from there."), "{stopped:?}");
    let step: u64 = rest.split(' ').next().unwrap().parse().unwrap();
    assert!((60..900).contains(&step), "{step}");
    let run = place.only_run("stopped");
    assert_eq!(run.checkpoints().steps().unwrap().last(), Some(&step));
    assert!(!run.summary_path().exists());

    let resumed = place.run(&format!("{ARGUMENTS} --out stopped")).expect(0);
    assert!(resumed.stderr.contains(&format!("going on after step {step}")), "{resumed:?}");
    assert!(!resumed.stderr.contains("untrained"), "{resumed:?}");
    assert_same_files(&quiet_run(&place), &run);
}

#[cfg(unix)]
#[test]
fn a_killed_run_goes_on_with_the_same_bytes() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let mut kills_after_a_checkpoint = 0;
    // A moment that differs from call to call, as a real one does: whichever it is, the bytes must be the same.
    let mut random = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() as u64;
    for attempt in 0.. {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let moment = Duration::from_millis(random >> 33 & 255);
        let mut child = place.start(&format!("{ARGUMENTS} --out killed --quiet"));
        if attempt == 0 {
            wait_until("a checkpoint", || has_checkpoint(&place, "killed"));
        }
        std::thread::sleep(moment);
        if child.try_wait().unwrap().is_some() {
            finish(child).expect(0);
            break;
        }
        if attempt >= 5 {
            finish(child).expect(0);
            break;
        }
        kills_after_a_checkpoint += u32::from(has_checkpoint(&place, "killed"));
        signal(&child, "KILL");
        assert_eq!(finish(child).code, None);
    }
    assert!(kills_after_a_checkpoint > 0);
    assert_same_files(&quiet_run(&place), &place.only_run("killed"));
}

/// Before the first step, in the first step, on an evaluation, between two, twice, after the last step.
#[test]
fn wherever_a_run_is_stopped_it_ends_with_the_same_bytes() {
    let config = small(&["model.attention_dropout=0.1", "train.accumulate=2", "task.train_examples=150"]);
    let whole = tempfile::tempdir().unwrap();
    let (expected, _) = train_here(&config, whole.path());
    for stops in [&[0, 0][..], &[1], &[20], &[33], &[41, 42, 60], &[119], &[120]] {
        let folder = tempfile::tempdir().unwrap();
        for &stop in stops {
            let ending = train_until(&config, folder.path(), stop).1;
            match ending {
                Ending::Interrupted { step } => assert_eq!(step, stop),
                Ending::Done(_) => assert_eq!(stop, 120),
            }
        }
        let (run, ending) = train_here(&config, folder.path());
        assert!(matches!(ending, Ending::Done(_)));
        assert_same_files(&expected, &run);
    }
}

/// accelerate#2016: killed in the second pass over a fixed set, the remaining samples are the same: each step's loss is
/// that of its batch, so equal losses mean equal batches.
#[test]
fn accelerate_2016_resumed_in_the_second_pass_takes_the_same_samples() {
    let config = small(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (stopped, _) = train_until(&config, folder.path(), 37); // a pass takes 25 steps
    assert_eq!(losses(&stopped).len(), 37);
    let (resumed, _) = train_here(&config, folder.path());
    let whole = tempfile::tempdir().unwrap();
    let (expected, _) = train_here(&config, whole.path());
    assert_eq!(losses(&resumed), losses(&expected));
    let second_pass: BTreeSet<u64> = losses(&resumed)[25..50].iter().map(|loss| loss.to_bits()).collect();
    assert_eq!(second_pass.len(), 25, "a batch was repeated");
}

/// Lightning#13163: killed after more was logged than the checkpoint knows, no step is logged twice.
#[test]
fn lightning_13163_resume_logs_no_step_twice() {
    let config = small(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = train_until(&config, folder.path(), 50);
    // As a kill leaves it: lines up to 50 on disk, the newest checkpoint at 40.
    let steps = run.checkpoints().steps().unwrap();
    assert_eq!(steps, [40, 50]);
    fs::remove_dir_all(run.checkpoints().path(50)).unwrap();
    let (run, _) = train_here(&config, folder.path());
    let mut seen: Vec<_> = metrics(&run).iter().map(|line| (line.step, line.split)).collect();
    let lines = seen.len();
    assert_eq!(lines, 120 + 1 + 120 / 20);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), lines);
    let timings: Vec<u64> = runs::read_timings(&run.timing_path()).unwrap().iter().map(|line| line.step).collect();
    assert_eq!(timings, [20, 40, 60, 80, 100, 120]);
}

/// A log that lost or changed a line since the checkpoint is noticed, never gone on with.
#[test]
fn a_damaged_log_is_noticed_on_resume() {
    let config = small(&[]);
    for damage in [
        |_: Vec<&str>| String::new(),
        |lines: Vec<&str>| lines[..30].join("\n") + "\n",
        |mut lines: Vec<&str>| {
            lines.remove(7);
            lines.join("\n") + "\n"
        },
        |lines: Vec<&str>| lines.join("\n").replacen("\"tokens\":96", "\"tokens\":97", 1) + "\n",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (run, _) = train_until(&config, folder.path(), 50);
        let text = fs::read_to_string(run.metrics_path()).unwrap();
        let damaged = damage(text.lines().collect());
        assert_ne!(damaged, text);
        fs::write(run.metrics_path(), damaged).unwrap();
        let device = trainer::machine::backend::open(config.backend).unwrap();
        let error = train(&config, &run, &device, &mut Silent, &Interrupter::new()).unwrap_err().to_string();
        assert!(error.contains("metrics.jsonl") && error.contains("step 50") && error.contains("--force"), "{error}");
    }
}

/// transformers#27820: the newest checkpoint is incomplete, so the one before it is used.
#[test]
fn transformers_27820_an_incomplete_checkpoint_is_passed_over() {
    let config = small(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (run, _) = train_until(&config, folder.path(), 50);
    fs::write(run.checkpoints().path(50).join("optimiser.safetensors"), "cut").unwrap();
    let (run, ending) = train_here(&config, folder.path());
    assert!(matches!(ending, Ending::Done(_)));
    let whole = tempfile::tempdir().unwrap();
    assert_same_files(&train_here(&config, whole.path()).0, &run);
}

#[cfg(unix)]
#[test]
fn a_second_process_on_the_same_run_gets_one_line() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let arguments = "--config small.toml --set train.steps=1000000 --quiet";
    let first = place.start(arguments);
    wait_until("a checkpoint", || has_checkpoint(&place, "runs"));
    for more in ["", "--force"] {
        let second = place.run(&format!("{arguments} {more}")).expect(1);
        assert_eq!(second.stderr.lines().count(), 1, "{second:?}");
        assert!(second.stderr.contains(&format!("is in use by process {}", first.id())), "{second:?}");
    }
    signal(&first, "TERM");
    finish(first).expect(130);
}
