//! `records`, against what was written.

use std::collections::HashMap;

use headcount_data::files::{Records, TargetKind};
use headcount_data::metrics::{ACCURACY, LOSS};
use headcount_data::{Answers, IGNORE, Sample, Seen, Split, Task};
use proptest::prelude::*;

use super::{all, folder, open, refused};

fn records() -> Records {
    Records { files: "data.jsonl".into(), validation_share: 0.3, test_share: 0.3, ..Records::default() }
}

type Line = (Vec<u32>, Vec<Option<u32>>);

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let token = || prop_oneof![4 => 0..9u32, 1 => 250..300u32, 1 => Just(70_000u32)];
    let line =
        prop::collection::vec((token(), prop::option::of(0..5u32)), 1..12).prop_map(|pairs| pairs.into_iter().unzip());
    prop::collection::vec(line, 30..60)
}

fn json(lines: &[Line]) -> Vec<u8> {
    let line =
        |(tokens, targets): &Line| serde_json::json!({ "tokens": tokens, "targets": targets }).to_string() + "\n";
    lines.iter().map(line).collect::<String>().into_bytes()
}

/// The line that a sample was.
fn line(sample: &Sample) -> Line {
    assert!(sample.targets[sample.real..].iter().all(|&target| target == IGNORE), "padding is not scored");
    let target = |&target: &i32| u32::try_from(target).ok();
    (sample.tokens[..sample.real].to_vec(), sample.targets[..sample.real].iter().map(target).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_line_is_a_sample_of_one_part_and_stays_in_it(before in lines(), more in lines()) {
        let read = |lines: &[Line]| {
            let folder = folder(&[("data.jsonl", &json(lines))]);
            let data = open(&records(), folder.path()).ok()?;
            let longest = lines.iter().map(|(tokens, _)| tokens.len()).max().unwrap();
            assert_eq!(data.task().seq_len(), longest);
            assert_eq!(data.task().vocab(), 1 + lines.iter().flat_map(|(tokens, _)| tokens).max().copied().unwrap() as usize);
            let classes = lines.iter().flat_map(|(_, targets)| targets).flatten().max();
            assert_eq!(data.task().outputs(), 1 + classes.copied().unwrap_or(0) as usize);
            let of = |split| all(&data, split).iter().map(line).collect::<Vec<_>>();
            Some(Split::ALL.map(of))
        };
        let (Some(first), Some(both)) = (read(&before), read(&[before.clone(), more.clone()].concat())) else { return Ok(()) };
        prop_assert_eq!(first.iter().map(Vec::len).sum::<usize>(), before.len());
        for (part, larger) in first.iter().zip(&both) {
            prop_assert!(part.iter().all(|line| before.contains(line)));
            prop_assert!(larger.starts_with(part), "a line moves when others are added");
        }
    }
}

#[test]
fn copies_of_a_line_are_in_one_part() {
    let lines: Vec<Line> = (0..200).map(|n| (vec![n % 20, 1], vec![None, Some(n % 2)])).collect();
    let folder = folder(&[("data.jsonl", &json(&lines))]);
    let data = open(&records(), folder.path()).unwrap();
    assert_eq!(data.overlap(Split::Test, 0, 10_000).seen, Seen::Exactly(0));

    // With files of its own a test set may repeat what was learnt, which is told.
    let folder = super::folder(&[("data.jsonl", &json(&lines[..10])), ("test.jsonl", &json(&lines[5..15]))]);
    let format = Records { test_files: "test.jsonl".into(), validation_share: 0.2, ..records() };
    let data = open(&format, folder.path()).unwrap();
    let learnt: Vec<Line> = all(&data, Split::Train).iter().map(line).collect();
    let seen = all(&data, Split::Test).iter().filter(|sample| learnt.contains(&line(sample))).count();
    let found = data.overlap(Split::Test, 0, 10_000);
    assert_eq!((found.samples, found.seen), (10, Seen::Exactly(seen as u64)));
    assert!(seen > 0);
}

fn labelled(label: impl Fn(usize) -> serde_json::Value) -> Vec<u8> {
    let line = |n: usize| serde_json::json!({ "tokens": [n % 7, n % 3, n], "label": label(n) }).to_string() + "\n\n";
    (0..60).map(line).collect::<String>().into_bytes()
}

#[test]
fn labels_are_asked_for_at_the_last_position() {
    let words = ["red", "blue", "green"];
    for (bytes, names) in
        [(labelled(|n| (n % 3).into()), ["0", "1", "2"]), (labelled(|n| words[n % 3].into()), ["blue", "green", "red"])]
    {
        let folder = folder(&[("data.jsonl", &bytes)]);
        let data = open(&records(), folder.path()).unwrap();
        let task = data.task();
        assert_eq!((task.outputs(), task.one_answer(), task.answers()), (3, true, Answers::Classes));
        assert_eq!([0, 1, 2].map(|class| task.answer_name(class)), names);
        for sample in Split::ALL.into_iter().flat_map(|split| all(&data, split)) {
            assert_eq!(sample.targets[..2], [IGNORE; 2]);
            let said = task.answer_name(sample.targets[2] as u32);
            let n = sample.tokens[2] as usize;
            assert!(said == (n % 3).to_string() || said == words[n % 3], "{said}");
        }
        let [uniform, frequent] = &data.baselines(Split::Test)[..] else { panic!("two baselines") };
        assert!((uniform.scores.number(&LOSS) - 3f64.ln()).abs() < 1e-12);
        assert!((frequent.scores.number(&LOSS) - 3f64.ln()).abs() < 0.2 && frequent.scores.number(&ACCURACY) < 0.7);
        let balance = data.balance(Split::Train);
        assert_eq!((balance.scored, balance.positions), (balance.samples, 3 * balance.samples));
        assert_eq!(balance.classes.iter().sum::<u64>(), balance.scored);
    }
}

#[test]
fn a_source_is_for_an_encoder() {
    let line = |n: u32| {
        format!(
            "{{\"source\": [{}, 2, 3], \"tokens\": [{n}], \"split\": \"{}\"}}\n",
            n % 5,
            ["train", "dev", "test"][n as usize % 3]
        )
    };
    let text: String =
        (0..9).map(line).collect::<String>() + "{\"tokens\": [4, 5], \"source\": [6], \"split\": \"test\"}";
    let folder = folder(&[("data.jsonl", text.as_bytes())]);
    let format = Records { split_field: "split".into(), ..records() };
    let data = open(&format, folder.path()).unwrap();
    let task = data.task();
    assert_eq!((task.vocab(), task.outputs(), task.seq_len()), (10, 10, 3));
    assert_eq!(task.source().map(|sizes| (sizes.vocab, sizes.len)), Some((9, 3)));
    assert_eq!(task.answers(), Answers::Sequence { start: 9, end: 9 });
    assert_eq!(Split::ALL.map(|split| data.size(split).unwrap()), [3, 3, 4]);
    let last = data.samples(Split::Test, 0).sample(3);
    assert_eq!((last.tokens, last.targets, last.real), (vec![9, 4, 5], vec![4, 5, 9], 3));
    assert_eq!(last.source.map(|source| (source.tokens, source.real)), Some((vec![6, 0, 0], 1)));
    let text = task.explain(&data.samples(Split::Test, 0).sample(0));
    insta::assert_snapshot!(text, @r"
    3 positions, 2 real; source: 2 2 3; * = scored
        t  read
        0  start  * 2
        1  2  * end
        2  padding
    ");
}

#[test]
fn names_stand_for_tokens() {
    let lines = "{\"tokens\": [\"the\", \"cat\"], \"targets\": [\"cat\", null]}\n{\"tokens\": [0, 2, 1], \"targets\": [1, 2, 1]}\n";
    let folder = folder(&[
        ("data.jsonl", lines.repeat(2).as_bytes()),
        ("test.jsonl", lines.as_bytes()),
        ("words", b"the\ncat\nsat\n"),
    ]);
    let format = Records {
        vocab_file: "words".into(),
        targets: TargetKind::Tokens,
        validation_files: "test.jsonl".into(),
        test_files: "test.jsonl".into(),
        ..records()
    };
    let data = open(&format, folder.path()).unwrap();
    let task = data.task();
    assert_eq!((task.vocab(), task.outputs(), task.answers()), (3, 3, Answers::Tokens));
    assert_eq!((task.token_name(2), task.answer_name(1)), ("sat".into(), "cat".into()));
    let sample = data.samples(Split::Test, 0).sample(0);
    assert_eq!((sample.tokens, sample.targets, sample.real), (vec![0, 1, 0], vec![1, IGNORE, IGNORE], 2));
    assert_eq!(data.overlap(Split::Test, 0, 100).seen, Seen::Exactly(2));
    let roles: HashMap<&str, u64> = data.files().iter().map(|file| (file.role, file.bytes)).collect();
    assert_eq!(roles["vocab"], 12);
}

#[test]
fn lines_that_are_wrong_are_refused_with_their_place() {
    let good = "{\"tokens\": [1, 2], \"targets\": [null, 3]}\n";
    let with = |format: Records, line: &str| {
        let folder = folder(&[
            ("data.jsonl", format!("{good}\n{line}\n").as_bytes()),
            ("words", b"a\nb\nc\nd\n"),
            ("twice", b"a\nb\na\n"),
        ]);
        refused(&format, &folder)
    };
    for (line, message) in [
        ("[1]", "data.jsonl:3: is no JSON object: "),
        ("{\"tokens\": [1", "data.jsonl:3: is no JSON object: "),
        ("{\"targets\": [1]}", "data.jsonl:3: `tokens` is missing; there are `targets`"),
        (
            "{\"tokens\": [1], \"target\": [1]}",
            "data.jsonl:3: `targets, label or source` is missing; there are `target`, `tokens`",
        ),
        ("{\"tokens\": [1], \"label\": 1}", "data.jsonl:3: has `label`, and the lines before it `targets`"),
        (
            "{\"tokens\": [1], \"targets\": [1], \"label\": 1}",
            "data.jsonl:3: has `targets` and `label`: one of them says what is asked",
        ),
        ("{\"tokens\": [], \"targets\": []}", "data.jsonl:3: `tokens` is empty"),
        ("{\"tokens\": 3, \"targets\": []}", "data.jsonl:3: `tokens` is 3, and must be a list of tokens"),
        (
            "{\"tokens\": [1, -4], \"targets\": [1, 2]}",
            "data.jsonl:3: `tokens[1]` is -4, and must be a token, which is a whole number of 0 or more",
        ),
        ("{\"tokens\": [1.5], \"targets\": [1]}", "data.jsonl:3: `tokens[0]` is 1.5, and must be"),
        (
            "{\"tokens\": [\"cat\"], \"targets\": [1]}",
            "data.jsonl:3: `tokens[0]` is \\\"cat\\\", and must be a number; names of tokens need a vocab_file",
        ),
        (
            "{\"tokens\": [1048577], \"targets\": [1]}",
            "data.jsonl:3: `tokens[0]` is 1048577, beyond the vocabulary of 1048575",
        ),
        (
            "{\"tokens\": [1, 2], \"targets\": [1]}",
            "data.jsonl:3: `targets` is 1 long, and must be as many as the 2 tokens",
        ),
        ("{\"tokens\": [1], \"targets\": [NaN]}", "data.jsonl:3: is no JSON object: "),
        ("{\"tokens\": [1], \"targets\": [1e99]}", "data.jsonl:3: `targets[0]` is 1e+99, and must be a class"),
        (
            "{\"tokens\": [1], \"targets\": [1048576]}",
            "data.jsonl:3: `targets[0]` is 1048576, and must be below 1048576",
        ),
        ("\u{0}", "data.jsonl:3: is no text: byte 42 is 0"),
    ] {
        let found = with(records(), line);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let beyond = "{\"tokens\": [1, 5], \"targets\": [1, 2]}";
    for (format, line, message) in [
        (Records { vocab: 5, ..records() }, beyond, "data.jsonl:3: `tokens[1]` is 5, beyond the vocabulary of 5"),
        (
            Records { vocab_file: "words".into(), ..records() },
            beyond,
            "data.jsonl:3: `tokens[1]` is 5, beyond the vocabulary of 4",
        ),
        (
            Records { vocab_file: "words".into(), vocab: 3, ..records() },
            beyond,
            "words: is 4 names, and must be 3, as vocab says",
        ),
        (Records { vocab_file: "twice".into(), ..records() }, beyond, "twice:3: the name `a` is that of line 1 too"),
        (Records { vocab_file: "none".into(), ..records() }, beyond, "none: can't be read: "),
        (
            Records { vocab_file: "words".into(), ..records() },
            "{\"tokens\": [\"e\"], \"targets\": [1]}",
            "data.jsonl:3: `tokens[0]` is \\\"e\\\", and must be one of the 4 names in vocab_file",
        ),
        (
            Records { seq_len: 2, ..records() },
            "{\"tokens\": [1, 1, 1], \"targets\": [1, 2, 1]}",
            "data.jsonl:3: `tokens` has 3 positions, more than seq_len = 2",
        ),
        (
            Records { split_field: "part".into(), ..records() },
            good,
            "data.jsonl:1: `part` is null, and must be `train`, `validation` or `test`",
        ),
        (
            Records { validation_files: "data.jsonl".into(), test_files: "data.jsonl".into(), seq_len: 1, ..records() },
            good,
            "data.jsonl:1: `tokens` has 2",
        ),
        (records(), good, "no sample is left for the "),
    ] {
        let found = with(format, line);
        assert!(found.starts_with(message), "{found}\n{message}");
    }
    let mixed = folder(&[("data.jsonl", b"{\"tokens\": [1], \"label\": 1}\n{\"tokens\": [1], \"label\": \"one\"}")]);
    assert_eq!(
        refused(&records(), &mixed),
        "data.jsonl:2: `label` is \\\"one\\\", and must be a number, as in the lines before"
    );
    let blank = folder(&[("data.jsonl", b"\n \n")]);
    assert_eq!(refused(&records(), &blank), "no sample is left for the train part");
    assert!(Task::from_kind("records", toml::de::Deserializer::parse("file = 'a'").unwrap()).unwrap().is_err());
}
