//! Reading tasks from files, and what is refused.

use headcount_data::{
    DRetrieval, Farthest, Fill, Induction, Mqar, Registers, Reverse, SelectiveCopy, Sets, Sort, Split, Task, TaskError,
};

use crate::{all_tasks, mqar, registers};

fn from_kind(kind: &str, text: &str) -> Result<Task, String> {
    let deserializer = toml::de::Deserializer::parse(text).map_err(|error| error.to_string())?;
    Task::from_kind(kind, deserializer).ok_or("no such kind")?.map_err(|error| error.to_string())
}

#[test]
fn defaults_stand_for_what_is_left_out() {
    assert_eq!(from_kind("registers", ""), Ok(Task::new(Registers::default())));
    assert_eq!(from_kind("registers", "values = 3"), Ok(Task::new(registers(4, 3, 32))));
    let zero = Mqar { power_a: 0.5, fill: Fill::Zero, ..Mqar::default() };
    assert_eq!(from_kind("mqar", "fill = 'zero'\npower_a = 0.5"), Ok(Task::new(zero)));
    let short = Reverse::new(16, 4, 5);
    assert_eq!(from_kind("reverse", "max_len = 5"), Ok(Task::new(short)));
    assert_eq!(from_kind("sort", ""), Ok(Task::new(Sort::new(16, 4, 12))));
    assert!(all_tasks().iter().all(|task| task.check().is_ok()));
}

#[test]
fn a_task_written_and_read_is_the_same() {
    for task in all_tasks() {
        let text = toml::to_string(&task).expect("a task can be written");
        assert!(text.starts_with(&format!("kind = \"{}\"\n", task.kind())), "{text}");
        let (_, parameters) = text.split_once('\n').expect("more than the kind");
        assert_eq!(from_kind(task.kind(), parameters), Ok(task.clone()));
        let written: Vec<&str> = parameters.lines().filter_map(|line| line.split(" = ").next()).collect();
        assert_eq!(Task::keys(task.kind()), Some(written), "keys are what is written");
        assert!(from_kind(task.kind(), &format!("{parameters}valeus = 3\n")).is_err());
    }
}

#[test]
fn sets_written_and_read_are_the_same() {
    let fixed = Sets { train_examples: Some(10_000), validation_examples: 1_000, test_examples: 1 };
    for sets in [Sets::default(), fixed] {
        assert_eq!(toml::from_str::<Sets>(&toml::to_string(&sets).expect("sets can be written")), Ok(sets));
    }
    let written = toml::to_string(&fixed).expect("sets can be written");
    assert_eq!(written.lines().filter_map(|line| line.split(" = ").next()).collect::<Vec<_>>(), Sets::KEYS);
    assert!(toml::from_str::<Sets>("examples = 3").is_err());
}

#[test]
fn wrong_keys_and_types_are_refused_by_name() {
    for (kind, text, part) in [
        ("registers", "valeus = 3", "valeus"),
        ("registers", "values = 'three'", "three"),
        ("registers", "values = -1", "-1"),
        ("registers", "values = 1.5", "1.5"),
        ("registers", "vocab = 8", "vocab"),
        ("mqar", "fill = 'none'", "none"),
    ] {
        let error = from_kind(kind, text).expect_err(text);
        assert!(error.contains(part) && error.contains("line 1"), "{error}");
    }
    assert_eq!(from_kind("register", ""), Err("no such kind".to_string()));
}

#[test]
fn kinds_are_described() {
    let built_in = ["registers", "mqar", "reverse", "sort", "induction", "selective_copy", "d_retrieval", "farthest"];
    assert!(built_in.iter().all(|kind| Task::kinds().contains(kind)));
    for kind in Task::kinds() {
        let task = Task::default_of(kind).expect("a listed kind exists");
        assert!(task.about().len() > 50 && !task.about().contains("  "));
        assert!(task.prediction().len() > 50 && !task.prediction().contains("  "));
        assert_eq!(task.kind(), kind);
    }
    assert!(Task::keys("nothing").is_none() && Task::default_of("nothing").is_none());
}

/// The task is refused; the message names `parts`, the key is `key`.
fn refused(task: Task, key: &str, parts: &[&str]) -> TaskError {
    let error = task.check().expect_err(key);
    let text = error.to_string();
    assert_eq!(error.key(), key, "{text}");
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    error
}

#[test]
fn impossible_mqar_is_refused_with_the_rule() {
    let task = |vocab, seq_len, pairs| Task::new(mqar(vocab, seq_len, pairs));
    assert_eq!(refused(task(64, 31, 4), "seq_len", &["31", "even"]), TaskError::OddLength { seq_len: 31 });
    let error = refused(task(32, 32, 4), "vocab", &["32", "greater"]);
    assert_eq!(error, TaskError::VocabTooSmall { vocab: 32, seq_len: 32 });
    assert_eq!(task(33, 32, 4).check(), Ok(()));
    let error = refused(task(64, 32, 9), "pairs", &["9", "32", "4 * pairs"]);
    assert_eq!(error, TaskError::TooManyPairs { pairs: 9, seq_len: 32 });
    assert_eq!(task(64, 32, 8).check(), Ok(()));
    assert_eq!(task(5, 4, 1).check(), Ok(()));

    refused(task(64, 32, 0), "pairs", &["0"]);
    refused(task(64, 2, 1), "seq_len", &["2"]);
    refused(task(70_000, 65_538, 1), "seq_len", &["65538"]);
    refused(task((1 << 20) + 1, 32, 4), "vocab", &["1048577"]);
    refused(task(64, 32, usize::MAX), "pairs", &["18446744073709551615"]);
    for power_a in [0.0, -1.0, 10.1, f64::NAN, f64::INFINITY, 1e300] {
        refused(Task::new(Mqar { power_a, ..Mqar::default() }), "power_a", &[&format!("{power_a:?}")]);
    }
}

#[test]
fn impossible_registers_are_refused_with_the_rule() {
    let task = |count, values, seq_len| Task::new(registers(count, values, seq_len));
    let error = refused(task(11, 4, 32), "registers", &["11", "4", "1048576"]);
    assert_eq!(error, TaskError::TableTooLarge { registers: 11, values: 4, limit: 1 << 20 });
    assert_eq!(task(10, 4, 32).check(), Ok(()));
    let error = refused(task(4, 4, 3), "seq_len", &["3", "4"]);
    assert_eq!(error, TaskError::TooShortToScore { seq_len: 3, registers: 4 });
    assert_eq!(task(4, 4, 4).check(), Ok(()));

    refused(task(0, 4, 32), "registers", &["0"]);
    refused(task(usize::MAX, usize::MAX, 32), "registers", &["18446744073709551615"]);
    refused(task(4, 1, 32), "values", &["1"]);
    refused(task(2, 1 << 20, 32), "registers", &["values^registers"]);
    refused(task(1, 2, 0), "seq_len", &["0"]);
    refused(task(1, 2, 65_537), "seq_len", &["65537"]);
    let with = |outputs, table_seed| Task::new(Registers { outputs, table_seed, ..Registers::default() });
    refused(with(1, 0), "outputs", &["1"]);
    refused(with((1 << 20) + 1, 0), "outputs", &["1048577"]);
    refused(with(8, u64::MAX), "table_seed", &["18446744073709551615"]);
}

#[test]
fn impossible_rewrites_are_refused_with_the_rule() {
    for task in [
        |vocab, min_len, max_len| Task::new(Reverse::new(vocab, min_len, max_len)),
        |vocab, min_len, max_len| Task::new(Sort::new(vocab, min_len, max_len)),
    ] {
        let error = refused(task(16, 5, 4), "min_len", &["min_len = 5", "max_len = 4"]);
        assert_eq!(error, TaskError::NoLength { min_len: 5, max_len: 4 });
        assert_eq!(task(2, 1, 1).check(), Ok(()));
        refused(task(1, 4, 12), "vocab", &["1"]);
        refused(task(1 << 20, 4, 12), "vocab", &["1048576"]);
        refused(task(16, 0, 12), "min_len", &["0"]);
        refused(task(16, 0, 0), "min_len", &["0"]);
        refused(task(16, 4, 65_536), "max_len", &["65536"]);
        refused(task(usize::MAX, usize::MAX, usize::MAX), "vocab", &["18446744073709551615"]);
    }
}

#[test]
fn impossible_copies_and_directions_are_refused_with_the_rule() {
    let copy = |vocab, seq_len, copies| Task::new(SelectiveCopy { vocab, seq_len, copies });
    refused(copy(16, 8, 3), "copies", &["copies = 3", "seq_len = 8", "3 * copies"]);
    refused(copy(1, 8, 2), "vocab", &["1"]);
    refused(copy(16, 8, usize::MAX), "copies", &["18446744073709551615"]);
    assert_eq!(copy(2, 3, 1).check(), Ok(()));
    let retrieval = |retrievals, dim| Task::new(DRetrieval { retrievals, dim, ..DRetrieval::default() });
    refused(retrieval(5, 4), "retrievals", &["retrievals = 5", "dim = 4"]);
    refused(retrieval(0, 4), "retrievals", &["0"]);
    assert_eq!(retrieval(1, 1).check(), Ok(()));
    refused(Task::new(Farthest { dim: 1, points: 3 }), "dim", &["1"]);
    refused(Task::new(Farthest { dim: 4, points: 1 }), "points", &["1"]);
    refused(Task::new(Induction { vocab: 1, seq_len: 3 }), "vocab", &["1"]);
}

#[test]
fn splits_have_one_name_everywhere() {
    for split in [Split::Train, Split::Validation, Split::Test] {
        let written = toml::Value::try_from(split).expect("a split can be written");
        assert_eq!(written.as_str(), Some(split.name()));
        assert_eq!(format!("{split:>12}"), format!("{:>12}", split.name()));
    }
}
