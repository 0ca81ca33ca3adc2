//! `trainer compare`, from an experiment file to its result files: whole, in pieces, killed and gone on with.

use data::metrics::ACCURACY;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use report::results::{Results, RunStatus};
use runs::{Experiment, Registration, RunDirectory};
use statistics::{Statement, statement::Because};

use crate::support::*;

/// Six pairs of one head against two, a third of a second a run.
const HEADS: &str = r#"
baseline = "h1"
regime = "split"
seeds = 6
why_seeds = "it is a test"
[metric]
margin = 0.02
[base]
config = "small.toml"
[grid]
"model.heads" = [1, 2]
"#;

/// A workplace with `test.toml` and the config that it is based on.
pub fn with(experiment: &str) -> Workplace {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.file("test.toml", experiment);
    place
}

fn results(place: &Workplace, out: &str) -> Results {
    let path = place.path().join(out).join("test/results.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The files that must not depend on how the runs came about, by name.
pub fn comparable(place: &Workplace, out: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = place.path().join(out).join("test");
    let mut paths: Vec<_> = ["results.json", "runs.csv", "curves.csv"].map(|name| folder.join(name)).into();
    paths.extend(fs::read_dir(folder.join("figures")).unwrap().map(|entry| entry.unwrap().path()));
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[track_caller]
fn assert_alike(place: &Workplace, left: &str, right: &str) {
    let (left, right) = (comparable(place, left), comparable(place, right));
    assert!(left.keys().eq(right.keys()), "{:?} {:?}", left.keys(), right.keys());
    let different: Vec<&String> = left.keys().filter(|name| left[*name] != right[*name]).collect();
    assert!(different.is_empty(), "these files differ: {different:?}");
}

#[test]
fn a_comparison_ends_in_a_verdict_whatever_the_number_of_jobs() {
    let place = with(HEADS);
    let ran = place.run("compare test.toml --jobs 2").expect(0);
    let found = results(&place, "runs");
    assert!(ran.stdout.starts_with(&found.answer.sentence), "{ran:?}");
    for name in ["results.json", "timings.json", "runs.csv", "curves.csv"] {
        assert!(place.path().join("runs/test").join(name).is_file(), "{name}");
        assert!(name == "timings.json" || ran.stdout.contains(name), "{ran:?}");
    }
    assert_eq!(found.arms.iter().map(|arm| (arm.finished, arm.runs.len())).collect::<Vec<_>>(), [(6, 6), (6, 6)]);
    assert_eq!(found.problems, []);
    // The ledger holds real manifests, and they match.
    let experiment = Experiment::of_folder(&place.path().join("runs/test")).unwrap();
    assert_eq!(found.ledger.as_ref().unwrap().check(experiment.regime), Ok(()));
    // A verdict's numbers are those of the runs' own summaries.
    let pairs = &found.findings.verdicts[0].found.pairs;
    let difference: f64 = pairs.iter().map(|pair| pair.arm - pair.baseline).sum::<f64>() / 6.0;
    let mean = |arm: usize| {
        let accuracies = found.arms[arm].runs.iter().map(|run| {
            let run = RunDirectory::at(place.path().join("runs/test").join(&run.directory));
            runs::Summary::read(&run.summary_path()).unwrap().test.unwrap().number(&ACCURACY)
        });
        accuracies.sum::<f64>() / 6.0
    };
    assert!((mean(1) - mean(0) - difference).abs() < 1e-12);

    // Again: nothing is trained, and the result is the same; one at a time: the same.
    let before = comparable(&place, "runs");
    let again = place.run("compare test.toml").expect(0);
    assert_eq!(again.stderr.matches("done before").count(), 12, "{again:?}");
    assert_eq!(again.stdout, ran.stdout);
    assert_eq!(comparable(&place, "runs"), before);
    place.run("compare test.toml --jobs 1 --out serial").expect(0);
    assert_alike(&place, "runs", "serial");
}

/// Real manifests also match where the width of the MLP pays for more heads, and a dry run says so without training.
#[test]
fn equal_parameters_at_a_fixed_width_of_a_head() {
    let experiment = HEADS
        .replace("regime = \"split\"", "regime = \"params\"\nmatch_d_ff = true")
        .replace("config = \"small.toml\"", "config = \"small.toml\"\nmodel.d_head = 8");
    let place = with(&experiment);
    let ran = place.run("compare test.toml --dry-run").expect(0);
    assert!(ran.stderr.contains("regime params"), "{ran:?}");
    assert!(!place.path().join("runs").exists());
    place.run("compare test.toml").expect(0);
    let found = results(&place, "runs");
    assert_eq!(found.ledger.as_ref().unwrap().check(found.regime.unwrap()), Ok(()));
}

#[test]
fn arms_that_do_not_match_are_refused_with_the_numbers() {
    let experiment = HEADS.replace("[grid]\n\"model.heads\" = [1, 2]", "[arms.h1]\n[arms.wide]\nmodel.d_model = 32");
    let place = with(&experiment);
    let ran = place.run("compare test.toml").expect(2);
    for part in ["regime `split`", "model.d_model: 16 in h1, 32 in wide", "parameters"] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    assert!(!place.path().join("runs").exists(), "nothing was trained");
}

/// A learning rate of 10 tears the weights apart: failed runs, not dropped ones, and a comparison that ends well.
#[test]
fn an_arm_that_diverges_counts_as_failed() {
    let experiment = HEADS.replace("regime = \"split\"", "regime = \"free\"").replace(
        "[grid]\n\"model.heads\" = [1, 2]",
        "[arms.h1]\n[arms.wild]\ntrain.lr = 1000\ntrain.clip_norm = 0\ntrain.warmup = 0\ntrain.schedule = \"constant\"",
    );
    let place = with(&experiment);
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("DIVERGED at step"), "{ran:?}");
    let found = results(&place, "runs");
    let wild = found.arms.iter().find(|arm| arm.name == "wild").unwrap();
    assert_eq!((wild.finished, wild.diverged, wild.missing), (0, 6, 0));
    assert!(wild.runs.iter().all(|run| run.status == RunStatus::Diverged));
    assert_eq!(wild.description.as_ref().unwrap().mean, 0.0, "the worst accuracy there is");
    assert_eq!(found.findings.verdicts[0].found.pairs.len(), 6);
    assert_eq!(found.findings.verdicts[0].found.statement, Statement::Worse);
    assert!(
        ran.stdout.contains("0 + 6 diverged") && ran.stdout.contains("diverged (entered as 0): 6 of 6 runs of wild"),
        "{ran:?}"
    );
}

#[test]
fn two_seeds_are_too_few_to_tell() {
    let place = with(&HEADS.replace("seeds = 6", "seeds = 2"));
    let ran = place.run("compare test.toml").expect(0);
    let statement = results(&place, "runs").findings.verdicts[0].found.statement;
    assert!(matches!(statement, Statement::Undecided { because: Because::TooFewPairs { .. } }), "{statement:?}");
    assert!(ran.stdout.contains("undecided"), "{ran:?}");
}

/// What was edited after a run had ended is not taken for its result; the other runs are.
#[test]
fn a_finished_run_that_was_edited_is_named() {
    let place = with(HEADS);
    place.run("compare test.toml").expect(0);
    let folder = place.path().join("runs/test");
    let directory = &results(&place, "runs").arms[1].runs[3].directory;
    let run = RunDirectory::at(folder.join(directory));
    let metrics = fs::read_to_string(run.metrics_path()).unwrap();
    fs::write(run.metrics_path(), metrics.replacen("\"loss\":", "\"loss\":1", 1)).unwrap();

    let ran = place.run("compare test.toml").expect(1);
    assert!(ran.stderr.contains(&format!("remove runs/test/{directory} to have it trained again")), "{ran:?}");
    let ran = place.run("report runs/test").expect(0);
    assert!(ran.stdout.contains("metrics.jsonl is not what the run wrote"), "{ran:?}");
    let found = results(&place, "runs");
    assert_eq!((found.arms[1].finished, found.arms[1].missing), (5, 1));

    fs::remove_dir_all(run.path()).unwrap();
    place.run("compare test.toml").expect(0);
    assert_eq!(fs::read_to_string(run.metrics_path()).unwrap(), metrics);
}

/// More seeds later: the finished runs are reused, and the change is said.
#[test]
fn an_experiment_may_grow() {
    let place = with(&HEADS.replace("seeds = 6", "seeds = 2"));
    place.run("compare test.toml").expect(0);
    place.file("test.toml", HEADS);
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("when 4 of 4 runs had ended: seeds: 0, 1, now 6, 0 to 5"), "{ran:?}");
    assert_eq!(ran.stderr.matches("done before").count(), 4, "{ran:?}");
    // What was registered stands; the pairs beyond it are shown, and decide nothing.
    let found = results(&place, "runs");
    assert_eq!(found.findings.verdicts[0].found.pairs.len(), 2);
    let beyond = found.exploratory.unwrap();
    assert_eq!((beyond.pairs, beyond.findings.verdicts[0].found.pairs.len()), (6, 6));
    assert!(ran.stdout.contains("beyond the plan, with 6 pairs"), "{ran:?}");
}

fn registration(place: &Workplace, folder: &str) -> Registration {
    Registration::read(&place.path().join(folder)).unwrap().unwrap()
}

/// Names of the folders of runs in a folder, sorted.
fn runs_in(place: &Workplace, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path().join(folder)).into_iter().flatten().map(|entry| entry.unwrap());
    let is_run = |entry: &fs::DirEntry| entry.path().join("summary.json").is_file();
    let mut names: Vec<String> = entries.filter(is_run).map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What stood before the first run is on record, and whoever changes it afterwards, in the experiment's file or in the folder,
/// is told on.
#[test]
fn a_margin_that_changes_after_the_runs_is_said() {
    let place = with(&HEADS.replace("seeds = 6", "seeds = 2"));
    let ran = place.run("compare test.toml").expect(0);
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
    let before = registration(&place, "runs/test");
    assert_eq!((before.ended, before.runs, before.amendments.len()), (0, 4, 0));
    place.run("compare test.toml").expect(0);
    assert_eq!(registration(&place, "runs/test"), before);

    place.file("test.toml", HEADS.replace("seeds = 6", "seeds = 2").replace("0.02", "0.05"));
    let ran = place.run("compare test.toml").expect(0);
    let said = "when 4 of 4 runs had ended: metric.margin: 0.02, now 0.05";
    assert!(ran.stderr.contains("warning: ") && ran.stderr.contains(said), "{ran:?}");
    // By hand, in the folder.
    let path = place.path().join("runs/test/experiment.toml");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("margin = 0.05", "margin = 0.3")).unwrap();
    place.run("report runs/test").expect(0);
    let after = registration(&place, "runs/test");
    assert_eq!((&after.hash, &after.registered), (&before.hash, &before.registered));
    let changed: Vec<_> =
        after.amendments.iter().map(|amendment| (amendment.changed.join("; "), amendment.ended)).collect();
    let expected = [("metric.margin: 0.02, now 0.05", 4), ("metric.margin: 0.05, now 0.3", 4)];
    assert_eq!(changed, expected.map(|(change, ended)| (change.to_string(), ended)));
}

/// Other seeds and values by the command line are another experiment, beside the file's.
#[test]
fn a_variant_has_a_folder_and_a_registration_of_its_own() {
    let place = with(HEADS);
    place.run("compare test.toml --seeds 2 --set train.steps=40 --set metric.margin=0.1").expect(0);
    let folder = "runs/test+train.steps=40+metric.margin=0.1+seeds=2";
    let experiment = Experiment::of_folder(&place.path().join(folder)).unwrap();
    assert_eq!((experiment.metric.margin, experiment.seeds.len()), (0.1, 2));
    assert!(experiment.arms.iter().all(|arm| arm.config.train.steps == 40));
    assert_eq!((registration(&place, folder).runs, runs_in(&place, folder).len()), (4, 4));
    assert!(!place.path().join("runs/test").exists());
    let ran = place.run("compare test.toml --set model.heads=2").expect(2);
    assert!(ran.stderr.contains("can't be set in all arms"), "{ran:?}");
}

/// A difference that is plain after six pairs needs no ten.
#[test]
fn an_experiment_ends_at_the_first_look_that_decides() {
    let experiment = HEADS
        .replace("regime = \"split\"", "regime = \"free\"")
        .replace("seeds = 6", "seeds = 10\nlooks = [6, 10]")
        .replace(
            "[grid]\n\"model.heads\" = [1, 2]",
            "[arms.h1]\n[arms.wild]\ntrain.lr = 1000\ntrain.clip_norm = 0\ntrain.warmup = 0\ntrain.schedule = \"constant\"",
        );
    let place = with(&experiment);
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("decided after 6 pairs"), "{ran:?}");
    assert_eq!(runs_in(&place, "runs/test").len(), 12);
    // Two arms that are one: nothing decides before the end.
    let same = HEADS
        .replace("seeds = 6", "seeds = 10\nlooks = [6, 10]")
        .replace("[grid]\n\"model.heads\" = [1, 2]", "train.steps = 40\n[arms.h1]\n[arms.again]\nlabel = \"again\"");
    let place = with(&same);
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("not decided after 6 pairs"), "{ran:?}");
    assert_eq!(runs_in(&place, "runs/test").len(), 20);
}

/// The best of two rates is at an end: the grid grows there for both arms, twice at most, and the choice is found again.
#[test]
fn a_grid_of_learning_rates_grows_where_the_best_is_at_its_end() {
    let tuned = HEADS
        .replace("[metric]", "[tuning]\nlr = [1e-5, 1e-4]\nseeds = [1000]\n[metric]")
        .replace("seeds = 6", "seeds = 2");
    let place = with(&tuned);
    let ran = place.run("compare test.toml").expect(0);
    assert!(
        ran.stderr.contains("the best rate of an arm was at an end of the grid: 0.001, 0.01 tried, too"),
        "{ran:?}"
    );
    let found = results(&place, "runs").tuning.unwrap();
    assert_eq!(found.extended, [0.001, 0.01]);
    assert!(found.arms.iter().all(|arm| arm.rates.len() == 4 && arm.chosen == Some(0.01)), "{found:?}");
    assert_eq!(runs_in(&place, "runs/test/tuning").len(), 8);
    let again = place.run("compare test.toml").expect(0);
    assert_eq!((again.stdout, again.stderr.matches("done before").count()), (ran.stdout, 4), "no rate is tried again");
}

/// The first pairs again, for longer, in a folder of their own.
#[test]
fn a_check_trains_the_first_pairs_for_longer() {
    let place =
        with(&HEADS.replace("seeds = 6", "seeds = 2").replace("[metric]", "[check]\nsteps = 2\npairs = 1\n[metric]"));
    place.run("compare test.toml").expect(0);
    assert_eq!(runs_in(&place, "runs/test").len(), 4);
    let longer = runs_in(&place, "runs/test/check");
    assert_eq!(longer.len(), 2);
    for name in longer {
        let summary =
            runs::Summary::read(&place.path().join("runs/test/check").join(name).join("summary.json")).unwrap();
        assert_eq!(summary.steps, 240);
    }
}

/// What was found is compared with a recorded result, and with a result that says otherwise it ends in code 3.
#[test]
fn a_result_is_held_against_a_recorded_one() {
    let place =
        with(&HEADS.replace("seeds = 6", "seeds = 2").replace("[metric]", "[check]\nsteps = 2\npairs = 2\n[metric]"));
    place.run("compare test.toml").expect(0);
    let recorded = fs::read_to_string(place.path().join("runs/test/results.json")).unwrap();
    assert!(results(&place, "runs").check.is_some());
    place.file("recorded.json", &recorded);
    let ran = place.run("compare test.toml --check recorded.json").expect(0);
    assert!(ran.stdout.contains("agrees with recorded.json: 4 recorded findings hold"), "{ran:?}");
    // From elsewhere, trained anew.
    let ran = place.run("compare test.toml --check recorded.json --out again").expect(0);
    assert!(ran.stdout.contains("agrees with recorded.json"), "{ran:?}");

    let mut other: serde_json::Value = serde_json::from_str(&recorded).unwrap();
    other["arms"][1]["description"]["mean"] = 0.999.into();
    other["arms"][1]["interval_of_mean"] = serde_json::Value::Null;
    place.file("recorded.json", other.to_string());
    let ran = place.run("compare test.toml --check recorded.json").expect(3);
    assert!(ran.stdout.contains("differs from recorded.json") && ran.stdout.contains("2 heads, mean: "), "{ran:?}");
}

/// Two arms that differ in their first weights alone: the same data in the same order, and nothing else is otherwise.
#[test]
fn arms_can_differ_in_first_weights_alone() {
    let place =
        with(&HEADS.replace("seeds = 6", "seeds = 2").replace("regime = \"split\"", "regime = \"free\"").replace(
            "[grid]\n\"model.heads\" = [1, 2]",
            "[arms.h1]\nmodel.heads = 2\n[arms.again]\nmodel.heads = 2\ntrain.weights_offset = 1000",
        ));
    place.run("compare test.toml").expect(0);
    let found = results(&place, "runs");
    let ledger = found.ledger.unwrap();
    assert_eq!((ledger.other_data.len(), ledger.other_weights.len(), ledger.other_flops.len()), (0, 2, 0));
    let keys: Vec<&str> = ledger.differences.iter().map(|difference| difference.key.as_str()).collect();
    assert_eq!(keys, ["train.weights_offset"]);
    let pairs = &found.findings.verdicts[0].found.pairs;
    assert!(pairs.iter().all(|pair| pair.arm != pair.baseline), "{pairs:?}");
}

/// What is no recorded result is said before anything is trained.
#[test]
fn a_recorded_result_is_read_first() {
    let place = with(HEADS);
    for (content, said) in [("{}", "it is no results.json of a comparison"), ("{", "EOF while parsing")] {
        place.file("recorded.json", content);
        let ran = place.run("compare test.toml --check recorded.json").expect(2);
        assert!(ran.stderr.contains("recorded.json: ") && ran.stderr.contains(said), "{ran:?}");
    }
    let ran = place.run("compare test.toml --check nowhere.json").expect(2);
    assert!(ran.stderr.contains("nowhere.json: "), "{ran:?}");
    assert!(!place.path().join("runs").exists());
}

/// A plan says what it costs; its pilot is no part of the experiment.
#[test]
fn a_pilot_says_how_many_pairs_are_needed() {
    let place = with(HEADS);
    let ran = place.run("plan test.toml").expect(0);
    assert!(ran.stdout.contains("6 pairs") && ran.stdout.contains("12 runs, "), "{ran:?}");
    assert!(!place.path().join("runs").exists());
    let ran = place.run("plan test.toml --pilot 2").expect(0);
    for said in ["from a pilot of 2 pairs", "against", "if there is no difference", "runs/test-pilot"] {
        assert!(ran.stdout.contains(said), "{said}: {ran:?}");
    }
    let pilot = Experiment::of_folder(&place.path().join("runs/test-pilot")).unwrap();
    assert_eq!(pilot.seeds, [1_000_000, 1_000_001]);
    assert_eq!(runs_in(&place, "runs/test-pilot").len(), 4);
    assert!(
        !place.path().join("runs/test-pilot/registration.json").exists() && !place.path().join("runs/test").exists()
    );
}

/// Each pair has an instance of the task and a test set of its own, which its arms share.
#[test]
fn pairs_have_instances_and_test_sets_of_their_own() {
    let place = with(&format!("vary = [\"task.table_seed\"]\n{HEADS}").replace("seeds = 6", "seeds = 2"));
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("task.table_seed of each pair is its seed, for all arms"), "{ran:?}");
    let found = results(&place, "runs");
    assert_eq!(found.ledger.as_ref().unwrap().check(found.regime.unwrap()), Ok(()));
    let data = |arm: usize, run: usize| {
        let path = place.path().join("runs/test").join(&found.arms[arm].runs[run].directory);
        let config = runs::Config::load(&path.join("config.toml"), &[]).unwrap();
        let table = config.task.task.downcast::<data::Registers>().unwrap().table_seed;
        (table, runs::Manifest::read(&path.join("manifest.json")).unwrap().fingerprints.data)
    };
    assert_eq!(data(0, 0), data(1, 0));
    assert_eq!(data(0, 1), data(1, 1));
    assert_ne!(data(0, 0).1, data(0, 1).1);
    assert_eq!((data(0, 0).0, data(0, 1).0), (0, 1));
}

/// Killed in the middle - the parent, a worker, both - or interrupted, and called again: the same result files.
#[cfg(target_os = "linux")]
#[test]
fn killed_comparisons_end_alike() {
    let longer = HEADS.replace("[grid]", "train.steps = 400\ntrain.eval_every = 40\n[grid]");
    let place = with(&longer);
    place.run("compare test.toml --jobs 2 --out quiet").expect(0);

    for who in ["parent", "worker", "both", "interrupt"] {
        let child = place.start(&format!("compare test.toml --jobs 2 --out {who}"));
        // Some runs are done, others in the middle.
        let done = |name: &str| {
            let runs = runs_below(&place.path().join(who).join("test"));
            runs.iter().filter(|run| run.path().join(name).exists()).count()
        };
        wait_until("some runs", || done("summary.json") >= 2 && done("metrics.jsonl") > done("summary.json"));
        let workers = workers_of(child.id());
        match who {
            "interrupt" => signal(&child, "INT"),
            "worker" => kill(&workers),
            "parent" => kill(&[child.id()]),
            _ => kill(&[vec![child.id()], workers.clone()].concat()),
        }
        let ran = finish(child);
        match who {
            "interrupt" => drop(ran.expect(130)),
            // The others are done; the killed ones are named, unless they had just ended by themselves.
            "worker" => assert!(ran.code == Some(0) || ran.stderr.contains("FAILED"), "{ran:?}"),
            _ => assert_eq!(ran.code, None, "{ran:?}"),
        }
        // Workers whose parent is gone stop by themselves.
        wait_until("the end of all workers", || workers.iter().all(|&worker| has_ended(worker)));
        place.run(&format!("compare test.toml --jobs 2 --out {who}")).expect(0);
        assert_alike(&place, "quiet", who);
    }
}

/// Process ids of the children of a process.
#[cfg(target_os = "linux")]
pub fn workers_of(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    children.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

#[cfg(target_os = "linux")]
fn kill(processes: &[u32]) {
    for process in processes {
        // One that has ended meanwhile is as good.
        std::process::Command::new("kill").args(["-KILL", &process.to_string()]).output().unwrap();
    }
}

/// Whether a process is gone, or dead and waiting for somebody to ask.
#[cfg(target_os = "linux")]
fn has_ended(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])))
}
