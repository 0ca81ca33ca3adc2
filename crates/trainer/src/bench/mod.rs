//! What a training step takes: time by part, arithmetic against the machine's peak, memory.
//!
//! The step is the one that [`crate::training::train`] takes, from the same functions. A median over steps is given rather
//! than a mean, so that what else the machine does now and then doesn't count; quartiles tell whether it did.

pub mod growth;
pub mod matmul;
mod measurement;
mod step;
pub mod workload;

pub use measurement::{BenchError, Measurement, PartTimes};
pub use step::{Budget, measure};
pub use workload::{Sizes, Workload};
