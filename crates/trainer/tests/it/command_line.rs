//! What the program says, to the letter, and its exit codes.

use insta::assert_snapshot;

use crate::support::*;

fn h8() -> String {
    format!("--config {}/h8.toml", configs().display())
}

/// What was said, without what differs between machines: the repository's path, times, memory, threads, backends built.
fn redacted(text: &str) -> String {
    let text = text.replace(&configs().display().to_string(), "configs");
    let lines = text.lines().map(|line| match line.split_once("measured here: ") {
        Some((what, _)) => format!("{what}measured here: ..."),
        None => match line.split_once(" on ") {
            Some((start, rest)) if rest.ends_with(" thread") || rest.ends_with(" threads") => format!("{start} on ..."),
            _ => line.to_string(),
        },
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn help() {
    let place = Workplace::new();
    assert_snapshot!("help", place.run("--help").expect(0).stdout);
    assert_snapshot!("help_train", place.run("train --help").expect(0).stdout);
    assert_snapshot!("help_bench", place.run("bench --help").expect(0).stdout);
    assert_snapshot!("help_generate", place.run("generate --help").expect(0).stdout);
    // Without any argument what to begin with, but it is a mistake.
    let first = place.run("").expect(2);
    assert!(first.stderr.ends_with("Next: trainer --config h8\n") && first.stdout.is_empty(), "{first:?}");
}

#[test]
fn tasks() {
    let place = Workplace::new();
    assert_snapshot!("tasks", place.run("tasks").expect(0).stdout);
    assert_snapshot!("tasks_registers", place.run("tasks registers --show 1").expect(0).stdout);
    let short = place.run("tasks registers --show 2 --set seq_len=6 --set task.registers=2 --split test").expect(0);
    assert_eq!(short.stdout.matches("of the test split").count(), 2, "{}", short.stdout);
    let unknown = place.run("tasks register").expect(2);
    assert!(
        unknown.stderr.starts_with("error: there is no task `register`: there are registers, mqar, reverse, sort"),
        "{unknown:?}"
    );
}

#[test]
fn dry_run() {
    let place = Workplace::new();
    let ran = place.run(&format!("{} --set model.heads=2 --seed 3 --dry-run", h8())).expect(0);
    assert_snapshot!("dry_run", redacted(&ran.stdout));
    for figure in ["ms a step", "MiB"] {
        assert!(ran.stdout.contains(figure), "{}", ran.stdout);
    }
    assert!(!place.path().join("runs").exists(), "nothing is left behind");
}

#[test]
fn mistakes() {
    let place = Workplace::new();
    let said = |arguments: &str, code| {
        let ran = place.run(arguments).expect(code);
        assert_eq!(ran.stdout, "");
        redacted(&ran.stderr)
    };
    place.file("typo.toml", "[task]\nkind = \"registers\"\n\n[model]\nhaeds = 4\n");
    assert_snapshot!("typo", said("--config typo.toml", 2));
    place.file("width.toml", "[task]\nkind = \"registers\"\n\n[model]\nd_model = 30\nheads = 4\n");
    assert_snapshot!("indivisible_width", said("--config width.toml", 2));
    assert_snapshot!("indivisible_override", said(&format!("{} --set model.heads=5", h8()), 2));
    assert_snapshot!("missing_file", said("--config tpyo.toml", 2));
    assert_snapshot!("no_terminal", said(&format!("{} --tui", h8()), 2));
    assert_snapshot!("unknown_backend", said(&format!("{} --backend wpgu", h8()), 2));
    for arguments in
        ["train", "--seed 3", "--bogus", "--config a --seed x", "--config a --threads 0", "completions tcsh"]
    {
        said(arguments, 2);
    }
    said(&format!("{} --tui --quiet", h8()), 2);
    assert!(!place.path().join("runs").exists());
}

/// What can't be carried out is exit code 1: a file stands where the folder should be.
#[test]
fn an_output_folder_that_is_a_file() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("taken", "");
    let ran = place.run("--config small.toml --out taken").expect(1);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("taken"), "{ran:?}");
}

#[test]
fn completions() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = place.run(&format!("completions {shell}")).expect(0).stdout;
        assert!(script.contains("dry-run") && script.lines().count() > 20, "{shell}: {script}");
    }
}

/// `| head` closes the pipe, here before anything is written: no panic text, nothing said, and the exit code that shells have
/// for it.
#[test]
fn a_closed_pipe_is_no_crash() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let closed = || std::io::pipe().unwrap().1; // the end that is read is dropped
    let dry_run = "--config small.toml --dry-run";
    for arguments in ["--help", "tasks", "tasks mqar --show 9", "completions zsh", dry_run] {
        let ran = Ran::of(place.command(arguments).stdout(closed()).output().unwrap()).expect(141);
        assert_eq!(ran.stderr, "", "{arguments}");
    }
    // Nor does a run stop, or a mistake change its code, where nobody reads standard error.
    for (arguments, code) in [("--config small.toml --set train.steps=20", 0), ("--config absent.toml", 2)] {
        Ran::of(place.command(arguments).stderr(closed()).output().unwrap()).expect(code);
    }
}

/// `trainer --config F` is `trainer train --config F`, and overrides win over the file, flags over overrides.
#[test]
fn train_is_the_default_command() {
    let place = Workplace::new();
    place.file("small.toml", format!("seed = 5\n{SMALL}"));
    let arguments = "--config small.toml --set seed=6 --set train.steps=20 --set train.eval_every=20 --seed 7 --quiet";
    place.run(&format!("{arguments} --out one")).expect(0);
    let ran = place.run(&format!("train {arguments} --out two")).expect(0);
    assert_eq!(ran.stderr, "", "--quiet");
    assert_same_files(&place.only_run("one"), &place.only_run("two"));
    let name = place.only_run("one").path().file_name().unwrap().to_str().unwrap().to_string();
    assert!(name.starts_with("small-seed7-"), "{name}");
}
