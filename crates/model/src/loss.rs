//! Cross-entropy at scored positions.

pub use kernels::cross_entropy;
