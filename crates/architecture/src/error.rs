//! Why a model can't be built, naming the values at fault.

use thiserror::Error;

use crate::positions::Positions;

/// Why a model can't be built.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// The usual split into heads needs a whole number of columns a head.
    #[error("d_model = {d_model} can't be split into heads = {heads} of equal width: {d_model} / {heads} isn't whole")]
    HeadsDoNotDivide { d_model: usize, heads: usize },
    /// Every key/value head serves the same number of query heads.
    #[error(
        "kv_heads = {kv_heads} doesn't divide heads = {heads}: each key/value head serves heads / kv_heads query heads"
    )]
    KvHeadsDoNotDivide { heads: usize, kv_heads: usize },
    /// A size is out of range.
    #[error("{key} = {value} is out of range: {least} to {most}")]
    OutOfRange { key: &'static str, value: usize, least: usize, most: usize },
    /// The model would not fit into memory.
    #[error("{key} = {value} gives a model of {parameters} parameters; at most {most} are allowed")]
    TooLarge { key: &'static str, value: usize, parameters: u128, most: u128 },
    /// A dropout is a probability below 1.
    #[error("{key} = {value} is out of range: a dropout is at least 0 and less than 1")]
    Dropout { key: &'static str, value: f64 },
    /// Rotation acts on pairs of columns.
    #[error(
        "positions = \"{}\" needs an even d_head, but d_head = {d_head} (d_model = {d_model}, heads = {heads})",
        .positions.name()
    )]
    OddHeads { positions: Positions, d_head: usize, d_model: usize, heads: usize },
    /// Fixed numbers come in pairs of columns.
    #[error("positions = \"{}\" needs an even d_model, but d_model = {d_model}", .positions.name())]
    OddWidth { positions: Positions, d_model: usize },
    /// A tied output layer has the shape of the embedding.
    #[error("tied = true needs as many outputs as tokens, but the task has vocab = {vocab} and outputs = {outputs}")]
    TiedWidths { vocab: usize, outputs: usize },
    /// An encoder needs something to read.
    #[error("architecture = \"encoder_decoder\" needs a task with a source for its encoder, and this task has none")]
    NoSource,
    /// Only an encoder reads a source.
    #[error(
        "architecture = \"decoder\" can't read the source of this task, which needs architecture = \"encoder_decoder\""
    )]
    UnreadSource,
    /// A decoder that writes a target reads it one position late: without the mask, the answer is there to be read.
    #[error(
        "architecture = \"encoder_decoder\" needs causal = true: its decoder would read the tokens that it is to name"
    )]
    NotCausal,
    /// N(0, 1) embeddings give logits of size sqrt(d_model) when they are used as output weights.
    #[error("tied = true needs init = \"gpt2\": with init = \"torch\" the untrained logits have size sqrt(d_model)")]
    TiedInit,
    /// A tied output layer is one.
    #[error("tied = true needs an output layer, and output_layer = false")]
    TiedToNothing,
    /// Tokens have their embedding.
    #[error("input_layers = {input_layers} is for tasks whose inputs are numbers, and this task has tokens")]
    TokenInput { input_layers: usize },
    /// Without an input layer the numbers are the stream.
    #[error(
        "input_layers = 0 needs as many numbers a position as d_model = {d_model}, and the task has {inputs} numbers"
    )]
    InputWidth { d_model: usize, inputs: usize },
    /// Without an output layer the stream is what is said.
    #[error("output_layer = false needs as many outputs as d_model = {d_model}, and the task has outputs = {outputs}")]
    OutputWidth { d_model: usize, outputs: usize },
    /// A read-out stands first and reads all that follows.
    #[error("readout = true needs causal = false: the read-out stands before the sample that it is to read")]
    CausalReadout,
    /// There is nothing to say at a read-out.
    #[error("readout = true needs a task that asks for one answer a sample, and this task asks at each position")]
    NoOneAnswer,
}

impl ModelError {
    /// The key of `[model]` at fault.
    pub fn key(&self) -> &'static str {
        match self {
            Self::HeadsDoNotDivide { .. } => "heads",
            Self::KvHeadsDoNotDivide { .. } => "kv_heads",
            Self::OutOfRange { key, .. } | Self::TooLarge { key, .. } | Self::Dropout { key, .. } => key,
            Self::OddHeads { .. } | Self::OddWidth { .. } => "positions",
            Self::TiedWidths { .. } | Self::TiedInit | Self::TiedToNothing => "tied",
            Self::TokenInput { .. } | Self::InputWidth { .. } => "input_layers",
            Self::OutputWidth { .. } => "output_layer",
            Self::CausalReadout | Self::NoOneAnswer => "readout",
            Self::NoSource | Self::UnreadSource => "architecture",
            Self::NotCausal => "causal",
        }
    }
}

/// Refuses a value outside of `least..=most`.
pub(crate) fn range(key: &'static str, value: usize, least: usize, most: usize) -> Result<(), ModelError> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(ModelError::OutOfRange { key, value, least, most }) }
}
