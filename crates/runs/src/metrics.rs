//! `metrics.jsonl` and `timing.jsonl`: what was measured, and how long it took.
//!
//! The two are apart so that `metrics.jsonl` is byte-comparable between runs. Numbers are written with as few digits as
//! read back to the same f64. NaN and infinities, which JSON lacks, are written as `null`, and a line that holds one
//! says `"diverged": true`; both read well in pandas (`pandas.read_json(path, lines=True)`).

use std::path::Path;

use data::{Split, metrics::Scores};
use serde::{Deserialize, Serialize};

use crate::{
    error::RunError,
    finite,
    log::{self, Line, Log},
    origin::Origin,
};

/// A line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLine {
    /// Optimiser steps done, from 1; 0 is the untrained model.
    pub step: u64,
    /// Which set was measured: for training, the step's own batch before its update.
    pub split: Split,
    /// What was measured.
    pub scores: Scores,
    /// Learning rate of the step; training only.
    pub lr: Option<f64>,
    /// Global L2 norm of the gradient before clipping; training only.
    pub grad_norm: Option<f64>,
    /// Training tokens read so far, padding included.
    pub tokens: u64,
}

impl MetricLine {
    /// Whether a number isn't finite.
    pub fn diverged(&self) -> bool {
        !self.scores.are_finite() || [self.lr, self.grad_norm].into_iter().flatten().any(|x| !x.is_finite())
    }
}

/// [`MetricLine`] as it is written. Fields that nobody knows are refused by the scores, which would have to take them.
#[derive(Serialize, Deserialize)]
struct Written {
    step: u64,
    split: Split,
    #[serde(flatten)]
    scores: Scores,
    #[serde(with = "finite::optional", default, skip_serializing_if = "Option::is_none")]
    lr: Option<f64>,
    #[serde(with = "finite::optional", default, skip_serializing_if = "Option::is_none")]
    grad_norm: Option<f64>,
    tokens: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    diverged: bool,
}

impl Serialize for MetricLine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { step, split, scores, lr, grad_norm, tokens } = *self;
        Written { step, split, scores, lr, grad_norm, tokens, diverged: self.diverged() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MetricLine {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { step, split, scores, lr, grad_norm, tokens, diverged: _ } = Written::deserialize(deserializer)?;
        Ok(Self { step, split, scores, lr, grad_norm, tokens })
    }
}

impl Line for MetricLine {
    fn step(&self) -> u64 {
        self.step
    }

    fn what(&self) -> &'static str {
        self.split.name()
    }
}

/// A line of `timing.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimingLine {
    /// Optimiser steps done.
    pub step: u64,
    /// Wall-clock seconds since the run began, interruptions left out.
    #[serde(with = "finite")]
    pub seconds: f64,
    /// Training tokens a second since the line before.
    #[serde(with = "finite")]
    pub tokens_per_second: f64,
    /// [`crate::Origin::id`] of the run that took it.
    pub run: String,
}

impl Line for TimingLine {
    fn step(&self) -> u64 {
        self.step
    }

    fn what(&self) -> &'static str {
        "timing"
    }
}

/// `metrics.jsonl`, open for appending.
pub type MetricsLog = Log<MetricLine>;

/// `timing.jsonl`, open for appending.
pub type TimingLog = Log<TimingLine>;

/// Reads `metrics.jsonl`; a last line that was cut off is left out.
///
/// # Errors
/// Where there is no such file, or a line is damaged, naming file and line.
pub fn read_metrics(path: &Path) -> Result<Vec<MetricLine>, RunError> {
    log::read(path)
}

/// Reads `timing.jsonl`, as [`read_metrics`] does.
///
/// # Errors
/// As [`read_metrics`].
pub fn read_timings(path: &Path) -> Result<Vec<TimingLine>, RunError> {
    log::read(path)
}

/// [`read_timings`], where all of it must be of the run `origin`.
///
/// # Errors
/// As [`read_timings`], and [`RunError::OtherTimings`].
pub fn read_timings_of(path: &Path, origin: &Origin) -> Result<Vec<TimingLine>, RunError> {
    let (timings, expected) = (read_timings(path)?, origin.id());
    match timings.iter().find(|line| line.run != expected) {
        Some(line) => Err(RunError::OtherTimings { path: path.into(), found: line.run.clone(), expected }),
        None => Ok(timings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data::metrics::{ACCURACY, LOSS};
    use proptest::prelude::*;
    use std::fs;

    fn metric(step: u64, split: Split) -> MetricLine {
        let train = split == Split::Train;
        MetricLine {
            step,
            split,
            scores: Scores::default().with(&LOSS, 2.0 / (step + 1) as f64).with(&ACCURACY, 0.1),
            lr: train.then_some(3e-3),
            grad_norm: train.then_some(1.0 / 3.0),
            tokens: step * 2048,
        }
    }

    fn write(path: &Path, steps: impl IntoIterator<Item = u64>) {
        let mut log = MetricsLog::open(path).unwrap();
        for step in steps {
            log.append(&metric(step, Split::Train)).unwrap();
            if step.is_multiple_of(50) {
                log.append(&metric(step, Split::Validation)).unwrap();
            }
        }
        log.sync().unwrap();
    }

    #[test]
    fn lines_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        write(&path, 49..=50);
        insta::assert_snapshot!(fs::read_to_string(&path).unwrap(), @r#"
        {"step":49,"split":"train","loss":0.04,"accuracy":0.1,"lr":0.003,"grad_norm":0.3333333333333333,"tokens":100352}
        {"step":50,"split":"train","loss":0.0392156862745098,"accuracy":0.1,"lr":0.003,"grad_norm":0.3333333333333333,"tokens":102400}
        {"step":50,"split":"validation","loss":0.0392156862745098,"accuracy":0.1,"tokens":102400}
        "#);
        let read = read_metrics(&path).unwrap();
        assert_eq!(read, [metric(49, Split::Train), metric(50, Split::Train), metric(50, Split::Validation)]);
    }

    /// Resumed at 100 after logging 150: no step is logged twice, and the file is what an uninterrupted run writes.
    #[test]
    fn lightning_13163_resume_logs_no_step_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (resumed, whole) = (folder.path().join("resumed.jsonl"), folder.path().join("whole.jsonl"));
        write(&resumed, 1..=150);
        let log = MetricsLog::open(&resumed).unwrap();
        assert_eq!(log.last_step(), Some(150));
        drop(log);
        let mut log = MetricsLog::open_until(&resumed, 100).unwrap();
        assert_eq!(log.last_step(), Some(100));
        // Step 100 is in the checkpoint, its lines are in the file.
        let error = log.append(&metric(100, Split::Validation)).unwrap_err().to_string();
        assert!(error.contains("step 100 (validation)") && error.contains("resumed.jsonl"), "{error}");
        drop(log);
        write(&resumed, 101..=200);
        write(&whole, 1..=200);
        assert_eq!(fs::read(&resumed).unwrap(), fs::read(&whole).unwrap());
        let mut seen: Vec<_> = read_metrics(&resumed).unwrap().iter().map(|m| (m.step, m.split)).collect();
        let lines = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), lines);
    }

    /// What is hashed line by line is the file, however often it was opened and cut.
    #[test]
    fn the_hash_that_is_kept_is_the_file_s() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        let of_file = || blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string();
        write(&path, 1..=60);
        assert_eq!(MetricsLog::open(&path).unwrap().hash(), of_file());
        let mut log = MetricsLog::open_until(&path, 50).unwrap();
        assert_eq!(log.hash(), of_file());
        for step in 51..=55 {
            log.append(&metric(step, Split::Train)).unwrap();
            log.sync().unwrap();
            assert_eq!(log.hash(), of_file());
        }
    }

    #[test]
    fn a_cut_last_line_is_dropped_wherever_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        write(&path, 1..=3);
        let whole = fs::read(&path).unwrap();
        let second_end = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0 + 1;
        for cut in second_end..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(read_metrics(&path).unwrap().len(), 2);
            write(&path, [3]);
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_damaged_line_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.jsonl");
        write(&path, 1..=3);
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [("\"step\":2", "\"step\":-2"), ("\"step\":2", "\"stop\":2"), ("{\"step\":2", "\0")] {
            fs::write(&path, text.replace(from, to)).unwrap();
            for error in [read_metrics(&path).map(|_| ()), MetricsLog::open(&path).map(|_| ())] {
                let error = error.unwrap_err().to_string();
                assert!(error.contains("metrics.jsonl:2:"), "{error}");
            }
        }
    }

    #[test]
    fn numbers_that_json_lacks_are_null_and_marked() {
        let line = metric(7, Split::Train);
        let scores = line.scores.with(&LOSS, f64::NAN);
        let diverged = MetricLine { scores, grad_norm: Some(f64::INFINITY), ..line };
        let text = serde_json::to_string(&diverged).unwrap();
        insta::assert_snapshot!(text, @r#"{"step":7,"split":"train","loss":null,"accuracy":0.1,"lr":0.003,"grad_norm":null,"tokens":14336,"diverged":true}"#);
        let read: MetricLine = serde_json::from_str(&text).unwrap();
        assert!(read.scores.get(&LOSS).unwrap().is_nan() && read.grad_norm.unwrap().is_nan() && read.diverged());
        assert_eq!(read.lr, diverged.lr);
    }

    #[test]
    fn timings_go_both_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timing.jsonl");
        let timing =
            |step| TimingLine { step, seconds: step as f64 / 3.0, tokens_per_second: 12345.678, run: "ab".into() };
        let mut log = TimingLog::open(&path).unwrap();
        for step in 1..=4 {
            log.append(&timing(step)).unwrap();
        }
        drop(log);
        TimingLog::open_until(&path, 2).unwrap();
        assert_eq!(read_timings(&path).unwrap(), [timing(1), timing(2)]);
    }

    proptest! {
        #[test]
        fn every_finite_number_comes_back(bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let line = metric(1, Split::Train);
            let metric = MetricLine { scores: line.scores.with(&LOSS, number), grad_norm: Some(number), ..line };
            let read: MetricLine = serde_json::from_str(&serde_json::to_string(&metric).unwrap()).unwrap();
            prop_assert_eq!(read.scores.get(&LOSS).map(f64::to_bits), Some(bits));
            prop_assert_eq!(read.grad_norm.map(f64::to_bits), Some(bits));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("metrics.jsonl");
            fs::write(&path, bytes).unwrap();
            let _ = read_metrics(&path);
            let _ = MetricsLog::open(&path);
        }
    }
}
