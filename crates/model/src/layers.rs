//! The layers between attentions: norms, linear layers, MLPs.

use architecture::{MlpActivation, ModelConfig};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use kernels::{Activation, layer_norm, linear};

use crate::initial::{InitialWeights, NORM_EPSILON};

/// `D → F → D` with an activation between.
///
/// | parameter | shape |
/// |---|---|
/// | `up.weight`, `up.bias` | `[D, F]`, `[F]` |
/// | `down.weight`, `down.bias` | `[F, D]`, `[D]` |
#[derive(Module, Debug)]
pub struct Mlp {
    up: Linear,
    down: Linear,
    #[module(skip)]
    activation: MlpActivation,
}

impl Mlp {
    /// An MLP for `config` with initial weights under `path`.
    pub fn new(config: &ModelConfig, path: &str, initial: &InitialWeights) -> Self {
        let (d, f) = (config.d_model, config.d_ff());
        Self {
            up: initial.linear(&format!("{path}.up"), d, f, true),
            down: initial.residual_linear(&format!("{path}.down"), f, d, true),
            activation: config.activation,
        }
    }

    /// `[B, L, D]` to `[B, L, D]`.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let hidden = match self.activation {
            MlpActivation::Gelu => activated(&self.up, x, Activation::Gelu),
            MlpActivation::Relu => activation::relu(projected(&self.up, x)),
        };
        projected(&self.down, hidden)
    }
}

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

/// From the numbers of a position to the stream, I to D.
///
/// | parameter | shape |
/// |---|---|
/// | `linear.weight`, `linear.bias` | `[I, D]`, `[D]`, with one layer |
/// | `up.weight`, `up.bias` | `[I, F]`, `[F]`, with two, between which is ReLU |
/// | `down.weight`, `down.bias` | `[F, D]`, `[D]`, with two |
#[derive(Module, Debug)]
pub struct NumberInput {
    linear: Option<Linear>,
    up: Option<Linear>,
    down: Option<Linear>,
}

impl NumberInput {
    /// For `inputs` numbers, with initial weights under `path`.
    pub fn new(config: &ModelConfig, inputs: usize, path: &str, initial: &InitialWeights) -> Self {
        let (d, f) = (config.d_model, config.d_ff());
        let linear = |is_there: bool, name: &str, [from, to]: [usize; 2]| {
            is_there.then(|| initial.linear(&format!("{path}.{name}"), from, to, true))
        };
        Self {
            linear: linear(config.input_layers == 1, "linear", [inputs, d]),
            up: linear(config.input_layers == 2, "up", [inputs, f]),
            down: linear(config.input_layers == 2, "down", [f, d]),
        }
    }

    /// `[B, L, I]` to `[B, L, D]`.
    pub fn forward(&self, numbers: Tensor<3>) -> Tensor<3> {
        match (&self.linear, &self.up, &self.down) {
            (Some(linear), _, _) => projected(linear, numbers),
            (None, Some(up), Some(down)) => projected(down, activation::relu(projected(up, numbers))),
            _ => numbers,
        }
    }
}

/// `x` `[..., I]` through a linear layer, `[..., O]`.
pub(crate) fn projected<const N: usize>(layer: &Linear, x: Tensor<N>) -> Tensor<N> {
    activated(layer, x, Activation::None)
}

fn activated<const N: usize>(layer: &Linear, x: Tensor<N>, activation: Activation) -> Tensor<N> {
    linear(x, layer.weight.val(), layer.bias.as_ref().map(|bias| bias.val()), activation)
}
