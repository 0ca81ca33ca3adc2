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

use std::fmt;
use std::str::FromStr;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::definition::Task;
use crate::generator::Generator;
use crate::order::Sets;
use crate::sample::{IGNORE, Sample, Split};

/// Every metric, in the order in which files have them.
pub const METRICS: &[MetricKind] = &[LOSS, ACCURACY];

/// Mean cross-entropy over scored positions. Knowing nothing is to find all classes equally likely.
pub const LOSS: MetricKind = MetricKind {
    key: "loss",
    words: "loss",
    unit: "nats",
    axis: "loss (nats)",
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
    unit: "share",
    axis: "accuracy (share of scored positions)",
    better: Better::Higher,
    range: (0.0, 1.0),
    threshold: Some(0.95),
    applies: says_classes,
    uninformed: share_of_the_most_frequent_class,
};

/// One metric, and all that texts, axes and decisions ask of it.
pub struct MetricKind {
    /// The name in files and configs.
    pub key: &'static str,
    /// As it reads in a sentence.
    pub words: &'static str,
    /// The unit of its values and of their differences.
    pub unit: &'static str,
    /// As it reads on an axis.
    pub axis: &'static str,
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

/// Training samples that stand for all.
const TRAINING_SAMPLES: u64 = 1024;

/// The samples that say what knowing nothing comes to.
fn samples(task: &Task, sets: &Sets, split: Split) -> impl Iterator<Item = Sample> {
    let examples = match split {
        Split::Train => sets.train_examples.unwrap_or(TRAINING_SAMPLES).min(TRAINING_SAMPLES),
        Split::Validation => sets.validation_examples,
        Split::Test => sets.test_examples,
    };
    let generator = Generator::new(task, split, split.data_seed(0));
    (0..examples).map(move |index| generator.sample(index))
}

/// One in `outputs` where nothing is scored.
fn share_of_the_most_frequent_class(task: &Task, sets: &Sets, split: Split) -> f64 {
    let mut counts = vec![0u64; task.outputs()];
    for target in samples(task, sets, split).flat_map(|sample| sample.targets) {
        if target != IGNORE {
            counts[target as usize] += 1;
        }
    }
    match (counts.iter().max(), counts.iter().sum()) {
        (_, 0) | (None, _) => 1.0 / task.outputs() as f64,
        (Some(&most), scored) => most as f64 / scored as f64,
    }
}

/// The values of some metrics, in the order of [`METRICS`]. Written as a flat map from key to number, in which what is not finite
/// is `null`; beside other fields use serde's `flatten`, which still refuses keys that nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scores([Option<f64>; METRICS.len()]);

impl Scores {
    /// These, and `value` for `kind`, which must be one of [`METRICS`].
    #[must_use]
    pub fn with(mut self, kind: &MetricKind, value: f64) -> Self {
        let place = METRICS.iter().position(|known| known == kind);
        debug_assert!(place.is_some(), "{kind:?} is not in METRICS");
        if let Some(place) = place {
            self.0[place] = Some(value);
        }
        self
    }

    /// The value of `kind`, finite or not; `None` where it was not measured.
    pub fn get(&self, kind: &MetricKind) -> Option<f64> {
        self.iter().find_map(|(known, value)| (known == kind).then_some(value))
    }

    /// What was measured.
    pub fn iter(&self) -> impl Iterator<Item = (&'static MetricKind, f64)> {
        METRICS.iter().zip(self.0).filter_map(|(kind, value)| Some((kind, value?)))
    }

    /// Whether every value is a finite number.
    pub fn are_finite(&self) -> bool {
        self.iter().all(|(_, value)| value.is_finite())
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.iter().count()))?;
        for (kind, value) in self.iter() {
            map.serialize_entry(kind.key, &value.is_finite().then_some(value))?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Scores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ScoresVisitor)
    }
}

struct ScoresVisitor;

impl<'de> Visitor<'de> for ScoresVisitor {
    type Value = Scores;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number for each metric")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scores, A::Error> {
        let mut scores = Scores::default();
        while let Some(key) = map.next_key::<String>()? {
            let Some(kind) = MetricKind::find(&key) else {
                return Err(de::Error::custom(format_args!("unknown field `{key}`, which is no metric")));
            };
            if scores.get(kind).is_some() {
                return Err(de::Error::duplicate_field(kind.key));
            }
            scores = scores.with(kind, map.next_value::<Option<f64>>()?.unwrap_or(f64::NAN));
        }
        Ok(scores)
    }
}

/// A metric on one of the sets that a finished run is measured on: what may decide an experiment. It is written as its
/// [name](Self::name).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SplitMetric {
    /// Test or validation.
    pub split: Split,
    /// What is measured.
    pub kind: &'static MetricKind,
}

impl SplitMetric {
    /// All of them: on the test set, then on the validation set.
    pub fn all() -> impl Iterator<Item = Self> {
        let on = |split| METRICS.iter().map(move |kind| Self { split, kind });
        [Split::Test, Split::Validation].into_iter().flat_map(on)
    }

    /// The name in files, such as `test_accuracy`.
    pub fn name(self) -> String {
        format!("{}_{}", self.split, self.kind.key)
    }

    /// As it reads in a sentence, such as "test accuracy".
    pub fn words(self) -> String {
        format!("{} {}", self.split, self.kind.words)
    }

    /// The value among the scores of each set.
    pub fn of(self, test: Option<&Scores>, validation: Option<&Scores>) -> Option<f64> {
        let scores = match self.split {
            Split::Test => test,
            Split::Validation => validation,
            Split::Train => None,
        };
        scores?.get(self.kind)
    }
}

/// A name that no metric has on any set.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("there is no metric `{name}`: there are {}", SplitMetric::all().map(SplitMetric::name).collect::<Vec<_>>().join(", "))]
pub struct NoSuchMetric {
    /// The name.
    pub name: String,
}

impl FromStr for SplitMetric {
    type Err = NoSuchMetric;

    fn from_str(name: &str) -> Result<Self, NoSuchMetric> {
        Self::all().find(|metric| metric.name() == name).ok_or_else(|| NoSuchMetric { name: name.into() })
    }
}

impl Serialize for SplitMetric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for SplitMetric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Mqar, Registers, Sort};

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

    #[test]
    fn better_and_clipped_follow_from_direction_and_range() {
        assert!(ACCURACY.is_better(0.6, 0.5) && !ACCURACY.is_better(0.5, 0.5) && !ACCURACY.is_better(f64::NAN, 0.5));
        assert!(LOSS.is_better(0.4, 0.5) && !LOSS.is_better(0.5, 0.4) && !LOSS.is_better(0.5, f64::NAN));
        assert_eq!([-0.1, 0.3, 1.1].map(|value| ACCURACY.clip(value)), [0.0, 0.3, 1.0]);
        assert_eq!([-0.1, 0.3, 1e9].map(|value| LOSS.clip(value)), [0.0, 0.3, 1e9]);
        assert_eq!((ACCURACY.span(), LOSS.span()), (1.0, f64::INFINITY));
    }

    /// As a line of a file has them.
    #[derive(Debug, Deserialize, PartialEq, Serialize)]
    struct Line {
        step: u64,
        #[serde(flatten)]
        scores: Scores,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lr: Option<f64>,
    }

    #[test]
    fn scores_lie_flat_among_other_fields() {
        let scores = Scores::default().with(&ACCURACY, 0.1).with(&LOSS, 0.0392156862745098);
        for (line, text) in [
            (
                Line { step: 3, scores, lr: Some(0.003) },
                r#"{"step":3,"loss":0.0392156862745098,"accuracy":0.1,"lr":0.003}"#,
            ),
            (Line { step: 0, scores: Scores::default().with(&LOSS, 1.0), lr: None }, r#"{"step":0,"loss":1.0}"#),
            (Line { step: 0, scores: Scores::default(), lr: None }, r#"{"step":0}"#),
        ] {
            assert_eq!(serde_json::to_string(&line).unwrap(), text);
            assert_eq!(serde_json::from_str::<Line>(text).unwrap(), line);
        }
        let whole: Line = serde_json::from_str(r#"{"accuracy":1,"step":3,"loss":2}"#).unwrap();
        assert_eq!(whole.scores, Scores::default().with(&LOSS, 2.0).with(&ACCURACY, 1.0));
    }

    #[test]
    fn what_is_not_finite_is_null_and_nan() {
        let scores = Scores::default().with(&LOSS, f64::INFINITY).with(&ACCURACY, 0.5);
        assert!(!scores.are_finite() && Scores::default().are_finite());
        let text = serde_json::to_string(&scores).unwrap();
        assert_eq!(text, r#"{"loss":null,"accuracy":0.5}"#);
        let read: Scores = serde_json::from_str(&text).unwrap();
        assert!(read.get(&LOSS).unwrap().is_nan() && read.get(&ACCURACY) == Some(0.5));
        assert_eq!(Scores::default().get(&LOSS), None);
    }

    #[test]
    fn scores_refuse_what_nobody_knows() {
        for text in [
            r#"{"step":0,"loss":1.0,"los":2.0}"#,
            r#"{"step":0,"loss":1.0,"loss":2.0}"#,
            r#"{"step":0,"loss":"low"}"#,
            r#"{"step":0,"loss":[1.0]}"#,
        ] {
            assert!(serde_json::from_str::<Line>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_composed_and_taken_apart() {
        let names: Vec<String> = SplitMetric::all().map(SplitMetric::name).collect();
        assert_eq!(names, ["test_loss", "test_accuracy", "validation_loss", "validation_accuracy"]);
        for metric in SplitMetric::all() {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(metric.words(), metric.name().replace('_', " "));
            let json = serde_json::to_string(&metric).unwrap();
            assert_eq!(
                (json.trim_matches('"'), serde_json::from_str(&json).unwrap()),
                (metric.name().as_str(), metric)
            );
        }
        for name in ["", "accuracy", "test", "test_", "train_loss", "test accuracy", "Test_loss", "test_loss "] {
            let error = name.parse::<SplitMetric>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")) && error.contains("validation_accuracy"), "{error}");
        }
    }

    #[test]
    fn a_split_metric_finds_its_value() {
        let scores = |loss| Scores::default().with(&LOSS, loss);
        let of = |name: &str| name.parse::<SplitMetric>().unwrap().of(Some(&scores(1.0)), Some(&scores(2.0)));
        assert_eq!((of("test_loss"), of("validation_loss"), of("test_accuracy")), (Some(1.0), Some(2.0), None));
        assert_eq!("test_loss".parse::<SplitMetric>().unwrap().of(None, Some(&scores(2.0))), None);
    }
}
