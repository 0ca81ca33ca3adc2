//! One block: attention, perhaps attention to an encoder, then an MLP, each with its norm and residual where configured.

use burn::module::Module;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;
use kernels::{Activation, layer_norm, linear};

use crate::attention::{Attention, AttentionCall};
use crate::cache::{KeyValues, Past};
use crate::decoder::Call;
use crate::dropout::Place;
use crate::mask::Prepared;
use crate::positions::Span;
use crate::trace::Trace;
use crate::weights::{NORM_EPSILON, Weights};
use architecture::{ModelConfig, Norm};

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
    pub fn new(config: &ModelConfig, path: &str, weights: &Weights) -> Self {
        let (d, f) = (config.d_model, config.d_ff());
        Self {
            up: weights.linear(&format!("{path}.up"), d, f, true),
            down: weights.residual_linear(&format!("{path}.down"), f, d, true),
        }
    }

    /// `[B, L, D]` to `[B, L, D]`.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        projected(&self.down, activated(&self.up, x, Activation::Gelu))
    }
}

/// A block of the stack: `x + attention(norm1(x))`, beside an encoder then `x + cross_attention(norm_cross(x), memory)`, then
/// `x + mlp(norm2(x))` (pre-norm: Xiong 2020, figure 1b).
///
/// | parameter | shape |
/// |---|---|
/// | `norm1.gamma`, `norm1.beta`, `norm2.gamma`, `norm2.beta` | `[D]`, where there are norms |
/// | `norm_cross.gamma`, `norm_cross.beta` | `[D]`, where there is a cross-attention |
/// | `attention`, `cross_attention` | see [`Attention`] |
/// | `mlp` | see [`Mlp`] |
#[derive(Module, Debug)]
pub struct Block {
    norm1: Option<LayerNorm>,
    attention: Attention,
    norm_cross: Option<LayerNorm>,
    cross_attention: Option<Attention>,
    norm2: Option<LayerNorm>,
    mlp: Option<Mlp>,
    residual: bool,
    attention_dropout: f64,
    residual_dropout: f64,
}

/// What the attentions of a block read besides the block's input.
pub(crate) struct Reads<'a> {
    /// Forbidden connections of the self-attention, from the input to all that it reads.
    pub mask: Option<&'a Prepared>,
    /// Where the input's tokens stand.
    pub span: &'a Span,
    /// Earlier positions, to which the input is added.
    pub past: Option<&'a mut Past>,
    /// What [`Block::memory`] made of an encoder's output, and the source's padding.
    pub memory: Option<(KeyValues, Option<&'a Prepared>)>,
}

/// What [`Block::forward`] gives.
pub(crate) struct BlockOutput {
    /// The next block's input, `[B, L, D]`.
    pub x: Tensor<3>,
    /// `[B, H, L, L]`, where asked for.
    pub maps: Option<Tensor<4>>,
    /// `[B, H, L, Ls]`, where asked for and there is a cross-attention.
    pub cross_maps: Option<Tensor<4>>,
    /// `[B, H, L, K]` of the self-attention, where asked for.
    pub contexts: Option<Tensor<4>>,
}

impl Block {
    /// A block for `config` with initial weights under `path`; with `cross`, one that also attends to an encoder.
    pub fn new(config: &ModelConfig, path: &str, cross: bool, weights: &Weights) -> Self {
        let norm = |wanted: bool| (wanted && config.norm == Norm::Pre).then(|| weights.norm(config.d_model));
        Self {
            norm1: norm(true),
            attention: Attention::new(config, &format!("{path}.attention"), weights),
            norm_cross: norm(cross),
            cross_attention: cross.then(|| Attention::new(config, &format!("{path}.cross_attention"), weights)),
            norm2: norm(config.mlp),
            mlp: config.mlp.then(|| Mlp::new(config, &format!("{path}.mlp"), weights)),
            residual: config.residual,
            attention_dropout: config.attention_dropout,
            residual_dropout: config.residual_dropout,
        }
    }

    /// What the cross-attention reads of an encoder's output `[B, Ls, D]`; None where there is no cross-attention.
    pub(crate) fn memory(
        &self,
        output: &Tensor<3>,
        mask: Option<&Prepared>,
        trace: Option<&Trace>,
    ) -> Option<KeyValues> {
        let part = trace.map(|trace| trace.part("cross_attention"));
        self.cross_attention.as_ref().map(|cross| cross.memory(output.clone(), mask, part))
    }

    /// `x` `[B, L, D]` to the next block's input. `layer` is the block's place in the model: it selects its dropout, and
    /// among the decoder's blocks its gates.
    pub(crate) fn forward(&self, x: Tensor<3>, reads: Reads, layer: usize, call: &Call) -> BlockOutput {
        let dropout = |place| call.dropout.map(|dropout| dropout.at(layer, place, self.attention_dropout));
        let attention = self.attention.read_itself(
            normed(&self.norm1, x.clone()),
            reads.past,
            AttentionCall {
                mask: reads.mask,
                dropout: dropout(Place::Attention),
                gates: call.gates.map(|gates| &gates[layer]),
                span: Some(reads.span),
                replacement: call.replacements.map(|replacements| &replacements[layer]),
                maps: call.maps,
                contexts: call.contexts,
                trace: call.trace.map(|trace| trace.part("attention")),
            },
        );
        let mut x = self.add(x, attention.output, layer, Place::AttentionOutput, call);
        let mut cross_maps = None;
        if let (Some(cross), Some((memory, mask))) = (&self.cross_attention, reads.memory) {
            let attention = cross.read(
                normed(&self.norm_cross, x.clone()),
                memory,
                AttentionCall {
                    mask,
                    dropout: dropout(Place::CrossAttention),
                    maps: call.maps,
                    trace: call.trace.map(|trace| trace.part("cross_attention")),
                    ..Default::default()
                },
            );
            x = self.add(x, attention.output, layer, Place::CrossAttentionOutput, call);
            cross_maps = attention.maps;
        }
        if let Some(mlp) = &self.mlp {
            let change = mlp.forward(normed(&self.norm2, x.clone()));
            x = self.add(x, change, layer, Place::MlpOutput, call);
        }
        BlockOutput { x, maps: attention.maps, cross_maps, contexts: attention.contexts }
    }

    fn add(&self, x: Tensor<3>, change: Tensor<3>, layer: usize, place: Place, call: &Call) -> Tensor<3> {
        let change = match call.dropout {
            Some(dropout) => dropout.at(layer, place, self.residual_dropout).apply(change),
            None => change,
        };
        if self.residual { x + change } else { change }
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
