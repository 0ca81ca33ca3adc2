//! What stood before the runs: looks, registration, predictions, a check.

use super::*;

const LOOKS: &str = "seeds = 20\nlooks = [6, 10, 15, 20]";

/// An experiment with looks of which so many pairs have run.
fn looked_at(pairs: u64, kind: impl Fn(&runs::PlannedRun) -> Kind) -> Made {
    make("looks", LOOKS, SPLIT, |run| if run.pair < pairs { kind(run) } else { Kind::Absent })
}

#[test]
fn the_first_look_that_decides_ends_an_experiment() {
    let clear = |run: &runs::PlannedRun| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } };
    let results = report(&looked_at(5, clear)).results;
    assert_eq!(results.decision, Decision::NotBefore { pairs: 6, complete: 5 });
    nothing_is_told(&results);
    for pairs in [6, 7, 20] {
        let results = report(&looked_at(pairs, clear)).results;
        assert_eq!((results.decision, first(&results).pairs.len()), (Decision::Decided { pairs: 6 }, 6));
        // Each look has a quarter of 5 %.
        assert_eq!(first(&results).rules.alpha, 0.0125);
        assert_eq!(results.exploratory.as_ref().map(|beyond| beyond.pairs), (pairs > 6).then_some(pairs as usize));
    }

    let alike = |_: &runs::PlannedRun| Kind::Learns { at: 0.99 };
    for (pairs, expected) in [
        (9, Decision::Open { pairs: 6, next: Some(10) }),
        (14, Decision::Open { pairs: 10, next: Some(15) }),
        (15, Decision::Decided { pairs: 15 }),
    ] {
        let results = report(&looked_at(pairs, alike)).results;
        assert_eq!(results.decision, expected);
        // Pairs between two looks change nothing, and are not shown.
        assert!(results.exploratory.is_none());
    }
    let text = terminal::summary(&report(&looked_at(9, alike)).results, Path::new("x"));
    assert!(text.contains("the next look is at 10 pairs"), "{text}");
}

/// A folder whose margin is changed after the runs, and one with more pairs than were planned.
#[test]
fn changes_after_the_runs_are_said_beside_the_verdict() {
    let kind = |run: &runs::PlannedRun| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } };
    let made = make("changed", "", SPLIT, kind);
    runs::Registration::of(&made.experiment, 0, 20).write(&made.folder).unwrap();
    let results = report(&made).results;
    assert!(results.warnings().is_empty());
    let said = results.registered.as_ref().unwrap().words();
    assert!(said.starts_with("registered on 20") && said.contains("before the first run"), "{said}");

    let mut changed = made.experiment.clone();
    changed.metric.margin = 0.4;
    let of = |experiment: &Experiment| {
        let runs = TunedExperiment::read(experiment.clone(), &made.folder).read_runs();
        ExperimentReport::new(&runs, false).unwrap().results
    };
    // Even where nobody has recorded it.
    let expected = "changed, when 20 of 20 runs had ended: metric.margin: 0.02, now 0.4";
    assert_eq!(of(&changed).warnings(), [expected]);
    runs::Registration::keep(&made.folder, &changed).unwrap();
    let results = of(&changed);
    let [warning] = &results.warnings()[..] else { panic!("{results:?}") };
    assert!(warning.starts_with("changed on 20") && warning.contains(", when 20 of 20 runs had ended:"), "{warning}");
    let text = terminal::summary(&results, Path::new("x"));
    let head = text.split("\n\n").next().unwrap();
    assert!(head.ends_with(&format!("\n{}{warning}", terminal::WARNING)), "beside the verdict: {text}");

    fs::write(made.folder.join("registration.json"), "{}").unwrap();
    assert!(of(&changed).warnings()[0].starts_with("the registration can't be read: "));
}

#[test]
fn pairs_beyond_the_plan_are_exploratory() {
    let kind = |run: &runs::PlannedRun| Kind::Learns { at: if run.pair < 10 { 0.8 } else { 0.99 } };
    let made = make("beyond", "seeds = 20", SPLIT, kind);
    let mut planned = made.experiment.clone();
    planned.seeds.truncate(10);
    runs::Registration::of(&planned, 0, 20).write(&made.folder).unwrap();
    let results = report(&made).results;
    assert_eq!(first(&results).pairs.len(), 10, "the registered verdict stands");
    let beyond = results.exploratory.as_ref().unwrap();
    assert_eq!((beyond.pairs, beyond.findings.verdicts[0].found.pairs.len()), (20, 20));
    let text = terminal::summary(&results, Path::new("x"));
    assert!(text.contains("beyond the plan, with 20 pairs (exploratory: it decides nothing):"), "{text}");
    assert!(text.contains("seeds: 10, 0 to 9, now 20, 0 to 19"), "{text}");
}

#[test]
fn predictions_end_held_failed_or_undecided() {
    let kind = |run: &runs::PlannedRun| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } };
    for (prediction, fate) in [
        ("better = \"h8\"", Fate::Held),
        ("better = \"h1\"", Fate::Failed),
        ("equivalent = true", Fate::Failed),
        ("equivalent = \"h8\"", Fate::Failed),
    ] {
        let results = report(&make("predicted", &format!("[predict]\n{prediction}"), SPLIT, kind)).results;
        assert_eq!(results.predictions[0].fate, fate, "{prediction}");
        let text = terminal::summary(&results, Path::new("x"));
        assert!(text.contains(&format!("prediction {}: {prediction}", fate.words())), "{text}");
    }
    let grid = "[grid]\n\"model.heads\" = [1, 2, 4, 8, 16]\n";
    for (prediction, fate) in [("sufficient = 4", Fate::Held), ("sufficient = 8", Fate::Failed)] {
        let results =
            report(&make("sweep", &format!("baseline = \"h1\"\n[predict]\n{prediction}"), grid, sweep)).results;
        assert_eq!(results.predictions[0].fate, fate, "{prediction}");
    }
    let waits = report(&make("waits", "[predict]\nbetter = \"h8\"", SPLIT, |run| match run.pair {
        0 => Kind::Absent,
        _ => kind(run),
    }));
    assert_eq!(waits.results.predictions[0].fate, Fate::Undecided);
}

#[test]
fn longer_training_is_held_against_the_answer() {
    let checked = |name: &str, longer: fn(&str) -> f64| {
        let kind = |run: &runs::PlannedRun| Kind::Learns { at: if run.arm == "h8" { 0.99 } else { 0.58 } };
        let made = make(name, "[check]\nsteps = 2", SPLIT, kind);
        assert!(report(&made).results.check.is_none());
        for run in made.experiment.check_runs_in(&made.folder) {
            synthetic::write(&run, Kind::Learns { at: longer(&run.arm) });
        }
        report(&made).results
    };
    let holds = checked("holds", |arm| if arm == "h8" { 0.99 } else { 0.7 });
    let check = holds.check.as_ref().unwrap();
    assert_eq!((check.sentence.as_str(), check.pairs), ("The answer holds with twice the steps (3 pairs)", 3));
    let moves = checked("moves", |_| 0.99);
    let check = moves.check.as_ref().unwrap();
    assert_eq!(check.holds, Some(false));
    assert!(check.sentence.starts_with("The answer moves: 8 heads reach 0.9"), "{}", check.sentence);
    assert!(terminal::summary(&moves, Path::new("x")).contains("check: The answer moves"));
}
