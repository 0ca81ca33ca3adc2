//! The values of metrics, as lines of files have them.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{METRICS, MSE, MetricKind, OBJECTIVE};

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

    /// The value of `kind`; NaN where it was not measured.
    pub fn number(&self, kind: &MetricKind) -> f64 {
        self.get(kind).unwrap_or(f64::NAN)
    }

    /// What training made small: [`MSE`] where it was measured, or else [`LOSS`](super::LOSS).
    pub fn objective(&self) -> &'static MetricKind {
        if self.get(&MSE).is_some() { &MSE } else { OBJECTIVE }
    }

    /// The value of [`Scores::objective`]; NaN where nothing was measured.
    pub fn goal(&self) -> f64 {
        self.number(self.objective())
    }

    /// What was measured.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&'static MetricKind, f64)> {
        METRICS.iter().zip(self.0).filter_map(|(kind, value)| Some((kind, value?)))
    }

    /// What `change` makes of every value.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self(self.0.map(|value| value.map(&change)))
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

#[cfg(test)]
mod tests {
    use super::super::{ACCURACY, LOSS};
    use super::*;

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
}
