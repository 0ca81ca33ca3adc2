//! What a model can be measured by. To add a metric: its definition here, its line in [`METRICS`], and the place that computes
//! it from a batch.
//!
//! ```
//! use headcount_data::{Mqar, Sets, Split, Task, metrics::{ACCURACY, LOSS, METRICS, Scores, SplitMetric}};
//!
//! let deciding: SplitMetric = "test_accuracy".parse()?;
//! assert_eq!((deciding.split, deciding.kind), (Split::Test, &ACCURACY));
//! assert_eq!(deciding.words(), "test accuracy");
//! assert!(deciding.kind.is_better(0.9, 0.8));
//!
//! // A model that knows nothing of the default `mqar`, whose 64 tokens are the classes.
//! let (task, sets) = (Task::new(Mqar::default()), Sets::default());
//! assert_eq!(LOSS.uninformed(&task, &sets, Split::Test), 64f64.ln());
//!
//! let scores = Scores::default().with(&ACCURACY, 0.5).with(&LOSS, 1.25);
//! assert_eq!(scores.get(deciding.kind), Some(0.5));
//! assert_eq!(serde_json::to_string(&scores)?, r#"{"loss":1.25,"accuracy":0.5}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod scores;
mod split_metric;

use std::fmt;

use crate::definition::Task;
use crate::order::Sets;
use crate::sample::Split;
use crate::spread::{Errors, balance, errors, spread};

pub use scores::Scores;
pub use split_metric::{NoSuchMetric, SplitMetric, SplitScores};

/// Every metric, in the order in which files have them; people are told the last one first.
pub const METRICS: &[MetricKind] = &[BITS_PER_BYTE, MAE, MSE, NMSE, LOSS, ACCURACY];

/// What models that say classes have, all of them.
const OF_CLASSES: [&MetricKind; 2] = [&LOSS, &ACCURACY];

/// What training of `task` makes small: the mean squared error of numbers, the cross-entropy of classes.
pub fn objective(task: &Task) -> &'static MetricKind {
    if MSE.applies(task) { &MSE } else { OBJECTIVE }
}

/// What scores of a set are relative to: it follows from the set's answers alone, before there is a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yardstick {
    /// [`Spread::variance`](crate::Spread::variance), which [`NMSE`] divides by; 1 where no numbers are said.
    pub variance: f64,
    /// Mean number of bytes that an answer stands for, where tokens are of a text: what [`BITS_PER_BYTE`] divides by.
    pub bytes_per_answer: Option<f64>,
}

impl Default for Yardstick {
    /// Of a set that asks for classes which are no text.
    fn default() -> Self {
        Self { variance: 1.0, bytes_per_answer: None }
    }
}

impl Yardstick {
    /// Of `split`. Draws the whole set where numbers are said (of the training set 1,024 samples of seed 0).
    pub fn of(task: &Task, sets: &Sets, split: Split) -> Self {
        Self {
            variance: if says_numbers(task) { spread(task, sets, split).variance } else { 1.0 },
            bytes_per_answer: task.stored().and_then(|stored| stored.bytes_per_answer(split)),
        }
    }
}

/// What decides an experiment on `task` unless it says otherwise, on the test set.
pub fn deciding(task: &Task) -> &'static MetricKind {
    [&NMSE, &BITS_PER_BYTE].into_iter().find(|kind| kind.applies(task)).unwrap_or(DECIDING)
}

/// Those of [`METRICS`] that are there, as `is_there` says, and in any case what models that say classes have, where no numbers were
/// said.
pub fn present(is_there: impl Fn(&MetricKind) -> bool) -> impl Iterator<Item = &'static MetricKind> {
    let numbers = is_there(&NMSE);
    METRICS.iter().filter(move |kind| is_there(kind) || !numbers && OF_CLASSES.contains(kind))
}

/// What training of classes makes small. The best step is where it is best on the validation set, and spikes are spikes of it.
pub const OBJECTIVE: &MetricKind = &LOSS;

/// What decides an experiment on classes unless it says otherwise, on the test set.
pub const DECIDING: &MetricKind = &ACCURACY;

/// Mean cross-entropy over scored positions. Knowing nothing is to find all classes equally likely.
pub const LOSS: MetricKind = MetricKind {
    key: "loss",
    words: "loss",
    about: "Mean cross-entropy over scored positions, in nats: 0 is certain and right, the logarithm of the number of answers is guessing.",
    unit: "nats",
    axis: "loss (nats)",
    digits: 4,
    better: Better::Lower,
    range: (0.0, f64::INFINITY),
    threshold: None,
    applies: says_classes,
    uninformed: |task, _, _| (task.outputs() as f64).ln(),
};

/// Share of scored positions predicted right. Knowing nothing is to say the most frequent class everywhere.
pub const ACCURACY: MetricKind = MetricKind {
    key: "accuracy",
    words: "accuracy",
    about: "Share of scored positions that the model gets right, 0 to 1.",
    unit: SHARE,
    axis: "accuracy (share of scored positions)",
    digits: 3,
    better: Better::Higher,
    range: (0.0, 1.0),
    threshold: Some(0.95),
    applies: says_classes,
    uninformed: share_of_the_most_frequent_class,
};

/// Cross-entropy in bits, by bytes of text instead of tokens, so that vocabularies compare.
pub const BITS_PER_BYTE: MetricKind = MetricKind {
    key: "bits_per_byte",
    words: "bits per byte",
    about: "Mean cross-entropy for each byte of the text, in bits, whatever a token is: 8 is guessing bytes, 0 is certain and right.",
    unit: PURE,
    axis: "bits per byte",
    digits: 3,
    better: Better::Lower,
    range: (0.0, f64::INFINITY),
    threshold: None,
    applies: |task| bits_per_byte(task, Split::Test, 0.0).is_some(),
    uninformed: |task, sets, split| {
        bits_per_byte(task, split, LOSS.uninformed(task, sets, split)).unwrap_or(f64::INFINITY)
    },
};

/// A mean loss in nats a token, on `split`, in bits a byte; `None` where tokens are not of a text.
pub fn bits_per_byte(task: &Task, split: Split, loss: f64) -> Option<f64> {
    let bytes = task.stored()?.bytes_per_answer(split)?;
    Some(loss / std::f64::consts::LN_2 / bytes)
}

/// Mean squared error over scored numbers. Knowing nothing is to say the mean of the training set.
pub const MSE: MetricKind = MetricKind {
    key: "mse",
    words: "mean squared error",
    about: "Mean squared error over scored numbers: 0 is exact.",
    unit: PURE,
    axis: "mean squared error",
    digits: 4,
    better: Better::Lower,
    range: (0.0, f64::INFINITY),
    threshold: None,
    applies: says_numbers,
    uninformed: |task, sets, split| errors_of_the_mean(task, sets, split).squared,
};

/// [`MSE`] divided by the variance of the set's own answers ([`Spread`](crate::Spread)).
pub const NMSE: MetricKind = MetricKind {
    key: "nmse",
    words: "normalised squared error",
    about: "Mean squared error, divided by the variance of the answers: 0 is exact, 1 is to say their mean.",
    unit: PURE,
    axis: "normalised squared error",
    digits: 4,
    better: Better::Lower,
    range: (0.0, f64::INFINITY),
    threshold: Some(0.05),
    applies: says_numbers,
    uninformed: |task, sets, split| errors_of_the_mean(task, sets, split).squared / spread(task, sets, split).variance,
};

/// Mean absolute error over scored numbers. Knowing nothing is to say the mean of the training set.
pub const MAE: MetricKind = MetricKind {
    key: "mae",
    words: "mean absolute error",
    about: "Mean absolute error over scored numbers: 0 is exact.",
    unit: PURE,
    axis: "mean absolute error",
    digits: 4,
    better: Better::Lower,
    range: (0.0, f64::INFINITY),
    threshold: None,
    applies: says_numbers,
    uninformed: |task, sets, split| errors_of_the_mean(task, sets, split).absolute,
};

/// The unit of what has none.
const PURE: &str = "";

/// The unit of parts of a whole, which numbers are told without.
const SHARE: &str = "share";

/// One metric, and all that texts, axes and decisions ask of it.
pub struct MetricKind {
    /// The name in files and configs.
    pub key: &'static str,
    /// As it reads in a sentence.
    pub words: &'static str,
    /// What it says, in a sentence for a glossary.
    pub about: &'static str,
    /// The unit of its values and of their differences.
    pub unit: &'static str,
    /// As it reads on an axis.
    pub axis: &'static str,
    /// Decimals of a value where there is little room.
    pub digits: usize,
    /// Which way it improves.
    pub better: Better,
    /// The least and the greatest value that there can be.
    pub range: (f64, f64),
    /// A model at this value or better has solved its task, unless an experiment says otherwise.
    pub threshold: Option<f64>,
    applies: fn(&Task) -> bool,
    uninformed: fn(&Task, &Sets, Split) -> f64,
}

impl MetricKind {
    /// The metric with the name `key`.
    pub fn find(key: &str) -> Option<&'static Self> {
        METRICS.iter().find(|kind| kind.key == key)
    }

    /// Whether models of `task` have it.
    pub fn applies(&self, task: &Task) -> bool {
        (self.applies)(task)
    }

    /// The value of a model that knows nothing but which answers there are and how often, on `split` of `task`. May draw the
    /// whole set (of the training set, that of seed 0, 1024 samples), so it costs what making it costs.
    pub fn uninformed(&self, task: &Task, sets: &Sets, split: Split) -> f64 {
        (self.uninformed)(task, sets, split)
    }

    /// The value that a run gets which failed to give one: the worst that there can be, or where there is no worst, that of a
    /// model that knows nothing.
    pub fn penalty(&self, task: &Task, sets: &Sets, split: Split) -> f64 {
        let worst = match self.better {
            Better::Higher => self.range.0,
            Better::Lower => self.range.1,
        };
        if worst.is_finite() { worst } else { self.uninformed(task, sets, split) }
    }

    /// Whether `value` is better than `other`; never where one of them is NaN.
    pub fn is_better(&self, value: f64, other: f64) -> bool {
        match self.better {
            Better::Higher => value > other,
            Better::Lower => value < other,
        }
    }

    /// The possible value nearest to `value`, as for the ends of an interval or an axis.
    pub fn clip(&self, value: f64) -> f64 {
        value.clamp(self.range.0, self.range.1)
    }

    /// A value where there is little room, such as "accuracy 0.981".
    pub fn brief(&self, value: f64) -> String {
        format!("{} {value:.*}", self.words, self.digits)
    }

    /// A value in full, such as "loss 0.0321 nats".
    pub fn told(&self, value: f64) -> String {
        format!("{} {value:.4}{}", self.words, self.unit_told())
    }

    /// The unit as it follows a number: with a space before it, or nothing.
    pub fn unit_told(&self) -> String {
        if [SHARE, PURE].contains(&self.unit) { String::new() } else { format!(" {}", self.unit) }
    }

    /// As it reads on an axis of logarithms, such as "loss (nats, log scale)".
    pub fn log_axis(&self) -> String {
        match self.axis.strip_suffix(')') {
            Some(axis) => format!("{axis}, log scale)"),
            None => format!("{}, log scale", self.axis),
        }
    }

    /// The greatest difference that two values can have; infinite where the range is.
    pub fn span(&self) -> f64 {
        self.range.1 - self.range.0
    }
}

impl PartialEq for MetricKind {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for MetricKind {}

impl fmt::Debug for MetricKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "MetricKind({})", self.key)
    }
}

/// Which way a metric improves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Better {
    /// Such as an accuracy.
    Higher,
    /// Such as a loss.
    Lower,
}

fn says_classes(task: &Task) -> bool {
    task.outputs() > 0
}

fn says_numbers(task: &Task) -> bool {
    task.numbers().is_some_and(|sizes| sizes.outputs > 0)
}

/// Of whoever says the mean of the training set everywhere.
fn errors_of_the_mean(task: &Task, sets: &Sets, split: Split) -> Errors {
    let mean = spread(task, sets, Split::Train).mean;
    errors(task, sets, split, |_| Some(mean.clone())).unwrap_or_default()
}

/// One in `outputs` where nothing is scored.
fn share_of_the_most_frequent_class(task: &Task, sets: &Sets, split: Split) -> f64 {
    let counts = balance(task, sets, split).classes;
    match (counts.iter().max(), counts.iter().sum()) {
        (_, 0) | (None, _) => 1.0 / task.outputs() as f64,
        (Some(&most), scored) => most as f64 / scored as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::IGNORE;
    use crate::tasks::{Farthest, Mqar, Registers, Sort};

    const SETS: Sets = Sets { train_examples: None, validation_examples: 50, test_examples: 60 };

    #[test]
    fn definitions_agree_with_themselves() {
        for kind in METRICS {
            assert_eq!(MetricKind::find(kind.key), Some(kind));
            assert_eq!(METRICS.iter().filter(|other| *other == kind).count(), 1, "{kind:?} is there once");
            assert!(kind.key.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{kind:?}");
            assert!(kind.axis.contains(kind.unit) && kind.axis.contains(kind.words), "{kind:?}");
            assert!(kind.range.0 < kind.range.1 && kind.threshold.is_none_or(|value| kind.clip(value) == value));
            for task in Task::kinds().into_iter().filter_map(Task::default_of).filter(|task| kind.applies(task)) {
                for split in [Split::Train, Split::Validation, Split::Test] {
                    let uninformed = kind.uninformed(&task, &SETS, split);
                    let penalty = kind.penalty(&task, &SETS, split);
                    assert!(uninformed.is_finite() && kind.clip(uninformed) == uninformed, "{kind:?} {task:?}");
                    assert!(penalty.is_finite() && !kind.is_better(penalty, uninformed), "{kind:?} {task:?}");
                    assert!(kind.threshold.is_none_or(|value| kind.is_better(value, uninformed)));
                }
            }
        }
        assert!(MetricKind::find("").is_none() && MetricKind::find("Loss").is_none());
    }

    #[test]
    fn knowing_nothing_is_what_the_data_say() {
        let registers = Task::new(Registers::default());
        assert_eq!(LOSS.uninformed(&registers, &SETS, Split::Test), 8f64.ln());
        assert_eq!(
            (LOSS.penalty(&registers, &SETS, Split::Test), ACCURACY.penalty(&registers, &SETS, Split::Test)),
            (8f64.ln(), 0.0)
        );

        // The most frequent class, counted by sorting.
        let mut said: Vec<i32> = (0..60)
            .flat_map(|index| registers.sample(Split::Test, 0, index).targets)
            .filter(|&target| target != IGNORE)
            .collect();
        said.sort_unstable();
        let most = said.chunk_by(|a, b| a == b).map(<[i32]>::len).max().unwrap();
        let share = ACCURACY.uninformed(&registers, &SETS, Split::Test);
        assert_eq!(share, most as f64 / said.len() as f64);
        assert!((1.0 / 8.0..0.5).contains(&share), "{share}");

        // Sorting single tokens of two kinds: the end is every second answer.
        let half = ACCURACY.uninformed(&Task::new(Sort::new(2, 1, 1)), &SETS, Split::Validation);
        assert_eq!(half, 0.5);
        let fixed = Sets { train_examples: Some(1), ..SETS };
        let one = ACCURACY.uninformed(&Task::new(Mqar::default()), &fixed, Split::Train);
        assert_eq!(one, 0.25, "four queries with four values");
    }

    /// Unit vectors around 0: the mean says nothing, so squared errors are those of the points, 1 in all their coordinates.
    #[test]
    fn knowing_nothing_of_numbers_is_the_training_mean() {
        let (task, sets) = (Task::new(Farthest::default()), Sets { test_examples: 2000, ..SETS });
        let value = |kind: &MetricKind| kind.uninformed(&task, &sets, Split::Test);
        assert!((value(&MSE) - 1.0 / 16.0).abs() < 1e-3, "{}", value(&MSE));
        assert!((value(&NMSE) - 1.0).abs() < 0.01 && value(&NMSE) > 1.0, "{}", value(&NMSE));
        // Of a coordinate of a uniform point of the sphere in 16 dimensions: Γ(8) / (√π Γ(8.5)).
        assert!((value(&MAE) - 0.2026).abs() < 2e-3, "{}", value(&MAE));
        assert_eq!(NMSE.penalty(&task, &sets, Split::Test), value(&NMSE));
        assert_eq!((objective(&task), deciding(&task)), (&MSE, &NMSE));
        let classes = Task::new(Mqar::default());
        assert_eq!((objective(&classes), deciding(&classes)), (&LOSS, &ACCURACY));
        assert!(!LOSS.applies(&task) && !MSE.applies(&classes) && !BITS_PER_BYTE.applies(&classes));
    }

    #[test]
    fn better_and_clipped_follow_from_direction_and_range() {
        assert!(ACCURACY.is_better(0.6, 0.5) && !ACCURACY.is_better(0.5, 0.5) && !ACCURACY.is_better(f64::NAN, 0.5));
        assert!(LOSS.is_better(0.4, 0.5) && !LOSS.is_better(0.5, 0.4) && !LOSS.is_better(0.5, f64::NAN));
        assert_eq!([-0.1, 0.3, 1.1].map(|value| ACCURACY.clip(value)), [0.0, 0.3, 1.0]);
        assert_eq!([-0.1, 0.3, 1e9].map(|value| LOSS.clip(value)), [0.0, 0.3, 1e9]);
        assert_eq!((ACCURACY.span(), LOSS.span()), (1.0, f64::INFINITY));
    }

    #[test]
    fn values_are_told_with_their_unit() {
        assert_eq!((ACCURACY.brief(0.98149), LOSS.brief(f64::INFINITY)), ("accuracy 0.981".into(), "loss inf".into()));
        assert_eq!((ACCURACY.told(0.98149), LOSS.told(0.5)), ("accuracy 0.9815".into(), "loss 0.5000 nats".into()));
        assert_eq!(LOSS.log_axis(), "loss (nats, log scale)");
    }
}
