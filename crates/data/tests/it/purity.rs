//! A sample depends on task, split, seed and index, and on nothing else; the fingerprint tells any difference.

use std::collections::HashSet;

use headcount_data::{Batch, Generator, IGNORE, Parameter, Registers, Sets, Split, Task, batch, fingerprint};

use crate::all_tasks;

#[test]
fn a_sample_is_the_same_alone_and_in_any_batch() {
    for task in all_tasks() {
        let generator = Generator::new(&task, Split::Train, 3);
        let indices = [9, 0, u64::MAX, 9, 4];
        let together = generator.batch(&indices);
        assert_eq!((together.batch, together.len), (5, task.seq_len()));
        assert_eq!(together, batch(&task, Split::Train, 3, &indices));
        let reversed = generator.batch(&indices.iter().copied().rev().collect::<Vec<_>>());
        for (row, &index) in indices.iter().enumerate() {
            let alone = task.sample(Split::Train, 3, index);
            assert_eq!(alone, generator.clone().sample(index));
            for (batch, row) in [(&together, row), (&reversed, 4 - row)] {
                let span = row * task.seq_len()..(row + 1) * task.seq_len();
                if task.vocab() > 0 {
                    assert!(batch.tokens[span.clone()].iter().zip(&alone.tokens).all(|(&a, &b)| a == b as i32));
                }
                assert_eq!(batch.targets[span.clone()], alone.targets);
                let padding = (0..task.seq_len()).map(|position| position >= alone.real);
                assert!(batch.padding[span].iter().copied().eq(padding));
                assert_eq!(batch.rows(row..row + 1), generator.batch(&[index]));
                assert_eq!(
                    (batch.source.is_some(), alone.source.is_some()),
                    (task.source().is_some(), task.source().is_some())
                );
                let (Some(sources), Some(source)) = (&batch.source, &alone.source) else { continue };
                let span = row * sources.len..(row + 1) * sources.len;
                assert!(sources.tokens[span.clone()].iter().zip(&source.tokens).all(|(&a, &b)| a == b as i32));
                let padding = [vec![false; source.real], vec![true; sources.len - source.real]].concat();
                assert_eq!(sources.padding[span], padding);
            }
        }
    }
}

/// huggingface/transformers#47394: no target comes from the next row. Rows end with a scored position, or not, as they
/// do alone.
#[test]
fn transformers_47394_no_target_from_the_next_row() {
    let task = Task::new(Registers::default());
    let last_of_row = |indices: &[u64]| batch(&task, Split::Train, 0, indices).targets[31];
    assert_ne!(last_of_row(&[0]), IGNORE);
    for next in 1..50 {
        assert_eq!(last_of_row(&[0, next]), last_of_row(&[0]));
    }
}

#[test]
fn seeds_splits_and_indices_give_other_samples() {
    for task in all_tasks() {
        let mut seen = HashSet::new();
        for split in [Split::Train, Split::Validation, Split::Test] {
            for seed in 0..5 {
                for index in 0..20 {
                    let sample = task.sample(split, seed, index);
                    let numbers = sample.numbers.unwrap_or_default().inputs.into_iter().map(f32::to_bits);
                    let read = (sample.tokens, sample.source, numbers.collect::<Vec<_>>());
                    assert!(seen.insert(read), "{split} {seed} {index}");
                }
            }
        }
    }
}

#[test]
fn every_split_follows_the_run_s_seed() {
    for split in [Split::Train, Split::Validation, Split::Test] {
        assert_eq!(split.data_seed(7), 7);
    }
}

#[test]
fn scored_positions_are_flat_and_ascending() {
    let batch = Batch::new(2, 3, vec![0; 6], vec![IGNORE, 5, IGNORE, 0, IGNORE, 2]);
    assert_eq!(batch.scored(), 3);
    assert_eq!(batch.scored_positions(), (vec![1, 3, 5], vec![5, 0, 2]));

    let empty = Generator::new(&all_tasks()[0], Split::Train, 0).batch(&[]);
    assert_eq!((empty.batch, empty.len, empty.tokens.len(), empty.scored()), (0, 32, 0, 0));
}

/// Every possible task that differs from `task` in the parameter `key` alone, by a little.
fn varied(task: &Task, key: &str) -> Option<Task> {
    let (_, value) = task.parameters().into_iter().find(|(other, _)| *other == key)?;
    let nearby = match value {
        Parameter::Unsigned(value) => [1, -1, 2, -2].map(|by| value.saturating_add_signed(by).into()).to_vec(),
        Parameter::Float(value) => vec![(2.0 * value).into()],
        Parameter::Boolean(value) => vec![(!value).into()],
        Parameter::Text(_) => ["zero", "random"].map(Parameter::from).to_vec(),
        other => panic!("a case for {other:?} is missing here"),
    };
    let with = |new: Parameter| {
        let section: Vec<(String, toml::Value)> = task
            .parameters()
            .into_iter()
            .map(|(other, old)| (other, if other == key { new.clone() } else { old }))
            .map(|(key, value)| (key.to_string(), toml::Value::try_from(value).expect("TOML can hold it")))
            .collect();
        Task::from_kind(task.kind(), toml::Table::from_iter(section))?.ok()
    };
    nearby.into_iter().filter_map(with).find(|varied| varied != task && varied.check().is_ok())
}

#[test]
fn the_fingerprint_changes_with_everything_that_changes_the_data() {
    let sets = Sets { train_examples: None, validation_examples: 20, test_examples: 30 };
    let mut tasks = all_tasks();
    for task in all_tasks() {
        for (key, _) in task.parameters() {
            tasks.push(varied(&task, key).unwrap_or_else(|| panic!("{key} of {} can't be varied", task.kind())));
        }
    }
    assert!(tasks.len() >= 20, "one a parameter, and one a task as it is");

    let mut seen = HashSet::new();
    for task in &tasks {
        let print = fingerprint(task, &sets, 0);
        assert_eq!(print, fingerprint(task, &sets, 0));
        assert!(print.len() == 64 && print.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(seen.insert(print), "{task:?}");
    }
    let other_sets = [
        Sets { train_examples: Some(10), ..sets },
        Sets { train_examples: Some(1000), ..sets },
        Sets { validation_examples: 21, ..sets },
        Sets { test_examples: 31, ..sets },
    ];
    for other in &other_sets {
        assert!(seen.insert(fingerprint(&tasks[0], other, 0)), "{other:?}");
    }
    assert!(seen.insert(fingerprint(&tasks[0], &sets, 1)), "the run's seed");
}
