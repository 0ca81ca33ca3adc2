//! The kernels themselves: on slices of f32, without Burn's tensors, save where the strides of one are read.

pub(crate) mod adamw;
pub(crate) mod attention;
pub(crate) mod buffer;
pub(crate) mod cross_entropy;
pub(crate) mod layer_norm;
pub(crate) mod linear;
mod matmul;
mod simd;
mod threads;
mod transpose;

pub(crate) use matmul::Matrix;
