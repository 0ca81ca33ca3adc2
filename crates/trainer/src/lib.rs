//! The training loop and the command line of Headcount.
//!
//! - [`training`]: the way of a sample, from a config to a finished run directory
//! - [`machine`]: where it computes: backends, memory, the allocator, signals
//! - [`screen`]: what its user sees: lines, progress, the dashboard
//! - [`workers`]: many runs at once, each a process of its own
//! - [`generate`], [`mod@bench`], [`doctor`]: what else can be asked of a model
//! - [`commands`]: what each command takes and does; [`cli`] is the whole of them

#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod bench;
pub mod cli;
pub mod commands;
pub mod doctor;
pub mod generate;
pub mod machine;
pub mod screen;
pub mod training;
pub mod workers;
