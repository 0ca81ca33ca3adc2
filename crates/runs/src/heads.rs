//! The content of `heads.json`, a run's and an experiment's: what each attention head does.
//!
//! These are the types of the files alone: `headcount-analysis` makes them by running models, whoever shows them reads them.
//! A file carries the description of its measures ([`MeasureInfo`]), so that a reader needs to know none of them.
//!
//! No number in the files is NaN or infinite, all are rounded to six significant digits, and the same run gives the same
//! bytes. A measure is absent where it has no meaning: an induction score where no token ever comes twice, a distance between
//! positions of two sequences.
//!
//! Heads have no identity across seeds: head 3 of one run is not head 3 of another. So nothing here averages over a head's
//! number. What is averaged are means or extremes over all heads of a run, counts of flagged heads, and values sorted within a
//! run.

use std::{collections::BTreeMap, path::Path};

use data::metrics::{Better, MetricKind, Scores};
use serde::{Deserialize, Serialize};

use crate::{error::RunError, files};

/// Version of the layout of `heads.json`, a run's and an experiment's; raised whenever a reader would have to change.
pub const SCHEMA_VERSION: u32 = 4;

/// Positions of a shown sample, on either side of its maps.
pub const SHOWN_POSITIONS: usize = 64;

/// The content of a run's `heads.json`: what every head does, at some steps of the training and before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// What is measured of each head, in the order in which it is shown. Within an experiment's file they are the arm's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureInfo>,
    /// The roles that a head may have, in the order in which they are told. Within an experiment's file they are the arm's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<RoleInfo>,
    /// Attentions whose heads all look alike at the end of the run.
    #[serde(default)]
    pub alike: Vec<AlikeHeads>,
    /// The samples whose maps are kept: the first ones of those above.
    pub shown: Vec<ShownSample>,
    /// The untrained model (step 0) first, then rising; the last is the end of the run.
    pub steps: Vec<StepAnalysis>,
    /// The model at the end with fewer and fewer heads; `null` unless asked for.
    pub pruning: Option<Pruning>,
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

/// A measure as its readers need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasureInfo {
    /// Its key in [`HeadMeasures::measures`], such as `previous_token`.
    pub key: String,
    /// What it is called wherever it is shown, such as "previous token".
    pub title: String,
    /// What it says, in one or two sentences.
    pub glossary: String,
    /// What a head with much of it reads, as in "reads the token before"; `null` where it says no such thing.
    pub reads: Option<String>,
    /// Least and greatest value, where it has both.
    pub range: Option<[f64; 2]>,
    /// What it is counted in.
    pub unit: Unit,
    /// What kind of thing it tells of a head.
    pub tells: Tells,
    /// What stands for a run among other runs.
    pub across: OfRun,
    /// What the numbers of a measure with several belong to, in their order, such as "register 0"; empty for a single number.
    pub parts: Vec<String>,
}

/// A role as its readers need it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleInfo {
    /// Its key in [`Role::role`], such as `lookup`.
    pub key: String,
    /// What it is called wherever it is shown.
    pub title: String,
    /// When a head has it, as a sentence with its numbers.
    pub rule: String,
}

/// A role that a head has, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// [`RoleInfo::key`].
    pub role: String,
    /// What the head does, as in "looks up register 2".
    pub words: String,
    /// Key of the measure that says so.
    pub measure: String,
    /// Its number.
    pub value: f64,
    /// The same of this head before its first step, where there is one.
    pub untrained: Option<f64>,
}

/// An attention whose heads all look alike at the end of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlikeHeads {
    /// Where it stands.
    pub site: AttentionSite,
    /// Its layer within its stack, from 0.
    pub layer: usize,
    /// Mean divergence between two of its heads, in nats.
    pub divergence: f64,
    /// The same before the first step.
    pub untrained: f64,
    /// What is told of it, in a sentence without its full stop.
    pub words: String,
}

/// What a measure is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A part of a whole, 0 to 1.
    Share,
    /// Positions of a sequence.
    Positions,
    /// Nats of the loss; less than none where the model does better.
    Nats,
    /// The size of a slope of the loss, in nats.
    Slope,
}

/// What kind of thing a measure tells of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tells {
    /// What the head reads: from its maps alone.
    Reads,
    /// What it is worth to the model.
    Worth,
}

/// What stands for a run among others, as heads have no identity across seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfRun {
    /// The mean over its heads.
    Mean,
    /// The greatest of its heads.
    Greatest,
}

/// A sample whose maps are kept, cut to the first [`SHOWN_POSITIONS`] positions on either side.
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
    /// A short name for people, as the task has it: `r2=3` in `registers`, `start` before a target.
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
    /// What the model scores on the samples.
    #[serde(flatten)]
    pub scores: Scores,
    /// What the model says at the scored positions of the shown samples; `null` at steps that the file's size leaves out, and
    /// where answers are no classes.
    #[serde(default)]
    pub answers: Option<Vec<ShownAnswers>>,
    /// Every attention of the model: the decoder's layers, then those of the encoder, then the cross-attentions.
    pub attentions: Vec<AttentionAnalysis>,
}

impl StepAnalysis {
    /// The self-attentions of the decoder, in the order of the layers: where every measure is taken.
    pub fn decoder(&self) -> impl Iterator<Item = &AttentionAnalysis> {
        self.attentions.iter().filter(|attention| attention.site == AttentionSite::Decoder)
    }
}

/// What the model says at the scored positions of one shown sample, in their order: for each the likeliest classes with their
/// probabilities, the likeliest first; the class that is right is always among them, at the end if it is none of the likeliest.
pub type ShownAnswers = Vec<Vec<(i32, f64)>>;

/// Where an attention stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionSite {
    /// Self-attention of the decoder, or of the only stack there is. Every measure is taken here.
    Decoder,
    /// Self-attention of the encoder. What answers need is not asked here.
    Encoder,
    /// From the decoder to the encoder's output. Measures of positions of one sequence are left out.
    Cross,
}

impl AttentionSite {
    /// All of them, in the order of [`StepAnalysis::attentions`].
    pub const ALL: [Self; 3] = [Self::Decoder, Self::Encoder, Self::Cross];
}

/// One head of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeadPlace {
    /// Which of the model's attentions.
    pub site: AttentionSite,
    /// Its layer within its stack, from 0.
    pub layer: usize,
    /// Its place in the layer, from 0.
    pub head: usize,
}

/// One layer's attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttentionAnalysis {
    /// Which of the model's attentions.
    pub site: AttentionSite,
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

/// What one head does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeadMeasures {
    /// By [`MeasureInfo::key`]; a measure without meaning for this head is left out.
    pub measures: BTreeMap<String, MeasureValue>,
    /// The most similar other head of the layer, where there is one.
    pub nearest: Option<Nearest>,
    /// What is remarkable about it.
    pub flags: Vec<Flag>,
    /// What it is for, as far as its numbers say so.
    #[serde(default)]
    pub roles: Vec<Role>,
}

impl HeadMeasures {
    /// The value of a measure of one number; `None` where it has no meaning.
    pub fn number(&self, key: &str) -> Option<f64> {
        match self.measures.get(key)? {
            MeasureValue::Number(number) => Some(*number),
            MeasureValue::Parts(_) => None,
        }
    }

    /// The numbers of a measure, one a part; one for a measure without parts, none where it has no meaning.
    pub fn numbers(&self, key: &str) -> &[f64] {
        self.measures.get(key).map_or(&[], MeasureValue::numbers)
    }
}

/// What a measure gives of one head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MeasureValue {
    /// One number.
    Number(f64),
    /// One number for each of [`MeasureInfo::parts`].
    Parts(Vec<f64>),
}

impl MeasureValue {
    /// All of its numbers.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::Number(number) => std::slice::from_ref(number),
            Self::Parts(numbers) => numbers,
        }
    }

    /// The same, to be changed.
    pub fn numbers_mut(&mut self) -> &mut [f64] {
        match self {
            Self::Number(number) => std::slice::from_mut(number),
            Self::Parts(numbers) => numbers,
        }
    }
}

impl From<f64> for MeasureValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// Removing it, and no other, raises the loss by less than 0.01 nat, whatever it writes.
    Spare,
    /// Spare, and its output share is below 0.1/H: it writes next to nothing, too.
    Dead,
    /// Another head of the layer has nearly the same maps: they differ by less than heads do before training.
    Twin,
    /// It puts more than 0.3 of its weight on position 0 (Gu 2024, arXiv 2410.10781).
    Sink,
}

impl Flag {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Spare, Self::Dead, Self::Twin, Self::Sink];

    /// The name in files and in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spare => "spare",
            Self::Dead => "dead",
            Self::Twin => "twin",
            Self::Sink => "sink",
        }
    }

    /// What it says, in a sentence for a glossary.
    pub fn about(self) -> &'static str {
        match self {
            Self::Spare => {
                "A head whose removal, alone, raises the loss by less than 0.01 nat, whatever it writes. Of two heads that do the \
                 same both are spare, though one of them is needed."
            }
            Self::Dead => "A spare head that writes less than a tenth of an equal share, too.",
            Self::Twin => {
                "A head with nearly the same maps as another of its layer: nearer than heads are before training."
            }
            Self::Sink => "A head with more than 0.3 of its weight on the first position.",
        }
    }
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

impl ShownMaps {
    /// Characters of one sample.
    pub fn characters(&self) -> usize {
        self.heads.iter().map(String::len).sum::<usize>() / self.samples.max(1)
    }
}

/// A trained model with fewer and fewer heads, by greedy backward removal: of the heads that are left, the one goes whose removal
/// raises the validation loss least. A removed head is replaced by its mean context over validation samples at each position.
/// Heads of every attention of the model are among them.
///
/// It says what the trained model uses, not what a model needs to learn the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pruning {
    /// Validation samples on which heads were chosen: the first ones of the set.
    pub validation_samples: usize,
    /// Passes of the model over them, from the first block on that changes.
    pub passes: usize,
    /// Test samples on which [`PruningPoint::test`] was read: the first ones of the set.
    pub test_samples: usize,
    /// All heads first, then one fewer each, down to none.
    pub points: Vec<PruningPoint>,
    /// How many are used, by the margin that was asked for.
    pub used: HeadsUsed,
}

/// A model with some of its heads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PruningPoint {
    /// Heads kept.
    pub kept: usize,
    /// The head that was removed last; `null` where all are kept.
    pub removed: Option<HeadPlace>,
    /// On the validation samples: what the head was chosen by, so better than on new samples.
    pub validation: Scores,
    /// On the test samples.
    pub test: Scores,
    /// Standard errors of `test` over samples; empty for a single sample.
    pub standard_error: Scores,
    /// Standard errors, over samples, of the difference of `test` to that with all heads: what is common to both cancels.
    pub difference_standard_error: Scores,
}

/// The smallest number of heads with which a metric on the test samples is within a margin of that with all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeadsUsed {
    /// How many.
    pub heads: usize,
    /// Key of the metric.
    pub metric: String,
    /// In the metric's unit.
    pub margin: f64,
}

/// How much worse a model may be without some heads, to count as one that doesn't use them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// By what.
    pub metric: &'static MetricKind,
    /// In its unit.
    pub margin: f64,
}

impl Pruning {
    /// What holds with another tolerance.
    #[must_use]
    pub fn within(self, tolerance: Tolerance) -> Self {
        let used = HeadsUsed::of(&self.points, tolerance);
        Self { used, ..self }
    }

    /// The model with all heads.
    pub fn whole(&self) -> Option<&PruningPoint> {
        self.points.first()
    }

    /// The model with the heads that it uses.
    pub fn used(&self) -> Option<&PruningPoint> {
        self.points.iter().find(|point| point.kept == self.used.heads)
    }
}

impl HeadsUsed {
    /// From points of which the first has all heads.
    pub fn of(points: &[PruningPoint], Tolerance { metric, margin }: Tolerance) -> Self {
        let value = |point: &PruningPoint| point.test.number(metric);
        let whole = points.first();
        let is_within = |point: &&PruningPoint| {
            let lost = whole.map_or(f64::NAN, |whole| match metric.better {
                Better::Higher => value(whole) - value(point),
                Better::Lower => value(point) - value(whole),
            });
            // Scores are rounded to six digits: a loss of exactly the margin is within.
            lost <= margin * (1.0 + 1e-9)
        };
        let fewest = points.iter().filter(is_within).map(|point| point.kept).min();
        let heads = fewest.or(whole.map(|whole| whole.kept)).unwrap_or_default();
        Self { heads, metric: metric.key.into(), margin }
    }
}

/// The content of an experiment's `heads.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentHeads {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the experiment.
    pub name: String,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmHeads>,
}

impl ExperimentHeads {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write(&self, path: &Path) -> Result<(), RunError> {
        let text = serde_json::to_string(self).map_err(RunError::json(path, 0))? + "\n";
        files::write_output(path, text.as_bytes())
    }
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmHeads {
    /// Such as `h8`.
    pub name: String,
    /// Such as "8 heads".
    pub label: String,
    /// What is measured of each head, in the order in which it is shown.
    pub measures: Vec<MeasureInfo>,
    /// The roles that a head may have.
    #[serde(default)]
    pub roles: Vec<RoleInfo>,
    /// Across the runs that finished, before training; `null` if none did.
    pub untrained: Option<AcrossRuns>,
    /// The same at the end.
    pub last: Option<AcrossRuns>,
    /// Its runs, in the order of the pairs. The first one that finished has every analysed step, with maps, and is pruned; the
    /// others the untrained model and the last, with maps of the last as far as there is room.
    pub runs: Vec<RunHeads>,
}

impl ArmHeads {
    /// The run that was pruned, and how.
    pub fn pruning(&self) -> Option<(&RunHeads, &Pruning)> {
        self.runs.iter().find_map(|run| Some((run, run.analysis.as_ref()?.pruning.as_ref()?)))
    }
}

/// One run of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeads {
    /// The pair it belongs to.
    pub pair: u64,
    /// Its directory within the experiment's.
    pub directory: String,
    /// What its heads do; `null` where `problem` says why not.
    pub analysis: Option<HeadAnalysis>,
    /// Such as "diverged at step 12".
    pub problem: Option<String>,
}

/// The decoder's heads of one arm across its runs, all layers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossRuns {
    /// How many runs.
    pub runs: usize,
    /// Heads of a run: layers times H.
    pub heads: usize,
    /// Heads of a run that carry a flag; spread over the runs, as everything below.
    pub flags: BTreeMap<Flag, Spread>,
    /// Each measure by its key, as [`MeasureInfo::across`] says, one a part; one without parts has one.
    pub measures: BTreeMap<String, Vec<Spread>>,
    /// Mean over pairs of heads of a layer of their divergence, in nats: 0 where all do the same.
    pub divergence: Option<Spread>,
    /// What removing a head costs, in nats: the costliest of each run, the second, and so on.
    pub removal_by_rank: Vec<Spread>,
}

/// A number of each run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    pub minimum: f64,
    pub maximum: f64,
}
