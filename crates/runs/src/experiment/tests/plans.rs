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
    insta::assert_snapshot!(message(&format!("looks = [6, 20]\n{SMALL}")), @r"");
    insta::assert_snapshot!(message(&format!("looks = [3, 10]\n{SMALL}")), @r"");
    insta::assert_snapshot!(message(&format!("looks = [6, 6, 10]\n{SMALL}")), @r"");
}

#[test]
fn only_instance_seeds_vary_and_alike() {
    insta::assert_snapshot!(message(&format!("vary = [\"task.tables\"]\n{SMALL}")), @r"");
    insta::assert_snapshot!(message(&format!("vary = [\"model.heads\"]\n{SMALL}")), @r"");
    let mqar = SMALL.replace("registers", "mqar");
    insta::assert_snapshot!(message(&format!("vary = [\"task.table_seed\"]\n{mqar}")), @r"");
    let differ = format!("regime = \"free\"\nvary = [\"task.table_seed\"]\n{SMALL}task.table_seed = 3\n");
    insta::assert_snapshot!(message(&differ), @r"");
}

#[test]
fn a_prediction_is_about_arms_and_values_that_there_are() {
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h9-l1\"\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h8-l1\"\nwhere = { layers = 2 }\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nbetter = \"h1-l1\"\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 4\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { layers = 3 }\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { layer = 1 }\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nwhere = { heads = 1 }\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nsufficient = 8\nequivalent = true\n")), @r"");
    insta::assert_snapshot!(message(&with("[predict]\nequivalent = false\n")), @r"");
    insta::assert_snapshot!(message(&with("[[predict]]\nworse = \"h8-l1\"\n")), @r"");
    insta::assert_snapshot!(message(&format!("{SMALL}[predict]\nsufficient = 8\n")), @r"");
    // Of two arms the baseline may be the better one.
    let lost = parse(&format!("{SMALL}[predict]\nbetter = \"h1\"\n")).unwrap();
    assert_eq!(lost.predict[0].claim, Claim::Better { arm: "h1".into() });
}

#[test]
fn a_check_is_longer_and_of_pairs_that_there_are() {
    insta::assert_snapshot!(message(&with("[check]\nsteps = 1\n")), @r"");
    insta::assert_snapshot!(message(&with("[check]\nsteps = 2\npairs = 11\n")), @r"");
    insta::assert_snapshot!(message(&with("[base.train]\nsteps = 90_000_000\n[check]\nsteps = 2\n")), @r"");
}

#[test]
fn failures_are_told_in_the_metric_s_unit_and_as_a_share() {
    let metric = |keys: &str| message(&SMALL.replace("margin = 0.02", &format!("margin = 0.02\n{keys}")));
    insta::assert_snapshot!(metric("failure_difference = 2"), @r"");
    insta::assert_snapshot!(metric("max_failure = 1.0"), @r"");
    insta::assert_snapshot!(metric("at = \"best\""), @r"");
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
    let refused = |seeds, set: &[&str]| {
        let error = variant(SMALL, seeds, set).unwrap_err().to_string();
        let path = error.lines().find_map(|line| line.trim().strip_prefix("--> ")).unwrap_or_default().to_string();
        error.replace(path.rsplit_once("small.toml").map_or("", |(folder, _)| folder), "")
    };
    insta::assert_snapshot!(refused(None, &["arms.h1.model.heads=2"]), @r"");
    insta::assert_snapshot!(refused(None, &["predict.better=h1"]), @r"");
    insta::assert_snapshot!(refused(None, &["metric.margins=2"]), @r"");
    insta::assert_snapshot!(refused(None, &["train.stepz=2"]), @r"");
    insta::assert_snapshot!(refused(None, &["model.heads=2"]), @r"");
    insta::assert_snapshot!(refused(Some("many"), &[]), @r"");
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
