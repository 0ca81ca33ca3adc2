//! What a head is worth to the model: measured with the model at work.

use runs::heads::{OfRun, Tells, Unit};

use super::definition::{Measure, no_parts, single};

pub(super) const OUTPUT_SHARE: Measure = Measure {
    key: "output_share",
    title: "output share",
    glossary: "The head's part in what its layer's attention writes: the mean size of its context times its rows of the output \
               projection. The shares of a layer add up to 1.",
    reads: None,
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Worth,
    across: OfRun::Greatest,
    parts: no_parts,
    compute: |seen| {
        let shares = seen.probe.output_shares(seen.site, seen.layer);
        Ok(single((0..seen.maps.heads).map(|head| shares.get(head).copied()).collect()))
    },
};

pub(super) const REMOVAL: Measure = Measure {
    key: "removal",
    title: "cost of removal",
    glossary: "How much the validation loss rises, in nats, when the head's context is replaced by its mean over samples. Below 0 \
               the model does better without it. Heads are removed one at a time: of two that do the same each can go, but not both.",
    reads: None,
    range: None,
    unit: Unit::Nats,
    tells: Tells::Worth,
    across: OfRun::Greatest,
    parts: no_parts,
    compute: |seen| Ok(single(seen.probe.removal(seen.site, seen.layer)?.into_iter().map(Some).collect())),
};

pub(super) const ALONE: Measure = Measure {
    key: "alone",
    title: "cost if alone",
    glossary: "How much the loss rises, in nats, when only this head of its layer is kept.",
    reads: None,
    range: None,
    unit: Unit::Nats,
    tells: Tells::Worth,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(single(seen.probe.alone(seen.site, seen.layer)?.into_iter().map(Some).collect())),
};

pub(super) const IMPORTANCE: Measure = Measure {
    key: "importance",
    title: "importance",
    glossary: "How strongly the loss reacts to turning the head down a little: the size of the gradient at its gate (Michel 2019, \
               section 4.1).",
    reads: None,
    range: None,
    unit: Unit::Slope,
    tells: Tells::Worth,
    across: OfRun::Greatest,
    parts: no_parts,
    compute: |seen| {
        let importance = seen.probe.importance(seen.site, seen.layer);
        Ok(single((0..seen.maps.heads).map(|head| importance.get(head).copied()).collect()))
    },
};
