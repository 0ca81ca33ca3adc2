//! Pairs, looks, instances, predictions, checks: read, written, refused.

use super::*;

/// One head against eight on two tables' worth of layers.
const MAP: &str = "baseline = \"h1-l1\"\n[metric]\nmargin = 0.02\n[base.task]\nkind = \"registers\"\n\
                   [grid]\n\"model.heads\" = [1, 8]\n\"model.layers\" = [1, 2]\n";

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn with(text: &str) -> String {
    format!("{MAP}{text}")
}

#[test]
fn what_is_planned_goes_both_ways() {
    let text = with(
        "[[predict]]\nsufficient = 8\nwhere = { layers = 1 }\n[[predict]]\nequivalent = true\nwhere.model.layers = 2\n\
         [[predict]]\nequivalent = \"h8-l1\"\n[[predict]]\nbetter = \"h8-l2\"\n[check]\nsteps = 2\n",
    );
    let text = text.replace(
        "margin = 0.02",
        "margin = 0.02\nat = \"best_validation\"\nfailure_difference = 0.2\nmax_failure = 0.1",
    );
    let experiment = parse(&format!("looks = [6, 10]\nvary = [\"task.table_seed\"]\n{text}")).unwrap();
    assert_eq!(experiment.looks, [6, 10]);
    assert_eq!(experiment.vary, ["task.table_seed"]);
    assert_eq!(experiment.check, Some(Check { steps: 2, pairs: 3 }));
    assert_eq!((experiment.metric.at, experiment.metric.max_failure), (ReadAt::BestValidation, Some(0.1)));
    let level = |value: &str| BTreeMap::from([("model.layers".to_string(), value.to_string())]);
    let expected = [
        (Claim::Sufficient { value: 8.0 }, level("1")),
        (Claim::Equivalent { arm: None }, level("2")),
        (Claim::Equivalent { arm: Some("h8-l1".into()) }, BTreeMap::new()),
        (Claim::Better { arm: "h8-l2".into() }, BTreeMap::new()),
    ];
    assert_eq!(experiment.predict, expected.map(|(claim, level)| Predicted { claim, level }));
    let about: Vec<_> = experiment.arms.iter().map(|arm| experiment.predict[0].is_about(&arm.config)).collect();
    assert_eq!(about, [true, false, true, false]);
    let alone = experiment.to_toml();
    assert_eq!(Experiment::parse(&alone, Path::new("alone/small.toml")).unwrap(), experiment, "{alone}");
}

#[test]
fn a_pair_has_an_instance_of_its_own_and_so_does_a_tuning_run() {
    let text = SMALL.replace("[metric]", "[tuning]\nlr = [1e-3]\nseeds = [1000]\n[metric]");
    let experiment = parse(&format!("vary = [\"task.table_seed\"]\n{text}")).unwrap();
    let table = |run: &PlannedRun| {
        let registers = run.config.task.task.downcast::<data::Registers>().unwrap();
        (run.config.seed, registers.table_seed)
    };
    let runs = experiment.runs(Path::new("runs"));
    assert_eq!(runs.iter().take(4).map(table).collect::<Vec<_>>(), [(0, 0), (0, 0), (1, 1), (1, 1)]);
    let tuning = experiment.tuning_runs(Path::new("runs"));
    assert!(tuning.iter().all(|run| table(run) == (1000, 1000)));

    // Other seeds in the same pair: the same instance.
    let offset = format!("regime = \"free\"\nvary = [\"task.table_seed\"]\n{SMALL}seed_offset = 1000\n");
    let runs = parse(&offset).unwrap().runs(Path::new("runs"));
    assert_eq!(runs.iter().take(4).map(table).collect::<Vec<_>>(), [(0, 0), (1000, 0), (1, 1), (1001, 1)]);
}

#[test]
fn a_check_repeats_the_first_pairs_for_longer() {
    let experiment = parse(&format!("{SMALL}[check]\nsteps = 4\npairs = 2\n")).unwrap();
    let runs = experiment.check_runs_in(Path::new("runs/small"));
    let told: Vec<_> = runs.iter().map(|run| (run.arm.as_str(), run.pair, run.config.train.steps)).collect();
    assert_eq!(told, [("h1", 0, 3200), ("h8", 0, 3200), ("h1", 1, 3200), ("h8", 1, 3200)]);
    assert!(runs.iter().all(|run| run.directory.path().starts_with("runs/small/check")));
    assert!(parse(SMALL).unwrap().check_runs_in(Path::new("runs/small")).is_empty());
}

#[test]
fn looks_rise_to_all_pairs() {
    insta::assert_snapshot!(message(&format!("looks = [6, 20]\n{SMALL}")), @r"
    `looks`: the last look is at all pairs, and there are 10: it can't be at 20
     --> experiments/small.toml:1:1
      |
    1 | looks = [6, 20]
      | ^^^^^
    ");
    insta::assert_snapshot!(message(&format!("looks = [3, 10]\n{SMALL}")), @r"
    `looks`: 3 pairs decide nothing: the first look comes after 6 or more
     --> experiments/small.toml:1:1
      |
    1 | looks = [3, 10]
      | ^^^^^
    ");
    insta::assert_snapshot!(message(&format!("looks = [6, 6, 10]\n{SMALL}")), @r"
    `looks`: each look comes after more pairs than the one before
     --> experiments/small.toml:1:1
      |
    1 | looks = [6, 6, 10]
      | ^^^^^
    ");
}

#[test]
fn only_instance_seeds_vary_and_alike() {
    insta::assert_snapshot!(message(&format!("vary = [\"task.tables\"]\n{SMALL}")), @r#"
    `vary = "task.tables"`: unknown instance seed `task.tables`
     --> experiments/small.toml:1:1
      |
    1 | vary = ["task.tables"]
      | ^^^^
      = help: did you mean `task.table_seed`?
    "#);
    insta::assert_snapshot!(message(&format!("vary = [\"model.heads\"]\n{SMALL}")), @r#"
    `vary = "model.heads"`: unknown instance seed `model.heads`
     --> experiments/small.toml:1:1
      |
    1 | vary = ["model.heads"]
      | ^^^^
      = help: the task `registers` has `task.table_seed`
    "#);
    let mqar = SMALL.replace("registers", "mqar");
    insta::assert_snapshot!(message(&format!("vary = [\"task.table_seed\"]\n{mqar}")), @r#"
    `vary = "task.table_seed"`: unknown instance seed `task.table_seed`
     --> experiments/small.toml:1:1
      |
    1 | vary = ["task.table_seed"]
      | ^^^^
      = help: the task `mqar` has no instances to vary
    "#);
    let differ = format!("regime = \"free\"\nvary = [\"task.table_seed\"]\n{SMALL}task.table_seed = 3\n");
    insta::assert_snapshot!(message(&differ), @r#"
    `vary`: arms `h1` and `h8` differ in `task.table_seed`: it varies alike
     --> experiments/small.toml:2:1
      |
    2 | vary = ["task.table_seed"]
      | ^^^^
    "#);
}

#[test]
fn a_prediction_is_about_arms_and_values_that_there_are() {
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h9-l1\"\n")), @r#"
    `predict.better = "h9-l1"`: unknown arm `h9-l1`
      --> experiments/small.toml:10:1
       |
    10 | better = "h9-l1"
       | ^^^^^^
       = help: did you mean `h1-l1`?
    "#);
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h8-l1\"\nwhere = { layers = 2 }\n")), @r#"
    `predict.better`: the arm `h8-l1` is not where the prediction says
      --> experiments/small.toml:10:1
       |
    10 | better = "h8-l1"
       | ^^^^^^
    "#);
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h1-l1\"\n")), @r#"
    `predict.better`: `h1-l1` is the baseline, and there are several others: an arm is named that is better than it
      --> experiments/small.toml:10:1
       |
    10 | better = "h1-l1"
       | ^^^^^^
    "#);
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 4\n")), @r"
    `predict.sufficient`: no arm has `model.heads = 4`; tried are `1` and `8`
      --> experiments/small.toml:10:1
       |
    10 | sufficient = 4
       | ^^^^^^^^^^
    ");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { layers = 3 }\n")), @r"
    `predict.where.layers`: no arm has `model.layers = 3`
      --> experiments/small.toml:11:11
       |
    11 | where = { layers = 3 }
       |           ^^^^^^
    ");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { layer = 1 }\n")), @r"
    unknown key `predict.where.layer`
      --> experiments/small.toml:11:11
       |
    11 | where = { layer = 1 }
       |           ^^^^^
       = help: did you mean `layers`?
    ");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { heads = 1 }\n")), @r"
    `predict.where.heads`: `model.heads` is swept: a prediction speaks of all of its values
      --> experiments/small.toml:11:11
       |
    11 | where = { heads = 1 }
       |           ^^^^^
    ");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nequivalent = true\n")), @r"
    `predict.sufficient`: a prediction says one thing: `better`, `equivalent` or `sufficient`; several are `[[predict]]` each
      --> experiments/small.toml:10:1
       |
    10 | sufficient = 8
       | ^^^^^^^^^^
    ");
    insta::assert_snapshot!(message(&with("[predict]\nequivalent = false\n")), @r"
    `predict.equivalent`: it is `true`, of all arms, or an arm's name
      --> experiments/small.toml:10:1
       |
    10 | equivalent = false
       | ^^^^^^^^^^
    ");
    insta::assert_snapshot!(message(&with("[[predict]]\nworse = \"h8-l1\"\n")), @r#"
    unknown key `predict.worse`
      --> experiments/small.toml:10:1
       |
    10 | worse = "h8-l1"
       | ^^^^^
       = help: valid are `better`, `equivalent`, `sufficient` and `where`
    "#);
    insta::assert_snapshot!(message(&format!("{SMALL}[predict]\nsufficient = 8\n")), @r"
    `predict.sufficient`: there is no sweep whose smallest sufficient value it could be: set `[grid]`, or `sweep`
      --> experiments/small.toml:10:1
       |
    10 | sufficient = 8
       | ^^^^^^^^^^
    ");
    // Of two arms the baseline may be the better one.
    let lost = parse(&format!("{SMALL}[predict]\nbetter = \"h1\"\n")).unwrap();
    assert_eq!(lost.predict[0].claim, Claim::Better { arm: "h1".into() });
}

#[test]
fn a_check_is_longer_and_of_pairs_that_there_are() {
    insta::assert_snapshot!(message(&with("[check]\nsteps = 1\n")), @r"
    `check.steps`: steps = 1: how many times as long it is, 2 to 64
      --> experiments/small.toml:10:1
       |
    10 | steps = 1
       | ^^^^^
    ");
    insta::assert_snapshot!(message(&with("[check]\nsteps = 2\npairs = 11\n")), @r"
    `check.pairs`: 11 pairs: 1 to the 10 reported
      --> experiments/small.toml:11:1
       |
    11 | pairs = 11
       | ^^^^^
    ");
    insta::assert_snapshot!(message(&with("[base.train]\nsteps = 90_000_000\n[check]\nsteps = 2\n")), @r"
    `check.steps`: `h1-l1`: `train.steps`: steps = 180000000 is out of range: 0 to 100000000
      --> experiments/small.toml:12:1
       |
    12 | steps = 2
       | ^^^^^
    ");
}

#[test]
fn failures_are_told_in_the_metric_s_unit_and_as_a_share() {
    let metric = |keys: &str| message(&SMALL.replace("margin = 0.02", &format!("margin = 0.02\n{keys}")));
    insta::assert_snapshot!(metric("failure_difference = 2"), @r"
    `metric.failure_difference`: failure_difference = 2 is out of range: above 0, at most 1
     --> experiments/small.toml:4:1
      |
    4 | failure_difference = 2
      | ^^^^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(metric("max_failure = 1.0"), @r"
    `metric.max_failure`: max_failure = 1 is out of range: a share of pairs, above 0 and below 1
     --> experiments/small.toml:4:1
      |
    4 | max_failure = 1.0
      | ^^^^^^^^^^^
    ");
    insta::assert_snapshot!(metric("at = \"best\""), @r#"
    `metric.at = "best"`: unknown at `best`
     --> experiments/small.toml:4:1
      |
    4 | at = "best"
      | ^^
      = help: did you mean `best_validation`?
    "#);
}

/// [`SMALL`] as a file, with what the command line has otherwise.
fn variant(text: &str, seeds: Option<&str>, set: &[&str]) -> Result<Experiment, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.toml");
    fs::write(&path, text).unwrap();
    let set = set.iter().map(|set| set.to_string()).collect();
    Experiment::load_variant(&path, &Variant { seeds: seeds.map(str::to_string), set })
}

#[test]
fn a_variant_is_an_experiment_of_its_own() {
    let same = variant(SMALL, None, &[]).unwrap();
    assert_eq!((same.name.as_str(), same.seeds.len()), ("small", 10));
    let more =
        variant(SMALL, Some("20"), &["train.steps=400", "metric.margin = 0.05", "model.positions=\"rope\""]).unwrap();
    assert_eq!(more.name, "small+train.steps=400+metric.margin=0.05+model.positions=rope+seeds=20");
    assert_eq!((more.seeds.len(), more.metric.margin, &more.why_seeds), (20, 0.05, &None));
    assert!(more.arms.iter().all(|arm| arm.config.train.steps == 400));
    assert_eq!(Experiment::parse(&more.to_toml(), Path::new("alone.toml")).unwrap(), more);
    // Few seeds are the caller's wish, and that is said.
    let few = variant(SMALL, Some("3,5,8"), &[]).unwrap();
    assert_eq!((few.name.as_str(), &few.seeds[..]), ("small+seeds=3,5,8", &[3, 5, 8][..]));
    assert_eq!(few.why_seeds.as_deref(), Some("as many as the command line says"));
    // A name of any length stays one.
    let long = variant(SMALL, None, &["train.steps=400"; 9]).unwrap();
    assert!(long.name.len() <= 100 && long.name.starts_with("small+train.steps=400"), "{}", long.name);
    // Looks go as far as there are pairs.
    let looks = format!("seeds = 20\nlooks = [6, 10, 20]\n{SMALL}");
    assert_eq!(variant(&looks, Some("15"), &[]).unwrap().looks, [6, 10, 15]);
    assert_eq!(variant(&looks, Some("40"), &[]).unwrap().looks, [6, 10, 20, 40]);
    assert_eq!(variant(&looks, Some("3"), &[]).unwrap().looks, Vec::<usize>::new());
}

#[test]
fn what_can_t_be_set_is_told_where_it_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.toml");
    fs::write(&path, SMALL).unwrap();
    let refused = |seeds: Option<&str>, set: &[&str]| {
        let set = set.iter().map(|set| set.to_string()).collect();
        let variant = Variant { seeds: seeds.map(str::to_string), set };
        let error = Experiment::load_variant(&path, &variant).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    insta::assert_snapshot!(refused(None, &["arms.h1.model.heads=2"]), @r"
    `arms.h1.model.heads`: arms are the file's; `model.heads=4` and other keys of a config are set in all of them
     --> --set arms.h1.model.heads=2 (over small.toml)
    ");
    insta::assert_snapshot!(refused(None, &["predict.better=h1"]), @r"
    `predict.better`: a prediction is made in the file, before the runs
     --> --set predict.better=h1 (over small.toml)
    ");
    insta::assert_snapshot!(refused(None, &["metric.margins=2"]), @r"
    unknown key `metric.margins`
     --> --set metric.margins=2 (over small.toml)
      = help: did you mean `metric.margin`?
    ");
    insta::assert_snapshot!(refused(None, &["train.stepz=2"]), @r"
    unknown key `train.stepz`
     --> --set train.stepz=2 (over small.toml)
      = help: did you mean `train.steps`?
    ");
    insta::assert_snapshot!(refused(None, &["model.heads=2"]), @r"
    `model.heads`: `model.heads=2` can't be set in all arms: `h1` has a value of its own there
     --> small.toml:6:7
      |
    6 | [arms.h1]
      |       ^^
    ");
    insta::assert_snapshot!(refused(Some("many"), &[]), @r"
    `seeds = many`: expected a number of seeds or a list of them, each 0 or more, found text
     --> --set seeds=many (over small.toml)
    ");
}

#[test]
fn a_grid_is_extended_by_its_own_ratio_twice_at_most() {
    let text = SMALL.replace("[metric]", "[tuning]\nlr = [1e-3, 3e-3, 1e-2]\nseeds = [1000]\n[metric]");
    let experiment = parse(&text).unwrap();
    let above = experiment.extended(&[1e-3, 3e-3, 1e-2], GridEnd::Above).unwrap();
    assert_eq!(above, [1e-3, 3e-3, 1e-2, 3.33e-2]);
    let twice = experiment.extended(&above, GridEnd::Above).unwrap();
    assert_eq!(twice, [1e-3, 3e-3, 1e-2, 3.33e-2, 0.111]);
    assert_eq!(experiment.extended(&twice, GridEnd::Above), None);
    assert_eq!(experiment.extended(&twice, GridEnd::Below).unwrap()[0], 3.33e-4);
    assert_eq!(experiment.extended(&[1e-3], GridEnd::Below), None);
    // No arm could train at a rate above 1000.
    let wild = parse(&text.replace("1e-3, 3e-3, 1e-2", "100, 1000")).unwrap();
    assert_eq!(wild.extended(&[100.0, 1000.0], GridEnd::Above), None);
    assert_eq!(wild.extended(&[100.0, 1000.0], GridEnd::Below).unwrap(), [10.0, 100.0, 1000.0]);
    let runs = experiment.tuning_runs_at(Path::new("runs/small"), &above);
    assert_eq!((runs.len(), runs[6].config.name.as_str()), (8, "h1-lr0.0333"));
}
