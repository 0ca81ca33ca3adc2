//! What is measured of a head. To add a measure: a file beside this one's others that defines it, its `mod` line, and its line
//! in [`MEASURES`]. Files, tables, cards and glossaries follow from that.
//!
//! All measures of maps average over rows with at least two readable keys, each row once. The scores for a kind of key (the
//! previous token, duplicates, induction) average over the rows that have such a key, so that their ceiling is 1
//! (TransformerLens's head_detector averages over all rows, where it is not).

mod definition;
mod needed;
mod positions;
mod spread;
mod tokens;
mod worth;

use runs::heads::{MeasureInfo, StepAnalysis};

use crate::needs::Needs;

pub(crate) use definition::x_ln_x;
pub use definition::{Measure, OfHeads, Seen, single};
pub use needed::weight_on_needed;
pub use positions::{distance, far_half, first_position, previous_token};
pub use spread::{entropy, top_weight};
pub use tokens::{induction, same_token};

/// Every measure, in the order in which they are shown.
pub const MEASURES: &[Measure] = &[
    spread::ENTROPY,
    spread::TOP_WEIGHT,
    positions::DISTANCE,
    positions::FAR_HALF,
    positions::PREVIOUS_TOKEN,
    tokens::SAME_TOKEN,
    tokens::INDUCTION,
    positions::FIRST_POSITION,
    needed::NEEDED,
    worth::OUTPUT_SHARE,
    worth::REMOVAL,
    worth::ALONE,
    worth::IMPORTANCE,
];

/// The measures that any head has at any of the steps, as readers of files need them, for samples whose answers need `needs`.
pub fn described(needs: &Needs, steps: &[StepAnalysis]) -> Vec<MeasureInfo> {
    let heads = || steps.iter().flat_map(|step| &step.attentions).flat_map(|attention| &attention.heads);
    let is_there = |measure: &&Measure| heads().any(|head| head.measures.contains_key(measure.key));
    MEASURES.iter().filter(is_there).map(|measure| measure.info(needs)).collect()
}
