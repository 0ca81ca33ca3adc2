//! `summary.json`: how a run ended. It is written last, so its presence means that the run is done, and it holds no
//! wall-clock figures, so that it is byte-comparable.

use std::path::Path;

use data::metrics::Scores;
use serde::{Deserialize, Serialize};

use crate::{error::RunError, limits, origin::Origin, sealed};

/// The step that is best by the objective ([`Scores::objective`]) on the validation set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Optimiser steps done by then.
    pub step: u64,
    /// The validation set then.
    #[serde(flatten)]
    pub scores: Scores,
}

impl Best {
    /// The better of `best` and a new measurement, the earlier step where they are equal. What isn't finite is never best.
    pub fn of(best: Option<Self>, step: u64, scores: Scores) -> Option<Self> {
        let value = scores.goal();
        let is_better =
            value.is_finite() && best.is_none_or(|best| scores.objective().is_better(value, best.scores.goal()));
        if is_better { Some(Self { step, scores }) } else { best }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// All steps were done.
    Finished,
    /// The loss or the gradient was no longer finite; such a run counts as a failure, it is never dropped.
    Diverged {
        /// The step at which that was seen.
        #[serde(rename = "diverged_at")]
        step: u64,
    },
}

/// The content of `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How the run ended.
    #[serde(flatten)]
    pub status: Status,
    /// Optimiser steps done.
    pub steps: u64,
    /// Training tokens read, padding included.
    pub tokens: u64,
    /// The validation set at the final step.
    pub validation: Option<Scores>,
    /// The test set at the final step: the primary metric.
    pub test: Option<Scores>,
    /// The step with the best validation.
    pub best: Option<Best>,
    /// The test set at that step, of a run that finished; `None` where the checkpoint of that step was damaged by then.
    pub best_test: Option<Scores>,
    /// BLAKE3 of `metrics.jsonl` as it was then, 64 hex digits.
    pub metrics: String,
    /// The run that ended.
    pub origin: Origin,
}

impl Summary {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        sealed::write(path, self)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Where there is none, or it is damaged, naming file and line.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        sealed::read(path, limits::SUMMARY)
    }
}

#[cfg(test)]
mod tests {
    use data::metrics::{ACCURACY, LOSS};

    use super::*;

    #[test]
    fn summaries_go_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        let score = Scores::default().with(&LOSS, 0.034).with(&ACCURACY, 0.992);
        let best = Best::of(None, 750, score);
        let summary = Summary {
            status: Status::Diverged { step: 790 },
            steps: 790,
            tokens: 1_617_920,
            validation: Some(score),
            test: None,
            best,
            best_test: Some(score),
            metrics: "aa".into(),
            origin: Origin { config: "seed = 1\n".into(), data: "bb".into(), weights: "cc".into() },
        };
        summary.write(&path).unwrap();
        assert_eq!(Summary::read(&path).unwrap(), summary);
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        {
          "status": "diverged",
          "diverged_at": 790,
          "steps": 790,
          "tokens": 1617920,
          "validation": {
            "loss": 0.034,
            "accuracy": 0.992
          },
          "test": null,
          "best": {
            "step": 750,
            "loss": 0.034,
            "accuracy": 0.992
          },
          "best_test": {
            "loss": 0.034,
            "accuracy": 0.992
          },
          "metrics": "aa",
          "origin": {
            "config": "seed = 1\n",
            "data": "bb",
            "weights": "cc"
          },
          "blake3": "5a1a6efd08f7b6528223a4c6d311509c8a843f7d1b165f6ce41d0a2e312c7246"
        }
        "#);
        let finished = Summary { status: Status::Finished, test: Some(score), ..summary };
        finished.write(&path).unwrap();
        assert_eq!(Summary::read(&path).unwrap(), finished);
        assert!(!path.with_extension("json.tmp").exists());
    }

    #[test]
    fn a_summary_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        sealed::write(&path, &serde_json::json!({ "status": "finished", "steps": "oops" })).unwrap();
        let error = Summary::read(&path).unwrap_err().to_string();
        assert!(error.contains("summary.json:") && error.contains("invalid type"), "{error}");
    }

    #[test]
    fn the_best_is_the_smallest_finite_loss_and_the_earliest() {
        let score = |loss| Scores::default().with(&LOSS, loss).with(&ACCURACY, 0.5);
        let best = Best::of(None, 1, score(f64::NAN));
        assert_eq!(best, None);
        let best = Best::of(best, 2, score(1.0));
        let best = Best::of(best, 3, score(1.0));
        let best = Best::of(best, 4, score(f64::NAN));
        assert_eq!(best.map(|best| best.step), Some(2));
        assert_eq!(Best::of(best, 5, score(0.5)).map(|best| best.step), Some(5));
    }
}
