//! Signals, each test named after a report elsewhere: what one asks to stop saves first, whoever asks and how often.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use runs::RunDirectory;

use crate::compare::workers_of;
use crate::durable::times;
use crate::support::*;

/// Never done by itself; a checkpoint every 20 steps.
const ENDLESS: &str = "--config small.toml --set train.steps=1000000 --set train.checkpoint_every=20 --threads 1";
/// Steps of some seconds.
const SLOW: &str = "--config small.toml --set train.steps=1000 --set train.accumulate=8000 --set task.train_examples=10000000 --threads 1";

fn run_of(place: &Workplace, out: &str) -> Option<RunDirectory> {
    Some(RunDirectory::at(fs::read_dir(place.path().join(out)).ok()?.next()?.ok()?.path()))
}

fn last_step(place: &Workplace, out: &str) -> Option<u64> {
    run_of(place, out)?.checkpoints().steps().ok()?.last().copied()
}

fn send(process: u32, signal: i32) {
    // SAFETY: a call without memory; the process is a child of this one, or of one.
    assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
}

fn sleep(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// Panics unless the program says that it saved, and did.
#[track_caller]
fn assert_saved(ran: &Ran, place: &Workplace, out: &str) {
    let said = ran.stdout.split_once("Stopped after step ").unwrap_or_else(|| panic!("{ran:?}")).1;
    let step: u64 = said.split(' ').next().unwrap().parse().unwrap();
    let latest = place.only_run(out).checkpoints().latest().unwrap().unwrap();
    assert_eq!((latest.checkpoint.step, latest.damaged.len()), (step, 0), "{ran:?}");
}

/// concurrently#283, npm/cli#1591: a terminal that closes and a shell that ends send several signals in a moment, and so does
/// who is impatient: they are one.
#[test]
fn concurrently_283_signals_within_a_moment_are_one() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let (term, hup, int) = (libc::SIGTERM, libc::SIGHUP, libc::SIGINT);
    for (at, signals) in [&[term, hup][..], &[int, int], &[hup, term, int, int]].iter().enumerate() {
        let out = format!("out{at}");
        let child = place.start(&format!("{ENDLESS} --out {out}"));
        wait_until("a checkpoint", || last_step(&place, &out).is_some());
        for signal in *signals {
            send(child.id(), *signal);
            sleep(2);
        }
        assert_saved(&finish(child).expect(130), &place, &out);
    }
}

/// npm/cli#1591, with GNU `timeout`, which sends its signal to the program and then to its whole group.
#[cfg(target_os = "linux")]
#[test]
fn npm_cli_1591_timeout_loses_nothing() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    for at in 0..times(3, 42) {
        let out = format!("out{at}");
        let mut command = Command::new("timeout");
        command.current_dir(place.path()).arg("1").arg(env!("CARGO_BIN_EXE_trainer"));
        command.args(format!("{ENDLESS} --out {out}").split(' ')).stdin(Stdio::null());
        let ran = Ran::of(command.output().unwrap()).expect(124);
        if run_of(&place, &out).is_some_and(|run| run.metrics_path().exists()) {
            assert_saved(&ran, &place, &out);
        }
    }
}

/// Whatever a system or a scheduler asks with; SIGXCPU comes ahead of a limit of processor time, every second.
#[test]
fn every_request_to_stop_saves() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let signals =
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGXCPU].map(|signal| {
            let out = format!("out{signal}");
            (signal, place.start(&format!("{ENDLESS} --out {out}")), out)
        });
    for (signal, child, out) in signals {
        wait_until("a checkpoint", || last_step(&place, &out).is_some());
        send(child.id(), signal);
        assert_saved(&finish(child).expect(130), &place, &out);
    }
}

/// A soft limit of processor time, as shells and schedulers set it.
#[test]
fn a_limit_of_processor_time_saves() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let mut command = Command::new("sh");
    command.current_dir(place.path()).arg("-c").arg("ulimit -S -t 2; exec \"$0\" \"$@\"");
    command.arg(env!("CARGO_BIN_EXE_trainer")).args(ENDLESS.split(' ')).stdin(Stdio::null());
    assert_saved(&Ran::of(command.output().unwrap()).expect(130), &place, "runs");
}

/// Only a person at a terminal asks twice; what comes later from elsewhere changes nothing.
#[test]
fn a_later_signal_that_is_no_persons_does_not_quit() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let child = begun(&place, "runs");
    for signal in [libc::SIGINT, libc::SIGINT, libc::SIGTERM] {
        send(child.id(), signal);
        sleep(1200);
    }
    assert_saved(&finish(child).expect(130), &place, "runs");
}

/// A run of [`SLOW`] that has begun its first step.
fn begun(place: &Workplace, out: &str) -> Child {
    let child = place.start(&format!("{SLOW} --out {out}"));
    wait_until("the first step", || run_of(place, out).is_some_and(|run| run.metrics_path().exists()));
    sleep(300);
    child
}

/// On a terminal a second Ctrl-C quits at once, but not one that follows within a second.
#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_quits() {
    if Command::new("script").arg("--version").output().is_err() {
        println!("util-linux's `script` is missing: Ctrl-C on a terminal isn't tested");
        return;
    }
    for (pause, quits) in [(1300, true), (150, false)] {
        let place = Workplace::new();
        place.file("small.toml", SMALL);
        let inner = format!("trap : INT; {} {SLOW}; echo code $?", env!("CARGO_BIN_EXE_trainer"));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--flush", "--command", &inner, "/dev/null"]).current_dir(place.path());
        script.env("SHELL", "/bin/sh").env_remove("RUST_BACKTRACE").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        let mut keys = child.stdin.take().unwrap();
        wait_until("the first step", || run_of(&place, "runs").is_some_and(|run| run.metrics_path().exists()));
        sleep(300);
        for _ in 0..2 {
            std::io::Write::write_all(&mut keys, b"\x03").unwrap();
            sleep(pause);
        }
        let screen = String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned();
        assert!(screen.contains("code 130"), "{screen}");
        assert!(screen.contains("once more, a second from now"), "{screen}");
        assert_eq!(!screen.contains("and saved"), quits, "{screen}");
        assert_eq!(last_step(&place, "runs").is_none(), quits, "{screen}");
    }
}

/// fish-shell#4007: what was ignored when the program started stays ignored, as `nohup` and background jobs want it.
#[test]
fn fish_shell_4007_ignored_signals_stay_ignored() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    for (at, before) in ["trap '' HUP; exec", "exec nohup", "trap '' HUP INT; exec"].iter().enumerate() {
        let out = format!("out{at}");
        let mut command = Command::new("sh");
        command.current_dir(place.path()).arg("-c").arg(format!("{before} \"$0\" \"$@\""));
        command.arg(env!("CARGO_BIN_EXE_trainer")).args(format!("{ENDLESS} --out {out}").split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_until("a checkpoint", || last_step(&place, &out).is_some());
        send(child.id(), libc::SIGHUP);
        if before.contains("INT") {
            send(child.id(), libc::SIGINT);
        }
        let then = last_step(&place, &out);
        wait_until("that the run goes on", || last_step(&place, &out) > then.map(|step| step + 100));
        send(child.id(), libc::SIGTERM);
        let ran = finish(child).expect(130);
        assert!(ran.stderr.contains("(SIGTERM)") && !ran.stderr.contains("SIGHUP"), "{ran:?}");
        assert_saved(&ran, &place, &out);
    }
}

const EXPERIMENT: &str = "baseline = \"h1\"\nregime = \"split\"\nseeds = 2\nwhy_seeds = \"it is a test\"\n[metric]\nmargin = 0.02\n\
    [base]\nconfig = \"small.toml\"\ntrain.steps = 100000\ntrain.checkpoint_every = 20\n[grid]\n\"model.heads\" = [1, 2]\n";

/// A comparison whose two workers have a checkpoint each, and the workers.
#[cfg(target_os = "linux")]
fn comparison() -> (Workplace, Child, Vec<u32>) {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("test.toml", EXPERIMENT);
    let child = place.start("compare test.toml --jobs 2");
    wait_until("a checkpoint of each worker", || saved_steps(&place).len() == 2);
    let workers = workers_of(child.id());
    assert_eq!(workers.len(), 2);
    (place, child, workers)
}

/// The newest checkpoints of the runs of a comparison.
fn saved_steps(place: &Workplace) -> Vec<u64> {
    let runs = runs_below(&place.path().join("runs/test"));
    runs.iter().filter_map(|run| run.checkpoints().steps().ok()?.last().copied()).collect()
}

#[cfg(target_os = "linux")]
fn is_paused(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
}

/// ninja#1044: Ctrl-Z pauses the workers too, and they go on together.
#[cfg(target_os = "linux")]
#[test]
fn ninja_1044_workers_pause_and_go_on() {
    let (place, child, workers) = comparison();
    let all = [workers, vec![child.id()]].concat();
    for _ in 0..2 {
        send(child.id(), libc::SIGTSTP);
        wait_until("that all pause", || all.iter().all(|&process| is_paused(process)));
        let then = saved_steps(&place);
        sleep(300);
        assert_eq!(saved_steps(&place), then, "paused");
        send(child.id(), libc::SIGCONT);
        wait_until("that all go on", || !all.iter().any(|&process| is_paused(process)));
        wait_until("that they train", || saved_steps(&place).iter().zip(&then).all(|(now, then)| now > then));
    }
    send(child.id(), libc::SIGTERM);
    let ran = finish(child).expect(130);
    assert_eq!(ran.stderr.matches("stopped and saved after step").count(), 2, "{ran:?}");
}

/// Parent and workers are both asked, as a scheduler does: what is said to be saved is on disk.
#[cfg(target_os = "linux")]
#[test]
fn saved_is_said_after_looking() {
    let (place, child, workers) = comparison();
    for process in [vec![child.id()], workers].concat() {
        send(process, libc::SIGTERM);
        send(process, libc::SIGHUP);
    }
    let ran = finish(child).expect(130);
    let mut said: Vec<u64> = ran
        .stderr
        .split("stopped and saved after step ")
        .skip(1)
        .map(|rest| rest.split_whitespace().next().unwrap().parse().unwrap())
        .collect();
    let mut found = saved_steps(&place);
    said.sort();
    found.sort();
    assert_eq!(said, found, "{ran:?}");
    assert!(ran.stdout.contains("every run has saved"), "{ran:?}");
}

/// A worker that was killed while its parent was asked to stop has not saved, and nothing says so.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_worker_is_not_said_to_have_saved() {
    let (_place, child, workers) = comparison();
    send(workers[0], libc::SIGSTOP); // so that it cannot save before it is killed
    send(child.id(), libc::SIGTERM);
    sleep(200);
    send(workers[0], libc::SIGKILL);
    let ran = finish(child).expect(130);
    assert_eq!(ran.stderr.matches("stopped and saved after step").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("stopped; saved up to step"), "{ran:?}");
    assert!(ran.stdout.contains("1 run could not save all"), "{ran:?}");
}

/// What has nothing to save ends at once, by the signal.
#[test]
fn what_saves_nothing_ends_at_once() {
    let place = Workplace::new();
    for arguments in ["doctor --config CONFIGS/classic.toml", "bench --steps 100000"] {
        let arguments = arguments.replace("CONFIGS", &configs().display().to_string());
        let child = place.start(&arguments);
        sleep(500);
        send(child.id(), libc::SIGTERM);
        let began = std::time::Instant::now();
        let ran = finish(child);
        assert_eq!(ran.code, None, "{ran:?}");
        assert!(began.elapsed() < Duration::from_secs(3));
    }
}
