//! `test_scores.json`: what a run scored on each part of its test set, where all runs have the same one. An interval over runs alone
//! would leave out what other test samples would change.

use std::collections::BTreeMap;

use data::metrics::{MetricKind, Scores};
use serde::{Deserialize, Serialize};

/// The content of `test_scores.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TestScores {
    /// At the final step.
    pub last: ScoresByUnit,
    /// At the step with the best validation; `None` where that is the final one, or its checkpoint was damaged by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<ScoresByUnit>,
}

/// The scores of the units of a set: documents, stretches, or single samples, which say nothing of each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoresByUnit {
    /// Which they are, rising: [`data::Dataset::unit`].
    pub units: Vec<u64>,
    /// Scored positions of each, at least one.
    pub scored: Vec<u64>,
    /// The mean over these positions, by the metric's name.
    pub scores: BTreeMap<String, Vec<f64>>,
}

impl ScoresByUnit {
    /// Of units in any order, each with its scored positions and its scores.
    pub fn new(mut units: Vec<(u64, u64, Scores)>) -> Self {
        units.sort_by_key(|(unit, ..)| *unit);
        let mut of = Self::default();
        for (unit, scored, scores) in units {
            of.units.push(unit);
            of.scored.push(scored);
            for (kind, value) in scores.iter() {
                of.scores.entry(kind.key.into()).or_default().push(value);
            }
        }
        of
    }

    /// A value for each unit, all of one weight, whose mean is the metric over all scored positions: a unit's distance from that
    /// counts by its share of the positions (the residuals of a ratio of two means: Cochran 1977, Sampling Techniques, section
    /// 2.11). `None` where the metric was not measured, or there are fewer than two units.
    pub fn of_equal_weight(&self, kind: &MetricKind) -> Option<Vec<f64>> {
        let values = self.scores.get(kind.key)?;
        if values.len() != self.scored.len() || values.len() < 2 {
            return None;
        }
        let total: f64 = self.scored.iter().map(|&scored| scored as f64).sum();
        let weighted = || values.iter().zip(&self.scored).map(|(value, &scored)| (value, scored as f64));
        let mean = weighted().map(|(value, scored)| value * scored).sum::<f64>() / total;
        let per_unit = total / values.len() as f64;
        Some(weighted().map(|(value, scored)| mean + (value - mean) * scored / per_unit).collect())
    }
}

#[cfg(test)]
mod tests {
    use data::metrics::{ACCURACY, LOSS};

    use super::*;

    #[test]
    fn values_of_equal_weight_have_the_mean_of_all_positions() {
        let scores = |accuracy: f64| Scores::default().with(&ACCURACY, accuracy);
        let by_unit = ScoresByUnit::new(vec![(7, 1, scores(1.0)), (2, 3, scores(0.0)), (9, 4, scores(0.5))]);
        assert_eq!((by_unit.units.clone(), by_unit.scored.clone()), (vec![2, 7, 9], vec![3, 1, 4]));
        let values = by_unit.of_equal_weight(&ACCURACY).unwrap();
        let mean = values.iter().sum::<f64>() / 3.0;
        assert!((mean - 3.0 / 8.0).abs() < 1e-12, "{values:?}");
        assert_eq!(by_unit.of_equal_weight(&LOSS), None);
        // Of equal sizes they are the units' own.
        let equal = ScoresByUnit::new(vec![(0, 2, scores(0.25)), (1, 2, scores(0.75))]);
        assert_eq!(equal.of_equal_weight(&ACCURACY), Some(vec![0.25, 0.75]));
        let text = serde_json::to_string(&equal).unwrap();
        assert_eq!(text, r#"{"units":[0,1],"scored":[2,2],"scores":{"accuracy":[0.25,0.75]}}"#);
    }
}
