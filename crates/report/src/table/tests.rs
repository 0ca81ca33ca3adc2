use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use statistics::{Statement, sweep::SweepAnswer};

use super::*;
use crate::{figures, results::Decision, tables, terminal};

/// One line a run: eight pairs of arms that differ clearly.
fn clear() -> String {
    let mut text = "arm,seed,accuracy\n".to_string();
    for seed in 0..8 {
        text += &format!(
            "h1,{seed},{}\nh8,{seed},{}\n",
            0.58 + 0.003 * f64::from(seed % 3),
            0.99 - 0.002 * f64::from(seed % 2)
        );
    }
    text
}

fn options() -> Options {
    Options { command: "trainer import heads.csv --margin 0.02".into(), ..Options::new("heads", 0.02) }
}

fn results(text: &str, options: &Options) -> Results {
    Table::read(text, options).unwrap().results().unwrap()
}

#[test]
fn a_table_gets_the_same_verdict_as_runs() {
    let found = results(&clear(), &Options { threshold: Some(0.95), ..options() });
    assert_eq!(found.findings.verdicts[0].found.statement, Statement::Better);
    assert_eq!(found.decision, Decision::Decided { pairs: 8 });
    insta::assert_snapshot!(terminal::answer(&found), @r"
    h8 beat h1 by 0.406 in accuracy, 0.989 against 0.583 (95 % interval 0.404 to 0.409; 8 pairs); pairs like these do not exclude another outcome in up to 31 % of runs.
      h8 solved it more often than h1: 8 of 8 against 0 of 8, p = 0.008
      correlation of the pairs: -0.16

    heads

    accuracy       runs    mean      sd     IQM  solved
    h1 (baseline)     8  0.5826  0.0025  0.5822  0 of 8
    h8                8  0.9890  0.0011  0.9890  8 of 8
    ");
    let read: Results = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
    assert_eq!(read, found);
    assert_eq!(tables::runs(&found).lines().count(), 17);
}

#[test]
fn a_sweep_reads_its_numbers_from_names_or_a_column() {
    let mut text = "Method;Pair;Value;Test loss\n".to_string();
    let losses = [("one", 1, 1.2), ("two", 2, 0.7), ("four", 4, 0.1), ("eight", 8, 0.1)];
    for pair in 0..10 {
        for (name, heads, loss) in losses {
            text += &format!("{name};{pair};{heads};{}\n", loss + 0.001 * f64::from((pair * 7 + heads) % 5));
        }
    }
    let sweep = Options { sweep: Some("head".into()), ..options() };
    let found = results(&text, &sweep);
    assert_eq!(found.findings.sweeps[0].found.answer, SweepAnswer::Number { value: 4.0 });
    assert!(
        found.answer.sentence.starts_with("This task needs 4 heads: in Test loss, 2 reach 0.70"),
        "{}",
        found.answer.sentence
    );
    let named = text
        .replace(";Value;", ";")
        .replace("one;", "h1;")
        .replace("two;", "h2;")
        .replace("four;", "h4;")
        .replace("eight;", "h8;");
    let named: String = named
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(';').collect();
            if fields.len() == 4 { format!("{};{};{}\n", fields[0], fields[1], fields[3]) } else { format!("{line}\n") }
        })
        .collect();
    assert_eq!(results(&named, &sweep).findings.sweeps[0].found.answer, SweepAnswer::Number { value: 4.0 });
    let error = Table::read(&clear().replace("h8", "h8 of 16"), &sweep).unwrap_err().to_string();
    assert_eq!(error, "--sweep: the name `h8 of 16` has several numbers in it: add a column `value`");
}

#[test]
fn curves_end_in_the_deciding_value() {
    let mut text = "step,arm,seed,accuracy\n".to_string();
    for seed in 0..6 {
        for step in [200, 100, 0] {
            text += &format!("{step},a,{seed},{}\n", 0.1 + 0.001 * f64::from(step + seed));
            text += &format!(
                "{step},b,{seed},{}\n",
                if step == 200 && seed == 3 { "diverged".into() } else { (0.004 * f64::from(step)).to_string() }
            );
        }
    }
    let found = results(&text, &Options { threshold: Some(0.25), ..options() });
    assert_eq!(found.arms[0].runs[1].value, Some(0.1 + 0.001 * 201.0));
    assert_eq!((found.arms[1].diverged, found.arms[1].steps), (1, 200));
    assert_eq!(found.arms[0].steps_to_threshold.as_ref().unwrap().reached, 6);
    let curve = &found.arms[1].curves[0];
    assert_eq!(
        curve.points.iter().map(|point| (point.step, point.diverged)).collect::<Vec<_>>(),
        [(0, 0), (100, 0), (200, 1)]
    );
    let names: Vec<String> = figures::all(&found).into_iter().map(|figure| figure.name).collect();
    assert!(names.contains(&"value".to_string()) && names.contains(&"differences".to_string()), "{names:?}");
    let page = crate::page::of_experiment(&found, None, &Table::read(&text, &options()).unwrap().context(), None, &[]);
    assert!(page.contains("trainer import heads.csv"));
}

#[test]
fn diverged_runs_enter_with_the_penalty() {
    let text = clear().replace("h8,2,0.99", "h8,2,NaN").replace("h8,4,0.99", "h8,4,inf");
    let found = results(&text, &options());
    assert_eq!((found.arms[1].diverged, found.findings.verdicts[0].found.pairs[2].arm), (2, 0.0));
    let loss = text.replace("accuracy", "loss");
    let error = Table::read(&loss, &options()).unwrap_err().to_string();
    assert!(error.starts_with("--penalty: runs diverged"), "{error}");
    let found = results(&loss, &Options { penalty: Some(2.0), ..options() });
    assert_eq!((found.metric.scale.direction, found.metric.scale.penalty), (Direction::LowerIsBetter, 2.0));
}

#[test]
fn a_pair_that_is_not_complete_is_named_and_left_out() {
    let text = clear().replace("h8,5,0.988\n", "") + "h1,9,0.5\nh8,8,\n";
    let found = results(&text, &options());
    assert_eq!(found.seeds, [0, 1, 2, 3, 4, 6, 7]);
    let problems: Vec<(&str, u64)> =
        found.problems.iter().map(|problem| (problem.arm.as_str(), problem.pair)).collect();
    assert_eq!(problems, [("h8", 5), ("h8", 9), ("h1", 8), ("h8", 8)]);
}

#[test]
fn looks_are_kept() {
    let with = |looks: Vec<usize>| results(&clear(), &Options { looks, ..options() });
    assert_eq!(with(vec![6, 20]).decision, Decision::Decided { pairs: 6 });
    assert_eq!(with(vec![10, 20]).decision, Decision::NotBefore { pairs: 10, complete: 8 });
}

/// Every mistake is answered with the line and the field, or the option.
#[test]
fn mistakes_are_named() {
    let error = |text: &str, options: &Options| Table::read(text, options).unwrap_err().to_string();
    let plain = |text: &str| error(text, &options());
    assert_eq!(
        plain("seed,accuracy\n0,1\n"),
        "there is no column `arm` or `model` or `method` or `setting`; the header has seed, accuracy"
    );
    assert_eq!(plain(""), "there is no column `arm` or `model` or `method` or `setting`; the header has ");
    assert_eq!(plain("arm,seed\n"), "there is no column of values; the header has arm, seed");
    assert_eq!(plain("arm,seed,accuracy\na,0,0.5,7\n"), "line 2: 4 fields where the header has 3");
    assert_eq!(
        plain("arm,seed,accuracy\na,0,0.5\nb,zero,0.5\n"),
        "line 3, field `seed`: `zero` is no whole number from 0 on"
    );
    assert_eq!(
        plain("arm,seed,accuracy\na,0,high\n"),
        "line 2, field `accuracy`: `high` is no number, `diverged` or empty"
    );
    assert_eq!(
        plain("arm,seed,accuracy\n,0,1\n"),
        "line 2, field `arm`: `` is no name of an arm (1 to 100 characters)"
    );
    assert_eq!(plain("arm,seed,accuracy\na,0,1\na,0,1\n"), "line 3: pair 0 of arm `a` was there before");
    assert_eq!(plain("arm,seed,accuracy\na,0,1\n"), "1 arm in the table: a comparison needs two");
    assert_eq!(
        plain("arm,seed,accuracy\na,0,1\nb,1,1\n"),
        "no pair has a run of every arm: the same seeds must be in all of them"
    );
    assert_eq!(
        plain("arm,seed,accuracy,loss\na,0,1,1\n"),
        "the metric may be any of the columns accuracy, loss: choose one with --metric"
    );
    assert_eq!(
        plain("arm,seed,quality\na,0,1\nb,0,1\n"),
        "--higher-is-better or --lower-is-better: which way `quality` improves, its name does not say"
    );
    assert_eq!(
        error(&clear(), &Options { metric: Some("speed".into()), ..options() }),
        "there is no column `speed`; the header has arm, seed, accuracy"
    );
    assert_eq!(
        error(&clear(), &Options { baseline: Some("h2".into()), ..options() }),
        "--baseline: there is no arm `h2`; there are `h1` and `h8`"
    );
    assert_eq!(
        error(&clear(), &Options { looks: vec![3], ..options() }),
        "--looks: looks at [3] pairs: must rise from at least 6"
    );
    assert_eq!(error(&clear(), &Options { margin: -1.0, ..options() }), "--margin: -1 is out of range: 0 or more");
    // Per cent where a share is meant would be beyond the best: it is taken as a metric without a best value.
    assert_eq!(
        results(&clear().replace("0.", "9."), &Options { penalty: Some(0.0), ..options() }).metric.scale.best,
        None
    );
}

#[test]
fn sizes_are_bounded() {
    let many = |lines: usize, line: fn(usize) -> String| {
        "arm,seed,accuracy\n".to_string() + &(0..lines).map(line).collect::<String>()
    };
    let error = |text: &str| Table::read(text, &options()).unwrap_err().to_string();
    assert_eq!(error(&many(65, |arm| format!("a{arm},0,1\n"))), "arms: 65 are too many, at most 64 are read");
    assert_eq!(
        error(&many(10_001, |pair| format!("a,{pair},1\n"))),
        "pairs: 10001 are too many, at most 10000 are read"
    );
    assert!(error(&" ".repeat(crate::limits::TABLE_BYTES + 1)).starts_with("bytes: "));
    assert!(error(&format!("arm,seed,accuracy\n{},0,1\n", "ä".repeat(101))).contains("no name of an arm"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    /// Whatever bytes come: an answer or an error, never a panic.
    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        drop(Table::read(&text, &options()));
        drop(Table::read(&format!("arm,seed,accuracy\n{text}"), &options()));
    }

    /// Tables with odd values: what is read comes to results that are finite and can be written and read again.
    #[test]
    fn any_table_comes_to_results_or_is_refused(
        rows in prop::collection::vec((0_u8..5, 0_u64..9, "-?[0-9]{1,3}(\\.[0-9]{1,3})?(e[0-9]{1,3})?|nan|inf|diverged||na"), 1..60),
        margin in 0.0..1.0,
        sweep in any::<bool>(),
    ) {
        let lines = rows.iter().map(|(arm, pair, value)| format!("h{arm},{pair},{value}\n"));
        let text = "arm,seed,loss\n".to_string() + &lines.collect::<String>();
        let options = Options { margin, penalty: Some(10.0), sweep: sweep.then(|| "head".into()), ..options() };
        if let Ok(table) = Table::read(&text, &options) {
            let report = table.report().unwrap();
            let json = serde_json::to_string(&report.results).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Results>(&json).unwrap(), &report.results);
            prop_assert!(!terminal::answer(&report.results).contains("NaN"));
            for figure in figures::all(&report.results) {
                prop_assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.name);
            }
        }
    }
}
