//! Which training samples a step takes.

use std::collections::HashSet;

use headcount_data::{Sets, TrainingOrder, steps_per_pass, train_indices};

use crate::assert_uniform;

fn fixed(examples: u64) -> Sets {
    Sets { train_examples: Some(examples), ..Sets::default() }
}

/// The samples of all micro-batches of one pass, in order.
fn pass(sets: &Sets, seed: u64, pass: u64, micros: u64, batch_size: u64) -> Vec<u64> {
    let steps = steps_per_pass(sets, micros * batch_size).expect("a fixed set");
    let mut order = TrainingOrder::new(sets, seed);
    let micro_batches = (pass * steps..(pass + 1) * steps).flat_map(|step| (0..micros).map(move |micro| (step, micro)));
    micro_batches.flat_map(|(step, micro)| order.indices(step, micro, micros, batch_size)).collect()
}

#[test]
fn fresh_samples_come_once_each_whatever_the_accumulation() {
    let sets = Sets::default();
    for (micros, batch_size) in [(1, 8), (2, 4), (8, 1)] {
        let taken: Vec<u64> = (0..10)
            .flat_map(|step| (0..micros).map(move |micro| (step, micro)))
            .flat_map(|(step, micro)| train_indices(&sets, 3, step, micro, micros, batch_size))
            .collect();
        assert_eq!(taken, (0..80).collect::<Vec<_>>());
    }
    assert_eq!(steps_per_pass(&sets, 8), None);
}

#[test]
fn a_pass_takes_every_sample_once() {
    for examples in [1, 5, 64, 100, 128, 129] {
        for (micros, batch_size) in [(1, 1), (1, 64), (2, 32), (3, 7), (1, 1000)] {
            for number in [0, 1, 7] {
                let mut taken = pass(&fixed(examples), 1, number, micros, batch_size);
                taken.sort_unstable();
                assert_eq!(taken, (0..examples).collect::<Vec<_>>(), "{examples} {micros}x{batch_size} pass {number}");
            }
        }
    }
}

#[test]
fn passes_and_seeds_have_orders_of_their_own() {
    let orders = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)].map(|(seed, number)| {
        let order = pass(&fixed(100), seed, number, 1, 32);
        assert_eq!(order, pass(&fixed(100), seed, number, 2, 16), "accumulation does not change the order");
        order
    });
    assert_eq!(orders.iter().collect::<HashSet<_>>().len(), orders.len());
}

#[test]
fn every_sample_is_first_equally_often() {
    let mut counts = [0; 10];
    let mut order = TrainingOrder::new(&fixed(10), 0);
    (0..5_000).for_each(|pass| counts[order.indices(pass, 0, 1, 10)[0] as usize] += 1);
    assert_uniform("first sample of a pass", &counts);
}

#[test]
fn the_last_step_of_a_pass_is_what_is_left() {
    // 10 samples in steps of 2 x 3: 6, then 4 as 3 + 1. PyTorch's loader makes the same ceil(10 / 6) = 2 batches.
    let sizes: Vec<usize> =
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(s, m)| train_indices(&fixed(10), 0, s, m, 2, 3).len()).into();
    assert_eq!(sizes, [3, 3, 3, 1]);
    assert_eq!(steps_per_pass(&fixed(10), 6), Some(2));
    assert_eq!(steps_per_pass(&fixed(12), 6), Some(2));
    // Fewer samples than one micro-batch: the second is empty.
    assert_eq!(train_indices(&fixed(2), 0, 0, 1, 2, 3), Vec::<u64>::new());
    assert_eq!(train_indices(&fixed(2), 0, 5, 0, 2, 3).len(), 2);
}

/// huggingface/accelerate#2016: asked for any step at any time, the samples are those of an uninterrupted run.
#[test]
fn accelerate_2016_resumed_in_the_second_pass() {
    let sets = fixed(50);
    let mut whole = TrainingOrder::new(&sets, 9);
    let uninterrupted: Vec<_> = (0..30).map(|step| whole.indices(step, 0, 1, 8)).collect();
    for step in [29, 3, 8, 7, 15] {
        assert_eq!(uninterrupted[step as usize], train_indices(&sets, 9, step, 0, 1, 8));
        assert_eq!(uninterrupted[step as usize], whole.indices(step, 0, 1, 8));
    }
}

#[test]
fn sizes_are_bounded() {
    assert_eq!(Sets::default().check(), Ok(()));
    let with = |train_examples, validation_examples, test_examples| {
        Sets { train_examples, validation_examples, test_examples }.check().map_err(|error| error.key())
    };
    assert_eq!(with(Some(10_000_000), 100_000, 100_000), Ok(()));
    assert_eq!(with(Some(1), 1, 1), Ok(()));
    assert_eq!(with(Some(0), 1, 1), Err("train_examples"));
    assert_eq!(with(Some(10_000_001), 1, 1), Err("train_examples"));
    assert_eq!(with(None, 0, 1), Err("validation_examples"));
    assert_eq!(with(None, 100_001, 1), Err("validation_examples"));
    assert_eq!(with(None, 1, 0), Err("test_examples"));
    assert_eq!(with(None, 1, u64::MAX), Err("test_examples"));
}
