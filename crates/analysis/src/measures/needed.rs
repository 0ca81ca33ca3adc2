//! Whether a head reads what the answer depends on.

use runs::heads::{AttentionSite, MeasureValue, OfRun, Tells, Unit};

use super::definition::{Measure, OfHeads};
use crate::{
    maps::Maps,
    needs::{Answer, Needs},
};

pub(super) const NEEDED: Measure = Measure {
    key: "needed",
    title: "weight on what the answer needs",
    glossary: "Weight on the positions that the answer depends on, at positions where one is asked for, one number for each kind \
               of them: in registers the latest write of each register.",
    reads: None,
    range: Some([0.0, 1.0]),
    unit: Unit::Share,
    tells: Tells::Reads,
    across: OfRun::Greatest,
    parts: |needs| needs.groups.clone(),
    compute: |seen| {
        Ok(match seen.site {
            AttentionSite::Decoder => weight_on_needed(seen.maps, seen.needs, |answer| &answer.own),
            AttentionSite::Cross => weight_on_needed(seen.maps, seen.needs, |answer| &answer.source),
            // Its queries stand at the source, where nothing is asked.
            AttentionSite::Encoder => seen.none(),
        })
    },
};

/// `[H]`, each one number a group: the weight on the positions of the group, averaged over the scored rows that have some.
/// `positions` picks those of an answer that the maps have as keys. `None` where a group has no such row.
pub fn weight_on_needed(maps: Maps, needs: &Needs, positions: impl Fn(&Answer) -> &Vec<Vec<usize>>) -> OfHeads {
    let groups = needs.groups.len();
    let (mut sums, mut rows) = (vec![vec![0.0; groups]; maps.heads], vec![0usize; groups]);
    for (b, i) in maps.readable.rows() {
        let Some(answer) = needs.answers.get(&(b, i)) else { continue };
        let readable = maps.readable.row(b, i);
        for (group, needed) in positions(answer).iter().enumerate() {
            let needed: Vec<usize> =
                needed.iter().copied().filter(|&j| readable.get(j).copied().unwrap_or(false)).collect();
            if needed.is_empty() {
                continue;
            }
            rows[group] += 1;
            for (h, sums) in sums.iter_mut().enumerate() {
                let row = maps.row(b, h, i);
                sums[group] += needed.iter().map(|&j| f64::from(row[j])).sum::<f64>();
            }
        }
    }
    let is_whole = groups > 0 && rows.iter().all(|&rows| rows > 0);
    let mean = |sums: Vec<f64>| sums.iter().zip(&rows).map(|(sum, &rows)| sum / rows as f64).collect();
    sums.into_iter().map(|sums| is_whole.then(|| MeasureValue::Parts(mean(sums)))).collect()
}
