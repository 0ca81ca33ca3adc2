//! What a model is and what it costs, in plain numbers: whoever reads runs or writes reports needs no Burn for it.
//!
//! - what its user chooses: [`ModelConfig`]; what the task gives: [`Dims`]; what can't be built: [`ModelError`]
//! - the sizes of one attention: [`AttentionConfig`]; every kind of positions and what it does: [`Positions`]
//! - every parameter by path, with its shape and what it is drawn from: [`parameters()`]
//! - parameters and FLOPs by part: [`cost`], in [`Parts`]
//! - its weights outside of it: [`HostTensor`]
//!
//! `headcount-model` builds what is described here.

mod attention;
mod config;
pub mod cost;
mod error;
mod init;
mod parameters;
mod parts;
mod positions;
mod tensor;

pub use attention::{AttentionConfig, Merge, ScoreScale};
pub use config::{Architecture, Dims, MlpActivation, ModelConfig, Norm, NormKind, SourceDims};
pub use error::ModelError;
pub use init::{Init, Initial};
pub use parameters::{Parameter, parameters};
pub use parts::Parts;
pub use positions::{Added, PositionKind, Positions};
pub use tensor::HostTensor;
