//! `trainer report` on folders of all kinds.

use std::fs;

use super::support::{Ran, SMALL, Workplace};

const TINY: &str = "--config small.toml --set train.steps=4 --set train.warmup=1 --set train.eval_every=2 --quiet";

#[test]
fn a_run_gets_a_page_and_no_browser_is_no_failure() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run(TINY).expect(0);
    let run = place.only_run("runs");
    let mut command = place.command("report --open");
    // Nothing on this path can open a page.
    let ran = Ran::of(command.arg(run.path()).env("PATH", place.path()).output().unwrap()).expect(0);
    assert!(ran.stderr.contains("open") && ran.stderr.contains("yourself"), "{}", ran.stderr);
    assert!(ran.stdout.contains("One run: 2 heads on registers, seed 0, finished"), "{}", ran.stdout);
    let page = fs::read_to_string(run.path().join("report.html")).unwrap();
    assert!(page.contains("\"analysis\":{"), "the page shows the heads");
    // Like results, a page is no part of the run: training it again removes neither, and is not kept from it.
    place.run(&format!("{TINY} --force")).expect(0);
}

#[test]
fn an_experiment_gets_its_page_with_heads() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let experiment = "baseline = \"h1\"\nseeds = 1\nwhy_seeds = \"a test\"\n[metric]\nmargin = 0.02\n[base]\nconfig = \"small.toml\"\n\
        train.steps = 4\ntrain.warmup = 1\ntrain.eval_every = 2\n[arms.h1]\nmodel.heads = 1\n[arms.h2]\n";
    place.file("tiny.toml", experiment);
    let ran = place.run("compare tiny.toml --jobs 1").expect(0);
    assert!(ran.stdout.contains("runs/tiny/report.html"), "{}", ran.stdout);
    let before = fs::read(place.path().join("runs/tiny/report.html")).unwrap();
    assert!(String::from_utf8_lossy(&before).contains("\"maps\":{"), "the page shows maps");
    place.run("report runs/tiny").expect(0);
    assert!(fs::read(place.path().join("runs/tiny/report.html")).unwrap() == before, "the same runs, the same page");
    let ran = place.run("report runs").expect(2);
    assert!(
        ran.stderr.contains("neither an experiment's folder nor a run's") && ran.stderr.contains("runs/tiny"),
        "{}",
        ran.stderr
    );
    let ran = place.run("report nowhere").expect(2);
    assert!(ran.stderr.contains("nowhere is no folder"), "{}", ran.stderr);
}

/// `rm -r EXP/h2-seed0*; trainer report EXP`: FLOPs depend on the seed, and arms are held against each other within pairs.
#[test]
fn a_missing_run_is_no_mismatch_of_the_arms() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let experiment = "baseline = \"h1\"\nseeds = 3\nwhy_seeds = \"a test\"\n[metric]\nmargin = 0.02\n[base]\nconfig = \"small.toml\"\n\
        train.steps = 4\ntrain.warmup = 1\ntrain.eval_every = 2\n\
        train.batch_size = 200\n[arms.h1]\nmodel.heads = 1\n[arms.h2]\n";
    place.file("tiny.toml", experiment);
    place.run("compare tiny.toml --jobs 1").expect(0);
    let folder = place.path().join("runs/tiny");
    let runs: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let named = |start: &str| {
        let is_named = |path: &&std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
        runs.iter().find(is_named).unwrap()
    };
    let flops = |start: &str| {
        let manifest = runs::Manifest::read(&named(start).join("manifest.json")).unwrap();
        manifest.flops_per_step.total()
    };
    assert_ne!(flops("h1-seed0-"), flops("h2-seed1-"), "otherwise there is nothing to see");
    fs::remove_dir_all(named("h2-seed0-")).unwrap();
    let ran = place.run("report runs/tiny").expect(0);
    assert!(ran.stdout.contains("equal in 2 pairs"), "{}", ran.stdout);
}
