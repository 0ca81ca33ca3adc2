//! One block: attention, perhaps attention to an encoder, then an MLP, each with its norm and residual where configured.

use architecture::{ModelConfig, Norm};
use burn::module::Module;
use burn::tensor::Tensor;
use kernels::PreparedMask;

use crate::attention::{Attention, AttentionCall};
use crate::cache::{KeyValues, Past};
use crate::call::{Call, LayerGating};
use crate::dropout::DropoutSite;
use crate::initial::InitialWeights;
use crate::layers::Mlp;
use crate::norm::{StreamNorm, normed};
use crate::positions::Span;
use crate::trace::Trace;

/// A block of the stack: `x + attention(norm1(x))`, beside an encoder then `x + cross_attention(norm_cross(x), memory)`, then
/// `x + mlp(norm2(x))` (pre-norm: Xiong 2020, figure 1b). With post-norm `norm1(x + attention(x))` and so on (figure 1a).
///
/// | parameter | shape |
/// |---|---|
/// | `norm1`, `norm2` | see [`StreamNorm`], where there are norms |
/// | `norm_cross` | the same, where there is a cross-attention |
/// | `attention`, `cross_attention` | see [`Attention`] |
/// | `mlp` | see [`Mlp`] |
#[derive(Module, Debug)]
pub struct Block {
    norm1: Option<StreamNorm>,
    attention: Attention,
    norm_cross: Option<StreamNorm>,
    cross_attention: Option<Attention>,
    norm2: Option<StreamNorm>,
    mlp: Option<Mlp>,
    residual: bool,
    /// Norms stand after the sums, not before the sublayers.
    is_post: bool,
    attention_dropout: f64,
    residual_dropout: f64,
}

/// What the attentions of a block read besides the block's input.
pub(crate) struct Reads<'a> {
    /// Forbidden connections of the self-attention, from the input to all that it reads.
    pub mask: Option<&'a PreparedMask>,
    /// Where the input's tokens stand.
    pub span: &'a Span,
    /// Earlier positions, to which the input is added.
    pub past: Option<&'a mut Past>,
    /// What [`Block::memory`] made of an encoder's output, and the source's padding.
    pub memory: Option<(KeyValues, Option<&'a PreparedMask>)>,
    /// What acts on the heads of the self-attention.
    pub own: LayerGating<'a>,
    /// On those of the cross-attention.
    pub cross: LayerGating<'a>,
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
    /// `[B, H, L, K]` of the cross-attention, where asked for and there is one.
    pub cross_contexts: Option<Tensor<4>>,
}

impl Block {
    /// A block for `config` with initial weights under `path`; with `cross`, one that also attends to an encoder.
    pub fn new(config: &ModelConfig, path: &str, cross: bool, initial: &InitialWeights) -> Self {
        let norm = |wanted: bool| if wanted { initial.norm(config) } else { None };
        Self {
            norm1: norm(true),
            attention: Attention::new(&config.attention(), &format!("{path}.attention"), initial),
            norm_cross: norm(cross),
            cross_attention: cross
                .then(|| Attention::new(&config.attention(), &format!("{path}.cross_attention"), initial)),
            norm2: norm(config.mlp),
            mlp: config.mlp.then(|| Mlp::new(config, &format!("{path}.mlp"), initial)),
            residual: config.residual,
            is_post: config.norm == Norm::Post,
            attention_dropout: config.attention_dropout,
            residual_dropout: config.residual_dropout,
        }
    }

    /// What the cross-attention reads of an encoder's output `[B, Ls, D]`; None where there is no cross-attention.
    pub(crate) fn memory(
        &self,
        output: &Tensor<3>,
        mask: Option<&PreparedMask>,
        trace: Option<&Trace>,
    ) -> Option<KeyValues> {
        let part = trace.map(|trace| trace.part("cross_attention"));
        self.cross_attention.as_ref().map(|cross| cross.memory(output.clone(), mask, part))
    }

    /// `x` `[B, L, D]` to the next block's input. `layer` is the block's place in the model: it selects its
    /// dropout.
    pub(crate) fn forward(&self, x: Tensor<3>, reads: Reads, layer: usize, call: &Call) -> BlockOutput {
        let dropout = |site| call.dropout.map(|dropout| dropout.at(layer, site, self.attention_dropout));
        let attention = self.attention.read_itself(
            self.read(&self.norm1, &x),
            reads.past,
            AttentionCall {
                mask: reads.mask,
                dropout: dropout(DropoutSite::Attention),
                gates: reads.own.gates,
                span: Some(reads.span),
                replacement: reads.own.replacement,
                maps: call.maps,
                contexts: call.contexts,
                trace: call.trace.map(|trace| trace.part("attention")),
            },
        );
        let x = self.add(x, attention.output, layer, DropoutSite::AttentionOutput, call);
        let mut x = self.written(&self.norm1, x);
        let (mut cross_maps, mut cross_contexts) = (None, None);
        if let (Some(cross), Some((memory, mask))) = (&self.cross_attention, reads.memory) {
            let attention = cross.read(
                self.read(&self.norm_cross, &x),
                memory,
                AttentionCall {
                    mask,
                    dropout: dropout(DropoutSite::CrossAttention),
                    gates: reads.cross.gates,
                    replacement: reads.cross.replacement,
                    maps: call.maps,
                    contexts: call.contexts,
                    trace: call.trace.map(|trace| trace.part("cross_attention")),
                    ..Default::default()
                },
            );
            x = self.add(x, attention.output, layer, DropoutSite::CrossAttentionOutput, call);
            x = self.written(&self.norm_cross, x);
            (cross_maps, cross_contexts) = (attention.maps, attention.contexts);
        }
        if let Some(mlp) = &self.mlp {
            let change = mlp.forward(self.read(&self.norm2, &x));
            x = self.add(x, change, layer, DropoutSite::MlpOutput, call);
            x = self.written(&self.norm2, x);
        }
        BlockOutput { x, maps: attention.maps, cross_maps, contexts: attention.contexts, cross_contexts }
    }

    /// What a sublayer reads of the stream.
    fn read(&self, norm: &Option<StreamNorm>, x: &Tensor<3>) -> Tensor<3> {
        if self.is_post { x.clone() } else { normed(norm, x.clone()) }
    }

    /// The stream after a sublayer.
    fn written(&self, norm: &Option<StreamNorm>, x: Tensor<3>) -> Tensor<3> {
        if self.is_post { normed(norm, x) } else { x }
    }

    fn add(&self, x: Tensor<3>, change: Tensor<3>, layer: usize, site: DropoutSite, call: &Call) -> Tensor<3> {
        let change = match call.dropout {
            Some(dropout) => dropout.at(layer, site, self.residual_dropout).apply(change),
            None => change,
        };
        if self.residual { x + change } else { change }
    }
}
