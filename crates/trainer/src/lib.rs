//! The training loop and the command line of Headcount.
//!
//! The way of a sample: config file, task, host batch ([`data`]), device tensors ([`batch`]), [`model`], loss, optimiser
//! ([`optimiser`]), metric line and checkpoint ([`runs`]). [`train`](mod@train) is that way from top to bottom.

pub mod allocator;
pub mod arm;
pub mod backend;
pub mod batch;
pub mod bench;
pub mod board;
pub mod cli;
pub mod commands;
pub mod dashboard;
pub mod doctor;
pub mod evaluate;
pub mod generate;
pub mod interrupt;
pub mod machine;
pub mod manifest;
pub mod memory;
pub mod observer;
pub mod optimiser;
pub mod parts;
pub mod progress;
pub mod schedule;
pub mod train;
pub mod workers;
