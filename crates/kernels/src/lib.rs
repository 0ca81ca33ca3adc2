//! Fused operations with their own backward pass for the CPU.
//!
//! Each operation is one public function on tensors. On the flex backend, in f32, it runs a kernel of this crate, forward
//! and backward; on every other backend and type it is the plain composition of Burn's operations, which stands beside it
//! as `plain`. That choice is made in one place, [`is_fused`], and the two are tested against each other and against f64.
//!
//! Results of the kernels don't depend on the number of threads: work is cut by the size of the problem alone, and
//! partial sums are added in order. They may differ in last bits between processors with other vector instructions.
//!
//! Shapes: B samples, L positions (Lq queries, Lk keys), D d_model, H heads, G key/value heads, K d_head, N rows, I inputs
//! and O outputs of a layer, V classes. A mask has one meaning: `true` = forbidden.

pub mod adamw;
pub mod attention;
pub mod cross_entropy;
pub mod layer_norm;
pub mod linear;
pub mod mask;

mod activation;
mod backend;
mod level;

#[cfg(feature = "flex")]
mod extension;
#[cfg(feature = "flex")]
mod fused;

pub use activation::Activation;
pub use attention::{Attending, Projection, attention, self_attention};
pub use backend::{in_pool, is_fused};
pub use cross_entropy::cross_entropy;
pub use layer_norm::layer_norm;
pub use level::{LEVEL_VARIABLE, Level, LevelError, level};
pub use linear::linear;
pub use mask::{AttentionMask, MaskError, PreparedMask};
