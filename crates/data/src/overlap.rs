//! Samples of a test set that training has shown: on them a model may answer from memory.

use std::collections::HashSet;
use std::fmt;

use crate::definition::Task;
use crate::generator::Generator;
use crate::limits;
use crate::order::Sets;
use crate::sample::{Sample, Split};

/// How many samples of a set are read in training too, word for word. What they are answered with does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overlap {
    /// The set: validation or test.
    pub split: Split,
    /// Samples that were looked up: all of the set, but for blocks of a text that are shorter than a sample.
    pub samples: u64,
    /// Of them, the distinct ones.
    pub distinct: u64,
    /// Of `samples`, those that training has.
    pub seen: Seen,
    /// How many distinct samples there can be at all, where the task tells.
    pub possible: Option<u128>,
}

/// Counted, or estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    /// All that training shows was looked at.
    Exactly(u64),
    /// Training shows more than was looked at. Exact in expectation where all samples are equally likely; where some are more
    /// likely than others, this many at most.
    About(u64),
}

impl Overlap {
    /// The share of the set that training has.
    pub fn share(&self) -> f64 {
        let (Seen::Exactly(seen) | Seen::About(seen)) = self.seen;
        seen as f64 / self.samples.max(1) as f64
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { split, samples, distinct, seen, possible } = self;
        let (about, seen) = match seen {
            Seen::Exactly(seen) => ("", seen),
            Seen::About(seen) => ("about ", seen),
        };
        write!(formatter, "{about}{seen} of {samples} {split} samples are among those that training shows")?;
        if distinct < samples {
            write!(formatter, "; {distinct} of the {samples} differ")?;
        }
        match possible {
            Some(possible) if *possible <= 10 * u128::from(*samples) => {
                write!(formatter, "; there are {possible} different samples in all")
            }
            _ => Ok(()),
        }
    }
}

/// Of the set `split` in a run with seed `run_seed` that takes `trained` training samples, repetitions included. Draws up to some
/// sixteen million positions of training samples, about a second or two; of a text it reads all.
pub fn overlap(task: &Task, sets: &Sets, split: Split, run_seed: u64, trained: u64) -> Overlap {
    let examples = match split {
        Split::Train => sets.train_examples.unwrap_or(0),
        Split::Validation => sets.validation_examples,
        Split::Test => sets.test_examples,
    };
    let possible = task.distinct_samples();
    let held_out = Generator::new(task, split, split.data_seed(run_seed));
    if let Some(found) = task.stored().and_then(|stored| stored.repeated(split)) {
        let (samples, distinct) = (found.samples, found.distinct);
        return Overlap { split, samples, distinct, seen: Seen::Exactly(found.seen), possible };
    }
    let looked_up: Vec<Key> = (0..examples).map(|index| key(&held_out.sample(index))).collect();
    let wanted: HashSet<Key> = looked_up.iter().copied().collect();

    let shown = sets.train_examples.map_or(trained, |fixed| fixed.min(trained));
    let positions = (task.seq_len() + task.source().map_or(0, |source| source.len)).max(1) as u64;
    let drawn = shown.min((limits::DRAWN_POSITIONS / positions).max(1));
    let training = Generator::new(task, Split::Train, Split::Train.data_seed(run_seed));
    let mut seen = HashSet::new();
    let mut looked_at = 0;
    // A fixed set that is shown in part only is shown in an order of its own.
    let order = match sets.train_examples {
        Some(fixed) if trained < fixed => crate::order::train_indices(sets, run_seed, 0, 0, 1, trained),
        _ => vec![],
    };
    for index in 0..drawn {
        let index = order.get(index as usize).copied().unwrap_or(index);
        let key = key(&training.sample(index));
        looked_at += 1;
        if wanted.contains(&key) {
            seen.insert(key);
            if seen.len() == wanted.len() {
                break;
            }
        }
    }
    let count = looked_up.iter().filter(|key| seen.contains(*key)).count() as u64;
    let seen = if looked_at == shown || seen.len() == wanted.len() {
        Seen::Exactly(count)
    } else {
        // Unseen among the first m with probability u is unseen among n with u^(n/m).
        let unseen = 1.0 - count as f64 / examples.max(1) as f64;
        let rest = unseen.powf(shown as f64 / looked_at.max(1) as f64);
        Seen::About((examples as f64 * (1.0 - rest)).round() as u64)
    };
    Overlap { split, samples: examples, distinct: wanted.len() as u64, seen, possible }
}

/// What is read of a sample, in so few bits that a hundred thousand samples fit, and so many that two do not meet.
type Key = [u8; 16];

fn key(sample: &Sample) -> Key {
    let mut bytes = vec![];
    match &sample.source {
        // What a decoder reads is the answer.
        Some(source) => {
            bytes.extend(source.tokens.iter().take(source.real).flat_map(|token| token.to_le_bytes()));
        }
        None => {
            bytes.extend(sample.tokens.iter().take(sample.real).flat_map(|token| token.to_le_bytes()));
            if let Some(numbers) = &sample.numbers {
                let width = numbers.inputs.len() / sample.targets.len().max(1);
                let real = numbers.inputs.iter().take(sample.real * width);
                bytes.extend(real.flat_map(|number| number.to_le_bytes()));
            }
        }
    }
    let mut key = [0; 16];
    key.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
    key
}
