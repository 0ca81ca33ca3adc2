//! When a head is remarkable. None of these words has a standard definition; these are ours.

use runs::heads::{Flag, HeadMeasures};

/// A spare head's removal raises the loss by less than this, in nats.
pub const SPARE_REMOVAL: f64 = 0.01;
/// A spare head is dead where its share of the output is below this over H.
pub const DEAD_SHARE: f64 = 0.1;
/// Two heads of a layer are twins where the Jensen-Shannon divergence of their maps is below this, in nats, or below what heads of
/// the layer differ by before training, when they read nearly everything alike (0.02 with PyTorch's initialisation); but not
/// above [`TWIN_AT_MOST`]. After training, two heads of `configs/h8.toml` that read the same register still differ by 0.18.
pub const TWIN_DIVERGENCE: f64 = 0.01;
/// Heads that differ by more than this, in nats, are no twins, however much they differed before training.
pub const TWIN_AT_MOST: f64 = 0.1;
/// A sink puts more than this on position 0 (Gu 2024, arXiv 2410.10781, section 3).
pub const SINK_WEIGHT: f64 = 0.3;

/// The flags of a head of a layer of `heads`, between which the mean divergence was `untrained` before training.
pub fn flags(head: &HeadMeasures, heads: usize, untrained: f64) -> Vec<Flag> {
    let is_spare = head.number("removal").is_some_and(|removal| removal < SPARE_REMOVAL);
    let is_dead = is_spare && head.number("output_share").is_some_and(|share| share < DEAD_SHARE / heads as f64);
    let twin = untrained.clamp(TWIN_DIVERGENCE, TWIN_AT_MOST);
    let is_twin = head.nearest.is_some_and(|nearest| nearest.divergence < twin);
    let is_sink = head.number("first_position").is_some_and(|weight| weight > SINK_WEIGHT);
    [(is_spare, Flag::Spare), (is_dead, Flag::Dead), (is_twin, Flag::Twin), (is_sink, Flag::Sink)]
        .into_iter()
        .filter_map(|(is_so, flag)| is_so.then_some(flag))
        .collect()
}
