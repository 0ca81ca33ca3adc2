//! One forward pass, node by node, as a page and a terminal show it: real numbers of a model, with masks as they are and without.
//!
//! These are types alone: `headcount-analysis` makes them by running models.

use serde::{Deserialize, Serialize};

use crate::heads::{AttentionSite, ShownToken};

/// One sample through one model. Shapes: L its length, D d_model, H heads, G key/value heads, K d_head; one sample, so B = 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardPass {
    /// Name of the run's arm, such as `h8`.
    pub name: String,
    /// Kind of the task.
    pub task: String,
    /// Optimiser steps of the weights.
    pub step: u64,
    /// Its place in the validation set.
    pub sample: u64,
    /// L tokens, with what should be said where something is asked for.
    pub tokens: Vec<ShownToken>,
    /// Ls tokens of the source; empty without an encoder.
    pub source: Vec<ShownToken>,
    pub d_model: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub d_head: usize,
    /// Factor on the products of queries and keys.
    pub scale: f64,
    /// The masks that the model has.
    pub masks: Vec<MaskKind>,
    /// The model as it is first, then with every choice left out of those masks that it can be without: a decoder beside an encoder
    /// is always causal.
    pub passes: Vec<MaskedPass>,
}

/// What a mask forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaskKind {
    /// To read what comes later.
    Causal,
    /// To read positions of the source that hold no token.
    Padding,
}

impl MaskKind {
    pub const ALL: [Self; 2] = [Self::Causal, Self::Padding];

    /// The name in files, in words and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Causal => "causal",
            Self::Padding => "padding",
        }
    }
}

/// The pass with some masks left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaskedPass {
    /// Those left out.
    pub without: Vec<MaskKind>,
    /// Every attention that is shown, the decoder's first.
    pub attentions: Vec<TracedAttention>,
    /// What the model says at each scored position, in their order; see [`crate::heads::ShownAnswers`].
    pub answers: Vec<Vec<(i32, f64)>>,
}

/// The nodes of one attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedAttention {
    pub site: AttentionSite,
    pub layer: usize,
    /// `[Lq, D]`: what queries are made of, after the norm.
    pub input: Numbers,
    /// `[H, Lq, K]`.
    pub query: Numbers,
    /// `[G, Lk, K]`.
    pub key: Numbers,
    /// `[G, Lk, K]`.
    pub value: Numbers,
    /// `[H, Lq, Lk]`: products of queries and keys, scaled, before the mask.
    pub scores: Numbers,
    /// `[H, Lq, Lk]`: after mask and softmax.
    pub maps: Numbers,
    /// `[H, Lq, K]`: weighted sums of values.
    pub context: Numbers,
    /// `[Lq, D]`: contexts side by side times the output projection.
    pub output: Numbers,
}

/// A tensor: every bit of its f32.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    pub shape: Vec<usize>,
    /// Base64 (RFC 4648, with padding) of the values, little-endian, row-major.
    pub values: String,
}
