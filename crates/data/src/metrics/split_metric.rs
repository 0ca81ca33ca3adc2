//! A metric on one of the sets that a finished run is measured on, by its name in files.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use super::{DECIDING, METRICS, MetricKind, Scores, present};
use crate::sample::Split;

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
    /// What decides unless an experiment says otherwise.
    pub const USUAL: Self = Self { split: Split::Test, kind: DECIDING };

    /// All of them as people read them: on the test set, then on the validation set, of each the last of [`METRICS`] first.
    pub fn all() -> impl Iterator<Item = Self> {
        let on = |split| METRICS.iter().rev().map(move |kind| Self { split, kind });
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

/// The scores of a finished run on both sets. Written flat, by [`SplitMetric::name`], all that are [`present`]: `null` where there is
/// no finite number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitScores {
    /// On the test set.
    pub test: Scores,
    /// On the validation set.
    pub validation: Scores,
}

impl SplitScores {
    /// A value, finite or not; `None` where it was not measured.
    pub fn get(&self, metric: SplitMetric) -> Option<f64> {
        metric.of(Some(&self.test), Some(&self.validation))
    }
}

impl Serialize for SplitScores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finite = |metric| self.get(metric).filter(|value| value.is_finite());
        let is_there = |kind: &MetricKind| [self.test, self.validation].iter().any(|scores| scores.get(kind).is_some());
        let there: Vec<&MetricKind> = present(is_there).collect();
        let written = SplitMetric::all().filter(|metric| there.contains(&metric.kind));
        serializer.collect_map(written.map(|metric| (metric.name(), finite(metric))))
    }
}

impl<'de> Deserialize<'de> for SplitScores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut scores = Self::default();
        for (name, value) in BTreeMap::<String, Option<f64>>::deserialize(deserializer)? {
            let metric: SplitMetric = name.parse().map_err(de::Error::custom)?;
            let Some(value) = value else { continue };
            let of_split = if metric.split == Split::Test { &mut scores.test } else { &mut scores.validation };
            *of_split = of_split.with(metric.kind, value);
        }
        Ok(scores)
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
        static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| SplitMetric::all().map(SplitMetric::name).collect());
        static KNOWN: LazyLock<Vec<&str>> = LazyLock::new(|| NAMES.iter().map(String::as_str).collect());
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(|_: NoSuchMetric| de::Error::unknown_variant(&name, &KNOWN))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ACCURACY, LOSS, MSE, NMSE};
    use super::*;

    #[test]
    fn names_are_composed_and_taken_apart() {
        let names: Vec<String> = SplitMetric::all().map(SplitMetric::name).collect();
        let keys = ["accuracy", "loss", "nmse", "mse", "mae", "bits_per_byte"];
        let on = |split: &str| keys.map(|key| format!("{split}_{key}"));
        assert_eq!(names, [on("test"), on("validation")].concat());
        for metric in SplitMetric::all() {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(metric.words(), format!("{} {}", metric.split, metric.kind.words));
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
    fn scores_of_both_sets_lie_flat_and_complete() {
        let test = Scores::default().with(&ACCURACY, 0.5).with(&LOSS, f64::NAN);
        let scores = SplitScores { test, validation: Scores::default().with(&LOSS, 2.0) };
        let text = serde_json::to_string(&scores).unwrap();
        let expected = r#"{"test_accuracy":0.5,"test_loss":null,"validation_accuracy":null,"validation_loss":2.0}"#;
        assert_eq!(text, expected);
        let read: SplitScores = serde_json::from_str(&text).unwrap();
        assert_eq!(read, SplitScores { test: Scores::default().with(&ACCURACY, 0.5), ..scores });
        assert!(serde_json::from_str::<SplitScores>(r#"{"train_loss":1.0}"#).is_err());

        let test = Scores::default().with(&NMSE, 0.5).with(&MSE, 1.0);
        let numbers = SplitScores { test, validation: Scores::default() };
        let text = serde_json::to_string(&numbers).unwrap();
        assert_eq!(text, r#"{"test_nmse":0.5,"test_mse":1.0,"validation_nmse":null,"validation_mse":null}"#);
        assert_eq!(serde_json::from_str::<SplitScores>(&text).unwrap(), numbers);
    }

    #[test]
    fn a_split_metric_finds_its_value() {
        let scores = |loss| Scores::default().with(&LOSS, loss);
        let of = |name: &str| name.parse::<SplitMetric>().unwrap().of(Some(&scores(1.0)), Some(&scores(2.0)));
        assert_eq!((of("test_loss"), of("validation_loss"), of("test_accuracy")), (Some(1.0), Some(2.0), None));
        assert_eq!("test_loss".parse::<SplitMetric>().unwrap().of(None, Some(&scores(2.0))), None);
    }
}
