//! What one forward pass of a model takes and gives, and what it can't take.

use burn::tensor::{Device, Int, Tensor};
use kernels::MaskError;
use thiserror::Error;

use crate::dropout::Dropout;
use crate::trace::Trace;

/// What a model reads at each position.
#[derive(Clone, Debug)]
pub enum Input {
    /// `[B, L]`, each in `0..V`.
    Tokens(Tensor<2, Int>),
    /// `[B, L, F]`.
    Numbers(Tensor<3>),
}

impl From<Tensor<2, Int>> for Input {
    fn from(tokens: Tensor<2, Int>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Tensor<3>> for Input {
    fn from(numbers: Tensor<3>) -> Self {
        Self::Numbers(numbers)
    }
}

impl Input {
    /// Samples and positions, `[B, L]`.
    pub fn dims(&self) -> [usize; 2] {
        match self {
            Self::Tokens(tokens) => tokens.dims(),
            Self::Numbers(numbers) => [numbers.dims()[0], numbers.dims()[1]],
        }
    }

    /// Numbers a position, I; 0 of tokens.
    pub fn numbers(&self) -> usize {
        match self {
            Self::Tokens(_) => 0,
            Self::Numbers(numbers) => numbers.dims()[2],
        }
    }

    /// Where it is.
    pub fn device(&self) -> Device {
        match self {
            Self::Tokens(tokens) => tokens.device(),
            Self::Numbers(numbers) => numbers.device(),
        }
    }

    /// Its `length` positions from `first` on.
    pub fn between(self, first: usize, length: usize) -> Self {
        match self {
            Self::Tokens(tokens) => Self::Tokens(tokens.narrow(1, first, length)),
            Self::Numbers(numbers) => Self::Numbers(numbers.narrow(1, first, length)),
        }
    }
}

/// What one forward pass takes besides its input, and what it shall give besides logits.
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
    /// What acts on the heads of the self-attention of the decoder, or of the only stack there is.
    pub decoder: Gating<'a>,
    /// On those of the encoder, which are Ls long. With a [`Cache`](crate::Cache) the source was read when it was made, and this
    /// does nothing.
    pub encoder: Gating<'a>,
    /// On those of the attention from the decoder to the encoder's output.
    pub cross: Gating<'a>,
    /// Where the decoder begins, instead of at its embedding.
    pub resume: Option<Resume<'a>>,
    /// Return the attention maps.
    pub maps: bool,
    /// Return the contexts of the heads, before the gates.
    pub contexts: bool,
    /// Return what each block of the decoder reads.
    pub inputs: bool,
    /// Where the nodes of the pass are kept.
    pub trace: Option<&'a Trace>,
}

/// What acts on the heads of a stack of attentions; see [`crate::AttentionCall`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Gating<'a> {
    /// Factor on each head's context, one `[1, H]` or `[B, H]` a layer.
    pub gates: Option<&'a [Tensor<2>]>,
    /// What takes the place of contexts whose gate is closed, one `[H, Lq, K]` a layer.
    pub replacements: Option<&'a [Tensor<3>]>,
}

impl<'a> Gating<'a> {
    /// What acts on one attention; nothing on one that is not there.
    pub(crate) fn of_layer(self, layer: usize) -> LayerGating<'a> {
        LayerGating {
            gates: self.gates.and_then(|gates| gates.get(layer)),
            replacement: self.replacements.and_then(|replacements| replacements.get(layer)),
        }
    }
}

/// What acts on the heads of one attention.
#[derive(Clone, Copy, Default)]
pub(crate) struct LayerGating<'a> {
    /// `[1, H]` or `[B, H]`.
    pub gates: Option<&'a Tensor<2>>,
    /// `[H, Lq, K]`.
    pub replacement: Option<&'a Tensor<3>>,
}

/// A pass that goes on from where another was: with the same tokens, source and call, it gives the same bits as the whole.
#[derive(Clone, Copy, Debug)]
pub struct Resume<'a> {
    /// The first block of the decoder that is computed.
    pub layer: usize,
    /// What it reads, `[B, L, D]`: that of [`Output::inputs`].
    pub input: &'a Tensor<3>,
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
    /// Another kind of input than the model was made for.
    #[error("the model reads {}, but the call has {}", told(*expected), told(*given))]
    Input { expected: usize, given: usize },
    /// Nothing that a read-out could read.
    #[error("the first position is the read-out's, and the call has {length}")]
    ReadoutAlone { length: usize },
    /// More tokens than learned positions.
    #[error("an input of {length} tokens is longer than the {most} learned positions of the model")]
    TooLong { length: usize, most: usize },
    /// A padding that isn't `[B, L]`.
    #[error(transparent)]
    Padding(#[from] MaskError),
    /// One gate for each head of each layer, the same for all samples or one for each.
    #[error(
        "gates of shapes {given:?}, but the {stack} has {layers} layers of {heads} heads, and the batch {batch} samples"
    )]
    Gates { stack: &'static str, given: Vec<[usize; 2]>, layers: usize, heads: usize, batch: usize },
    /// A replacement for each position of each head of each layer.
    #[error("replacements of shapes {given:?}, but the {stack} has {layers} layers of contexts {expected:?}")]
    Replacements { stack: &'static str, given: Vec<[usize; 3]>, layers: usize, expected: [usize; 3] },
    /// The input of a block that there is, of these samples.
    #[error("to go on at block {layer} from {given:?}, but the decoder has {layers} blocks, which read {expected:?}")]
    Resume { layer: usize, given: [usize; 3], layers: usize, expected: [usize; 3] },
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
    /// Every block adds to what is cached.
    #[error("a cache is extended by all blocks of the decoder: there is none to go on at")]
    CacheResume,
    /// The source is read once.
    #[error("the cache holds what the encoder has read: a source is given when it is made, not when it is extended")]
    CacheSource,
}

fn told(numbers: usize) -> String {
    match numbers {
        0 => "tokens".into(),
        1 => "1 number a position".into(),
        _ => format!("{numbers} numbers a position"),
    }
}

/// What a forward pass gives.
#[derive(Clone, Debug)]
pub struct Output {
    /// `[N, outputs]` at the scored positions, or `[B·L, outputs]` at all: a logit for each class, or the numbers that the model
    /// says. Where N is 0 it depends on nothing, so no
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
    /// `[B, H, Ls, K]` for each layer of the encoder; as `contexts`.
    pub encoder_contexts: Vec<Tensor<4>>,
    /// `[B, H, L, K]` of each layer's cross-attention; as `contexts`.
    pub cross_contexts: Vec<Tensor<4>>,
    /// `[B, L, D]` for each block of the decoder that was computed; empty unless asked for.
    pub inputs: Vec<Tensor<3>>,
}
