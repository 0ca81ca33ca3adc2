//! What can be had without a model: the scores that a model has to beat before it has learnt anything.

use crate::definition::Task;
use crate::metrics::{ACCURACY, BITS_PER_BYTE, LOSS, MAE, MSE, NMSE, Scores, bits_per_byte};
use crate::order::Sets;
use crate::sample::Split;
use crate::spread::{balance, errors, spread};

/// Somebody who looks at no sample, or at nothing but its last value.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// What is always said.
    pub name: &'static str,
    /// What it scores.
    pub scores: Scores,
}

/// All that apply to `task`, scored on `split`. What they know of answers they know from the training set.
pub fn baselines(task: &Task, sets: &Sets, split: Split) -> Vec<Baseline> {
    let mut all = vec![];
    if task.outputs() > 0 {
        all.extend(of_classes(task, sets, split));
    }
    if task.numbers().is_some_and(|sizes| sizes.outputs > 0) {
        all.extend(of_numbers(task, sets, split));
    }
    all
}

fn of_classes(task: &Task, sets: &Sets, split: Split) -> [Baseline; 2] {
    let (known, asked) = (balance(task, sets, Split::Train).classes, balance(task, sets, split).classes);
    let outputs = task.outputs() as f64;
    let scored = (asked.iter().sum::<u64>() as f64).max(1.0);
    let scores = |loss: f64, accuracy: f64| {
        let scores = Scores::default().with(&LOSS, loss).with(&ACCURACY, accuracy);
        match bits_per_byte(task, split, loss) {
            Some(bits) => scores.with(&BITS_PER_BYTE, bits),
            None => scores,
        }
    };
    // One more of each, so that what training has not asked for is not impossible.
    let total = known.iter().sum::<u64>() as f64 + outputs;
    let surprise = known.iter().zip(&asked).map(|(&known, &asked)| asked as f64 * -((known + 1) as f64 / total).ln());
    let loss = surprise.sum::<f64>() / scored;
    let first_most = |most: usize, class: usize| if known[class] > known[most] { class } else { most };
    let most = (0..known.len()).fold(0, first_most);
    let accuracy = asked.get(most).copied().unwrap_or(0) as f64 / scored;
    [
        Baseline { name: "all classes equally likely", scores: scores(outputs.ln(), 1.0 / outputs) },
        Baseline { name: "each class as often as in training", scores: scores(loss, accuracy) },
    ]
}

fn of_numbers(task: &Task, sets: &Sets, split: Split) -> Vec<Baseline> {
    let variance = spread(task, sets, split).variance;
    let mean = spread(task, sets, Split::Train).mean;
    let mean = errors(task, sets, split, |_| Some(mean.clone()));
    let last = errors(task, sets, split, |sample| {
        let last = task.stored()?.last_value(sample)?;
        Some(last.into_iter().map(f64::from).collect())
    });
    let named = [("the mean of the training set", mean), ("the last value read", last)];
    let scored = named.into_iter().filter_map(|(name, errors)| {
        let errors = errors?;
        let scores = Scores::default().with(&MAE, errors.absolute).with(&MSE, errors.squared);
        Some(Baseline { name, scores: scores.with(&NMSE, errors.squared / variance) })
    });
    scored.collect()
}
