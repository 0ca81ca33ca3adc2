//! Whatever passes `check` can be drawn, explained and batched; whatever does not is refused without panic.

use headcount_data::{
    Answers, DRetrieval, Farthest, Fill, Generator, IGNORE, Induction, Mqar, Registers, Reverse, SelectiveCopy, Sort,
    Split, Task,
};
use proptest::prelude::*;

use crate::all_tasks;

/// Small numbers mostly, and the ones that break things.
fn number() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0..40usize,
        2 => 0..300usize,
        1 => any::<usize>(),
        1 => prop::sample::select(vec![65_536, 65_537, 1 << 20, (1 << 20) + 1, usize::MAX, usize::MAX / 4]),
    ]
}

fn registers() -> impl Strategy<Value = Task> {
    (number(), number(), number(), number(), any::<u64>()).prop_map(|(registers, values, seq_len, outputs, seed)| {
        Task::new(Registers { registers, values, seq_len, outputs, table_seed: seed / 2 })
    })
}

fn mqar() -> impl Strategy<Value = Task> {
    let power = prop_oneof![8 => 0.001..10.0f64, 1 => any::<f64>()];
    let fill = prop::sample::select(vec![Fill::Random, Fill::Zero]);
    (number(), number(), number(), power, fill)
        .prop_map(|(vocab, seq_len, pairs, power_a, fill)| Task::new(Mqar { vocab, seq_len, pairs, power_a, fill }))
}

fn reverse() -> impl Strategy<Value = Task> {
    (number(), number(), number())
        .prop_map(|(vocab, min_len, max_len)| Task::new(Reverse::new(vocab, min_len, max_len)))
}

fn sort() -> impl Strategy<Value = Task> {
    (number(), number(), number()).prop_map(|(vocab, min_len, max_len)| Task::new(Sort::new(vocab, min_len, max_len)))
}

fn others() -> impl Strategy<Value = Task> {
    (number(), number(), number(), any::<u64>(), 0..4).prop_map(|(a, b, c, seed, which)| match which {
        0 => Task::new(Induction { vocab: a, seq_len: b }),
        1 => Task::new(SelectiveCopy { vocab: a, seq_len: b, copies: c }),
        2 => Task::new(DRetrieval { retrievals: a, dim: b, seq_len: c, direction_seed: seed / 2 }),
        // Comparing all points with all takes seconds where they are thousands.
        _ => Task::new(Farthest { dim: a, points: if b < 300 { b } else { usize::MAX } }),
    })
}

fn possible_others() -> impl Strategy<Value = Task> {
    (2..20usize, 1..12usize, 0..60usize, any::<u64>(), 0..4).prop_map(|(a, b, more, seed, which)| match which {
        0 => Task::new(Induction { vocab: a, seq_len: b + more + 1 }),
        1 => Task::new(SelectiveCopy { vocab: a, seq_len: 3 * b + more, copies: b }),
        2 => Task::new(DRetrieval { retrievals: b, dim: b + a, seq_len: 1 + more, direction_seed: seed / 2 }),
        _ => Task::new(Farthest { dim: a, points: b + 1 }),
    })
}

fn possible_rewrites() -> impl Strategy<Value = Task> {
    (2..40usize, 1..30usize, 0..30usize, any::<bool>()).prop_map(|(vocab, min_len, more, sorts)| {
        let max_len = min_len + more;
        if sorts {
            Task::new(Sort::new(vocab, min_len, max_len))
        } else {
            Task::new(Reverse::new(vocab, min_len, max_len))
        }
    })
}

/// Parameters that mostly pass.
fn possible_mqar() -> impl Strategy<Value = Task> {
    (1..20usize, 0..60usize, 1..200usize, 0.001..10.0f64).prop_map(|(pairs, more, above, power_a)| {
        let seq_len = 4 * pairs + 2 * more;
        Task::new(Mqar { vocab: seq_len + above, seq_len, pairs, power_a, fill: Fill::Random })
    })
}

fn possible_registers() -> impl Strategy<Value = Task> {
    (1..6usize, 2..8usize, 0..60usize, 2..40usize, 0..9u64).prop_map(
        |(registers, values, more, outputs, table_seed)| {
            Task::new(Registers { registers, values, seq_len: registers + more, outputs, table_seed })
        },
    )
}

fn holds_its_promises(task: &Task, split: Split, seed: u64, index: u64) {
    let sample = Generator::new(task, split, seed).sample(index);
    let tokens = if task.vocab() == 0 { 0 } else { task.seq_len() };
    assert_eq!((sample.tokens.len(), sample.targets.len()), (tokens, task.seq_len()));
    assert_eq!(sample.numbers.is_some(), task.numbers().is_some());
    if let (Some(sizes), Some(numbers)) = (task.numbers(), &sample.numbers) {
        let lens = (numbers.inputs.len(), numbers.targets.len(), numbers.scored.len());
        assert_eq!(lens, (task.seq_len() * sizes.inputs, task.seq_len() * sizes.outputs, task.seq_len()));
        assert!(numbers.inputs.iter().chain(&numbers.targets).all(|number| number.is_finite()));
    }
    assert!(sample.tokens.iter().all(|&token| (token as usize) < task.vocab()));
    let possible = |target: i32| target == IGNORE || usize::try_from(target).is_ok_and(|t| t < task.outputs());
    assert!(sample.targets.iter().all(|&target| possible(target)));

    assert_eq!(sample.source.is_some(), task.source().is_some());
    if let (Some(sizes), Some(source)) = (task.source(), &sample.source) {
        assert_eq!(source.tokens.len(), sizes.len);
        assert!((1..=sizes.len).contains(&source.real));
        assert!(source.tokens.iter().all(|&token| (token as usize) < sizes.vocab));
    }

    let is_scored =
        |&t: &usize| sample.targets[t] != IGNORE || sample.numbers.as_ref().is_some_and(|numbers| numbers.scored[t]);
    let scored = (0..task.seq_len()).filter(is_scored).count();
    assert!(!task.one_answer() || scored == 1 && is_scored(&(sample.real - 1)));
    let text = task.explain(&sample);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(lines.len(), task.seq_len(), "a line for each position");
    assert_eq!(lines.iter().filter(|line| line.contains('*')).count(), scored);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_parameters_are_refused_or_work(task in prop_oneof![registers(), mqar(), reverse(), sort(), others()], seed: u64, index: u64) {
        match task.check() {
            Ok(()) => holds_its_promises(&task, Split::Train, seed, index),
            Err(error) => {
                prop_assert!(Task::keys(task.kind()).expect("a kind").contains(&error.key()), "{error}");
                prop_assert!(error.to_string().len() < 200, "{error}");
            }
        }
    }

    #[test]
    fn possible_parameters_pass_and_work(task in prop_oneof![possible_registers(), possible_mqar(), possible_rewrites(), possible_others()], index: u64) {
        prop_assert_eq!(task.check(), Ok(()));
        holds_its_promises(&task, Split::Test, 0, index);
    }
}

#[test]
fn the_largest_parameters_work() {
    let largest = [
        Task::new(Registers { registers: 20, values: 2, seq_len: 65_536, outputs: 1 << 20, table_seed: 0 }),
        Task::new(Registers { registers: 1, values: 1 << 20, seq_len: 65_536, outputs: 2, table_seed: 0 }),
        Task::new(Mqar { vocab: 65_537, seq_len: 65_536, pairs: 16_384, power_a: 10.0, fill: Fill::Random }),
        Task::new(Mqar { vocab: 1 << 20, seq_len: 65_536, pairs: 1, power_a: 1e-6, fill: Fill::Zero }),
        Task::new(Reverse::new((1 << 20) - 1, 65_535, 65_535)),
        Task::new(Sort::new((1 << 20) - 1, 1, 65_535)),
        Task::new(Induction { vocab: 1 << 20, seq_len: 65_536 }),
        Task::new(SelectiveCopy { vocab: (1 << 20) - 2, seq_len: 65_536, copies: 21_845 }),
        Task::new(DRetrieval { retrievals: 256, dim: 256, seq_len: 4096, direction_seed: i64::MAX as u64 }),
        Task::new(Farthest { dim: 1024, points: 512 }),
    ];
    for task in largest {
        assert_eq!(task.check(), Ok(()));
        holds_its_promises(&task, Split::Validation, 0, u64::MAX);
    }
}

/// What is expected of a sample's own tokens is what the sample says.
#[test]
fn expected_answers_are_the_targets_of_samples() {
    for task in all_tasks() {
        for index in 0..20 {
            let sample = task.sample(Split::Validation, 0, index);
            let scored: Vec<i32> = sample.targets.iter().copied().filter(|&target| target != IGNORE).collect();
            let found = match (&sample.source, task.answers()) {
                (Some(source), Answers::Sequence { start, end }) => {
                    assert_eq!((sample.tokens[0], scored[source.real]), (start, end as i32));
                    task.expected(&source.tokens[..source.real])
                }
                (None, Answers::Classes | Answers::Tokens) => task.expected(&sample.tokens),
                other => panic!("{}: {other:?}", task.kind()),
            };
            match found {
                Some(found) if sample.source.is_some() => assert_eq!(found, scored),
                Some(found) => assert_eq!(found, sample.targets),
                None => assert!(task.kind() == "mqar" || task.vocab() == 0, "a query looks like filler"),
            }
        }
    }
    let names = |task: Task, tokens: &[u32]| tokens.iter().map(|&token| task.token_name(token)).collect::<Vec<_>>();
    assert_eq!(names(Task::default_of("registers").unwrap(), &[0, 7, 14]), ["r0=0", "r1=3", "r3=2"]);
    assert_eq!(Task::default_of("registers").unwrap().answer_name(3), "class 3");
    assert_eq!(names(Task::default_of("mqar").unwrap(), &[0, 31, 32]), ["0", "key 31", "value 32"]);
    assert_eq!(Task::default_of("mqar").unwrap().answer_name(32), "value 32");
    for kind in ["sort", "reverse"] {
        let task = Task::default_of(kind).unwrap();
        assert_eq!(names(task.clone(), &[0, 15, 16]), ["0", "15", "start"]);
        assert_eq!([15, 16].map(|class| task.answer_name(class)), ["15", "end"]);
        assert_eq!(task.source_token_name(15), "15");
    }
}

/// Tasks with few samples give as many as they say: all of them come up, and no more.
#[test]
fn distinct_samples_are_counted_exactly() {
    let mqar = |vocab, seq_len, pairs, fill| Task::new(Mqar { vocab, seq_len, pairs, power_a: 1.0, fill });
    let registers = |registers, values, seq_len| Registers { registers, values, seq_len, ..Registers::default() };
    for (task, count) in [
        (Task::new(Sort::new(2, 1, 3)), 2 + 4 + 8),
        (Task::new(Reverse::new(3, 2, 3)), 9 + 27),
        (Task::new(registers(1, 2, 5)), 32),
        (Task::new(registers(2, 2, 3)), 64),
        (mqar(5, 4, 1, Fill::Random), 3 * 5),
        (mqar(9, 8, 2, Fill::Zero), (3 * 2) * (5 * 4) * 2),
        (mqar(7, 6, 1, Fill::Zero), 2 * 4 * 2),
        (Task::new(Induction { vocab: 3, seq_len: 4 }), 81),
        (Task::new(SelectiveCopy { vocab: 2, seq_len: 7, copies: 2 }), 10 * 4),
        (Task::new(SelectiveCopy { vocab: 5, seq_len: 6, copies: 1 }), 5 * 5),
    ] {
        assert_eq!((task.check(), task.distinct_samples()), (Ok(()), Some(count)), "{task:?}");
        let generator = Generator::new(&task, Split::Train, 0);
        let seen: std::collections::HashSet<_> = (0..20 * count as u64)
            .map(|index| generator.sample(index))
            .map(|sample| (sample.tokens, sample.targets, sample.source))
            .collect();
        assert_eq!(seen.len() as u128, count, "{task:?}");
    }
    let many = SelectiveCopy { vocab: 2, seq_len: 65_536, copies: 20_000 };
    assert_eq!(Task::new(many).distinct_samples(), Some(u128::MAX));
    assert_eq!(Task::new(Farthest::default()).distinct_samples(), None);
    assert_eq!(Task::new(Sort::new(16, 4, 65_535)).distinct_samples(), Some(u128::MAX));
    assert_eq!(Task::new(Sort::new(16, 1, 31)).distinct_samples(), Some((u128::MAX - 15) / 15));
}
