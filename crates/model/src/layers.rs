//! The layers between attentions: linear layers, MLPs.

use architecture::{MlpActivation, ModelConfig};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use kernels::{Activation, linear};

use crate::initial::InitialWeights;

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

    /// `[B, L, F]` to `[B, L, D]`.
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
