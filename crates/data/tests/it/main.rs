//! What the crate promises, from outside: distributions, purity, order, refusals.

mod config;
mod files;
mod golden;
mod mqar;
mod needed;
mod numbers;
mod order;
mod overlap;
mod properties;
mod purity;
mod registers;
mod rewrite;
mod suite;

use headcount_data::{Mqar, Registers, Task};

/// Every task with its default parameters.
fn all_tasks() -> Vec<Task> {
    Task::kinds().iter().map(|kind| Task::default_of(kind).expect("a listed kind exists")).collect()
}

fn registers(registers: usize, values: usize, seq_len: usize) -> Registers {
    Registers { registers, values, seq_len, ..Registers::default() }
}

fn mqar(vocab: usize, seq_len: usize, pairs: usize) -> Mqar {
    Mqar { vocab, seq_len, pairs, ..Mqar::default() }
}

/// Asserts that counts agree with probabilities: Pearson's chi-square within 6 standard deviations of its mean.
/// Samples are fixed, so this either always passes or never.
fn assert_fits(what: &str, counts: &[u64], probabilities: &[f64]) {
    assert_eq!(counts.len(), probabilities.len());
    let mass: f64 = probabilities.iter().sum();
    assert!((mass - 1.0).abs() < 1e-9, "{what}: probabilities add up to {mass}");
    let total = counts.iter().sum::<u64>() as f64;
    let mut statistic = 0.0;
    for (&count, &probability) in counts.iter().zip(probabilities) {
        let expected = total * probability;
        assert!(expected >= 5.0, "{what}: too few samples, {expected} expected in a cell");
        statistic += (count as f64 - expected).powi(2) / expected;
    }
    let freedom = (counts.len() - 1) as f64;
    let limit = freedom + 6.0 * (2.0 * freedom).sqrt();
    assert!(statistic < limit, "{what}: chi-square {statistic:.1} above {limit:.1}; counts {counts:?}");
}

fn assert_uniform(what: &str, counts: &[u64]) {
    assert_fits(what, counts, &vec![1.0 / counts.len() as f64; counts.len()]);
}
