//! `trainer import`: tables of others, from the command to the page.

use std::fs;

use report::results::Results;

use super::support::Workplace;

/// Two arms over eight pairs.
fn table() -> String {
    let rows = (0..8).map(|seed| format!("h1,{seed},0.58{seed}\nh8,{seed},0.99{seed}\n"));
    "arm,seed,accuracy\n".to_string() + &rows.collect::<String>()
}

#[test]
fn a_table_is_decided_and_has_its_page() {
    let place = Workplace::new();
    place.file("theirs.csv", table());
    let ran = place.run("import theirs.csv --margin 0.02 --threshold 0.95 -o out").expect(0);
    assert!(ran.stdout.starts_with("h8 beat h1 by 0.410 in accuracy"), "{}", ran.stdout);
    assert!(ran.stdout.contains("h8 solved it more often than h1: 8 of 8 against 0 of 8"), "{}", ran.stdout);
    let results = fs::read_to_string(place.path().join("out/results.json")).unwrap();
    let results: Results = serde_json::from_str(&results).unwrap();
    assert!(ran.stdout.starts_with(&results.answer.sentence), "{}", ran.stdout);
    let page = fs::read_to_string(place.path().join("out/report.html")).unwrap();
    assert!(page.contains("import theirs.csv --margin 0.02 --threshold 0.95 -o results"), "how to repeat it");
    // Without a folder nothing is written; without a threshold nothing is said of solving.
    let before = fs::read_dir(place.path()).unwrap().count();
    let ran = place.run("import theirs.csv --margin 0.02").expect(0);
    assert!(!ran.stdout.contains("solved it"), "{}", ran.stdout);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), before);
}

#[test]
fn what_is_wrong_with_a_table_is_a_mistake_of_its_user() {
    let place = Workplace::new();
    place.file("theirs.csv", table());
    place.file("broken.csv", table() + "h8,nine,0.9\n");
    fs::create_dir(place.path().join("own")).unwrap();
    place.file("own/experiment.toml", "");
    for (arguments, message) in [
        ("import nowhere.csv --margin 0.02", "nowhere.csv: "),
        ("import theirs.csv", "--margin"),
        ("import broken.csv --margin 0.02", "broken.csv: line 18, field `seed`: `nine` is no whole number from 0 on"),
        ("import theirs.csv --margin 0.02 --baseline h2", "--baseline: there is no arm `h2`; there are `h1` and `h8`"),
        ("import theirs.csv --margin 0.02 --looks 3", "--looks: "),
        ("import theirs.csv --margin 0.02 -o own", "own is an experiment's folder"),
    ] {
        let ran = place.run(arguments).expect(2);
        assert!(ran.stderr.contains(message), "{arguments}: {}", ran.stderr);
    }
}
