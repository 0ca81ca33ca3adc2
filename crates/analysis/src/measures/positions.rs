//! Where a head reads, whatever stands there.

use runs::heads::{AttentionSite, OfRun, Tells, Unit};

use super::definition::{Measure, mean_of_rows, no_parts, share, single};
use crate::maps::Maps;

pub(super) const DISTANCE: Measure = Measure {
    key: "distance",
    title: "mean distance",
    glossary: "How far away, in positions, the head reads on average.",
    reads: None,
    range: None,
    unit: Unit::Positions,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    // From one sequence to another there is no distance, and no token before.
    compute: |seen| Ok(if seen.site == AttentionSite::Cross { seen.none() } else { single(distance(seen.maps)) }),
};

pub(super) const FAR_HALF: Measure = Measure {
    key: "far_half",
    title: "farther half",
    glossary: "Weight on the farther half of what may be read: near 0.5 for a head that reads everything alike.",
    reads: Some("what is far away"),
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(if seen.site == AttentionSite::Cross { seen.none() } else { single(far_half(seen.maps)) }),
};

pub(super) const PREVIOUS_TOKEN: Measure = Measure {
    key: "previous_token",
    title: "previous token",
    glossary: "Weight on the position just before.",
    reads: Some("the token before"),
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(if seen.site == AttentionSite::Cross { seen.none() } else { single(previous_token(seen.maps)) }),
};

pub(super) const FIRST_POSITION: Measure = Measure {
    key: "first_position",
    title: "position 0",
    glossary: "Weight on the first position. A head with more than 0.3 there is flagged as a sink: it often parks its \
               attention where it does no harm.",
    reads: Some("position 0"),
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(single(first_position(seen.maps))),
};

/// Mean distance `Σ a |i − j|` from the query to what it reads, in positions.
pub fn distance(maps: Maps) -> Vec<Option<f64>> {
    mean_of_rows(maps, |_, i, row| {
        row.iter().enumerate().map(|(j, &weight)| f64::from(weight) * i.abs_diff(j) as f64).sum()
    })
}

/// Weight on keys that are more than half as far away as the farthest that may be read.
pub fn far_half(maps: Maps) -> Vec<Option<f64>> {
    let farthest = |b: usize, i: usize| {
        let readable = maps.readable.row(b, i).iter().enumerate().filter(|(_, readable)| **readable);
        readable.map(|(j, _)| i.abs_diff(j)).max().unwrap_or_default()
    };
    mean_of_rows(maps, |b, i, row| {
        let farthest = farthest(b, i);
        let far = row.iter().enumerate().filter(|(j, _)| 2 * i.abs_diff(*j) > farthest);
        far.map(|(_, &weight)| f64::from(weight)).sum()
    })
}

/// Weight on key 0.
pub fn first_position(maps: Maps) -> Vec<Option<f64>> {
    share(maps, |_, _, j| j == 0)
}

/// Weight on the position before.
pub fn previous_token(maps: Maps) -> Vec<Option<f64>> {
    share(maps, |_, i, j| j + 1 == i)
}
