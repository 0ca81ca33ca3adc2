//! What the crate promises, from outside, on every backend: agreement with PyTorch, masks, heads, caches, initial weights.
//!
//! Each check is a function of a [`support::Backend`]. The CPU backends run one test a check; wgpu runs them all in one
//! test, since opening its adapter takes seconds.

#[macro_use]
mod support;

mod attention;
mod cache;
mod decoder;
mod encoder_decoder;
mod heads;
mod numbers;
mod parameters;
mod reports;
mod wgpu;
