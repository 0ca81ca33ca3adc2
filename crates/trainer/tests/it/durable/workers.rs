//! Many workers, killed at random and started again: every run is complete, exactly once.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::compare::{comparable, workers_of};

/// Two arms of the smallest run that learns anything.
fn experiment(seeds: usize) -> String {
    let why = if seeds < 10 { "why_seeds = \"it is a test\"\n" } else { "" };
    format!(
        "baseline = \"h1\"\nregime = \"split\"\nseeds = {seeds}\n{why}[metric]\nmargin = 0.02\n[base]\nconfig = \"tiny.toml\"\n\
         train.steps = 40\ntrain.eval_every = 20\n[grid]\n\"model.heads\" = [1, 2]\n"
    )
}

#[cfg(target_os = "linux")]
#[test]
fn workers_killed_at_random() {
    let seeds = times(3, 50);
    let place = tiny();
    place.file("test.toml", experiment(seeds));
    place.run("compare test.toml --jobs 1 --out quiet").expect(0);

    let mut random = Random::new();
    let mut killed = 0;
    let calls = times(2, 20);
    for call in 0..calls {
        let mut child = place.start("compare test.toml --jobs 8 --out killed");
        for _ in 0..times(2, 6) {
            std::thread::sleep(Duration::from_millis(50 + random.below(200) as u64));
            let workers = workers_of(child.id());
            if let Some(worker) = workers.get(random.below(workers.len().max(1))) {
                let ended = std::process::Command::new("kill").args(["-KILL", &worker.to_string()]).output().unwrap();
                killed += usize::from(ended.status.success());
            }
        }
        // Then the whole of it, so that there is more to do for the next call.
        match call % 2 {
            0 => drop(child.kill()),
            _ if child.try_wait().unwrap().is_none() => signal(&child, "INT"),
            _ => {}
        }
        finish(child);
        // Workers whose parent is gone stop after their step.
        std::thread::sleep(Duration::from_millis(300));
    }
    // The last call finds some of them done, some begun, some neither.
    let ran = place.run("compare test.toml --jobs 8 --out killed").expect(0);
    let before = ran.stderr.matches("done before").count();
    let list = place.run("runs killed --verify").expect(0);
    let runs = 2 * seeds;
    assert!(list.stdout.contains(&format!("{runs} runs: {runs} done; ")), "{list:?}");
    let same = |out: &str| -> BTreeMap<String, Vec<u8>> { comparable(&place, out) };
    assert!(same("quiet") == same("killed"), "the results differ");
    println!("{runs} runs, {killed} workers killed over {calls} calls that ended early, {before} done by then");
}
