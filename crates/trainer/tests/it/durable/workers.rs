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
    let (mut killed, mut calls) = (0, 0);
    loop {
        calls += 1;
        let mut child = place.start("compare test.toml --jobs 8 --out killed");
        let most = if calls <= times(1, 10) { times(2, 6) } else { 0 };
        for _ in 0..most {
            std::thread::sleep(Duration::from_millis(100 + random.below(400) as u64));
            if child.try_wait().unwrap().is_some() {
                break;
            }
            let workers = workers_of(child.id());
            if let Some(worker) = workers.get(random.below(workers.len().max(1))) {
                let ended = std::process::Command::new("kill").args(["-KILL", &worker.to_string()]).output().unwrap();
                killed += usize::from(ended.status.success());
            }
        }
        // Now and then the whole of it.
        if most > 0 && calls % 3 == 0 {
            child.kill().unwrap();
        }
        let ran = finish(child);
        if ran.code == Some(0) && most == 0 {
            break;
        }
        assert!(calls < 40, "{ran:?}");
        // Workers whose parent is gone stop after their step.
        std::thread::sleep(Duration::from_millis(300));
    }
    let list = place.run("runs killed --verify").expect(0);
    let runs = 2 * seeds;
    assert!(list.stdout.contains(&format!("{runs} runs: {runs} done; ")), "{list:?}");
    let same = |out: &str| -> BTreeMap<String, Vec<u8>> { comparable(&place, out) };
    assert!(same("quiet") == same("killed"), "the results differ");
    println!("{runs} runs, {killed} workers killed over {calls} calls");
}
