//! Attention, masks, positions, blocks, the decoder and its encoder, as Burn modules that know nothing of training.
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
//! | N | scored positions of a batch |
//!
//! A mask has one meaning everywhere: `true` = this connection is forbidden.
//! Linear layers compute `x · W + b` with `W` `[d_in, d_out]` (PyTorch stores the transpose).

pub mod attention;
pub mod block;
pub mod cache;
pub mod decoder;
pub mod dropout;
pub mod encoder;
pub mod loss;
pub mod mask;
pub mod positions;
pub mod tensors;
pub mod trace;
pub mod weights;

mod random;

pub use attention::{Attention, AttentionCall, AttentionOutput};
pub use cache::Cache;
pub use decoder::{Call, CallError, Decoder, Output, Source};
pub use dropout::Dropout;
pub use encoder::Encoder;
pub use mask::{Mask, MaskError};
pub use trace::Trace;
