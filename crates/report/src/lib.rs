//! Results of experiments, and how they are told: files, figures, a page, a summary in the terminal. Without Burn: whatever
//! it shows was computed by others and is read from run directories.
//!
//! An experiment's folder is read once, in two steps, as its learning rates are known only once its tuning runs are done:
//! [`TunedExperiment`], then [`ExperimentRuns`]. From that, and from what the analysis of heads makes of it, comes an
//! [`ExperimentReport`], whose [`ExperimentReport::write`] writes every file.
//!
//! - what was found: [`results`], with the choice of learning rates in [`tuning`]
//! - how many pairs an experiment will need: [`pilot`]
//! - what heads do across seeds: [`heads`]
//! - results of others, from a table: [`table`]
//! - how it is told: [`figures`], [`page`], [`terminal`], [`tables`]
//! - numbers and text for people: [`text`]

pub mod figures;
pub mod heads;
pub mod page;
pub mod pilot;
pub mod reading;
pub mod results;
pub mod table;
pub mod tables;
pub mod terminal;
pub mod text;
pub mod tuning;

mod deciding;
mod experiment_report;
mod limits;

pub use experiment_report::ExperimentReport;
pub use reading::{ExperimentRuns, TunedExperiment};
pub use results::{Decision, Results, ResultsError, decision};
pub use tuning::TuningTable;
