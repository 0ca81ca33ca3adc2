//! What the program says of the heads of a run, and keeps.

use data::metrics::{ACCURACY, LOSS};
use std::fs;

use runs::heads::{ExperimentHeads, HeadAnalysis};

use crate::support::*;

/// Trained on a task that needs both of its heads: neither is dead, a duplicate or a sink, and each is missed.
#[test]
fn heads_of_a_trained_model_are_shown_and_none_is_flagged() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let more = "--set train.steps=400 --set task.train_examples=2000 --set train.lr=1e-2 --set train.snapshots=3";
    place.run(&format!("--config small.toml {more} --quiet")).expect(0);
    let run = place.only_run("runs");
    let run_path = run.path().display();
    let shown = place.run(&format!("heads {run_path}")).expect(0).stdout;
    for part in
        ["small seed 0 on registers: 1 layer of 2 heads, after 400 steps", "entropy", "cost of removal", "register 1"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let text = place.run(&format!("heads {run_path} --json")).expect(0).stdout;
    let analysis: HeadAnalysis = serde_json::from_str(&text).unwrap();
    assert_eq!(analysis.steps.iter().map(|step| step.step).collect::<Vec<_>>(), [0, 40, 180, 400]);
    let last = analysis.last().unwrap();
    assert!(last.scores.number(&ACCURACY) > 0.9, "{:?}", last.scores);
    for head in &last.attentions[0].heads {
        assert!(head.flags.is_empty() && head.number("removal").is_some_and(|removal| removal > 0.1), "{head:?}");
    }

    // The numbers are the validation set's, on whatever number of threads.
    let validation = metrics(&run).into_iter().rfind(|line| line.split == data::Split::Validation).unwrap();
    assert!((validation.scores.number(&LOSS) - last.scores.number(&LOSS)).abs() < 1e-5, "all 40 samples are used");
    let kept = fs::read(run.heads_path()).unwrap();
    let again = place.command(&format!("heads {run_path} --force")).env("RAYON_NUM_THREADS", "1").output().unwrap();
    assert_eq!(Ran::of(again).expect(0).stdout, shown);
    assert!(fs::read(run.heads_path()).unwrap() == kept);
    let reported = place.run(&format!("report {run_path}")).expect(0).stdout;
    assert!(reported.contains(&shown), "a run's report shows its heads\n{reported}");

    // How many of them it uses, too.
    let pruned = place.run(&format!("heads {run_path} --prune")).expect(0).stdout;
    assert!(pruned.contains("heads used: 2 of 2, the fewest with which test accuracy is within 0.02"), "{pruned}");
    let kept = fs::read(run.heads_path()).unwrap();
    let again = place.command(&format!("heads {run_path} --prune --force")).env("RAYON_NUM_THREADS", "1").output();
    let again = Ran::of(again.unwrap()).expect(0);
    assert!(again.stdout == pruned && fs::read(run.heads_path()).unwrap() == kept);
    let text = place.run(&format!("heads {run_path} --prune --margin 1 --json")).expect(0).stdout;
    let pruning = serde_json::from_str::<HeadAnalysis>(&text).unwrap().pruning.unwrap();
    assert_eq!((pruning.used.heads, pruning.points.len()), (0, 3));
    // With all heads it is the model's own score on the test set, of which there are no more samples.
    let test = run.open().unwrap().summary().unwrap().test.unwrap();
    for kind in [&LOSS, &ACCURACY] {
        let six_digits = |number: f64| format!("{number:.5e}");
        let all = pruning.points[0].test.number(kind);
        assert_eq!(six_digits(all), six_digits(test.number(kind)), "{}", kind.key);
    }
    let refused = place.run(&format!("heads {run_path} --prune --margin=-1")).expect(2);
    assert!(refused.stderr.contains("a margin is a finite number, at least 0"), "{refused:?}");

    // Trained anew, nothing of it is left.
    place.run(&format!("--config small.toml {more} --quiet --force")).expect(0);
    assert!(!run.heads_path().exists());
}

#[test]
fn a_folder_that_is_no_finished_run_is_refused() {
    let place = Workplace::new();
    let refused = place.run("heads nowhere").expect(2);
    assert!(refused.stderr.contains("nowhere is no run directory"), "{refused:?}");
    let (run, _) = train_until(&small(&[]), &place.path().join("runs"), 30);
    let refused = place.run(&format!("heads {}", run.path().display())).expect(1);
    assert!(refused.stderr.contains("isn't done"), "{refused:?}");
}

/// A comparison leaves the heads of all its runs.
#[test]
fn a_comparison_has_heads() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file(
        "pair.toml",
        "baseline = \"h1\"\nseeds = 2\nwhy_seeds = \"a test\"\n[metric]\nmargin = 0.02\n[base]\nconfig = \"small.toml\"\n\
         train.steps = 40\n[arms.h1]\nmodel.heads = 1\n[arms.h2]\n",
    );
    let shown = place.run("compare pair.toml --jobs 2").expect(0).stdout;
    let path = place.path().join("runs/pair/heads.json");
    let heads: ExperimentHeads = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let steps: Vec<Vec<usize>> = heads
        .arms
        .iter()
        .map(|arm| arm.runs.iter().map(|run| run.analysis.as_ref().unwrap().steps.len()).collect())
        .collect();
    assert_eq!(steps, [[3, 2], [3, 2]], "untrained, 20 and 40; both ends of the second pair");
    assert_eq!(heads.arms[1].last.as_ref().unwrap().heads, 2);
    // One run an arm is pruned, by the experiment's margin.
    for (arm, heads) in heads.arms.iter().zip([1, 2]) {
        let (run, pruning) = arm.pruning().unwrap();
        assert_eq!((run.pair, pruning.points.len(), pruning.used.margin), (0, heads + 1, 0.02));
        assert!(arm.runs[1].analysis.as_ref().unwrap().pruning.is_none());
    }
    assert!(shown.contains("heads of one run"), "{shown}");
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    place.run("report runs/pair").expect(0);
    assert!(fs::read(&path).unwrap() == bytes);
}
