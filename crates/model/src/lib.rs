//! Attention, positions, blocks, the decoder and its encoder, as Burn modules that know nothing of training.
//!
//! What can be built is described by `headcount-architecture`; masks and what runs between projections are those of
//! `headcount-kernels`.
//!
//! One legend for every shape in this crate:
//!
//! | letter | meaning |
//! |---|---|
//! | B | batch |
//! | L, Lq, Lk | length; query length, key length |
//! | Ls | length of the source, which an encoder reads |
//! | D | `d_model`, the width of the residual stream |
//! | H, G | query heads, key/value heads |
//! | K | `d_head`, the width of one head |
//! | F | `d_ff`, the width of the MLP |
//! | V | vocabulary |
//! | I | numbers read at a position, where no tokens are |
//! | N | scored positions of a batch |
//!
//! A mask ([`kernels::AttentionMask`]) has one meaning everywhere: `true` = this connection is forbidden.
//! Linear layers compute `x · W + b` with `W` `[d_in, d_out]` (PyTorch stores the transpose).

pub mod attention;
pub mod block;
pub mod cache;
pub mod call;
pub mod decoder;
pub mod dropout;
pub mod embedding;
pub mod encoder;
pub mod initial;
pub mod layers;
pub mod norm;
pub mod parameters;
pub mod positions;
pub mod trace;

mod random;

pub use attention::{Attention, AttentionCall, AttentionOutput};
pub use cache::Cache;
pub use call::{Call, CallError, Gating, Input, Output, Resume, Source};
pub use decoder::Decoder;
pub use dropout::Dropout;
pub use encoder::Encoder;
pub use trace::Trace;
