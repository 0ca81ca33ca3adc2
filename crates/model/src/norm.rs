//! Norms of the stream.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use kernels::layer_norm;

/// Added to the variance in every layer norm, as in PyTorch.
const NORM_EPSILON: f64 = 1e-5;

/// A norm of the stream; see [`architecture::NormKind`].
///
/// | parameter | shape |
/// |---|---|
/// | `gamma`, `beta` | `[D]`, of a layer norm |
/// | `factor` | `[1]`, where positions get length 1 |
#[derive(Module, Debug)]
pub struct StreamNorm {
    pub(crate) gamma: Option<Param<Tensor<1>>>,
    pub(crate) beta: Option<Param<Tensor<1>>>,
    pub(crate) factor: Option<Param<Tensor<1>>>,
}

impl StreamNorm {
    /// `[..., D]` to the same shape.
    pub fn forward<const N: usize>(&self, x: Tensor<N>) -> Tensor<N> {
        match (&self.gamma, &self.beta, &self.factor) {
            (Some(gamma), Some(beta), _) => layer_norm(x, gamma.val(), beta.val(), NORM_EPSILON),
            (_, _, Some(factor)) => {
                // A position of zeros stays one, with a gradient that is finite.
                let length = (x.clone() * x.clone()).sum_dim(N - 1).add_scalar(SMALLEST_SQUARE).sqrt();
                x / length * factor.val().unsqueeze::<N>()
            }
            _ => x,
        }
    }
}

/// Added to the square of a length that is divided by.
const SMALLEST_SQUARE: f32 = 1e-24;

/// The norm of `x`, or `x` where there is none.
pub(crate) fn normed<const N: usize>(norm: &Option<StreamNorm>, x: Tensor<N>) -> Tensor<N> {
    match norm {
        Some(norm) => norm.forward(x),
        None => x,
    }
}
