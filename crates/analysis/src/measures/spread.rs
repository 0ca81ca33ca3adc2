//! How spread out a head's rows are.

use runs::heads::{OfRun, Tells, Unit};

use super::definition::{Measure, mean_of_rows, no_parts, single, x_ln_x};
use crate::maps::Maps;

pub(super) const ENTROPY: Measure = Measure {
    key: "entropy",
    title: "entropy",
    glossary: "How spread out a row is: 0 reads one key, 1 all keys alike.",
    reads: None,
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(single(entropy(seen.maps))),
};

pub(super) const TOP_WEIGHT: Measure = Measure {
    key: "top_weight",
    title: "top weight",
    glossary: "The greatest weight of a row, on average.",
    reads: None,
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(single(top_weight(seen.maps))),
};

/// Entropy of the row, `−Σ a ln a`, over the logarithm of the number of keys that it may read.
pub fn entropy(maps: Maps) -> Vec<Option<f64>> {
    mean_of_rows(maps, |b, i, row| {
        let readable = maps.readable.row(b, i).iter().filter(|&&readable| readable).count();
        let entropy: f64 = row.iter().map(|&weight| -x_ln_x(f64::from(weight))).sum();
        entropy / (readable as f64).ln()
    })
}

/// The greatest weight of the row.
pub fn top_weight(maps: Maps) -> Vec<Option<f64>> {
    mean_of_rows(maps, |_, _, row| f64::from(row.iter().copied().fold(0.0, f32::max)))
}
