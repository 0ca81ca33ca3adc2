//! Several processes on one experiment's folder: every run is done once, and what comes out is what one process makes.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use crate::compare::workers_of;
use crate::compare::{comparable, with};
use crate::durable::times;
use crate::support::*;

/// Eight pairs of one head against two, a look after six, and one of them again for longer.
const SHARED: &str = r#"
baseline = "h1"
regime = "split"
seeds = 8
why_seeds = "it is a test"
looks = [6, 8]
[check]
steps = 2
pairs = 1
[metric]
margin = 0.02
[base]
config = "small.toml"
[grid]
"model.heads" = [1, 2]
"#;

fn place() -> Workplace {
    let place = with(SHARED);
    place.run("compare test.toml --out serial --jobs 1").expect(0);
    place
}

/// A process whose output nobody reads: it may be killed at any moment.
fn start(place: &Workplace, arguments: &str) -> Child {
    place.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[track_caller]
fn assert_as_serial(place: &Workplace) {
    let (serial, shared) = (comparable(place, "serial"), comparable(place, "runs"));
    let different: Vec<&String> = serial.keys().filter(|name| serial[*name] != shared[*name]).collect();
    assert!(different.is_empty() && serial.len() == shared.len(), "these files differ: {different:?}");
    let left = place.path().join("runs/test").join(runs::claims::WORKING);
    assert!(!left.exists(), "{:?}", fs::read_dir(left).unwrap().collect::<Vec<_>>());
}

/// How many runs a process trained itself.
fn trained(ran: &Ran) -> usize {
    ran.stderr.lines().filter(|line| line.contains(" steps  test ") && !line.ends_with("done before")).count()
}

#[test]
fn several_processes_divide_the_runs_among_them() {
    let place = place();
    let children: Vec<Child> = (0..3).map(|_| place.start("compare test.toml --jobs 1")).collect();
    let ran: Vec<Ran> = children.into_iter().map(|child| finish(child).expect(0)).collect();
    assert_as_serial(&place);
    let counts: Vec<usize> = ran.iter().map(trained).collect();
    let serial = fs::read_dir(place.path().join("serial/test")).unwrap();
    let serial = serial.filter(|entry| entry.as_ref().unwrap().path().join("summary.json").exists()).count();
    assert_eq!(counts.iter().sum::<usize>(), serial + 2, "each once, and those of the check: {counts:?}");
    assert!(ran.iter().all(|each| each.stdout == ran[0].stdout), "{ran:?}");
}

/// Workers killed at random, again and again, and one at the end that finds whatever is left.
#[test]
fn processes_that_are_killed_lose_nothing_and_do_nothing_twice() {
    let place = place();
    let mut kills = times(6, 80);
    let mut children: Vec<Option<Child>> = (0..4).map(|_| Some(start(&place, "compare test.toml --jobs 1"))).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    while kills > 0 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        std::thread::sleep(Duration::from_millis(30 + state % 250));
        let at = (state >> 32) as usize % children.len();
        if let Some(mut child) = children[at].take() {
            drop(child.kill());
            drop(child.wait());
            kills -= 1;
        }
        children[at] = Some(start(&place, "compare test.toml --jobs 1"));
    }
    for child in children.into_iter().flatten() {
        let mut child = child;
        assert!(child.wait().unwrap().success());
    }
    place.run("compare test.toml").expect(0);
    assert_as_serial(&place);
}

#[cfg(target_os = "linux")]
fn send(name: &str, process: u32) {
    drop(Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status());
}

/// One that is stopped for longer than its claim, with its worker, and continued when others have done its run.
#[cfg(target_os = "linux")]
#[test]
fn a_process_that_wakes_up_too_late_does_no_harm() {
    let place = place();
    let late = start(&place, "compare test.toml --jobs 1 --patience 1");
    let working = place.path().join("runs/test/working");
    wait_until("a worker", || !workers_of(late.id()).is_empty() && working.is_dir());
    let stopped: Vec<u32> = [late.id()].into_iter().chain(workers_of(late.id())).collect();
    stopped.iter().for_each(|process| send("STOP", *process));
    let began = Instant::now();
    place.run("compare test.toml --jobs 2 --patience 1").expect(0);
    assert!(began.elapsed() > Duration::from_secs(1), "it waited for the other one");
    stopped.iter().for_each(|process| send("CONT", *process));
    let mut late = late;
    assert!(late.wait().unwrap().success());
    assert_as_serial(&place);
}

/// Where there are no locks a process that is gone is known by its silence.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn without_locks_beats_tell() {
    let place = place();
    let refused = |arguments: &str| {
        let mut command = place.command(arguments);
        crate::machine::refuse(&mut command, libc::SYS_flock, libc::ENOSYS);
        command
    };
    let null = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = null(&mut refused("compare test.toml --jobs 1 --patience 2"));
    let working = place.path().join("runs/test/working");
    wait_until("a claim", || working.is_dir());
    let mut second = null(&mut refused("compare test.toml --jobs 1 --patience 2"));
    std::thread::sleep(Duration::from_millis(300));
    drop(first.kill());
    drop(first.wait());
    assert!(second.wait().unwrap().success());
    assert_as_serial(&place);
}

#[test]
fn shares_that_are_agreed_on_stop_at_the_end_of_a_stage() {
    let place = place();
    let ran = place.run("compare test.toml --shard 1/2").expect(0);
    assert!(ran.stdout.contains("of the stage `pairs up to 6` 6 of 12 runs are not"), "{ran:?}");
    assert!(!place.path().join("runs/test/results.json").exists());
    let ran = place.run("compare test.toml --only h2:0").expect(0);
    assert!(ran.stdout.contains("5 of 12 runs are not"), "{ran:?}");
    // Whoever does the last of a stage goes on with its share of the next.
    for _ in 0..3 {
        place.run("compare test.toml --shard 2/2").expect(0);
        place.run("compare test.toml --shard 1/2").expect(0);
    }
    assert_as_serial(&place);
    for (arguments, said) in
        [("--shard 3/2", "1/8 to 8/8"), ("--only h3:0", "no such arm"), ("--only h1:99", "no such seed")]
    {
        let ran = place.run(&format!("compare test.toml {arguments}")).expect(2);
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
}

/// An experiment is computed with the vector instructions that it was begun with; a machine that has more holds itself back.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_machine_with_more_vectors_holds_itself_back() {
    if kernels::level().unwrap().name() == "portable" {
        return;
    }
    let place = with(SHARED);
    let begun = place.command("compare test.toml --shard 1/2").env("HEADCOUNT_SIMD", "portable").output().unwrap();
    Ran::of(begun).expect(0);
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("computing with portable vector instructions"), "{ran:?}");
    assert!(ran.stdout.contains("vectors        portable"), "{ran:?}");
    // One that has less refuses.
    fs::write(place.path().join("runs/test/vectors"), "avx1024\n").unwrap();
    let ran = place.run("compare test.toml").expect(1);
    assert!(ran.stderr.contains("avx1024 vector instructions, which this processor does not have"), "{ran:?}");
}
