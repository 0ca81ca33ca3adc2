//! `--tui` on a pseudo terminal, which util-linux's `script` makes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;

/// Starts a run under `--tui`, presses keys once it has a checkpoint, and gives what appeared and the exit code.
fn press(keys: &[&str]) -> (String, Option<i32>) {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let run = "--config small.toml --tui --set train.steps=1000000 --set train.eval_every=100";
    // Ctrl-C reaches the shell as well, which must live on to tell how the terminal was left; bash does so anyway.
    let program = env!("CARGO_BIN_EXE_trainer");
    let inner = format!("trap : INT; stty cols 100 rows 40; {program} {run}; code=$?; stty -a; exit $code");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &inner, "/dev/null"]).current_dir(place.path());
    script.env("TERM", "xterm-256color").env("SHELL", "/bin/sh").env_remove("RUST_BACKTRACE");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let has_checkpoint = || {
        let run = std::fs::read_dir(place.path().join("runs")).ok()?.next()?.unwrap().path();
        (!runs::RunDirectory::at(run).checkpoints().steps().unwrap().is_empty()).then_some(())
    };
    wait_until("a checkpoint", || has_checkpoint().is_some());
    for key in keys {
        std::thread::sleep(Duration::from_millis(300));
        input.write_all(key.as_bytes()).unwrap();
        input.flush().unwrap();
    }
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut screen = vec![];
        output.read_to_end(&mut screen).unwrap();
        String::from_utf8_lossy(&screen).into_owned()
    });
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // A run that the keys did not stop loses its terminal.
    child.kill().unwrap();
    let code = child.wait().unwrap().code();
    (reader.join().unwrap(), code)
}

#[cfg(target_os = "linux")]
#[test]
fn every_way_out_saves_and_gives_the_terminal_back() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("util-linux's `script` is missing: the dashboard isn't tested");
        return;
    }
    for keys in [&["q", "s"][..], &["q", "k"], &["\x03"]] {
        let (screen, code) = press(keys);
        assert_eq!(code, Some(130), "{keys:?}\n{screen}");
        assert!(screen.contains("Status: small seed 0"), "{keys:?}\n{screen}");
        assert!(!screen.contains("panicked"), "{keys:?}\n{screen}");
        let (_, after) = screen.rsplit_once("Stopped after step ").unwrap();
        assert!(after.contains("saved. The same command goes on from there."), "{keys:?}\n{after}");
        // Nothing of the dashboard comes after it, and keys are lines again.
        assert!(!after.contains('│') && after.contains(" icanon") && after.contains(" echo "), "{keys:?}\n{after}");
        assert!(screen.contains("\x1b[?1049l"), "{keys:?}: the ordinary screen came back");
    }
}
