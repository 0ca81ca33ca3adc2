//! `series`, against arithmetic on lists.

use headcount_data::files::Series;
use headcount_data::metrics::{MAE, MSE, NMSE, deciding, objective};
use headcount_data::{NumberSizes, Seen, Split};
use proptest::prelude::*;

use super::{all, folder, open, refused};

fn series(window: usize, horizon: usize) -> Series {
    Series { files: "data.csv".into(), window, horizon, validation_share: 0.25, test_share: 0.25, ..Series::default() }
}

fn csv(header: &str, rows: &[Vec<f64>]) -> Vec<u8> {
    let row = |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",") + "\n";
    (header.to_string() + &rows.iter().map(row).collect::<String>()).into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_rows_scaled_by_the_training_part(
        rows in prop::collection::vec(prop::collection::vec(-100.0..100.0f64, 2), 60..150),
        window in 1..8usize,
        horizon in 1..5usize,
        header: bool,
    ) {
        let folder = folder(&[("data.csv", &csv(if header { "time , level\n" } else { "" }, &rows))]);
        let target = if header { "level" } else { "1" };
        let format = Series { targets: vec![target.into()], ..series(window, horizon) };
        let data = open(&format, folder.path()).unwrap();
        prop_assert_eq!(data.task().numbers(), Some(NumberSizes { inputs: 2, outputs: horizon }));
        prop_assert!(data.task().one_answer() && data.task().vocab() == 0 && data.task().outputs() == 0);
        let count = rows.len();
        let (test_at, validation_at) = (count - (count as f64 * 0.25).round() as usize, count - (count as f64 * 0.5).round() as usize);
        let scaled: Vec<[f64; 2]> = rows.iter().map(|row| [0, 1].map(|column| {
            let training: Vec<f64> = rows[..validation_at].iter().map(|row| row[column]).collect();
            let mean = training.iter().sum::<f64>() / training.len() as f64;
            let deviation = (training.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / training.len() as f64).sqrt();
            (row[column] - mean) / deviation
        })).collect();
        let close = |found: &[f32], expected: Vec<f64>| {
            found.len() == expected.len() && found.iter().zip(expected).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-3 * (1.0 + b.abs()))
        };
        for (split, start, end) in [(Split::Validation, validation_at, test_at), (Split::Test, test_at, count)] {
            let mut first = start;
            for (index, sample) in all(&data, split).iter().enumerate() {
                let numbers = sample.numbers.as_ref().unwrap();
                prop_assert!(close(&numbers.inputs, scaled[first..first + window].concat()));
                let next = &scaled[first + window..first + window + horizon];
                prop_assert!(close(&numbers.targets[(window - 1) * horizon..], next.iter().map(|row| row[1]).collect()));
                prop_assert!(numbers.scored.iter().enumerate().all(|(t, &scored)| scored == (t + 1 == window)));
                prop_assert_eq!(data.unit(split, index as u64), ((first - start) / (window + horizon)) as u64);
                first += horizon; // no row is asked for twice
            }
            prop_assert!(first + window + horizon > end, "rows are left over");
        }
        for sample in all(&data, Split::Train) {
            let inputs = sample.numbers.unwrap().inputs;
            let is_there = |start: usize| close(&inputs, scaled[start..start + window].concat());
            prop_assert!((0..=validation_at - window - horizon).any(is_there));
        }
        // To say the last level again.
        let baselines = data.baselines(Split::Test);
        let [mean, last] = &baselines[..] else { panic!("two baselines") };
        let starts: Vec<usize> = (test_at..=count - window - horizon).step_by(horizon).collect();
        let errors = |said: &dyn Fn(usize) -> f64| -> f64 {
            let of = |&start: &usize| (0..horizon).map(|h| (scaled[start + window + h][1] - said(start)).powi(2)).sum::<f64>();
            starts.iter().map(of).sum::<f64>() / (starts.len() * horizon) as f64
        };
        let expected = errors(&|start| scaled[start + window - 1][1]);
        prop_assert!((last.scores.number(&MSE) - expected).abs() < 1e-3 * (1.0 + expected), "{} {expected}", last.scores.number(&MSE));
        prop_assert!(mean.scores.number(&MAE).is_finite() && mean.scores.number(&NMSE) > 0.0);
        prop_assert_eq!((objective(data.task()), deciding(data.task())), (&MSE, &NMSE));
    }
}

#[test]
fn columns_go_by_name_or_number() {
    let rows: Vec<Vec<f64>> = (0..40).map(|t| vec![f64::from(t), f64::from(t % 3), f64::from(t * t)]).collect();
    let folder = folder(&[("data.csv", &csv("\u{feff}a,\"b, c\",d\n", &rows)), ("bare.csv", &csv("", &rows))]);
    let named = Series { columns: vec!["d".into(), "b, c".into()], targets: vec!["d".into()], ..series(2, 1) };
    let data = open(&named, folder.path()).unwrap();
    assert_eq!(data.task().numbers(), Some(NumberSizes { inputs: 2, outputs: 1 }));
    let numbered =
        Series { files: "bare.csv".into(), columns: vec!["2".into(), "1".into()], targets: vec!["2".into()], ..named };
    let bare = open(&numbered, folder.path()).unwrap();
    assert_eq!(all(&data, Split::Test), all(&bare, Split::Test));
    assert_eq!(data.overlap(Split::Test, 0, 5).seen, Seen::Exactly(0));
}

#[test]
fn rows_that_come_again_are_counted() {
    let rows: Vec<Vec<f64>> = (0..80).map(|t| vec![f64::from(t % 5)]).collect();
    let folder = folder(&[("data.csv", &csv("", &rows))]);
    let found = open(&series(5, 1), folder.path()).unwrap().overlap(Split::Test, 0, 10);
    assert_eq!((found.samples, found.distinct, found.seen), (15, 5, Seen::Exactly(15)));
}

#[test]
fn tables_that_are_wrong_are_refused_with_their_place() {
    let numbers = "1,2\n".repeat(40);
    let of = |text: &str, format: Series| {
        refused(&format, &folder(&[("data.csv", text.as_bytes()), ("other.csv", b"x,y\n1,2\n")]))
    };
    let more = |line: &str| format!("a,b\n{numbers}{line}\n{numbers}");
    for (line, message) in [
        ("1,NaN", "data.csv:42: `b` is `NaN`, and must be a finite number"),
        ("inf,1", "data.csv:42: `a` is `inf`, and must be a finite number"),
        ("1,", "data.csv:42: `b` is empty, and must be a finite number"),
        ("1e39,1", "data.csv:42: `a` is `1e39`, and must be a finite number"),
        ("1,two", "data.csv:42: `b` is `two`, and must be a finite number"),
        ("1,2,3", "data.csv:42: `the row` is 3 fields, and must be 2, as in the first line"),
        ("1,\u{0}", "data.csv:42: is no text: byte 164 is 0"),
    ] {
        assert_eq!(of(&more(line), series(4, 1)), message);
    }
    let column = Series { columns: vec!["c".into()], ..series(4, 1) };
    assert_eq!(of(&more("1,2"), column), "data.csv: `c` is missing; there are `a`, `b`");
    let target = Series { columns: vec!["a".into()], targets: vec!["b".into()], ..series(4, 1) };
    assert_eq!(of(&more("1,2"), target), "`b` is missing; there are `a`");
    let short = "the validation part has 20 rows, fewer than the 21 that a sample takes";
    assert_eq!(of(&more(""), series(20, 1)), short);
    assert_eq!(of("a,b\n", series(4, 1)), "data.csv: is empty");
    assert_eq!(of("", series(4, 1)), "data.csv: is empty");
    let two = Series { test_files: "other.csv".into(), ..series(4, 1) };
    assert_eq!(
        of(&more("1,2"), two),
        "other.csv: `the columns` is `x`, `y`, and must be `a`, `b`, as in the file before"
    );
}

#[test]
fn columns_tell_what_they_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "day,time,load\n2020-01-01,0,1.5\n2020-01-02,1,1.5\n2020-01-03,2,0.5\n").unwrap();
    let columns = headcount_data::files::columns(&path).unwrap();
    let told: Vec<_> = columns.iter().map(|column| (&*column.name, column.is_numeric, column.rises)).collect();
    assert_eq!(told, [("day", false, true), ("time", true, true), ("load", true, false)]);
    std::fs::write(&path, "1,2\n3,1\n").unwrap();
    let columns = headcount_data::files::columns(&path).unwrap();
    assert_eq!((&*columns[1].name, columns[0].rises, columns[1].rises), ("1", true, false));
    assert!(headcount_data::files::columns(&folder.path().join("absent.csv")).is_err());
}
