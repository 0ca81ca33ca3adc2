//! Event files, as TensorBoard reads them.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::*;

/// Curves and maps for TensorBoard: whole, and with a run that was stopped and gone on with.
#[test]
fn tensorboard_has_every_line_once() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run("--config small.toml --quiet --tensorboard").expect(0);
    let run = place.only_run("runs");
    let events = || fs::read(run.path().join("tensorboard/events.out.tfevents.0.headcount")).unwrap();
    let lines = fs::read_to_string(run.metrics_path()).unwrap().lines().count();
    let records = |bytes: &[u8]| {
        let (mut at, mut count) = (0, 0);
        while at < bytes.len() {
            at += 16 + u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            count += 1;
        }
        assert_eq!(at, bytes.len());
        count
    };
    assert_eq!(records(&events()), 1 + lines);
    // The same from the finished run, with settings, test scores, maps and the end.
    place.run(&format!("heads {}", run.path().display())).expect(0);
    let said = place.run(&format!("export {} --tensorboard --output board", run.path().display())).expect(0);
    assert!(said.stdout.contains("tensorboard --logdir board"), "{said:?}");
    let exported = fs::read(place.path().join("board/events.out.tfevents.0.headcount")).unwrap();
    assert!(records(&exported) > 1 + lines + 3);
    for part in [
        "brain.Event:2",
        "validation/accuracy",
        "_hparams_/session_start_info",
        "model.heads",
        "maps/layer 0 head 1",
        "PNG",
    ] {
        assert!(exported.windows(part.len()).any(|window| window == part.as_bytes()), "{part}");
    }
    // As TensorBoard reads it, where Python has that.
    let python = |arguments: &[&str]| Command::new("python3").args(arguments).stderr(Stdio::null()).output();
    if python(&["-c", "import tensorboard, PIL"]).is_ok_and(|found| found.status.success()) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/read_tensorboard.py");
        let read = python(&[script, place.path().join("board").to_str().unwrap()]).unwrap();
        assert!(read.status.success() && String::from_utf8_lossy(&read.stdout).contains("curves, 2 maps"), "{read:?}");
    }
    // The export of a run that stopped half-way is no beginning of its log.
    let half = "--config small.toml --quiet --tensorboard --set train.steps=40 --out half";
    place.run(half).expect(0);
    let run_of = |out: &str| place.only_run(out);
    place.run(&format!("export {} --tensorboard", run_of("half").path().display())).expect(0);
    fs::remove_file(run_of("half").summary_path()).unwrap();
    place.run(half).expect(0);
    let lines_then = fs::read_to_string(run_of("half").metrics_path()).unwrap().lines().count();
    let bytes = fs::read(run_of("half").path().join("tensorboard/events.out.tfevents.0.headcount")).unwrap();
    assert_eq!(records(&bytes), 1 + lines_then);
    // Again with --force: nothing of the old one is left.
    place.run("--config small.toml --quiet --tensorboard --force").expect(0);
    assert_eq!(records(&events()), 1 + lines);
}
