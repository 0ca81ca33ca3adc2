//! What decides which arm is better, by how much, and whether that can be told at all: pure functions on plain numbers.
//!
//! Random parts take a seed and give the same result on every machine. No result is NaN or infinite: input that would make
//! it so is an error that names the value. Nothing here knows of models or files, so that it serves whoever has numbers of
//! their own.
//!
//! Two arms, pair by pair:
//!
//! ```
//! use headcount_statistics::context::Context;
//! use headcount_statistics::{ArmScores, Beside, MetricScale, Outcome, Rules, Statement, compare_two_arms};
//!
//! let runs = |name: &str, accuracies: [f64; 6]| ArmScores::new(name, accuracies.map(Outcome::Finished).to_vec());
//! let found = compare_two_arms(
//!     &[0, 1, 2, 3, 4, 5],
//!     &runs("8 heads", [0.98, 0.99, 0.99, 0.99, 0.99, 0.99]),
//!     &runs("1 head", [0.57, 0.58, 0.59, 0.57, 0.58, 0.59]),
//!     &MetricScale::accuracy("test accuracy"),
//!     &Rules::new(0.02),
//!     &Beside::default(),
//! )?;
//! assert_eq!(found.statement, Statement::Better);
//! assert_eq!(
//!     found.sentence(&Context::unknown()),
//!     "8 heads beat 1 head by 0.408 in test accuracy, 0.988 against 0.580 (95 % interval 0.400 to 0.416; 6 pairs); \
//!      pairs like these do not exclude another outcome in up to 39 % of runs",
//! );
//! # Ok::<(), headcount_statistics::StatisticsError>(())
//! ```
//!
//! How many are enough:
//!
//! ```
//! use headcount_statistics::sweep::{Step, SweepAnswer, sweep};
//! use headcount_statistics::{ArmScores, MetricScale, Outcome, Rules};
//!
//! let step = |heads: f64, accuracy: f64| {
//!     let of_seed = |seed: u64| Outcome::Finished(accuracy + 0.001 * (seed % 3) as f64);
//!     Step { value: heads, scores: ArmScores::new(format!("{heads} heads"), (0..10).map(of_seed).collect()) }
//! };
//! let arms = [step(1.0, 0.593), step(2.0, 0.770), step(4.0, 0.993), step(8.0, 0.993)];
//! let seeds: Vec<u64> = (0..10).collect();
//! let found = sweep(&seeds, &arms, &MetricScale::accuracy("test accuracy"), &Rules::new(0.02))?;
//! assert_eq!(found.answer, SweepAnswer::Number { value: 4.0 });
//! # Ok::<(), headcount_statistics::StatisticsError>(())
//! ```
//!
//! # How often this errs
//!
//! At a margin m, with one look or several, in at most 5 % of experiments each: a false "better" or "worse" (2.5 %), a
//! false "equivalent", any falsely "sufficient" arm, any falsely "insufficient" one; for differences that are symmetric (two
//! arms of which one is shifted, however skewed each), and, each arm by itself, for arms that fail more often than
//! `max_failure` (30 %). Not claimed: an arm that fails by 1.0 in 10 % of its runs is called equivalent in 35 % at 10 pairs (each clean pair has a
//! chance of 0.9), and differences skewed themselves mislead the t interval. `docs/statistics.md` has the tables,
//! `examples/error_rates.rs` prints them.

pub mod bootstrap;
pub mod context;
pub mod describe;
pub mod estimate;
pub mod failures;
pub mod grid;
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

mod distributions;
mod error;
mod search;
mod sweep_sentence;
mod two_arms_sentence;
mod words;

pub use error::StatisticsError;
pub use outcome::{Direction, Outcome};
pub use pairs::ArmScores;
pub use rules::Rules;
pub use scale::MetricScale;
pub use statement::Statement;
pub use two_arms::{Beside, TwoArms, compare_two_arms};
