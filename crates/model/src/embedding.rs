//! From tokens to the stream.

use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, module};
use kernels::{Activation, linear};

use crate::initial::InitialWeights;
use crate::positions::{PositionEmbedding, Span};

/// A row of `weight` for each token.
///
/// | parameter | shape |
/// |---|---|
/// | `weight` | `[V, D]` |
#[derive(Module, Debug)]
pub struct InputEmbedding {
    weight: Param<Tensor<2>>,
}

impl InputEmbedding {
    /// An embedding of `vocab` tokens with initial weights under `path`.
    pub fn new(path: &str, vocab: usize, d_model: usize, initial: &InitialWeights) -> Self {
        Self { weight: initial.embedding(path, vocab, d_model) }
    }

    /// `[B, L]` to `[B, L, D]`.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        module::embedding(self.weight.val(), tokens)
    }

    /// `x` `[N, D]` to a logit for each token, `[N, V]`, by the same weight (Press 2017).
    pub fn logits(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val().transpose(), None, Activation::None)
    }

    /// Where the weight is.
    pub fn device(&self) -> Device {
        self.weight.val().device()
    }
}

/// `tokens` `[B, L]` embedded with their positions, `[B, L, D]`.
pub(crate) fn embed(
    token: &InputEmbedding,
    position: &PositionEmbedding,
    span: &Span,
    tokens: Tensor<2, Int>,
) -> Tensor<3> {
    position.add(token.forward(tokens), span)
}
