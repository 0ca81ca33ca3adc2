//! The encoder beside a decoder: it reads the source both ways and gives the decoder's cross-attention what to read.

use architecture::{ModelConfig, SourceDims};
use burn::module::Module;
use burn::tensor::Tensor;
use kernels::{AttentionMask, PreparedMask};

use crate::block::{Block, Reads};
use crate::call::{Call, CallError, LayerGating, Source};
use crate::dropout::DropoutSite;
use crate::embedding::{InputEmbedding, embed};
use crate::initial::InitialWeights;
use crate::norm::{StreamNorm, normed};
use crate::positions::{PositionEmbedding, Span};

/// Token and position embedding of the source, blocks without a causal mask, final norm.
///
/// | parameter | shape |
/// |---|---|
/// | `token.weight` | `[source's V, D]` |
/// | `position.weight` | `[Ls, D]`, where positions are trained |
/// | `blocks.i` | see [`Block`] |
/// | `norm` | see [`StreamNorm`], where norms stand before sublayers |
#[derive(Module, Debug)]
pub struct Encoder {
    token: InputEmbedding,
    position: PositionEmbedding,
    blocks: Vec<Block>,
    norm: Option<StreamNorm>,
    embedding_dropout: f64,
}

/// What an encoder gives its decoder.
pub(crate) struct Encoded {
    /// Normed, `[B, Ls, D]`.
    pub output: Tensor<3>,
    /// Padding of the source, for scores `[B, H, L, Ls]`.
    pub mask: Option<PreparedMask>,
    /// `[B, H, Ls, Ls]` for each layer, where asked for.
    pub maps: Vec<Tensor<4>>,
    /// `[B, H, Ls, K]` for each layer, where asked for.
    pub contexts: Vec<Tensor<4>>,
}

impl Encoder {
    /// An encoder for `config` and the task's `source`, with initial weights under `path`.
    pub fn new(config: &ModelConfig, source: SourceDims, path: &str, initial: &InitialWeights) -> Self {
        let d = config.d_model;
        let block = |i: usize| Block::new(config, &format!("{path}.blocks.{i}"), false, initial);
        Self {
            token: InputEmbedding::new(&format!("{path}.token"), source.vocab, d, initial),
            position: PositionEmbedding::new(config.positions, &format!("{path}.position"), source.length, d, initial),
            blocks: (0..config.layers).map(block).collect(),
            norm: initial.final_norm(config),
            embedding_dropout: config.embedding_dropout,
        }
    }

    /// What the decoder's `batch` samples read. Takes dropout, the encoder's gates, maps and contexts from
    /// `call`.
    ///
    /// # Errors
    /// Another number of sources than samples, more tokens than trained positions, a padding that isn't `[B, Ls]`.
    pub(crate) fn forward(&self, source: Source, batch: usize, call: &Call) -> Result<Encoded, CallError> {
        let [sources, length] = source.tokens.dims();
        if sources != batch {
            return Err(CallError::SourceBatch { sources, batch });
        }
        let span = Span::of_input(length, Some(source.padding));
        if let Some(most) = self.position.most().filter(|&most| span.end() > most) {
            return Err(CallError::SourceTooLong { length: span.end(), most });
        }
        // [B, 1, 1, Ls] says the same to every query, the encoder's and the decoder's.
        let mask = AttentionMask::padding(batch, length, source.padding.to_vec())?;
        let mask = mask.prepare([batch, 1, length, length], &source.tokens.device())?;
        let mask = mask.is_needed().then_some(mask);

        let mut x = embed(&self.token, &self.position, &span, source.tokens.clone()); // [B, Ls, D]
        // Layers are counted on from the decoder's, of which there are as many, so that no dropout is drawn twice.
        let first = self.blocks.len();
        if let Some(dropout) = call.dropout {
            x = dropout.at(first, DropoutSite::Embedding, self.embedding_dropout).apply(x);
        }
        if let Some(trace) = call.trace {
            trace.keep("encoder.embedding", &x);
        }
        let (mut maps, mut contexts) = (Vec::new(), Vec::new());
        for (layer, block) in self.blocks.iter().enumerate() {
            if let Some(trace) = call.trace {
                trace.enter(format!("encoder.blocks.{layer}"));
            }
            let (own, cross) = (call.encoder.of_layer(layer), LayerGating::default());
            let reads = Reads { mask: mask.as_ref(), span: &span, past: None, memory: None, own, cross };
            let output = block.forward(x, reads, first + layer, call);
            x = output.x;
            if let Some(trace) = call.trace {
                trace.keep(format!("encoder.blocks.{layer}.output"), &x);
            }
            maps.extend(output.maps);
            contexts.extend(output.contexts);
        }
        Ok(Encoded { output: normed(&self.norm, x), mask, maps, contexts })
    }
}
