//! What a model is made of, as it stands in the `[model]` section of a config file.
//!
//! A [`ModelConfig`] holds what its user chooses; [`Dims`] holds what follows from the task. Both are checked by
//! [`ModelConfig::check`] before anything is built, so building a model can't fail.

use serde::{Deserialize, Serialize};

use crate::attention::{AttentionConfig, Merge, ScoreScale};
use crate::error::{ModelError, range};
use crate::init::Init;
use crate::positions::{Added, Positions};

/// Which stacks a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// One stack: a decoder, or a bidirectional encoder with `causal = false`.
    Decoder,
    /// A bidirectional encoder reads the task's source, and each block of a causal decoder attends to what it gives
    /// (Vaswani 2017, section 3.1). Both stacks have `layers` blocks.
    EncoderDecoder,
}

/// Where norms stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// Before each sublayer, and once after the last block.
    Pre,
    /// After each sublayer, of the sum with its input (Vaswani 2017, section 3.1).
    Post,
    /// Nowhere.
    None,
}

/// What a norm does to a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NormKind {
    /// Layer norm: mean 0 and variance 1, then a gain and a shift for each column (Ba 2016).
    #[default]
    Layer,
    /// Length 1, times one learned factor: `x / |x|` (Amsel 2024, arXiv 2407.16153, its published code).
    Length,
}

/// What stands between the two layers of an MLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MlpActivation {
    /// The exact GELU (Hendrycks 2016).
    #[default]
    Gelu,
    /// The larger of the number and 0.
    Relu,
}

/// The `[model]` section of a config file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelConfig {
    /// Which stacks there are.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Number of blocks; of each stack where there are two.
    pub layers: usize,
    /// Query heads of each attention.
    pub heads: usize,
    /// Key/value heads (Ainslie 2023): `heads` (the default) is ordinary multi-head attention, 1 is multi-query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<usize>,
    /// Width of one head; `d_model / heads` unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d_head: Option<usize>,
    /// Width of the MLP; `mlp_ratio · d_model` unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d_ff: Option<usize>,
    /// Width of the MLP in multiples of `d_model`.
    pub mlp_ratio: usize,
    /// Where the model learns the order of its inputs from.
    pub positions: Positions,
    /// A position reads itself and what is before it only. An encoder beside a decoder always reads both ways.
    pub causal: bool,
    /// The distribution of the initial weights.
    pub init: Init,
    /// Biases on the query, value and output projections.
    pub bias: bool,
    /// A bias on the key projection. Unless keys are rotated it adds the same number to every score of a row, which the
    /// softmax cancels: its true gradient is zero.
    pub key_bias: bool,
    /// What the products of queries and keys are multiplied by before the softmax.
    pub scale: ScoreScale,
    /// What happens to the heads' contexts before the output projection.
    pub merge: Merge,
    /// Where norms stand.
    pub norm: Norm,
    /// What they do. Here and below, a key that came later than others is written where it has not its usual value.
    #[serde(skip_serializing_if = "is_usual")]
    pub norm_kind: NormKind,
    /// Sublayers add to their input rather than replace it.
    pub residual: bool,
    /// Each block has an MLP after its attention.
    pub mlp: bool,
    /// What stands between the MLP's layers.
    #[serde(skip_serializing_if = "is_usual")]
    pub activation: MlpActivation,
    /// Layers between the numbers of a position and the stream, in tasks whose inputs are numbers: 1, or 2 with ReLU and `d_ff`
    /// columns between them; 0 where the numbers are the stream, of which there must be `d_model`.
    #[serde(skip_serializing_if = "is_one")]
    pub input_layers: usize,
    /// There is an output layer; without one the stream is what the model says, and there must be `d_model` outputs.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub output_layer: bool,
    /// A trained vector stands before each sample, and the answer of the whole sample is read there: in a model that reads both
    /// ways, of a task that asks for one answer a sample.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub readout: bool,
    /// The output layer uses the token embedding's matrix.
    pub tied: bool,
    /// Dropout on the sum of token and position embedding.
    pub embedding_dropout: f64,
    /// Dropout on the attention weights, after the softmax.
    pub attention_dropout: f64,
    /// Dropout on what each sublayer adds to the residual stream.
    pub residual_dropout: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            architecture: Architecture::Decoder,
            d_model: 64,
            layers: 1,
            heads: 8,
            kv_heads: None,
            d_head: None,
            d_ff: None,
            mlp_ratio: 4,
            positions: Positions::Learned,
            causal: true,
            init: Init::Torch,
            bias: true,
            key_bias: false,
            scale: ScoreScale::SqrtDHead,
            merge: Merge::Concat,
            norm: Norm::Pre,
            norm_kind: NormKind::Layer,
            residual: true,
            mlp: true,
            activation: MlpActivation::Gelu,
            input_layers: 1,
            output_layer: true,
            readout: false,
            tied: false,
            embedding_dropout: 0.0,
            attention_dropout: 0.0,
            residual_dropout: 0.0,
        }
    }
}

/// For keys that are written where they are not as usual.
fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn is_one(value: &usize) -> bool {
    *value == 1
}

/// The sizes that a task gives to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dims {
    /// Number of different input tokens, V; 0 where numbers are read.
    pub vocab: usize,
    /// Numbers that are read at each position, F; 0 where tokens are.
    #[serde(default)]
    pub inputs: usize,
    /// Number of different targets, or the numbers that are said at a position.
    pub outputs: usize,
    /// Longest input, L, a read-out included.
    pub length: usize,
    /// Whether a position for a read-out stands first, where the sample's one answer is asked for.
    #[serde(default)]
    pub readout: bool,
    /// What an encoder reads, in sequence-to-sequence tasks.
    pub source: Option<SourceDims>,
}

impl Dims {
    /// Of a task that reads `vocab` tokens in sequences of at most `length`, says `outputs` classes and has no source.
    pub const fn of_tokens(vocab: usize, outputs: usize, length: usize) -> Self {
        Self { vocab, inputs: 0, outputs, length, readout: false, source: None }
    }
}

/// The sizes of a task's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceDims {
    /// Number of different source tokens.
    pub vocab: usize,
    /// Longest source, Ls.
    pub length: usize,
}

/// Most parameters a model may have: 4 GB of f32 weights.
const MOST_PARAMETERS: u128 = 1 << 30;

impl ModelConfig {
    /// Width of one head, K.
    pub fn d_head(&self) -> usize {
        self.d_head.unwrap_or(self.d_model / self.heads)
    }

    /// Number of key/value heads.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads.unwrap_or(self.heads)
    }

    /// Width of the MLP.
    pub fn d_ff(&self) -> usize {
        self.d_ff.unwrap_or(self.mlp_ratio * self.d_model)
    }

    /// The sizes of each attention.
    ///
    /// # Panics
    /// Without heads.
    pub fn attention(&self) -> AttentionConfig {
        AttentionConfig {
            d_model: self.d_model,
            heads: self.heads,
            kv_heads: self.kv_heads(),
            d_head: self.d_head(),
            bias: self.bias,
            key_bias: self.key_bias,
            scale: self.scale,
            merge: self.merge,
            positions: self.positions,
        }
    }

    /// Whether an encoder reads a source beside the decoder.
    pub fn has_encoder(&self) -> bool {
        self.architecture == Architecture::EncoderDecoder
    }

    /// Refuses what can't be built, naming the values at fault.
    pub fn check(&self, dims: Dims) -> Result<(), ModelError> {
        match (self.architecture, dims.source) {
            (Architecture::EncoderDecoder, None) => return Err(ModelError::NoSource),
            (Architecture::Decoder, Some(_)) => return Err(ModelError::UnreadSource),
            _ => {}
        }
        if self.has_encoder() && !self.causal {
            return Err(ModelError::NotCausal);
        }
        range("d_model", self.d_model, 1, 1 << 16)?;
        // Without a block nothing would read the encoder.
        range("layers", self.layers, usize::from(self.has_encoder()), 1024)?;
        range("heads", self.heads, 1, 1 << 16)?;
        range("kv_heads", self.kv_heads(), 1, 1 << 16)?;
        range("mlp_ratio", self.mlp_ratio, 1, 1024)?;
        range("d_ff", self.d_ff(), 1, 1 << 24)?;
        if self.d_head.is_none() && !self.d_model.is_multiple_of(self.heads) {
            return Err(ModelError::HeadsDoNotDivide { d_model: self.d_model, heads: self.heads });
        }
        self.attention().check()?;
        for (key, value) in [
            ("embedding_dropout", self.embedding_dropout),
            ("attention_dropout", self.attention_dropout),
            ("residual_dropout", self.residual_dropout),
        ] {
            if !(0.0..1.0).contains(&value) {
                return Err(ModelError::Dropout { key, value });
            }
        }
        if matches!(self.positions.kind().added, Added::Fixed(_)) && !self.d_model.is_multiple_of(2) {
            return Err(ModelError::OddWidth { positions: self.positions, d_model: self.d_model });
        }
        self.check_ends(dims)?;
        if self.tied && dims.vocab != dims.outputs {
            return Err(ModelError::TiedWidths { vocab: dims.vocab, outputs: dims.outputs });
        }
        if self.tied && self.init == Init::Torch {
            return Err(ModelError::TiedInit);
        }
        let d = self.d_model as u128;
        let attention = d * self.d_head() as u128 * 2 * (self.heads as u128 + self.kv_heads() as u128);
        let mlp = if self.mlp { 2 * d * self.d_ff() as u128 } else { 0 };
        // An encoder's block, and in the decoder's a second attention.
        let block = if self.has_encoder() { 3 * attention + 2 * mlp } else { attention + mlp };
        let (source_vocab, source_length) = dims.source.map_or((0, 0), |source| (source.vocab, source.length));
        let rows = [dims.vocab, dims.inputs, dims.outputs, dims.length, source_vocab, source_length];
        let hidden = if self.input_layers == 2 { self.d_ff() as u128 * (dims.inputs as u128 + d) } else { 0 };
        let parameters = block * self.layers as u128 + d * rows.iter().map(|&n| n as u128).sum::<u128>() + hidden;
        if parameters > MOST_PARAMETERS {
            let (key, value) = ("d_model", self.d_model);
            return Err(ModelError::TooLarge { key, value, parameters, most: MOST_PARAMETERS });
        }
        Ok(())
    }

    /// Between the task's numbers and the stream, and at the read-out.
    fn check_ends(&self, dims: Dims) -> Result<(), ModelError> {
        range("input_layers", self.input_layers, 0, 2)?;
        let (d_model, inputs, outputs) = (self.d_model, dims.inputs, dims.outputs);
        if self.input_layers != 1 && inputs == 0 {
            return Err(ModelError::TokenInput { input_layers: self.input_layers });
        }
        if self.input_layers == 0 && inputs != d_model {
            return Err(ModelError::InputWidth { d_model, inputs });
        }
        if !self.output_layer && outputs != d_model {
            return Err(ModelError::OutputWidth { d_model, outputs });
        }
        if !self.output_layer && self.tied {
            return Err(ModelError::TiedToNothing);
        }
        if self.readout && self.causal {
            return Err(ModelError::CausalReadout);
        }
        if self.readout && !dims.readout {
            return Err(ModelError::NoOneAnswer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIMS: Dims = Dims::of_tokens(16, 8, 32);

    #[test]
    fn the_default_is_accepted() {
        assert_eq!(ModelConfig::default().check(DIMS), Ok(()));
    }

    /// pytorch#28719: the error names both numbers.
    #[test]
    fn pytorch_28719_indivisible_width_names_both_numbers() {
        let error = ModelConfig { d_model: 30, heads: 4, ..Default::default() }.check(DIMS).unwrap_err();
        assert_eq!(error, ModelError::HeadsDoNotDivide { d_model: 30, heads: 4 });
        let text = error.to_string();
        assert!(text.contains("d_model = 30") && text.contains("heads = 4"), "{text}");
    }

    #[test]
    fn impossible_values_name_their_key() {
        let base = ModelConfig::default;
        for (config, key) in [
            (ModelConfig { heads: 0, ..base() }, "heads"),
            (ModelConfig { d_model: 0, ..base() }, "d_model"),
            (ModelConfig { heads: 8, kv_heads: Some(3), ..base() }, "kv_heads"),
            (ModelConfig { kv_heads: Some(0), ..base() }, "kv_heads"),
            (ModelConfig { attention_dropout: 1.0, ..base() }, "attention_dropout"),
            (ModelConfig { residual_dropout: f64::NAN, ..base() }, "residual_dropout"),
            (ModelConfig { heads: 64, positions: Positions::Rope, ..base() }, "positions"),
            (ModelConfig { d_model: 3, heads: 1, positions: Positions::Sinusoidal, ..base() }, "positions"),
            (ModelConfig { tied: true, init: Init::Gpt2, ..base() }, "tied"),
            (ModelConfig { d_model: 1 << 16, layers: 1024, ..base() }, "d_model"),
        ] {
            assert_eq!(config.check(DIMS).unwrap_err().key(), key, "{config:?}");
        }
        let same = Dims { vocab: 8, ..DIMS };
        assert_eq!(ModelConfig { tied: true, ..base() }.check(same), Err(ModelError::TiedInit));
    }

    /// Architecture and task must fit each other; the error names the key and both values where two contradict.
    #[test]
    fn an_encoder_and_a_source_need_each_other() {
        let both = ModelConfig { architecture: Architecture::EncoderDecoder, ..Default::default() };
        let with_source = Dims { source: Some(SourceDims { vocab: 9, length: 5 }), ..DIMS };
        assert_eq!(both.check(with_source), Ok(()));
        assert_eq!(both.check(DIMS), Err(ModelError::NoSource));
        assert_eq!(ModelConfig::default().check(with_source), Err(ModelError::UnreadSource));
        let error = ModelConfig { causal: false, ..both.clone() }.check(with_source).unwrap_err();
        assert_eq!((error.clone(), error.key()), (ModelError::NotCausal, "causal"));
        assert!(error.to_string().contains("encoder_decoder"), "{error}");
        assert_eq!(ModelConfig { layers: 0, ..both }.check(with_source).unwrap_err().key(), "layers");
    }

    /// Tasks in numbers, and what only they can have.
    #[test]
    fn the_ends_of_a_model_fit_the_task() {
        let numbers = Dims { vocab: 0, inputs: 4, outputs: 1, length: 6, readout: true, source: None };
        let base = || ModelConfig { causal: false, d_model: 8, heads: 1, ..Default::default() };
        for (config, dims, refused) in [
            (base(), numbers, None),
            (ModelConfig { readout: true, input_layers: 2, ..base() }, numbers, None),
            (ModelConfig { readout: true, causal: true, ..base() }, numbers, Some(("readout", "causal = false"))),
            (ModelConfig { readout: true, ..base() }, DIMS, Some(("readout", "one answer"))),
            (ModelConfig { input_layers: 0, ..base() }, numbers, Some(("input_layers", "4 numbers"))),
            (ModelConfig { input_layers: 2, ..base() }, DIMS, Some(("input_layers", "tokens"))),
            (ModelConfig { input_layers: 3, ..base() }, numbers, Some(("input_layers", "0 to 2"))),
            (ModelConfig { output_layer: false, ..base() }, numbers, Some(("output_layer", "outputs = 1"))),
            (
                ModelConfig { input_layers: 0, output_layer: false, d_model: 4, ..base() },
                Dims { outputs: 4, ..numbers },
                None,
            ),
            (ModelConfig { tied: true, init: Init::Gpt2, ..base() }, numbers, Some(("tied", "vocab = 0"))),
        ] {
            let found = config.check(dims).err();
            let told = found.as_ref().map(|error| (error.key(), error.to_string()));
            match (told, refused) {
                (None, None) => {}
                (Some((key, text)), Some((wanted, part))) => {
                    assert!(key == wanted && text.contains(part), "{key}: {text}");
                }
                (told, refused) => panic!("{told:?}, {refused:?}"),
            }
        }
        // What is as usual is not written: older configs keep their text.
        let keys = ["norm_kind", "activation", "input_layers", "output_layer", "readout"];
        let text = serde_json::to_string(&base()).unwrap();
        assert!(keys.iter().all(|key| !text.contains(key)), "{text}");
        let unusual = ModelConfig {
            norm_kind: NormKind::Length,
            activation: MlpActivation::Relu,
            input_layers: 2,
            output_layer: false,
            readout: true,
            ..base()
        };
        let text = serde_json::to_string(&unusual).unwrap();
        assert!(keys.iter().all(|key| text.contains(key)), "{text}");
        assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), unusual);
    }

    proptest! {
        /// Whatever the numbers: an answer, never a panic.
        #[test]
        fn check_never_panics(d_model: usize, layers: usize, heads: usize, kv in proptest::option::of(any::<usize>()),
            d_head in proptest::option::of(any::<usize>()), mlp_ratio in 0usize..2000) {
            let config = ModelConfig { d_model, layers, heads, kv_heads: kv, d_head, mlp_ratio, ..Default::default() };
            let _ = config.check(DIMS);
        }
    }
}
