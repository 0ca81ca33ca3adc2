//! Results of experiments and what each attention head does.
//!
//! [`results`] reads an experiment's run directories and writes its results; [`figures`] draws them, [`terminal`] tells
//! them in a terminal, [`page`] on a page that works offline. [`heads`] measures what each attention head does. Nothing here
//! trains.

pub mod figures;
pub mod heads;
pub mod page;
pub mod results;
pub mod terminal;

pub use results::{Report, Results, ResultsError, TuningTable, rebuild};
