//! What decides which arm is better, by how much, and whether that can be told at all: pure functions on plain numbers.
//!
//! Random parts take a seed and give the same result on every machine. No result is NaN or infinite: input that would make
//! it so is an error that names the value. Nothing here knows of models or files, so that it serves whoever has numbers of
//! their own.
//!
//! ```
//! use headcount_statistics::{ArmRuns, Direction, Metric, Outcome, Settings, Verdict, compare};
//!
//! let runs = |name: &str, accuracies: [f64; 6]| ArmRuns {
//!     name: name.into(),
//!     outcomes: accuracies.map(Outcome::Finished).to_vec(),
//! };
//! let accuracy = Metric { name: "test accuracy".into(), direction: Direction::HigherIsBetter, worst: 0.0 };
//! let comparisons = compare(
//!     &[0, 1, 2, 3, 4, 5],
//!     &runs("1", [0.57, 0.58, 0.59, 0.57, 0.58, 0.59]),
//!     &[runs("8 heads", [0.98, 0.99, 0.99, 0.99, 0.99, 0.99])],
//!     &Settings::new(accuracy, 0.02),
//! )?;
//! assert_eq!(comparisons[0].verdict, Verdict::Better);
//! assert_eq!(
//!     comparisons[0].sentence(800),
//!     "after 800 steps, 8 heads beat 1 by 0.4083 (95 % interval 0.4004 to 0.4162) in test accuracy, 6 pairs",
//! );
//! # Ok::<(), headcount_statistics::StatisticsError>(())
//! ```

pub mod bootstrap;
pub mod comparison;
pub mod context;
pub mod describe;
pub mod estimate;
pub mod failures;
pub mod grid;
pub mod holm;
pub mod interval;
pub mod looks;
pub mod mean_curve;
pub mod outcome;
pub mod pairs;
pub mod plan;
pub mod power;
pub mod prediction;
pub mod robust;
pub mod rules;
pub mod scale;
pub mod sign_flip;
pub mod solving;
pub mod stability;
pub mod statement;
pub mod steps;
pub mod sweep;
pub mod two_arms;
pub mod verdict;

mod distributions;
mod error;
mod sentence;
mod sweep_sentence;
mod two_arms_sentence;
mod words;

pub use comparison::{ArmRuns, Comparison, Metric, Settings, compare};
pub use error::StatisticsError;
pub use outcome::{Direction, Outcome};
pub use verdict::{Undecided, Verdict};
