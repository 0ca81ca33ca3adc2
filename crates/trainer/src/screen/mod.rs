//! What a user sees: [`output`] prints every line, [`text`] knows how numbers are written, the others show how runs go.

pub mod busy;
pub mod dashboard;
pub mod jobs;
pub mod output;
pub mod progress;
pub mod text;
