//! A stack of blocks between an embedding and an output layer: a decoder where `causal`, an encoder where not; and a decoder
//! that also attends to the output of an encoder beside it.

use architecture::{Dims, ModelConfig, ModelError};
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Device, Tensor};
use kernels::{AttentionMask, MaskError, PreparedMask};

use crate::block::{Block, Reads};
use crate::cache::{Cache, Memory, Past};
use crate::call::{Call, CallError, Gating, Input, Output, Source};
use crate::dropout::DropoutSite;
use crate::embedding::InputEmbedding;
use crate::encoder::{Encoded, Encoder};
use crate::initial::InitialWeights;
use crate::layers::{NumberInput, projected};
use crate::norm::{StreamNorm, normed};
use crate::positions::{PositionEmbedding, Span};

/// Token and position embedding (or a layer that reads numbers), blocks, final norm, output layer.
///
/// | parameter | shape |
/// |---|---|
/// | `token.weight` | `[V, D]`, where tokens are read |
/// | `input` | see [`NumberInput`], where numbers are |
/// | `readout` | `[D]`, where the first position of each sample is a read-out |
/// | `position.weight` | `[length, D]`, where positions are trained |
/// | `blocks.i` | see [`Block`] |
/// | `norm` | see [`StreamNorm`], where norms stand before sublayers |
/// | `logits.weight`, `logits.bias` | `[D, outputs]`, `[outputs]`, unless tied or the stream is what is said |
/// | `encoder` | see [`Encoder`], with `architecture = "encoder_decoder"` |
#[derive(Module, Debug)]
pub struct Decoder {
    token: Option<InputEmbedding>,
    input: Option<NumberInput>,
    readout: Option<Param<Tensor<1>>>,
    position: PositionEmbedding,
    blocks: Vec<Block>,
    norm: Option<StreamNorm>,
    logits: Option<Linear>,
    encoder: Option<Encoder>,
    heads: usize,
    kv_heads: usize,
    d_head: usize,
    /// Numbers read at a position; 0 where tokens are.
    inputs: usize,
    outputs: usize,
    d_model: usize,
    is_tied: bool,
    causal: bool,
    embedding_dropout: f64,
}

/// What the decoder has of its source.
#[derive(Default)]
struct Read {
    memory: Option<Memory>,
    /// `[B, H, Ls, Ls]` for each layer, where asked for.
    maps: Vec<Tensor<4>>,
    /// `[B, H, Ls, K]` for each layer, where asked for.
    contexts: Vec<Tensor<4>>,
}

impl Decoder {
    /// A model for `config` and the task's `dims`, its weights drawn under `seed`.
    ///
    /// # Errors
    /// What [`ModelConfig::check`] refuses.
    pub fn new(config: &ModelConfig, dims: Dims, seed: u64, device: &Device) -> Result<Self, ModelError> {
        config.check(dims)?;
        let initial = InitialWeights::new(config.init, config.layers, seed, device);
        let d = config.d_model;
        let block = |i: usize| Block::new(config, &format!("blocks.{i}"), config.has_encoder(), &initial);
        Ok(Self {
            token: (dims.inputs == 0).then(|| InputEmbedding::new("token", dims.vocab, d, &initial)),
            input: (dims.inputs > 0).then(|| NumberInput::new(config, dims.inputs, "input", &initial)),
            readout: config.readout.then(|| initial.vector("readout", d)),
            position: PositionEmbedding::new(config.positions, "position", dims.length, d, &initial),
            blocks: (0..config.layers).map(block).collect(),
            norm: initial.final_norm(config),
            logits: (!config.tied && config.output_layer).then(|| initial.linear("logits", d, dims.outputs, true)),
            encoder: dims.source.map(|source| Encoder::new(config, source, "encoder", &initial)),
            heads: config.heads,
            kv_heads: config.kv_heads(),
            d_head: config.d_head(),
            inputs: dims.inputs,
            outputs: dims.outputs,
            d_model: d,
            is_tied: config.tied,
            causal: config.causal,
            embedding_dropout: config.embedding_dropout,
        })
    }

    /// `input`, tokens `[B, L]`, each in `0..V`, or numbers `[B, L, F]`, to logits (or the numbers that are said) where they are
    /// wanted. What stands at the first position of a model with a read-out does not matter: its own vector is read there.
    ///
    /// Tokens and scored positions aren't checked against their range, which would mean to wait for the device: beyond it
    /// a CPU backend panics and a GPU reads something else.
    ///
    /// # Errors
    /// Numbers for a model that reads tokens and the other way round, more tokens than learned positions, a padding that isn't `[B, L]`, gates that aren't `[1, H]` or `[B, H]` for each
    /// layer, replacements that aren't `[H, Lq, K]`, a block to go on at that isn't there or reads another shape, a source
    /// without an encoder, an encoder without a source, a source of another shape.
    pub fn forward(&self, input: impl Into<Input>, call: Call) -> Result<Output, CallError> {
        let input = input.into();
        let [b, l] = input.dims();
        let span = Span::of_input(l, call.padding);
        self.check_input(&input)?;
        self.check(b, l, &span, &call)?;
        let mask = self.mask([b, l, l], call.padding.map(<[bool]>::to_vec), &input.device())?;
        let Read { memory, maps: encoder_maps, contexts: encoder_contexts } =
            self.read_source(call.source, b, &call)?;
        let output = self.pass(input, &span, mask.as_ref(), memory.as_ref(), None, &call);
        Ok(Output { encoder_maps, encoder_contexts, ..output })
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
        let Read { memory, .. } = self.read_source(source, batch, &Call::default())?;
        let device = self.devices().into_iter().next().unwrap_or_default();
        let shape = [batch, self.kv_heads, capacity, self.d_head];
        let layers = self.blocks.iter().map(|_| Past::new(shape, &device)).collect();
        Ok(Cache::new(layers, memory, batch, capacity))
    }

    /// Reads `input`, tokens `[B, L]` or numbers `[B, L, F]`, after those that `cache` holds, adds them to it, and gives the logits that
    /// [`Decoder::forward`] would give at their positions after reading everything at once. Scored positions and padding
    /// are those of the new tokens.
    ///
    /// # Errors
    /// What [`Decoder::forward`] refuses; more tokens than there is room for, padding after a sample's first real token,
    /// another batch, dropout, a source, a block to go on at. The cache is then as it was.
    ///
    /// # Panics
    /// With a cache that another model made.
    pub fn extend(&self, input: impl Into<Input>, cache: &mut Cache, call: Call) -> Result<Output, CallError> {
        let input = input.into();
        let ([b, l], held) = (input.dims(), cache.held());
        self.check_input(&input)?;
        if b != cache.batch() {
            return Err(CallError::CacheBatch { given: b, batch: cache.batch() });
        }
        if call.dropout.is_some() {
            return Err(CallError::CacheDropout);
        }
        if call.source.is_some() {
            return Err(CallError::CacheSource);
        }
        if call.resume.is_some() {
            return Err(CallError::CacheResume);
        }
        if let Some(padding) = call.padding {
            AttentionMask::padding(b, l, padding.to_vec())?; // for its error
        }
        let leading = cache.leading_after(l, call.padding)?;
        let span = Span::after_padding(held, l, &leading);
        self.check(b, l, &span, &call)?;
        let is_padded = leading.iter().any(|&count| count > 0);
        let padding =
            is_padded.then(|| leading.iter().flat_map(|&count| (0..held + l).map(move |t| t < count)).collect());
        let mask = self.mask([b, l, held + l], padding, &input.device())?;
        let (memory, layers) = (cache.memory.as_ref(), &mut cache.layers);
        let output = self.pass(input, &span, mask.as_ref(), memory, Some(layers), &call);
        cache.advance(l, leading);
        Ok(output)
    }

    /// What the blocks read of a source; nothing without an encoder.
    fn read_source(&self, source: Option<Source>, batch: usize, call: &Call) -> Result<Read, CallError> {
        match (&self.encoder, source) {
            (Some(encoder), Some(source)) => {
                let Encoded { output, mask, maps, contexts } = encoder.forward(source, batch, call)?;
                let memory = |(layer, block): (usize, &Block)| {
                    if let Some(trace) = call.trace {
                        trace.enter(format!("blocks.{layer}"));
                    }
                    block.memory(&output, mask.as_ref(), call.trace)
                };
                let layers = self.blocks.iter().enumerate().filter_map(memory).collect();
                Ok(Read { memory: Some(Memory { layers, mask }), maps, contexts })
            }
            (None, None) => Ok(Read::default()),
            (Some(_), None) => Err(CallError::NoSource),
            (None, Some(_)) => Err(CallError::UnreadSource),
        }
    }

    /// From an input to logits, whether they are read alone or after those of `past`.
    fn pass(
        &self,
        input: Input,
        span: &Span,
        mask: Option<&PreparedMask>,
        memory: Option<&Memory>,
        mut past: Option<&mut Vec<Past>>,
        call: &Call,
    ) -> Output {
        let [b, l] = input.dims();
        let (first, mut x) = match call.resume {
            Some(resume) => (resume.layer, resume.input.clone()),
            None => (0, self.embedded(input, span, call)),
        }; // [B, L, D]
        let d = x.dims()[2];

        let (mut maps, mut cross_maps, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
        let (mut cross_contexts, mut inputs) = (Vec::new(), Vec::new());
        for (layer, block) in self.blocks.iter().enumerate().skip(first) {
            inputs.extend(call.inputs.then(|| x.clone()));
            if let Some(trace) = call.trace {
                trace.enter(format!("blocks.{layer}"));
            }
            let past = past.as_mut().map(|past| &mut past[layer]);
            let memory = memory.map(|memory| (memory.layers[layer].clone(), memory.mask.as_ref()));
            let (own, cross) = (call.decoder.of_layer(layer), call.cross.of_layer(layer));
            let output = block.forward(x, Reads { mask, span, past, memory, own, cross }, layer, call);
            x = output.x;
            if let Some(trace) = call.trace {
                trace.keep(format!("blocks.{layer}.output"), &x);
            }
            maps.extend(output.maps);
            cross_maps.extend(output.cross_maps);
            contexts.extend(output.contexts);
            cross_contexts.extend(output.cross_contexts);
        }

        // What the encoder gave is told by whoever let it read.
        let output = |logits| {
            let (encoder_maps, encoder_contexts) = (vec![], vec![]);
            Output { logits, maps, encoder_maps, cross_maps, contexts, encoder_contexts, cross_contexts, inputs }
        };
        let mut x = x.reshape([b * l, d]);
        if let Some(scored) = call.scored {
            if scored.dims() == [0] {
                // ndarray divides by the number of rows of a matrix product.
                return output(Tensor::zeros([0, self.outputs], &x.device()));
            }
            x = x.select(0, scored.clone()); // [N, D]
        }
        let x = normed(&self.norm, x);
        let logits = match (&self.logits, &self.token) {
            (Some(logits), _) => projected(logits, x),
            (None, Some(token)) if self.is_tied => token.logits(x),
            (None, _) => x,
        };
        if let Some(trace) = call.trace {
            trace.keep("logits", &logits);
        }
        output(logits)
    }

    /// What the first block reads of an input, `[B, L, D]`.
    fn embedded(&self, input: Input, span: &Span, call: &Call) -> Tensor<3> {
        let [b, l] = input.dims();
        let x = match &self.readout {
            None => self.stream(input),
            Some(readout) => {
                let first = readout.val().reshape([1, 1, self.d_model]).expand([b, 1, self.d_model]);
                Tensor::cat(vec![first, self.stream(input.between(1, l - 1))], 1)
            }
        };
        let x = self.position.add(x, span);
        if let Some(trace) = call.trace {
            trace.keep("embedding", &x);
        }
        match call.dropout {
            Some(dropout) => dropout.at(0, DropoutSite::Embedding, self.embedding_dropout).apply(x),
            None => x,
        }
    }

    /// An input at every position, `[B, L, D]`, without positions.
    fn stream(&self, input: Input) -> Tensor<3> {
        match (input, &self.token, &self.input) {
            (Input::Tokens(tokens), Some(token), _) => token.forward(tokens),
            (Input::Numbers(numbers), _, Some(layer)) => layer.forward(numbers),
            // Refused before.
            (input, _, _) => {
                let [b, l] = input.dims();
                Tensor::zeros([b, l, self.d_model], &input.device())
            }
        }
    }

    fn check_input(&self, input: &Input) -> Result<(), CallError> {
        let (expected, given) = (self.inputs, input.numbers());
        if expected != given || matches!(input, Input::Numbers(_)) != (expected > 0) {
            return Err(CallError::Input { expected, given });
        }
        let length = input.dims()[1];
        if self.readout.is_some() && length < 2 {
            return Err(CallError::ReadoutAlone { length });
        }
        Ok(())
    }

    fn check(&self, batch: usize, length: usize, span: &Span, call: &Call) -> Result<(), CallError> {
        if let Some(most) = self.position.most().filter(|&most| span.end() > most) {
            return Err(CallError::TooLong { length: span.end(), most });
        }
        let (layers, source) = (self.blocks.len(), call.source.map_or(0, |source| source.tokens.dims()[1]));
        let beside = if self.encoder.is_some() { layers } else { 0 };
        self.check_gating("decoder", call.decoder, [layers, batch, length])?;
        self.check_gating("encoder", call.encoder, [beside, batch, source])?;
        self.check_gating("cross-attention", call.cross, [beside, batch, length])?;
        if let Some(resume) = call.resume {
            let (layer, given, d) = (resume.layer, resume.input.dims(), self.d_model);
            let expected = [batch, length, d];
            if layer >= layers || given != expected {
                return Err(CallError::Resume { layer, given, layers, expected });
            }
        }
        Ok(())
    }

    /// Of a stack of `layers` attentions with `length` queries.
    fn check_gating(
        &self,
        stack: &'static str,
        gating: Gating,
        [layers, batch, length]: [usize; 3],
    ) -> Result<(), CallError> {
        let heads = self.heads;
        if let Some(gates) = gating.gates {
            let given: Vec<[usize; 2]> = gates.iter().map(Tensor::dims).collect();
            let fits = |&[samples, of_sample]: &[usize; 2]| (samples == 1 || samples == batch) && of_sample == heads;
            if given.len() != layers || !given.iter().all(fits) {
                return Err(CallError::Gates { stack, given, layers, heads, batch });
            }
        }
        if let Some(replacements) = gating.replacements {
            let given: Vec<[usize; 3]> = replacements.iter().map(Tensor::dims).collect();
            let expected = [heads, length, self.d_head];
            if given != vec![expected; layers] {
                return Err(CallError::Replacements { stack, given, layers, expected });
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
    ) -> Result<Option<PreparedMask>, MaskError> {
        let causal = if self.causal { AttentionMask::causal() } else { AttentionMask::none() };
        let mask = match padding {
            Some(padding) => causal.union(&AttentionMask::padding(batch, keys, padding)?)?,
            None => causal,
        };
        // Every dimension that the mask leaves at 1 fits any number of heads.
        let prepared = mask.prepare([batch, 1, queries, keys], device)?;
        Ok(prepared.is_needed().then_some(prepared))
    }
}
