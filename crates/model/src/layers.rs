//! The layers between attentions: norms, linear layers, MLPs.

use architecture::ModelConfig;
use burn::module::Module;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use kernels::{Activation, layer_norm, linear};

use crate::initial::{InitialWeights, NORM_EPSILON};

/// `D → F → D` with the exact GELU between.
///
/// | parameter | shape |
/// |---|---|
/// | `up.weight`, `up.bias` | `[D, F]`, `[F]` |
/// | `down.weight`, `down.bias` | `[F, D]`, `[D]` |
#[derive(Module, Debug)]
pub struct Mlp {
    up: Linear,
    down: Linear,
}

impl Mlp {
    /// An MLP for `config` with initial weights under `path`.
    pub fn new(config: &ModelConfig, path: &str, initial: &InitialWeights) -> Self {
        let (d, f) = (config.d_model, config.d_ff());
        Self {
            up: initial.linear(&format!("{path}.up"), d, f, true),
            down: initial.residual_linear(&format!("{path}.down"), f, d, true),
        }
    }

    /// `[B, L, D]` to `[B, L, D]`.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        projected(&self.down, activated(&self.up, x, Activation::Gelu))
    }
}

/// The norm of `x`, or `x` where there is none.
pub(crate) fn normed<const N: usize>(norm: &Option<LayerNorm>, x: Tensor<N>) -> Tensor<N> {
    match norm {
        Some(LayerNorm { gamma, beta: Some(beta), .. }) => layer_norm(x, gamma.val(), beta.val(), NORM_EPSILON),
        Some(norm) => norm.forward(x),
        None => x,
    }
}

/// `x` `[..., I]` through a linear layer, `[..., O]`.
pub(crate) fn projected<const N: usize>(layer: &Linear, x: Tensor<N>) -> Tensor<N> {
    activated(layer, x, Activation::None)
}

fn activated<const N: usize>(layer: &Linear, x: Tensor<N>, activation: Activation) -> Tensor<N> {
    linear(x, layer.weight.val(), layer.bias.as_ref().map(|bias| bias.val()), activation)
}
