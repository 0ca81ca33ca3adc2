//! What is printed and not taken, after 3cpio#34: an error to write is an error, and never hides a worse one.

use std::fs::{self, File};

use crate::support::*;

/// `arguments` with standard output on a device that is always full, and into a pipe that nobody reads.
fn into_nothing(place: &Workplace, arguments: &str, full: i32, closed: i32) {
    if cfg!(target_os = "linux") {
        let device = File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::of(place.command(arguments).stdout(device).output().unwrap()).expect(full);
        assert!(ran.stderr.contains("can't write to standard output"), "{arguments}: {ran:?}");
    }
    let pipe = std::io::pipe().unwrap().1; // the end that is read is dropped
    let ran = Ran::of(place.command(arguments).stdout(pipe).output().unwrap()).expect(closed);
    assert!(!ran.stderr.contains("standard output"), "quiet: {arguments}: {ran:?}");
}

#[test]
fn three_cpio_34_lost_output_is_an_error_and_hides_no_worse_one() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("width.toml", "[task]\nkind = \"registers\"\n\n[model]\nd_model = 30\nheads = 4\n");
    // What was found is worse than that it was not read.
    for json in ["", "--json"] {
        into_nothing(&place, &format!("doctor --config width.toml {json}"), 3, 3);
        into_nothing(&place, &format!("doctor --config small.toml --threads 1 {json}"), 1, 141);
    }
    let train = "--config small.toml --quiet --set train.steps=20";
    into_nothing(&place, train, 1, 141);
    let run = place.only_run("runs");
    assert!(run.summary_path().exists(), "the run is done all the same");
    into_nothing(&place, "runs --verify", 1, 141);
    let metrics = fs::read_to_string(run.metrics_path()).unwrap();
    fs::write(run.metrics_path(), metrics.replacen("\"loss\":", "\"loss\":1", 1)).unwrap();
    for json in ["", "--json"] {
        into_nothing(&place, &format!("runs --verify {json}"), 3, 3);
    }
    let diverging = "--set train.lr=1000 --set train.clip_norm=0 --set train.warmup=0 --set train.schedule=constant";
    into_nothing(&place, &format!("{train} {diverging} --set train.eval_every=1000 --out diverged"), 4, 4);
    for arguments in
        ["--help", "--version", "tasks", "tasks mqar --show 2", "completions zsh", "--config small.toml --dry-run"]
    {
        into_nothing(&place, arguments, 1, 141);
    }
}

/// `trainer ... >&-`: nobody will read it, and the standard library puts /dev/null there before `main`.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[test]
fn output_into_what_is_closed_is_lost_too() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("width.toml", "[task]\nkind = \"registers\"\n\n[model]\nd_model = 30\nheads = 4\n");
    let closed = |arguments: &str, redirection: &str, code: i32| {
        let mut command = std::process::Command::new("bash");
        command.current_dir(place.path()).args(["-c", &format!("\"$0\" {arguments} {redirection}")]);
        Ran::of(command.arg(env!("CARGO_BIN_EXE_trainer")).output().unwrap()).expect(code)
    };
    for arguments in ["--help", "--version", "tasks", "completions zsh", "--config small.toml --dry-run"] {
        let ran = closed(arguments, ">&-", 1);
        assert!(ran.stderr.contains("can't write to standard output: not connected"), "{arguments}: {ran:?}");
        closed(arguments, ">&- 2>&-", 1);
        closed(arguments, "2>&-", 0);
        closed(arguments, ">/dev/null <&-", 0);
    }
    closed("doctor --config width.toml", ">&-", 3);
    closed("doctor --config nothing.toml", ">&-", 2);
}

/// As a shell with `pipefail` sees it.
#[test]
fn three_cpio_34_pipefail() {
    let place = Workplace::new();
    place.file("width.toml", "[task]\nkind = \"registers\"\n\n[model]\nd_model = 30\nheads = 4\n");
    let mut command = std::process::Command::new("bash");
    command.current_dir(place.path()).args(["-c", "set -o pipefail; \"$0\" doctor --config width.toml | true"]);
    let ran = Ran::of(command.arg(env!("CARGO_BIN_EXE_trainer")).output().unwrap()).expect(3);
    assert_eq!(ran.stderr, "", "{ran:?}");
}
