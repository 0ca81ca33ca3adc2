//! Results from run directories that are made up: numbers that are known, no training.

mod planned;
#[path = "../synthetic/mod.rs"]
mod synthetic;
#[path = "../synthetic/tuning.rs"]
mod tuning;

use std::{fs, path::Path};

use headcount_report::{
    Decision, ExperimentReport, ExperimentRuns, Results, ResultsError, TunedExperiment, decision, figures,
    results::{Findings, RunStatus},
    terminal,
};
use runs::Experiment;
use statistics::{Statement, TwoArms, prediction::Fate, sweep::SweepAnswer};
use synthetic::{Kind, Made, make};
use tuning::make_tuning;

fn read(made: &Made) -> ExperimentRuns {
    TunedExperiment::read(made.experiment.clone(), &made.folder).read_runs()
}

fn report(made: &Made) -> ExperimentReport {
    ExperimentReport::new(&read(made), false).unwrap()
}

/// The first arm against the baseline.
fn first(results: &Results) -> &TwoArms {
    &results.findings.verdicts[0].found
}

const SPLIT: &str = "[arms.h1]\nmodel.heads = 1\n[arms.h8]\nmodel.heads = 8\n";

#[test]
fn eight_heads_beat_one() {
    let made = make("h1-vs-h8", "", SPLIT, |run| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } });
    let results = report(&made).results;
    assert_eq!(first(&results).statement, Statement::Better);
    assert_eq!(results.decision, Decision::Decided { pairs: 10 });
    let rates: Vec<f64> = results.arms.iter().map(|arm| arm.solve_rate.as_ref().unwrap().rate).collect();
    assert_eq!(rates, [0.0, 1.0]);
    let reached = |index: usize| results.arms[index].steps_to_threshold.as_ref().unwrap().reached;
    assert_eq!((reached(0), reached(1)), (0, 10));
    assert!(results.problems.is_empty());
    assert_eq!(results.ledger.as_ref().unwrap().pairs_compared, 10);
    insta::assert_snapshot!(terminal::summary(&results, Path::new("runs/h1-vs-h8")), @r"
    With one layer, after 800 steps, 8 heads beat 1 head by 0.457 in test accuracy, 0.988 against 0.532 (95 % interval 0.430 to 0.484; 10 pairs, over 10 seeds of one task instance, at one learning rate).
      8 heads solved it more often than 1 head: 10 of 10 against 0 of 10, p = 0.002
      correlation of the pairs: 0.58

    h1-vs-h8: Is it so?

    test accuracy      runs    mean      sd     IQM    solved  steps to 0.95
    1 head (baseline)    10  0.5318  0.0400  0.5289   0 of 10          never
    8 heads              10  0.9885  0.0043  0.9889  10 of 10            425

    validation accuracy over 800 steps, 0.137 ▁ to 0.991 █
    1 head   ▁▁▁▁▁▁▁▁▁▁▂▂▂▂▃▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
    8 heads  ▁▁▁▁▁▁▁▂▂▂▃▃▄▄▅▆▆▆▇▇▇███████████████████████████

    stability  runs with spikes  spikes  gradient norm p99 / median
    1 head              0 of 10       0                         1.3
    8 heads             0 of 10       0                         1.3

    matching
      regime split: only model.heads and model.kv_heads to differ
      parameters     49,664 equal
      FLOPs a step   750.000 M equal
      tokens a step  2,048 equal
      steps          800 equal
      differs        model.heads: 1 in h1, 8 in h8
      differs        width of a head, which follows: 64 in h1, 8 in h8
      data           equal in 10 pairs
      first weights  equal in 10 pairs
      program        0.1.0, commit 0123456789
      backend        flex

    files
      runs/h1-vs-h8/report.html   all of this as a page, to open or to send
      runs/h1-vs-h8/results.json  all of this in numbers
      runs/h1-vs-h8/runs.csv      one line a run
      runs/h1-vs-h8/curves.csv    one line an arm, split and step
      runs/h1-vs-h8/figures       SVG
    ");
}

#[test]
fn all_files_are_written_and_rebuilt_to_the_same_bytes_from_the_folder_alone() {
    let made = make("h1-vs-h8", "", SPLIT, |run| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } });
    let report = report(&made);
    made.experiment.save(&made.folder).unwrap();
    let written = report.write(&made.folder).unwrap();
    let names: Vec<String> =
        written.iter().map(|path| path.strip_prefix(&made.folder).unwrap().display().to_string()).collect();
    let drawn = figures::all(&report.results).into_iter().map(|figure| format!("figures/{}.svg", figure.name));
    let expected: Vec<String> = ["results.json", "timings.json", "runs.csv", "curves.csv"]
        .map(String::from)
        .into_iter()
        .chain(drawn)
        .chain(["report.html".to_string()])
        .collect();
    assert_eq!(names, expected);
    for name in ["accuracy", "loss", "loss-log", "differences"] {
        assert!(names.contains(&format!("figures/{name}.svg")), "{names:?}");
    }
    let bytes =
        |folder: &Path| -> Vec<Vec<u8>> { names.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect() };
    let before = bytes(&made.folder);
    // Another name, another place, nothing else around it.
    let moved = made.folder.with_file_name("moved");
    fs::rename(&made.folder, &moved).unwrap();
    names.iter().for_each(|name| fs::remove_file(moved.join(name)).unwrap());
    let runs = TunedExperiment::read(Experiment::of_folder(&moved).unwrap(), &moved).read_runs();
    let again = ExperimentReport::new(&runs, false).unwrap();
    again.write(&moved).unwrap();
    assert_eq!(again, report);
    assert!(bytes(&moved) == before);
    let text = fs::read_to_string(moved.join("results.json")).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), report.results);
    assert!(!text.contains("seconds"), "no wall-clock figure among what can be compared");
    let lines = |name: &str| fs::read_to_string(moved.join(name)).unwrap().lines().count();
    assert_eq!((lines("runs.csv"), lines("curves.csv")), (21, 1 + 2 * (17 + 160)));
    // A column for every key in which the arms differ.
    for (name, head, last) in [
        ("runs.csv", "arm,model.heads,pair,seed,", "h8,8,9,9,"),
        ("curves.csv", "arm,model.heads,split,step,", "h8,8,validation,"),
    ] {
        let text = fs::read_to_string(moved.join(name)).unwrap();
        assert!(text.starts_with(head) && text.lines().any(|line| line.starts_with(last)), "{name}");
    }
}

#[test]
fn threads_and_seconds_do_not_reach_the_results() {
    let made = make("h1-vs-h8", "", SPLIT, |_| Kind::Learns { at: 0.9 });
    let before = report(&made);
    for run in made.experiment.runs_in(&made.folder) {
        let path = run.directory.manifest_path();
        let manifest = runs::Manifest::read(&path).unwrap();
        runs::Manifest { threads: 2, ..manifest }.write(&path).unwrap();
        let id = run.directory.open().unwrap().origin().id();
        let line = format!("{{\"step\":800,\"seconds\":1.0,\"tokens_per_second\":2.0,\"run\":\"{id}\"}}\n");
        fs::write(run.directory.timing_path(), line).unwrap();
    }
    let after = report(&made);
    assert_eq!(after.results, before.results);
    assert_ne!(after.timings, before.timings);
}

#[test]
fn a_diverged_arm_is_reported_as_failed_and_loses() {
    let made =
        make("diverged", "regime = \"free\"", &format!("{SPLIT}train.lr = 10.0\n"), |run| match run.arm.as_str() {
            "h8" => Kind::Diverges { at: 37 },
            _ => Kind::Learns { at: 0.58 },
        });
    let results = report(&made).results;
    assert_eq!(first(&results).statement, Statement::Worse);
    assert_eq!((results.arms[1].diverged, results.arms[1].finished), (10, 0));
    assert!(results.arms[1].runs.iter().all(|run| run.status == RunStatus::Diverged && run.value.is_none()));
    assert_eq!(results.arms[1].description.as_ref().unwrap().mean, 0.0);
    assert_eq!(results.problems.len(), 10);
    let text = terminal::summary(&results, Path::new("runs/diverged"));
    assert!(
        text.contains("0 + 10 diverged") && text.contains("diverged at step 37") && text.contains("and 2 more"),
        "{text}"
    );
    assert!(!serde_json::to_string(&results).unwrap().contains("NaN"));
}

/// What has run so far may be those that end early, such as those that diverge: nothing is said before its time.
#[test]
fn nothing_is_decided_before_its_pairs_are_complete() {
    let made = make("missing", "", SPLIT, |run| match (run.arm.as_str(), run.pair) {
        ("h8", 3) => Kind::Absent,
        ("h1", 5) => Kind::Stopped { after: 300 },
        ("h8", 7) => Kind::Damaged,
        ("h8", _) => Kind::Learns { at: 0.99 },
        _ => Kind::Learns { at: 0.58 },
    });
    let runs = read(&made);
    let results = report(&made).results;
    let reasons: Vec<String> = results
        .problems
        .iter()
        .map(|problem| format!("{} {}: {}", problem.arm, problem.pair, problem.reason))
        .collect();
    let damaged = "h8 7: damaged: metrics.jsonl is not what the run wrote: it was edited or damaged since it ended";
    assert_eq!(reasons, ["h8 3: not run", "h1 5: stopped after step 300", damaged]);
    assert_eq!(results.decision, Decision::NotBefore { pairs: 10, complete: 3 });
    assert_eq!(decision(&runs).unwrap(), results.decision);
    assert_eq!(
        results.answer.sentence,
        "No answer yet: the first look is at 10 pairs, and 3 are complete in every arm, in their order."
    );
    nothing_is_told(&results);
}

/// Neither a verdict nor an interval of differences, anywhere.
#[track_caller]
fn nothing_is_told(results: &Results) {
    assert_eq!((&results.findings, &results.exploratory), (&Findings::default(), &None));
    let (terminal, figures) = (terminal::summary(results, Path::new("x")), figures::all(results));
    for word in ["beat", "lost to", "better", "equivalent", "interval"] {
        assert!(!terminal.contains(word) && !results.answer.title.contains(word), "{word}: {terminal}");
    }
    assert!(figures.iter().all(|figure| figure.name != "differences" && figure.name != "repetitions"));
}

/// Layers by heads by registers: 36 arms, compared within each level.
#[test]
fn several_keys_give_a_map() {
    let grid = "[grid]\n\"model.heads\" = [1, 2, 4, 8]\n\"model.layers\" = [1, 2, 3]\n\"task.registers\" = [2, 4, 6]\n";
    let needs = |run: &runs::PlannedRun| {
        let text = run.config.to_toml();
        let registers = text.lines().find_map(|line| line.strip_prefix("registers = ")).unwrap();
        if run.config.model.layers > 1 { 1 } else { registers.parse::<usize>().unwrap().next_power_of_two() }
    };
    let baseline = "h1-l1-registers2";
    let head = format!("regime = \"free\"\nbaseline = \"{baseline}\"");
    let made = make("map", &head, grid, |run| Kind::Learns {
        at: if run.config.model.heads >= needs(run) { 0.99 } else { 0.6 },
    });
    let report = report(&made);
    let results = &report.results;
    assert_eq!((results.arms.len(), results.findings.sweeps.len(), results.findings.verdicts.len()), (36, 9, 27));
    for sweep in &results.findings.sweeps {
        let layers: u64 = sweep.level["model.layers"].parse().unwrap();
        let registers: usize = sweep.level["task.registers"].parse().unwrap();
        let needed = if layers > 1 { 1 } else { registers.next_power_of_two() };
        assert_eq!(sweep.found.answer, SweepAnswer::Number { value: needed as f64 }, "{:?}", sweep.level);
        assert_eq!(sweep.found.rules.arms, 4);
    }
    // Each arm is held against the one of its own level that has as many heads as the baseline.
    assert!(results.findings.verdicts.iter().all(|verdict| verdict.against.starts_with("h1")));
    let sentences: Vec<&str> = results.findings.sweeps.iter().map(|sweep| sweep.sentence.as_str()).collect();
    assert!(
        sentences[0].starts_with("With one layer and two registers, after 800 steps, this task needs 2 heads"),
        "{}",
        sentences[0]
    );
    assert!(
        results.answer.sentence.starts_with("This task needs 2 heads with one layer and two registers, 4 heads"),
        "{}",
        results.answer.sentence
    );
    // From one to eight heads is worth less with three layers than with one.
    let told: Vec<&str> = results.findings.interactions.iter().map(|found| found.sentence.as_str()).collect();
    assert_eq!(told.len(), 2);
    assert!(
        told[0].starts_with("going from 1 to 8 heads is worth less with three layers than with one layer: by 0.4"),
        "{}",
        told[0]
    );
    let figures: Vec<String> = figures::all(results).into_iter().map(|figure| figure.name).collect();
    assert!(figures.contains(&"heads-needed".to_string()), "{figures:?}");
    let text = terminal::summary(results, Path::new("x"));
    let map: Vec<&str> = text.lines().filter(|line| line.starts_with("  with three layers and")).collect();
    assert_eq!(map.len(), 3, "{text}");
}

/// On fixed data the final step rewards whoever overfits later.
#[test]
fn a_metric_can_be_read_at_the_best_validation() {
    let head = "[metric]\nmargin = 0.02\nat = \"best_validation\"";
    let made = make("best", head, SPLIT, |run| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } });
    for run in made.experiment.runs_in(&made.folder) {
        let path = run.directory.summary_path();
        let summary = runs::Summary::read(&path).unwrap();
        let best = data::metrics::Scores::default().with(&data::metrics::ACCURACY, 0.25);
        runs::Summary { best_test: Some(best), ..summary }.write(&path).unwrap();
    }
    let results = report(&made).results;
    assert!(results.arms.iter().flat_map(|arm| &arm.runs).all(|run| run.value == Some(0.25)));
    assert_eq!(results.metric.read, "at the step with the best validation");
}

/// Leaving diverged runs out would make the arm that diverges look best.
#[test]
fn mean_curves_keep_diverged_runs_at_the_penalty() {
    let made = make("curves", "regime = \"free\"", &format!("{SPLIT}train.lr = 10.0\n"), |run| {
        match (run.arm.as_str(), run.pair % 2) {
            ("h8", 0) => Kind::Diverges { at: 120 },
            _ => Kind::Learns { at: 0.9 },
        }
    });
    let results = report(&made).results;
    let curve = results.arms[1].curves.iter().find(|curve| curve.split == data::Split::Validation).unwrap();
    let last = curve.points.last().unwrap();
    assert_eq!((last.step, last.runs, last.diverged), (800, 10, 5));
    assert!(last.bands["accuracy"].mean < 0.5 && last.bands["accuracy"].minimum == 0.0, "{last:?}");
    assert_eq!(last.bands["loss"].maximum, 8f64.ln());
    let before = curve.points.iter().find(|point| point.step == 100).unwrap();
    assert_eq!((before.runs, before.diverged), (10, 0));
    let figure = figures::all(&results).into_iter().find(|figure| figure.name == "accuracy").unwrap();
    assert!(figure.svg.contains("5 runs diverged"));
    assert!(terminal::summary(&results, Path::new("x")).contains("diverged runs at the penalty"));
}

/// Every file is read once: all that is told comes from one value, and nothing on disk is needed any more.
#[test]
fn a_folder_is_read_once_for_everything_that_is_told() {
    let head = "[tuning]\nlr = [1e-3, 3e-3]\nseeds = [1000, 1001]";
    let made = make_tuning("once", head, SPLIT, |_, lr| Kind::Learns { at: 0.5 + lr * 10.0 });
    let expected = report(&made);
    let told = |report: &ExperimentReport, folder: &Path| {
        let written = report.write(folder).unwrap();
        let files: Vec<Vec<u8>> = written.iter().map(|path| fs::read(path).unwrap()).collect();
        (files, terminal::summary(&report.results, Path::new("x")))
    };
    let before = told(&expected, &made.folder);

    let tuned = TunedExperiment::read(made.experiment.clone(), &made.folder);
    fs::remove_dir_all(made.folder.join("tuning")).unwrap();
    let runs = tuned.read_runs();
    fs::remove_dir_all(&made.folder).unwrap();
    fs::create_dir(&made.folder).unwrap();
    let report = ExperimentReport::new(&runs, false).unwrap();
    assert_eq!(report, expected);
    assert!(told(&report, &made.folder) == before);
}

/// The runs that were reported are there: that a run is missing from which their learning rates were chosen hides none of them.
#[test]
fn a_missing_tuning_run_hides_no_run_and_is_said() {
    let head = "[tuning]\nlr = [1e-3, 3e-3]\nseeds = [1000, 1001]";
    let made = make_tuning("gaps", head, SPLIT, |_, lr| Kind::Learns { at: 0.5 + lr * 10.0 });
    let expected = report(&made).results;
    let tuning = |made: &Path| -> Vec<std::path::PathBuf> {
        let mut found: Vec<_> = fs::read_dir(made.join("tuning")).unwrap().map(|entry| entry.unwrap().path()).collect();
        found.sort();
        found
    };
    fs::remove_dir_all(&tuning(&made.folder)[0]).unwrap();
    let said = |count: &str| format!("{count} missing; the rate 0.003 is that of its runs, and can't be checked");
    for count in ["1 tuning run is", "4 tuning runs are"] {
        let runs = TunedExperiment::read(made.experiment.clone(), &made.folder).read_runs();
        let results = ExperimentReport::new(&runs, false).unwrap().results;
        assert_eq!((&results.findings, &results.problems), (&expected.findings, &expected.problems));
        let text = terminal::summary(&results, Path::new("x"));
        assert!(text.contains(&said(count)), "{text}");
        tuning(&made.folder).iter().for_each(|run| fs::remove_dir_all(run).unwrap());
    }
}

#[test]
fn nothing_finished_is_said() {
    let made = make("nothing", "", SPLIT, |_| Kind::Absent);
    assert!(matches!(ExperimentReport::new(&read(&made), false), Err(ResultsError::NoRuns { .. })));
}

#[test]
fn arms_that_do_not_match_are_refused() {
    let made = make("unmatched", "", &format!("{SPLIT}train.batch_size = 8\n"), |_| Kind::Learns { at: 0.9 });
    let error = ExperimentReport::new(&read(&made), false).unwrap_err().to_string();
    assert!(error.contains("train.batch_size is 8 in `h8` and 64 in `h1`"), "{error}");
}

#[test]
fn two_seeds_end_undecided() {
    let made = make("two", "seeds = 2\nwhy_seeds = \"a test\"", SPLIT, |_| Kind::Learns { at: 0.8 });
    let results = report(&made).results;
    assert!(matches!(first(&results).statement, Statement::Undecided { .. }));
    assert!(terminal::summary(&results, Path::new("x")).contains("few seeds: a test"));
}

#[test]
fn learning_rates_are_chosen_by_the_validation_set_and_their_runs_are_found() {
    let head = "[tuning]\nlr = [1e-3, 3e-3, 1e-2]\nseeds = [1000, 1001]";
    let at = |arm: &str, lr: f64| match (arm, lr) {
        ("h8", 0.01) => Kind::Diverges { at: 100 },
        ("h8", lr) => Kind::Learns { at: if lr == 0.003 { 0.99 } else { 0.9 } },
        (_, lr) => Kind::Learns { at: 0.5 + lr * 10.0 },
    };
    let made = make_tuning("h1-vs-h8-tuned", head, SPLIT, at);
    let tuned = TunedExperiment::read(made.experiment.clone(), &made.folder);
    let table = tuned.tuning().unwrap();
    assert_eq!(table.chosen(), [("h1".to_string(), 0.01), ("h8".to_string(), 0.003)].into());
    let results = report(&made).results;
    assert_eq!(results.arms[0].lr, Some(0.01));
    assert_eq!((results.arms[0].finished, results.arms[1].finished), (10, 10));
    insta::assert_snapshot!(terminal::summary(&results, Path::new("runs/tuned")), @r"
    With one layer, after 800 steps, 8 heads beat 1 head by 0.434 in test accuracy, 0.988 against 0.554 (95 % interval 0.409 to 0.460; 10 pairs, over 10 seeds of one task instance, each at its best learning rate).
      8 heads solved it more often than 1 head: 10 of 10 against 0 of 10, p = 0.002
      correlation of the pairs: 0.58

    h1-vs-h8-tuned: Is it so?

    test accuracy      runs    mean      sd     IQM    solved  steps to 0.95
    1 head (baseline)    10  0.5542  0.0381  0.5514   0 of 10          never
    8 heads              10  0.9885  0.0043  0.9889  10 of 10            425

    validation accuracy over 800 steps, 0.137 ▁ to 0.991 █
    1 head   ▁▁▁▁▁▁▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄
    8 heads  ▁▁▁▁▁▁▁▂▂▂▃▃▄▄▅▆▆▆▇▇▇███████████████████████████

    tuned by validation accuracy  lr 0.001  lr 0.003  lr 0.01
    1 head                          0.5167    0.5366  *0.6062
    8 heads                         0.8905   *0.9877   0.0000
    at the edge of the grid for 1 head: a rate beyond it may be better
    ahead of 1 head at each rate, in validation accuracy:
      at 0.001: 8 heads +0.3738
      at 0.003: 8 heads +0.4511
      at 0.01: 8 heads -0.6062

    stability  runs with spikes  spikes  gradient norm p99 / median
    1 head              0 of 10       0                         1.3
    8 heads             0 of 10       0                         1.3

    matching
      regime split: only model.heads and model.kv_heads to differ
      parameters     49,664 equal
      FLOPs a step   750.000 M equal
      tokens a step  2,048 equal
      steps          800 equal
      differs        model.heads: 1 in h1, 8 in h8
      differs        train.lr: 0.01 in h1, 0.003 in h8 (tuned for each arm)
      differs        width of a head, which follows: 64 in h1, 8 in h8
      data           equal in 10 pairs
      first weights  equal in 10 pairs
      program        0.1.0, commit 0123456789
      backend        flex

    files
      runs/tuned/report.html   all of this as a page, to open or to send
      runs/tuned/results.json  all of this in numbers
      runs/tuned/runs.csv      one line a run
      runs/tuned/curves.csv    one line an arm, split and step
      runs/tuned/figures       SVG
    ");
}

#[test]
fn a_sweep_has_its_curve_and_each_arm_its_verdict() {
    let made = make("heads-sweep", "baseline = \"h1\"", "[grid]\n\"model.heads\" = [1, 2, 4, 8, 16]\n", sweep);
    let results = report(&made).results;
    let better =
        results.findings.verdicts.iter().filter(|verdict| verdict.found.statement == Statement::Better).count();
    assert_eq!((results.findings.verdicts.len(), better), (4, 4));
    let [sweep] = &results.findings.sweeps[..] else { panic!("{:?}", results.findings.sweeps) };
    assert_eq!(sweep.found.answer, SweepAnswer::Number { value: 4.0 });
    assert_eq!(results.answer.sentence, sweep.sentence);
    insta::assert_snapshot!(terminal::answer(&results).split("\n\n").take(3).collect::<Vec<_>>().join("\n\n"), @r"
    With one layer, after 800 steps, this task needs 4 heads: 2 reach 0.652, 4 reach 0.995, more add nothing above the margin of 0.02 (10 pairs, over 10 seeds of one task instance, at one learning rate).

    heads-sweep: Is it so?

    test accuracy      runs    mean      sd     IQM    solved  steps to 0.95  enough
    1 head (baseline)    10  0.5318  0.0400  0.5289   0 of 10          never      no
    2 heads              10  0.6518  0.0734  0.6526   0 of 10          never      no
    4 heads              10  0.9946  0.0044  0.9947  10 of 10            425     yes
    8 heads              10  0.9905  0.0041  0.9908  10 of 10            425     yes
    16 heads             10  0.9910  0.0043  0.9906  10 of 10            400     yes
    ");
    let values: Vec<f64> = results.arms.iter().filter_map(|arm| arm.sweep_value).collect();
    assert_eq!(values, [1.0, 2.0, 4.0, 8.0, 16.0]);
    let names: Vec<_> = figures::all(&results).into_iter().map(|figure| figure.name).collect();
    let has = |name: &str| names.iter().any(|other| other == name);
    assert!(has("accuracy") && has("loss") && has("loss-log") && has("differences") && has("sweep"), "{names:?}");
    assert!(!has("repetitions") && !has("learning-rates"), "what there are no numbers for is not drawn: {names:?}");
}

fn sweep(run: &runs::PlannedRun) -> Kind {
    Kind::Learns { at: [0.58, 0.67, 0.993, 0.992, 0.991][run.config.model.heads.ilog2() as usize] }
}

#[test]
fn repetitions_are_counted_one_by_one() {
    let made = make(
        "a-a",
        "regime = \"free\"\nseeds = 60\nrepetitions = 6\nbaseline = \"h1\"",
        "[arms.h1]\nlabel = \"a\"\n[arms.h8]\nlabel = \"b\"\nseed_offset = 1000\n",
        |_| Kind::Learns { at: 0.7 },
    );
    let results = report(&made).results;
    let repetitions = results.repetitions.as_ref().unwrap();
    assert_eq!(repetitions.each.len(), 6);
    assert_eq!(repetitions.better + repetitions.worse + repetitions.equivalent + repetitions.undecided, 6);
    assert_eq!(repetitions.each[1].seeds, (10..20).collect::<Vec<u64>>());
    assert!(terminal::summary(&results, Path::new("x")).contains("6 repetitions: "));
}

#[test]
fn arms_of_different_lengths_say_their_steps() {
    let arms = "[arms.h1]\nmodel.heads = 1\ntrain.steps = 1600\n[arms.h8]\n";
    let made = make("longer", "regime = \"free\"\nbaseline = \"h8\"", arms, |_| Kind::Learns { at: 0.9 });
    let results = report(&made).results;
    let sentence = &results.findings.verdicts[0].sentence;
    assert!(sentence.contains("h1 (after 1600 steps)") && sentence.contains("h8 (after 800 steps)"), "{sentence}");
    assert!(!sentence.contains("after 800 steps, "), "{sentence}");
}

#[test]
fn a_loss_is_better_when_smaller_and_diverging_enters_as_guessing() {
    let head = "[metric]\nname = \"test_loss\"\nmargin = 0.05\nthreshold = 0.1";
    let made = make("losses", head, SPLIT, |run| match (run.arm.as_str(), run.pair) {
        ("h8", 0) => Kind::Diverges { at: 5 },
        ("h8", _) => Kind::Learns { at: 0.99 },
        _ => Kind::Learns { at: 0.4 },
    });
    let results = report(&made).results;
    assert_eq!(results.metric.scale.penalty, 8f64.ln());
    assert_eq!(first(&results).pairs[0].arm, 8f64.ln());
    assert_eq!(results.arms[1].solve_rate.as_ref().map(|rate| (rate.successes, rate.trials)), Some((9, 10)));
    assert!(first(&results).estimate.unwrap().mean > 0.0, "an advantage is above 0 whichever way the metric improves");
}

/// What a diverged run enters with follows from the task alone: with the worst finished value it would tie with that run.
#[test]
fn a_diverged_run_does_not_tie_with_the_worst_finished_one() {
    let head = "[metric]\nname = \"test_loss\"\nmargin = 0.05";
    let made = make("penalty", head, SPLIT, |run| match run.pair {
        0 if run.arm == "h8" => Kind::Diverges { at: 5 },
        _ => Kind::Learns { at: 0.4 },
    });
    let results = report(&made).results;
    let finished = || results.arms.iter().flat_map(|arm| &arm.runs).filter_map(|run| run.value);
    let worst = finished().fold(f64::NEG_INFINITY, f64::max);
    let entered = results.arms[1].description.as_ref().unwrap().maximum;
    assert_eq!((finished().count(), results.arms[1].diverged), (19, 1));
    assert_eq!(entered, 8f64.ln(), "registers has eight classes");
    assert!(worst < entered - 0.1, "{worst}");
    assert_eq!(first(&results).tied, 0);
}

/// Draws every kind of figure into the folder that HEADCOUNT_FIGURES names, to be looked at.
#[test]
fn figures_are_valid_for_every_kind_of_result() {
    let again = "[arms.h1]\nlabel = \"8 heads\"\n[arms.h8]\nlabel = \"8 heads again\"\nseed_offset = 1000\n";
    let kinds: [(&str, Made); 6] = [
        ("again", make("a-a", "regime = \"free\"\nseeds = 60\nrepetitions = 6", again, |_| Kind::Learns { at: 0.9 })),
        ("pair", make("h1-vs-h8", "", SPLIT, |run| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } })),
        ("sweep", make("heads-sweep", "baseline = \"h1\"", "[grid]\n\"model.heads\" = [1, 2, 4, 8, 16]\n", sweep)),
        ("neutral", make("mqar-neutral", "", SPLIT, |_| Kind::Learns { at: 0.995 })),
        (
            "tuned",
            make_tuning(
                "h1-vs-h8-tuned",
                "[tuning]\nlr = [1e-3, 3e-3, 1e-2]\nseeds = [1000, 1001, 1002]",
                SPLIT,
                |arm, lr| Kind::Learns {
                    at: if arm == "h8" {
                        0.99 - 0.04 * (lr / 0.003).log10().abs()
                    } else {
                        0.6 - 0.1 * (lr / 0.003).log10().powi(2)
                    },
                },
            ),
        ),
        (
            "failures",
            make("some & <diverged>", "regime = \"free\"", &format!("{SPLIT}train.lr = 10.0\n"), |run| {
                match (run.arm.as_str(), run.pair % 3) {
                    ("h8", 0) => Kind::Diverges { at: 200 + 40 * run.pair },
                    ("h8", _) => Kind::Learns { at: 0.9 },
                    _ => Kind::Learns { at: 0.58 },
                }
            }),
        ),
    ];
    for (kind, made) in kinds {
        for figure in figures::all(&report(&made).results) {
            let document = roxmltree::Document::parse(&figure.svg)
                .unwrap_or_else(|error| panic!("{kind} {}: {error}", figure.name));
            let drawn = document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
            assert!(drawn.count() > 5, "{kind} {}", figure.name);
            assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{kind} {}", figure.name);
            if let Some(folder) = std::env::var_os("HEADCOUNT_FIGURES") {
                let name = Path::new(&folder).join(format!("{kind}-{}", figure.name));
                fs::write(name.with_extension("svg"), &figure.svg).unwrap();
            }
        }
    }
}
