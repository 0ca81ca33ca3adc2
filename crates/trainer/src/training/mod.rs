//! The way of a sample: config file, task, host batch ([`data`]), device tensors ([`batch`]), [`model`], loss and gradient
//! ([`gradient`]), update ([`optimiser`]), metric line and checkpoint (`record`). [`train`](mod@train) is that way from top
//! to bottom.

pub use analysis::batch;

pub mod arm;
pub mod evaluate;
pub mod gradient;
pub mod manifest;
pub mod observer;
pub mod optimiser;
mod record;
pub mod schedule;
pub mod train;
