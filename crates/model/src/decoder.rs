//! A stack of blocks between an embedding and an output layer: a decoder where `causal`, an encoder where not; and a decoder
//! that also attends to the output of an encoder beside it.

use burn::module::Module;
use burn::nn::{Embedding, LayerNorm, Linear};
use burn::tensor::{Device, Int, Tensor, TensorData};
use kernels::{Activation, linear};
use thiserror::Error;

use crate::block::{Block, Reads, normed, projected};
use crate::cache::{Cache, Memory, Past};
use crate::dropout::{Dropout, Place};
use crate::encoder::{Encoded, Encoder};
use crate::mask::{Mask, MaskError, Prepared};
use crate::positions::{Span, sinusoidal};
use crate::trace::Trace;
use crate::weights::Weights;
use architecture::{Dims, ModelConfig, ModelError, Norm, Positions};

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
    kv_heads: usize,
    d_head: usize,
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
    /// `[B, L]`, row-major: tokens that are padding. Positions count from a sample's first token that is none.
    pub padding: Option<&'a [bool]>,
    /// What the encoder reads; needed where there is one, and only there.
    pub source: Option<Source<'a>>,
    /// Dropout of this step; None in evaluation.
    pub dropout: Option<&'a Dropout>,
    /// Factor on each head's context, one `[1, H]` or `[B, H]` a layer; on the decoder's self-attention where there is an
    /// encoder too.
    pub gates: Option<&'a [Tensor<2>]>,
    /// What takes the place of contexts whose gate is closed, one `[H, L, K]` a layer; see [`crate::AttentionCall`].
    pub replacements: Option<&'a [Tensor<3>]>,
    /// Return the attention maps.
    pub maps: bool,
    /// Return the contexts of the heads that the gates act on.
    pub contexts: bool,
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
    /// One gate for each head of each layer, the same for all samples or one for each.
    #[error(
        "gates of shapes {given:?}, but the model has {layers} layers of {heads} heads, and the batch {batch} samples"
    )]
    Gates { given: Vec<[usize; 2]>, layers: usize, heads: usize, batch: usize },
    /// A replacement for each position of each head of each layer.
    #[error("replacements of shapes {given:?}, but the model has {layers} layers of contexts {expected:?}")]
    Replacements { given: Vec<[usize; 3]>, layers: usize, expected: [usize; 3] },
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
    /// A new token would change what stands before it.
    #[error("a model with causal = false reads both ways: it can't be extended token by token, only read as a whole")]
    NotCausal,
    /// No room for the tokens.
    #[error("a cache of {capacity} positions holds {held}: there is no room for {more} more")]
    CacheFull { held: usize, more: usize, capacity: usize },
    /// A token for each sample.
    #[error("tokens for {given} samples, but the cache is of {batch}")]
    CacheBatch { given: usize, batch: usize },
    /// Samples of unequal length are aligned at their ends.
    #[error("sample {sample} has padding after its first real token: with a cache, padding comes first")]
    CachePadding { sample: usize },
    /// Training reads inputs as a whole.
    #[error("dropout is for training, where nothing is cached")]
    CacheDropout,
    /// The source is read once.
    #[error("the cache holds what the encoder has read: a source is given when it is made, not when it is extended")]
    CacheSource,
}

/// What a forward pass gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// `[N, outputs]` at the scored positions, or `[B·L, outputs]` at all. Where N is 0 it depends on nothing, so no
    /// backward pass can start there.
    pub logits: Tensor<2>,
    /// `[B, H, L, L]` for each layer, before dropout; empty unless asked for. With a cache `[B, H, L, Lk]`, from the new
    /// tokens to all.
    pub maps: Vec<Tensor<4>>,
    /// `[B, H, Ls, Ls]` for each layer of the encoder; empty unless asked for and there is one.
    pub encoder_maps: Vec<Tensor<4>>,
    /// `[B, H, L, Ls]` for each layer of the decoder, from its positions to the source's; empty as `encoder_maps`.
    pub cross_maps: Vec<Tensor<4>>,
    /// `[B, H, L, K]` for each layer, before the gates; empty unless asked for.
    pub contexts: Vec<Tensor<4>>,
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
            kv_heads: config.kv_heads(),
            d_head: config.d_head(),
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
    /// More tokens than learned positions, a padding that isn't `[B, L]`, gates that aren't `[1, H]` or `[B, H]` for each
    /// layer, replacements that aren't `[H, L, K]`, a source without an encoder, an encoder without a source, a source of
    /// another shape.
    pub fn forward(&self, tokens: Tensor<2, Int>, call: Call) -> Result<Output, CallError> {
        let [b, l] = tokens.dims();
        let span = Span::of_input(l, call.padding);
        self.check(b, l, &span, &call)?;
        let mask = self.mask([b, l, l], call.padding.map(<[bool]>::to_vec), &tokens.device())?;
        let (memory, encoder_maps) = self.read_source(call.source, b, &call)?;
        Ok(Output { encoder_maps, ..self.pass(tokens, &span, mask.as_ref(), memory.as_ref(), None, &call) })
    }

    /// A cache for `batch` samples of at most `capacity` positions each, padding included. Where there is an encoder, it
    /// reads `source` here and not again.
    ///
    /// # Errors
    /// A model that isn't causal, a source without an encoder, an encoder without a source, a source of another shape.
    pub fn cache(&self, batch: usize, capacity: usize, source: Option<Source>) -> Result<Cache, CallError> {
        if !self.causal {
            return Err(CallError::NotCausal);
        }
        let (memory, _) = self.read_source(source, batch, &Call::default())?;
        let device = self.token.weight.val().device();
        let shape = [batch, self.kv_heads, capacity, self.d_head];
        let layers = self.blocks.iter().map(|_| Past::new(shape, &device)).collect();
        Ok(Cache::new(layers, memory, batch, capacity))
    }

    /// Reads `tokens` `[B, L]` after those that `cache` holds, adds them to it, and gives the logits that
    /// [`Decoder::forward`] would give at their positions after reading everything at once. Scored positions and padding
    /// are those of the new tokens.
    ///
    /// # Errors
    /// What [`Decoder::forward`] refuses; more tokens than there is room for, padding after a sample's first real token,
    /// another batch, dropout, a source. The cache is then as it was.
    ///
    /// # Panics
    /// With a cache that another model made.
    pub fn extend(&self, tokens: Tensor<2, Int>, cache: &mut Cache, call: Call) -> Result<Output, CallError> {
        let ([b, l], held) = (tokens.dims(), cache.held());
        if b != cache.batch() {
            return Err(CallError::CacheBatch { given: b, batch: cache.batch() });
        }
        if call.dropout.is_some() {
            return Err(CallError::CacheDropout);
        }
        if call.source.is_some() {
            return Err(CallError::CacheSource);
        }
        if let Some(padding) = call.padding {
            Mask::padding(b, l, padding.to_vec())?; // for its error
        }
        let leading = cache.leading_after(l, call.padding)?;
        let span = Span::after_padding(held, l, &leading);
        self.check(b, l, &span, &call)?;
        let is_padded = leading.iter().any(|&count| count > 0);
        let padding =
            is_padded.then(|| leading.iter().flat_map(|&count| (0..held + l).map(move |t| t < count)).collect());
        let mask = self.mask([b, l, held + l], padding, &tokens.device())?;
        let (memory, layers) = (cache.memory.as_ref(), &mut cache.layers);
        let output = self.pass(tokens, &span, mask.as_ref(), memory, Some(layers), &call);
        cache.advance(l, leading);
        Ok(output)
    }

    /// What the blocks read of a source, and the encoder's maps; nothing without an encoder.
    fn read_source(
        &self,
        source: Option<Source>,
        batch: usize,
        call: &Call,
    ) -> Result<(Option<Memory>, Vec<Tensor<4>>), CallError> {
        match (&self.encoder, source) {
            (Some(encoder), Some(source)) => {
                let Encoded { output, mask, maps } = encoder.forward(source, batch, call)?;
                let memory = |(layer, block): (usize, &Block)| {
                    if let Some(trace) = call.trace {
                        trace.enter(format!("blocks.{layer}"));
                    }
                    block.memory(&output, mask.as_ref(), call.trace)
                };
                let layers = self.blocks.iter().enumerate().filter_map(memory).collect();
                Ok((Some(Memory { layers, mask }), maps))
            }
            (None, None) => Ok((None, vec![])),
            (Some(_), None) => Err(CallError::NoSource),
            (None, Some(_)) => Err(CallError::UnreadSource),
        }
    }

    /// From tokens `[B, L]` to logits, whether they are read alone or after those of `past`.
    fn pass(
        &self,
        tokens: Tensor<2, Int>,
        span: &Span,
        mask: Option<&Prepared>,
        memory: Option<&Memory>,
        mut past: Option<&mut Vec<Past>>,
        call: &Call,
    ) -> Output {
        let [b, l] = tokens.dims();
        let mut x = embed(&self.token, &self.position, self.sinusoidal, span, tokens); // [B, L, D]
        let d = x.dims()[2];
        if let Some(trace) = call.trace {
            trace.keep("embedding", &x);
        }
        if let Some(dropout) = call.dropout {
            x = dropout.at(0, Place::Embedding, self.embedding_dropout).apply(x);
        }

        let (mut maps, mut cross_maps, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
        for (layer, block) in self.blocks.iter().enumerate() {
            if let Some(trace) = call.trace {
                trace.enter(format!("blocks.{layer}"));
            }
            let past = past.as_mut().map(|past| &mut past[layer]);
            let memory = memory.map(|memory| (memory.layers[layer].clone(), memory.mask.as_ref()));
            let output = block.forward(x, Reads { mask, span, past, memory }, layer, call);
            x = output.x;
            if let Some(trace) = call.trace {
                trace.keep(format!("blocks.{layer}.output"), &x);
            }
            maps.extend(output.maps);
            cross_maps.extend(output.cross_maps);
            contexts.extend(output.contexts);
        }

        let mut x = x.reshape([b * l, d]);
        if let Some(scored) = call.scored {
            if scored.dims() == [0] {
                // ndarray divides by the number of rows of a matrix product.
                let logits = Tensor::zeros([0, self.outputs], &x.device());
                return Output { logits, maps, encoder_maps: vec![], cross_maps, contexts };
            }
            x = x.select(0, scored.clone()); // [N, D]
        }
        let x = normed(&self.norm, x);
        let logits = match &self.logits {
            Some(logits) => projected(logits, x),
            None => linear(x, self.token.weight.val().transpose(), None, Activation::None),
        };
        if let Some(trace) = call.trace {
            trace.keep("logits", &logits);
        }
        Output { logits, maps, encoder_maps: vec![], cross_maps, contexts }
    }

    fn check(&self, batch: usize, length: usize, span: &Span, call: &Call) -> Result<(), CallError> {
        if let Some(position) = &self.position {
            let [most, _] = position.weight.dims();
            if span.end() > most {
                return Err(CallError::TooLong { length: span.end(), most });
            }
        }
        if let Some(gates) = call.gates {
            let given: Vec<[usize; 2]> = gates.iter().map(Tensor::dims).collect();
            let (layers, heads) = (self.blocks.len(), self.heads);
            let fits = |&[samples, of_sample]: &[usize; 2]| (samples == 1 || samples == batch) && of_sample == heads;
            if given.len() != layers || !given.iter().all(fits) {
                return Err(CallError::Gates { given, layers, heads, batch });
            }
        }
        if let Some(replacements) = call.replacements {
            let given: Vec<[usize; 3]> = replacements.iter().map(Tensor::dims).collect();
            let (layers, expected) = (self.blocks.len(), [self.heads, length, self.d_head]);
            if given != vec![expected; layers] {
                return Err(CallError::Replacements { given, layers, expected });
            }
        }
        Ok(())
    }

    /// What the last Lq of Lk positions may not read; `padding` is `[B, Lk]`.
    fn mask(
        &self,
        [batch, queries, keys]: [usize; 3],
        padding: Option<Vec<bool>>,
        device: &Device,
    ) -> Result<Option<Prepared>, MaskError> {
        let causal = if self.causal { Mask::causal(queries, keys) } else { Mask::none() };
        let mask = match padding {
            Some(padding) => causal.union(&Mask::padding(batch, keys, padding)?)?,
            None => causal,
        };
        // Every dimension that the mask leaves at 1 fits any number of heads.
        let prepared = mask.prepare([batch, 1, queries, keys], device)?;
        Ok(prepared.is_needed().then_some(prepared))
    }
}

/// `tokens` `[B, L]` embedded with their positions, `[B, L, D]`.
pub(crate) fn embed(
    token: &Embedding,
    position: &Option<Embedding>,
    is_sinusoidal: bool,
    span: &Span,
    tokens: Tensor<2, Int>,
) -> Tensor<3> {
    let x = token.forward(tokens);
    let [_, l, d] = x.dims();
    match (position, span.common_first()) {
        (Some(position), Some(first)) => x + position.weight.val().narrow(0, first, l).unsqueeze::<3>(),
        (Some(position), None) => {
            let rows: Vec<i32> = span.positions().into_iter().map(|position| position as i32).collect();
            let count = rows.len();
            let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &x.device());
            x + position.weight.val().select(0, rows).reshape([span.rows(), l, d])
        }
        (None, _) if is_sinusoidal => {
            let table = sinusoidal(span, d, &x.device());
            x + table
        }
        (None, _) => x,
    }
}
