//! A stack of blocks between an embedding and an output layer: a decoder where `causal`, an encoder where not; and a decoder
//! that also attends to the output of an encoder beside it.

use burn::module::Module;
use burn::nn::{Embedding, LayerNorm, Linear};
use burn::tensor::{Device, Int, Tensor};
use thiserror::Error;

use crate::block::{Block, normed};
use crate::config::{Dims, ModelConfig, ModelError, Norm, Positions};
use crate::dropout::{Dropout, Place};
use crate::encoder::Encoder;
use crate::mask::{Mask, MaskError, Prepared};
use crate::positions::sinusoidal;
use crate::trace::Trace;
use crate::weights::Weights;

/// Token and position embedding, blocks, final norm, output layer.
///
/// | parameter | shape |
/// |---|---|
/// | `token.weight` | `[V, D]` |
/// | `position.weight` | `[length, D]`, with learned positions |
/// | `blocks.i` | see [`Block`] |
/// | `norm.gamma`, `norm.beta` | `[D]`, where there are norms |
/// | `logits.weight`, `logits.bias` | `[D, outputs]`, `[outputs]`, unless tied |
/// | `encoder` | see [`Encoder`], with `architecture = "encoder_decoder"` |
#[derive(Module, Debug)]
pub struct Decoder {
    token: Embedding,
    position: Option<Embedding>,
    blocks: Vec<Block>,
    norm: Option<LayerNorm>,
    logits: Option<Linear>,
    encoder: Option<Encoder>,
    heads: usize,
    outputs: usize,
    causal: bool,
    sinusoidal: bool,
    embedding_dropout: f64,
}

/// What one forward pass takes besides its tokens, and what it shall give besides logits.
#[derive(Clone, Copy, Default)]
pub struct Call<'a> {
    /// Flat positions (`b·L + t`) whose logits are wanted, `[N]`, each below B·L; all where None.
    pub scored: Option<&'a Tensor<1, Int>>,
    /// `[B, L]`, row-major: positions that hold padding.
    pub padding: Option<&'a [bool]>,
    /// What the encoder reads; needed where there is one, and only there.
    pub source: Option<Source<'a>>,
    /// Dropout of this step; None in evaluation.
    pub dropout: Option<&'a Dropout>,
    /// Factor on each head's context, one `[H]` a layer; on the decoder's self-attention where there is an encoder too.
    pub gates: Option<&'a [Tensor<1>]>,
    /// Return the attention maps.
    pub maps: bool,
    /// Where the nodes of the pass are kept.
    pub trace: Option<&'a Trace>,
}

/// What an encoder reads.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// `[B, Ls]`, each in `0..` the source's vocabulary.
    pub tokens: &'a Tensor<2, Int>,
    /// `[B, Ls]`, row-major: positions that hold padding. What tokens stand there never matters.
    pub padding: &'a [bool],
}

/// An input that the model can't take.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CallError {
    /// More tokens than learned positions.
    #[error("an input of {length} tokens is longer than the {most} learned positions of the model")]
    TooLong { length: usize, most: usize },
    /// A padding that isn't `[B, L]`.
    #[error(transparent)]
    Padding(#[from] MaskError),
    /// One gate for each head of each layer.
    #[error("gates of shape {given:?}, but the model has {layers} layers of {heads} heads")]
    Gates { given: Vec<usize>, layers: usize, heads: usize },
    /// An encoder without anything to read.
    #[error("the model has an encoder, but the call has no source")]
    NoSource,
    /// A source that nothing would read.
    #[error("the call has a source, but the model has no encoder to read it")]
    UnreadSource,
    /// A source for each sample.
    #[error("{sources} sources for a batch of {batch} samples")]
    SourceBatch { sources: usize, batch: usize },
    /// More source tokens than learned positions.
    #[error("a source of {length} tokens is longer than the {most} learned positions of the encoder")]
    SourceTooLong { length: usize, most: usize },
}

/// What a forward pass gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// `[N, outputs]` at the scored positions, or `[B·L, outputs]` at all. Where N is 0 it depends on nothing, so no
    /// backward pass can start there.
    pub logits: Tensor<2>,
    /// `[B, H, L, L]` for each layer, before dropout; empty unless asked for.
    pub maps: Vec<Tensor<4>>,
    /// `[B, H, Ls, Ls]` for each layer of the encoder; empty unless asked for and there is one.
    pub encoder_maps: Vec<Tensor<4>>,
    /// `[B, H, L, Ls]` for each layer of the decoder, from its positions to the source's; empty as `encoder_maps`.
    pub cross_maps: Vec<Tensor<4>>,
}

impl Decoder {
    /// A model for `config` and the task's `dims`, its weights drawn under `seed`.
    ///
    /// # Errors
    /// What [`ModelConfig::check`] refuses.
    pub fn new(config: &ModelConfig, dims: Dims, seed: u64, device: &Device) -> Result<Self, ModelError> {
        config.check(dims)?;
        let weights = Weights::new(config, seed, device);
        let d = config.d_model;
        let block = |i: usize| Block::new(config, &format!("blocks.{i}"), config.has_encoder(), &weights);
        Ok(Self {
            token: weights.embedding("token", dims.vocab, d),
            position: (config.positions == Positions::Learned).then(|| weights.embedding("position", dims.length, d)),
            blocks: (0..config.layers).map(block).collect(),
            norm: (config.norm == Norm::Pre).then(|| weights.norm(d)),
            logits: (!config.tied).then(|| weights.linear("logits", d, dims.outputs, true)),
            encoder: dims.source.map(|source| Encoder::new(config, source, "encoder", &weights)),
            heads: config.heads,
            outputs: dims.outputs,
            causal: config.causal,
            sinusoidal: config.positions == Positions::Sinusoidal,
            embedding_dropout: config.embedding_dropout,
        })
    }

    /// `tokens` `[B, L]`, each in `0..V`, to logits where they are wanted.
    ///
    /// Tokens and scored positions aren't checked against their range, which would mean to wait for the device: beyond it
    /// a CPU backend panics and a GPU reads something else.
    ///
    /// # Errors
    /// More tokens than learned positions, a padding that isn't `[B, L]`, gates that aren't `[H]` for each layer, a source
    /// without an encoder, an encoder without a source, a source of another shape.
    pub fn forward(&self, tokens: Tensor<2, Int>, call: Call) -> Result<Output, CallError> {
        let [b, l] = tokens.dims();
        self.check(l, &call)?;
        let mask = self.mask(b, l, call.padding, &tokens.device())?;
        let (memory, encoder_maps) = match (&self.encoder, call.source) {
            (Some(encoder), Some(source)) => {
                let (memory, maps) = encoder.forward(source, b, &call)?;
                (Some(memory), maps)
            }
            (None, None) => (None, vec![]),
            (Some(_), None) => return Err(CallError::NoSource),
            (None, Some(_)) => return Err(CallError::UnreadSource),
        };

        let mut x = embed(&self.token, &self.position, self.sinusoidal, tokens); // [B, L, D]
        let d = x.dims()[2];
        if let Some(trace) = call.trace {
            trace.keep("embedding", &x);
        }
        if let Some(dropout) = call.dropout {
            x = dropout.at(0, Place::Embedding, self.embedding_dropout).apply(x);
        }

        let (mut maps, mut cross_maps) = (Vec::new(), Vec::new());
        for (layer, block) in self.blocks.iter().enumerate() {
            if let Some(trace) = call.trace {
                trace.enter(format!("blocks.{layer}"));
            }
            let output = block.forward(x, mask.as_ref(), memory.as_ref(), layer, &call);
            x = output.x;
            if let Some(trace) = call.trace {
                trace.keep(format!("blocks.{layer}.output"), &x);
            }
            maps.extend(output.maps);
            cross_maps.extend(output.cross_maps);
        }

        let mut x = x.reshape([b * l, d]);
        if let Some(scored) = call.scored {
            if scored.dims() == [0] {
                // ndarray divides by the number of rows of a matrix product.
                let logits = Tensor::zeros([0, self.outputs], &x.device());
                return Ok(Output { logits, maps, encoder_maps, cross_maps });
            }
            x = x.select(0, scored.clone()); // [N, D]
        }
        let x = normed(&self.norm, x);
        let logits = match &self.logits {
            Some(logits) => logits.forward(x),
            None => x.matmul(self.token.weight.val().transpose()),
        };
        if let Some(trace) = call.trace {
            trace.keep("logits", &logits);
        }
        Ok(Output { logits, maps, encoder_maps, cross_maps })
    }

    fn check(&self, length: usize, call: &Call) -> Result<(), CallError> {
        if let Some(position) = &self.position {
            let [most, _] = position.weight.dims();
            if length > most {
                return Err(CallError::TooLong { length, most });
            }
        }
        if let Some(gates) = call.gates {
            let given: Vec<usize> = gates.iter().map(|gates| gates.dims()[0]).collect();
            let (layers, heads) = (self.blocks.len(), self.heads);
            if given != vec![heads; layers] {
                return Err(CallError::Gates { given, layers, heads });
            }
        }
        Ok(())
    }

    fn mask(
        &self,
        batch: usize,
        length: usize,
        padding: Option<&[bool]>,
        device: &Device,
    ) -> Result<Option<Prepared>, MaskError> {
        let causal = if self.causal { Mask::causal(length, length) } else { Mask::none() };
        let mask = match padding {
            Some(padding) => causal.union(&Mask::padding(batch, length, padding.to_vec())?)?,
            None => causal,
        };
        // Every dimension that the mask leaves at 1 fits any number of heads.
        let prepared = mask.prepare([batch, 1, length, length], device)?;
        Ok(prepared.is_needed().then_some(prepared))
    }
}

/// `tokens` `[B, L]` embedded with their positions, `[B, L, D]`.
pub(crate) fn embed(
    token: &Embedding,
    position: &Option<Embedding>,
    is_sinusoidal: bool,
    tokens: Tensor<2, Int>,
) -> Tensor<3> {
    let x = token.forward(tokens);
    let [_, l, d] = x.dims();
    match position {
        Some(position) => x + position.weight.val().narrow(0, 0, l).unsqueeze::<3>(),
        None if is_sinusoidal => {
            let table = sinusoidal(l, d, &x.device());
            x + table.unsqueeze::<3>()
        }
        None => x,
    }
}
