//! What the answers of a set are and how they spread, which a model that knows nothing else can say.

use crate::definition::Task;
use crate::generator::Generator;
use crate::order::Sets;
use crate::sample::{IGNORE, Sample, Split};

/// Training samples that stand for all.
const TRAINING_SAMPLES: u64 = 1024;

/// The samples of seed 0 that say what knowing nothing comes to.
pub(crate) fn samples(task: &Task, sets: &Sets, split: Split) -> impl Iterator<Item = Sample> {
    let examples = match split {
        Split::Train => sets.train_examples.unwrap_or(TRAINING_SAMPLES).min(TRAINING_SAMPLES),
        Split::Validation => sets.validation_examples,
        Split::Test => sets.test_examples,
    };
    let generator = Generator::new(task, split, split.data_seed(0));
    (0..examples).map(move |index| generator.sample(index))
}

/// What is asked for in a set, and how often each class is the answer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Balance {
    /// Samples.
    pub samples: u64,
    /// Real positions in all of them.
    pub positions: u64,
    /// Positions that are scored, by their class or their numbers.
    pub scored: u64,
    /// How often each class is asked for, `[outputs]`.
    pub classes: Vec<u64>,
}

/// What `split` asks for; of a training set, 1,024 samples of seed 0. Makes these samples, and no model.
pub fn balance(task: &Task, sets: &Sets, split: Split) -> Balance {
    let mut balance = Balance { classes: vec![0; task.outputs()], ..Balance::default() };
    for sample in samples(task, sets, split) {
        balance.samples += 1;
        balance.positions += sample.real as u64;
        for &class in sample.targets.iter().filter(|&&target| target != IGNORE) {
            balance.scored += 1;
            if let Some(count) = balance.classes.get_mut(class as usize) {
                *count += 1;
            }
        }
        let numbers = sample.numbers.iter().flat_map(|numbers| &numbers.scored);
        balance.scored += numbers.filter(|&&scored| scored).count() as u64;
    }
    balance
}

/// Mean and variance of the numbers that a set asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Of each of the O numbers of a position; 0 where none is scored.
    pub mean: Vec<f64>,
    /// Mean squared distance from these means, over all numbers: what `nmse` divides by. 1 where all are the same.
    pub variance: f64,
}

/// Of the numbers of `split`; of a training set, of 1,024 samples of seed 0.
pub fn spread(task: &Task, sets: &Sets, split: Split) -> Spread {
    let width = task.numbers().map_or(0, |sizes| sizes.outputs);
    let (mut mean, mut squares, mut rows) = (vec![0.0; width], 0.0, 0.0);
    for sample in samples(task, sets, split) {
        for row in rows_of(&sample, width) {
            // Welford's update: no sum grows large enough to lose the small.
            rows += 1.0;
            for (mean, &number) in mean.iter_mut().zip(row) {
                let before = f64::from(number) - *mean;
                *mean += before / rows;
                squares += before * (f64::from(number) - *mean);
            }
        }
    }
    let variance = if squares > 0.0 { squares / (rows * width as f64) } else { 1.0 };
    Spread { mean, variance }
}

/// Means over the numbers that a set asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    pub squared: f64,
    pub absolute: f64,
}

/// The errors of whoever says `said` of a sample at each scored position, O numbers; `None` where it says nothing.
pub(crate) fn errors(
    task: &Task,
    sets: &Sets,
    split: Split,
    said: impl Fn(&Sample) -> Option<Vec<f64>>,
) -> Option<Errors> {
    let width = task.numbers().map_or(0, |sizes| sizes.outputs);
    let (mut sums, mut count) = (Errors::default(), 0.0);
    for sample in samples(task, sets, split) {
        let said = said(&sample)?;
        for row in rows_of(&sample, width) {
            for (&number, said) in row.iter().zip(&said) {
                let error = f64::from(number) - said;
                sums = Errors { squared: sums.squared + error * error, absolute: sums.absolute + error.abs() };
                count += 1.0;
            }
        }
    }
    let over = f64::max(count, 1.0);
    Some(Errors { squared: sums.squared / over, absolute: sums.absolute / over })
}

/// The numbers of each scored position.
fn rows_of(sample: &Sample, width: usize) -> impl Iterator<Item = &[f32]> {
    let numbers = sample.numbers.as_ref().filter(|_| width > 0);
    let rows = numbers.into_iter().flat_map(move |numbers| numbers.targets.chunks(width).zip(&numbers.scored));
    rows.filter(|(_, scored)| **scored).map(|(row, _)| row)
}
