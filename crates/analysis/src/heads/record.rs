//! The content of a run's `heads.json`.
//!
//! No number in it is NaN or infinite, all are rounded to six significant digits, and the same run gives the same bytes.
//! A number is `null` where it has no meaning: an induction score where no token ever comes twice, a distance between
//! positions of two sequences.

use serde::{Deserialize, Serialize};

/// Version of the layout of `heads.json`, a run's and an experiment's; raised whenever a reader would have to change.
pub const SCHEMA_VERSION: u32 = 1;

/// The content of a run's `heads.json`: what every head does, at some steps of the training and before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadAnalysis {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// BLAKE3 of all that the numbers follow from (config, summary, weights, version of the measures), 64 hex digits.
    pub computed_from: String,
    /// Name of the run's arm, such as `h8`.
    pub name: String,
    /// Seed of the run.
    pub seed: u64,
    /// Kind of the task, such as `registers`.
    pub task: String,
    /// Blocks of each stack.
    pub layers: usize,
    /// Query heads of each attention, H.
    pub heads: usize,
    /// Key/value heads, G.
    pub kv_heads: usize,
    /// Width of a head, K.
    pub d_head: usize,
    /// A position reads itself and what is before it only.
    pub causal: bool,
    /// How many samples the numbers are averages over, B: the first ones of the validation set, at most 64.
    pub samples: usize,
    /// Scored positions of these samples.
    pub scored: usize,
    /// The samples whose maps are kept: the first ones of those above.
    pub shown: Vec<ShownSample>,
    /// The untrained model (step 0) first, then rising; the last is the end of the run.
    pub steps: Vec<StepAnalysis>,
}

impl HeadAnalysis {
    /// The analysis of the model before its first step.
    pub fn untrained(&self) -> Option<&StepAnalysis> {
        self.steps.first()
    }

    /// The analysis of the last model; the untrained one where the run has no step.
    pub fn last(&self) -> Option<&StepAnalysis> {
        self.steps.last()
    }
}

/// A sample whose maps are kept, cut to the first [`super::SHOWN_POSITIONS`] positions on either side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownSample {
    /// Its place in the validation set.
    pub index: u64,
    /// The tokens that the maps' queries stand at, and in self-attention its keys.
    pub tokens: Vec<ShownToken>,
    /// The source's tokens: queries and keys of the encoder's maps, keys of the cross-attention's. Empty without an encoder.
    pub source: Vec<ShownToken>,
}

/// A token on an axis of a map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownToken {
    /// Its id.
    pub id: u32,
    /// A short name for people: `r2=3` in `registers`, `start` before a target, else the id.
    pub label: String,
    /// Padding, which counts nowhere.
    pub padding: bool,
    /// What the model should say here; `null` where the position isn't scored.
    pub target: Option<i32>,
}

/// A model at one step of the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepAnalysis {
    /// Optimiser steps done; 0 is the untrained model.
    pub step: u64,
    /// Mean loss over the scored positions of the samples, in nats.
    pub loss: f64,
    /// Share of them that is right, 0 to 1.
    pub accuracy: f64,
    /// Every attention of the model: the decoder's layers, then those of the encoder, then the cross-attentions.
    pub attentions: Vec<AttentionAnalysis>,
}

impl StepAnalysis {
    /// The self-attentions of the decoder, in the order of the layers: where every measure is taken.
    pub fn decoder(&self) -> impl Iterator<Item = &AttentionAnalysis> {
        self.attentions.iter().filter(|attention| attention.place == Place::Decoder)
    }
}

/// Where an attention stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Self-attention of the decoder, or of the only stack there is. Every measure is taken here.
    Decoder,
    /// Self-attention of the encoder. Measures of maps alone.
    Encoder,
    /// From the decoder to the encoder's output. Measures of maps alone, those of positions left out.
    Cross,
}

/// One layer's attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionAnalysis {
    /// Which of the model's attentions.
    pub place: Place,
    /// Its layer within its stack, from 0.
    pub layer: usize,
    /// Its heads, in the order of their columns.
    pub heads: Vec<HeadMeasures>,
    /// `[H][H]`: Jensen-Shannon divergence between the maps of two heads, averaged over rows with at least two readable
    /// keys, in nats: 0 (alike) to ln 2 (they never read the same). Symmetric, with zeros on the diagonal.
    pub divergence: Vec<Vec<f64>>,
    /// The maps of the shown samples; `null` at steps that the file's size leaves out.
    pub maps: Option<ShownMaps>,
}

/// What one head does. Measures of a map average over rows (queries) that may read at least two keys and aren't padding,
/// unless they say otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadMeasures {
    /// Entropy of a row over the logarithm of the number of keys that it may read: 0 (one key) to 1 (all alike).
    pub entropy: Option<f64>,
    /// Greatest weight of a row, 0 to 1.
    pub confidence: Option<f64>,
    /// Mean distance from a query to what it reads, in positions.
    pub distance: Option<f64>,
    /// Weight on the position before.
    pub previous_token: Option<f64>,
    /// Weight on earlier positions of the same token, in rows that have some.
    pub duplicate_token: Option<f64>,
    /// Weight on positions right after an earlier one of the same token, in rows that have some: what an induction head
    /// reads (Olsson 2022). The row's own position does not count.
    pub induction: Option<f64>,
    /// Weight on position 0.
    pub first_position: Option<f64>,
    /// In the task `registers`: weight on the latest write of each register, in scored rows. `null` in other tasks.
    pub registers: Option<Vec<f64>>,
    /// Share of the head in what the attention writes: the mean over positions of the norm of its context times its rows
    /// of the output projection, over the sum of that over heads. The shares of a layer sum to 1.
    pub output_share: Option<f64>,
    /// How much the loss rises when the head is removed, in nats: its context replaced by its mean over the samples at each
    /// position. Below 0 where the model does better without it.
    pub removal: Option<f64>,
    /// How much the loss rises when only this head of its layer is kept, in nats.
    pub alone: Option<f64>,
    /// Mean over samples of |∂ loss / ∂ gate| at gate 1, the loss being the sample's mean, in nats (Michel 2019, section 4.1).
    pub importance: Option<f64>,
    /// The most similar other head of the layer, where there is one.
    pub nearest: Option<Nearest>,
    /// What is remarkable about it.
    pub flags: Vec<Flag>,
}

/// The other head of the layer whose maps are most like a head's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nearest {
    /// Which.
    pub head: usize,
    /// The Jensen-Shannon divergence, in nats.
    pub divergence: f64,
}

/// What is remarkable about a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// Removing it raises the loss by less than 0.01 nat, and its output share is below 0.1/H.
    Dead,
    /// Another head of the layer has nearly the same maps.
    Duplicate,
    /// It puts more than 0.3 of its weight on position 0 (Gu 2024, arXiv 2410.10781).
    Sink,
}

/// The maps of the shown samples, a byte a weight.
///
/// `heads[h]` is base64 (RFC 4648, with padding) of one byte for each sample, query and readable key, in this order of
/// nesting: weight = byte / 255. In a `causal` map query i has the i + 1 entries of keys 0 to i; else each query has `keys`
/// entries. Rows and keys of padding are there, and are 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShownMaps {
    /// Only keys up to the query's own position are listed.
    pub causal: bool,
    /// Samples: the first ones of [`HeadAnalysis::shown`].
    pub samples: usize,
    /// Queries of each, from position 0.
    pub queries: usize,
    /// Keys of each, from position 0.
    pub keys: usize,
    /// One text a head.
    pub heads: Vec<String>,
}
