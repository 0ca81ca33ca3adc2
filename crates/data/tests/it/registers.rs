//! `registers` is what its definition says.

use std::collections::HashSet;

use headcount_data::{Generator, IGNORE, Registers, Split, Task};

use crate::{assert_fits, assert_uniform, registers};

fn generator(task: &Registers, split: Split) -> Generator {
    let task = Task::new(*task);
    task.check().expect("parameters of a test are possible");
    Generator::new(&task, split, 0)
}

/// The target at `position`, searched for backwards through the tokens.
fn naive_target(task: &Registers, table: &[u32], tokens: &[u32], position: usize) -> i32 {
    let mut index = 0;
    for register in 0..task.registers {
        let writes = |&&token: &&u32| token as usize / task.values == register;
        let Some(&token) = tokens[..=position].iter().rev().find(writes) else {
            return IGNORE;
        };
        index += (token as usize % task.values) * task.values.pow(register as u32);
    }
    table[index] as i32
}

#[test]
fn targets_follow_the_latest_values() {
    let tasks =
        [registers(4, 4, 32), registers(1, 2, 1), registers(3, 5, 40), registers(20, 2, 200), registers(2, 7, 9)];
    for task in tasks {
        let table = task.table();
        assert_eq!(table.len(), task.values.pow(task.registers as u32));
        let mut scored = 0;
        for split in [Split::Train, Split::Validation, Split::Test] {
            for index in 0..100 {
                let sample = generator(&task, split).sample(index);
                assert_eq!(sample.tokens.len(), task.seq_len);
                let expected: Vec<i32> =
                    (0..task.seq_len).map(|t| naive_target(&task, &table, &sample.tokens, t)).collect();
                assert_eq!(sample.targets, expected);
                scored += expected.iter().filter(|&&target| target != IGNORE).count();
            }
        }
        assert!(scored > 0);
    }
}

#[test]
fn tokens_are_uniform_and_independent() {
    let generator = generator(&registers(2, 3, 20), Split::Train);
    let mut single = [0; 6];
    let mut neighbours = [0; 36];
    for index in 0..10_000 {
        let tokens = generator.sample(index).tokens;
        for pair in tokens.chunks(2) {
            single[pair[0] as usize] += 1;
            neighbours[(6 * pair[0] + pair[1]) as usize] += 1;
        }
    }
    assert_uniform("tokens", &single);
    assert_uniform("neighbouring tokens", &neighbours);
}

#[test]
fn the_share_of_scored_positions_is_the_coupon_collectors() {
    // All of D = 4 registers written within t tokens: inclusion and exclusion over the missing ones.
    let task = registers(4, 4, 32);
    let generator = generator(&task, Split::Validation);
    let mut scored = [0u64; 32];
    for index in 0..20_000 {
        let sample = generator.sample(index);
        (0..32).filter(|&t| sample.targets[t] != IGNORE).for_each(|t| scored[t] += 1);
    }
    assert_eq!(scored[..3], [0; 3], "three tokens cannot write four registers");
    for t in [3, 5, 9, 15] {
        let left = |share: f64| share.powi(t as i32 + 1);
        let covered = 1.0 - 4.0 * left(0.75) + 6.0 * left(0.5) - 4.0 * left(0.25);
        assert_fits("scored", &[scored[t], 20_000 - scored[t]], &[covered, 1.0 - covered]);
    }
}

#[test]
fn the_table_is_uniform_and_fixed_by_its_seed() {
    let task = Registers { registers: 8, values: 4, ..Registers::default() };
    let mut counts = [0; 8];
    task.table().iter().for_each(|&entry| counts[entry as usize] += 1);
    assert_uniform("table entries", &counts);

    assert_eq!(task.table(), Registers { seq_len: 100, ..task }.table(), "the same task for every length");
    assert_ne!(task.table(), Registers { table_seed: 1, ..task }.table());
}

#[test]
fn targets_use_every_class() {
    let generator = generator(&Registers::default(), Split::Test);
    let seen: HashSet<i32> = (0..200).flat_map(|index| generator.sample(index).targets).collect();
    assert_eq!(seen, (0..8).chain([IGNORE]).collect());
}

/// Instances of the task differ in their table alone, and only declared seeds make any.
#[test]
fn an_instance_has_another_table() {
    let task = Task::new(Registers { registers: 2, values: 3, seq_len: 9, outputs: 5, table_seed: 4 });
    let instance = task.instance("table_seed", 7).expect("it is an instance seed");
    let registers = instance.downcast::<Registers>().unwrap();
    assert_eq!(*registers, Registers { registers: 2, values: 3, seq_len: 9, outputs: 5, table_seed: 7 });
    assert_eq!(task.instance("table_seed", 4), Some(task.clone()));
    assert_eq!(task.instance("values", 7), None);
    assert_eq!(task.instance("table_seed", u64::MAX), None, "no config could hold it");
}

/// What a task declares as an instance seed is one of its parameters, and takes any seed of an experiment.
#[test]
fn every_instance_seed_is_a_parameter() {
    for kind in Task::kinds() {
        let task = Task::default_of(kind).unwrap();
        for key in task.instance_seeds() {
            assert!(Task::keys(kind).unwrap().contains(key), "{kind}.{key}");
            assert!(task.instance(key, 1_000_000).is_some(), "{kind}.{key}");
        }
    }
}
