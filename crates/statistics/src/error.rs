//! What can be wrong with the numbers handed to a statistic.

use thiserror::Error;

/// Why a statistic cannot be computed. One variant a failure, naming the values.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatisticsError {
    /// Fewer values than the statistic needs.
    #[error("{what}: needs at least {needed} value(s), got {got}")]
    TooFew { what: &'static str, needed: usize, got: usize },
    /// Two lists that must correspond one to one do not.
    #[error("{first} has {first_length} value(s) but {second} has {second_length}")]
    LengthsDiffer { first: String, first_length: usize, second: String, second_length: usize },
    /// A NaN, an infinity, or a number beyond ±1e300, where sums would overflow.
    #[error("{what}: value {value} at index {index} is not a finite number (within ±1e300)")]
    NotFinite { what: &'static str, index: usize, value: f64 },
    /// A run said to be finished has a result that is not a number; such a run is `Outcome::Diverged`.
    #[error("arm `{arm}`, seed {seed}: result {value} of a finished run is not a finite number")]
    OutcomeNotFinite { arm: String, seed: u64, value: f64 },
    /// A result better than the metric allows: per cent where a fraction is meant, say.
    #[error("arm `{arm}`, seed {seed}: result {value} is better than the best possible value {best}")]
    OutcomeBeyondBest { arm: String, seed: u64, value: f64, best: f64 },
    /// Two arms of a sweep with one value.
    #[error("value {value} is swept twice")]
    SweptTwice { value: f64 },
    /// Looks that do not rise, or of which one sees too few pairs.
    #[error("looks at {looks:?} pairs: must rise from at least {fewest}")]
    LooksNotRising { looks: Vec<usize>, fewest: usize },
    /// A setting outside its range.
    #[error("{what} is {value}, must be {must_be}")]
    OutOfRange { what: &'static str, value: f64, must_be: &'static str },
    /// More successes than trials.
    #[error("{successes} successes in {trials} trials")]
    MoreSuccessesThanTrials { successes: u64, trials: u64 },
    /// Weights that add up to nothing.
    #[error("{what}: all {got} weights are 0")]
    NoWeight { what: &'static str, got: usize },
    /// One seed twice: its runs would be counted as if they were independent.
    #[error("seed {seed} is listed twice")]
    SeedTwice { seed: u64 },
    /// Steps of a curve that do not rise.
    #[error("logged step {step} comes after step {previous}")]
    StepsNotRising { previous: u64, step: u64 },
}

/// The largest magnitude accepted: sums of a million such values are still finite.
const LARGEST: f64 = 1e300;

/// Checks that every value is finite and within ±1e300, and that there are at least `needed`.
pub(crate) fn check_values(what: &'static str, values: &[f64], needed: usize) -> Result<(), StatisticsError> {
    if values.len() < needed {
        let got = values.len();
        return Err(StatisticsError::TooFew { what, needed, got });
    }
    match values.iter().position(|value| !is_usable(*value)) {
        None => Ok(()),
        Some(index) => Err(StatisticsError::NotFinite { what, index, value: values[index] }),
    }
}

/// Whether a value is finite and within ±1e300.
pub(crate) fn is_usable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// Checks a confidence level: strictly between 0 and 1.
pub(crate) fn check_level(level: f64) -> Result<(), StatisticsError> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(StatisticsError::OutOfRange {
        what: "confidence level",
        value: level,
        must_be: "between 0 and 1, both excluded",
    })
}
