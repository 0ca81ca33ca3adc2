//! What a model is and what it costs, in plain numbers: whoever reads runs or writes reports needs no Burn for it.
//!
//! - what its user chooses: [`ModelConfig`]; what the task gives: [`Dims`]; what can't be built: [`ModelError`]
//! - parameters and FLOPs by part: [`cost`], in [`Parts`]
//! - its weights outside of it: [`HostTensor`]
//!
//! `headcount-model` builds what is described here.

pub mod config;
pub mod cost;
mod parts;
mod tensor;

pub use config::{Architecture, Dims, Init, Merge, ModelConfig, ModelError, Norm, Positions, SourceDims};
pub use parts::Parts;
pub use tensor::HostTensor;
