//! Killed and stopped at any moment: the files end as if nothing had happened.

use std::process::Child;
use std::time::{Duration, Instant};

use super::*;

/// When a run is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    /// After so many milliseconds.
    After(u64),
    /// While a checkpoint is being written, the first that is seen after so many milliseconds.
    WithinACheckpoint(u64),
}

/// How long a run takes: the shortest that was seen, for others keep the machine busy now and then.
struct Length {
    began: Instant,
    shortest: Duration,
}

impl Length {
    fn new() -> Self {
        Self { began: Instant::now(), shortest: Duration::MAX }
    }

    fn began(&mut self) {
        self.began = Instant::now();
    }

    fn ended(&mut self) {
        self.shortest = self.shortest.min(self.began.elapsed());
    }

    /// In milliseconds.
    fn most(&self) -> usize {
        self.shortest.as_millis().clamp(1, 60_000) as usize
    }
}

/// Waits for the moment; false where the run was done before.
fn wait_for(moment: Moment, child: &mut Child, place: &Workplace, out: &str) -> bool {
    let (Moment::After(milliseconds) | Moment::WithinACheckpoint(milliseconds)) = moment;
    std::thread::sleep(Duration::from_millis(milliseconds));
    let mut folder = None;
    loop {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        if matches!(moment, Moment::After(_)) {
            return true;
        }
        // Looked at in a tight loop: a checkpoint is written in a few milliseconds.
        for _ in 0..2000 {
            folder = folder.or_else(|| run_in(place, out).map(|run| run.path().join("checkpoints")));
            if folder.as_deref().is_some_and(is_writing) {
                return true;
            }
        }
    }
}

/// Kills runs at random moments, and within checkpoints, and lets each of them end.
fn killed_runs_end_alike(backend: &str, kills: usize, within: usize) {
    let place = tiny();
    // As wide as it takes for a checkpoint to be written in a time in which it can be killed.
    let arguments = format!(
        "--config tiny.toml --quiet --threads 1 --backend {backend} --set model.d_model=128 --set train.steps={}",
        times(100, 300)
    );
    let mut length = Length::new();
    place.run(&format!("{arguments} --out whole")).expect(0);
    length.ended();
    let whole = place.only_run("whole");
    let mut random = Random::new();
    let (mut killed, mut killed_within, mut rounds) = (0, 0, 0);
    while killed < kills || killed_within < within {
        let out = format!("killed{rounds}");
        rounds += 1;
        assert!(rounds < 20 * (kills + within), "{killed} kills, {killed_within} within a checkpoint");
        for attempt in 0.. {
            let milliseconds = random.below(length.most()) as u64;
            length.began();
            let moment = match killed_within < within {
                true => Moment::WithinACheckpoint(milliseconds / 2),
                false => Moment::After(milliseconds),
            };
            let mut child = place.start(&format!("{arguments} --out {out}"));
            // Five times a run; then it may end.
            if attempt == 5 || !wait_for(moment, &mut child, &place, &out) {
                finish(child).expect(0);
                length.ended();
                break;
            }
            child.kill().unwrap();
            finish(child);
            killed += 1;
            let run = run_in(&place, &out);
            killed_within += usize::from(run.is_some_and(|run| is_writing(&run.path().join("checkpoints"))));
        }
        let run = place.only_run(&out);
        assert_same_files(&whole, &run);
        assert!(!is_writing(&run.path().join("checkpoints")), "something half-written stayed");
    }
    println!("{backend}: {killed} kills, {killed_within} of them within a checkpoint, {rounds} runs");
}

#[cfg(unix)]
#[test]
fn killed_at_any_moment_on_flex() {
    killed_runs_end_alike("flex", times(3, 50), times(1, 12));
}

#[cfg(unix)]
#[test]
fn killed_at_any_moment_on_ndarray() {
    killed_runs_end_alike("ndarray", times(2, 50), times(1, 12));
}

/// Ctrl-C, and what a scheduler sends: saved, told, and gone on with.
#[cfg(unix)]
#[test]
fn stopped_at_any_moment() {
    let place = tiny();
    let arguments = "--config tiny.toml --quiet --threads 1";
    let mut length = Length::new();
    place.run(&format!("{arguments} --out whole")).expect(0);
    length.ended();
    let whole = place.only_run("whole");
    let mut random = Random::new();
    let (mut saved, mut ends) = (0, 0);
    for round in 0.. {
        if saved >= times(1, 25) {
            break;
        }
        assert!(round < 100, "{ends} signals, {saved} saved");
        let out = format!("stopped{round}");
        for attempt in 0.. {
            let mut child = place.start(&format!("{arguments} --out {out}"));
            let moment = Moment::After(random.below(length.most()) as u64);
            length.began();
            if attempt == 4 || !wait_for(moment, &mut child, &place, &out) {
                finish(child).expect(0);
                length.ended();
                break;
            }
            signal(&child, ["INT", "TERM"][(round + attempt) % 2]);
            let ran = finish(child);
            ends += 1;
            match ran.code {
                // Before it had begun to listen.
                None => continue,
                // It was about to end anyway.
                Some(0) => break,
                _ => {}
            }
            let ran = ran.expect(130);
            let step = ran.stdout.strip_prefix("Stopped after step ").unwrap().split(' ').next().unwrap();
            let latest = place.only_run(&out).checkpoints().latest().unwrap().unwrap();
            assert_eq!((latest.checkpoint.step.to_string().as_str(), latest.damaged.len()), (step, 0));
            saved += 1;
        }
        assert_same_files(&whole, &place.only_run(&out));
    }
    println!("{ends} signals, {saved} saved");
}
