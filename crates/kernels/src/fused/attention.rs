//! Attention in the plane, one (sample, key head) at a time, without keeping a map: the weights of a tile live in registers
//! and are computed again on the way back (Dao 2022, FlashAttention, sections 3.1 and B.2; here in two passes over a block,
//! since rows of these lengths fit into the cache).
//!
//! W is the number of lanes of a vector. A block is W queries, one a lane; a tile is a block against W keys. Every matrix is
//! packed once into panels `[L/W][K][W]`: read as vectors it is a block, read number by number (each broadcast to all lanes)
//! the other side of a tile. So heads of width 8 cost as little a product as wide ones, and no sum runs across lanes. Only the
//! sums over queries, for the gradients of keys and values, have columns in their lanes. With a causal mask, tiles in the
//! future are skipped.

mod backward;
mod forward;
mod heads;
mod lanes;
mod masks;
mod panels;

pub(crate) use backward::backward;
pub(crate) use forward::forward;
pub(crate) use heads::{Heads, Sizes, readable};
pub(crate) use masks::{Dropped, Forbidden, Marks, Weighting};
pub(crate) use panels::Target;
