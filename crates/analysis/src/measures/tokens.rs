//! Which tokens a head reads, by what stood there before.

use runs::heads::{OfRun, Tells, Unit};

use super::definition::{Measure, no_parts, share, single};
use crate::maps::Maps;

pub(super) const SAME_TOKEN: Measure = Measure {
    key: "same_token",
    title: "same token",
    glossary: "Weight on earlier positions with the same token, in rows that have some.",
    reads: Some("earlier copies of this token"),
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Mean,
    parts: no_parts,
    compute: |seen| Ok(seen.tokens.map_or_else(|| seen.none(), |tokens| single(same_token(seen.maps, tokens)))),
};

pub(super) const INDUCTION: Measure = Measure {
    key: "induction",
    title: "induction",
    glossary: "Weight on what followed an earlier copy of the present token, in rows that have one (Olsson 2022): a head that \
               continues repetitions.",
    reads: Some("the token after an earlier copy of this one"),
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Greatest,
    parts: no_parts,
    compute: |seen| Ok(seen.tokens.map_or_else(|| seen.none(), |tokens| single(induction(seen.maps, tokens)))),
};

/// Weight on earlier positions of the same token; `tokens` is `[B][L]`.
pub fn same_token(maps: Maps, tokens: &[i32]) -> Vec<Option<f64>> {
    let length = maps.keys();
    share(maps, |b, i, j| j < i && tokens[b * length + j] == tokens[b * length + i])
}

/// Weight on positions right after an earlier one of the same token (Olsson 2022): what came next, when this token was last
/// there. The query's own position is none of them. `tokens` is `[B][L]`.
pub fn induction(maps: Maps, tokens: &[i32]) -> Vec<Option<f64>> {
    let length = maps.keys();
    share(maps, |b, i, j| 0 < j && j < i && tokens[b * length + j - 1] == tokens[b * length + i])
}
