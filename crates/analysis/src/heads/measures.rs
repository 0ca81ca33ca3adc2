//! What a map says about its head. Pure functions of maps and tokens; each gives a number a head, `[H]`, or `None` where no
//! row has what it asks for.
//!
//! All average over rows with at least two readable keys, each row once. The scores for a kind of key (the previous token,
//! duplicates, induction) average over the rows that have such a key, so that their ceiling is 1 (TransformerLens's
//! head_detector averages over all rows, where it is not).

use super::maps::Maps;

/// One number a head.
pub type OfHeads = Vec<Option<f64>>;

/// Entropy of the row, `−Σ a ln a`, over the logarithm of the number of keys that it may read.
pub fn entropy(maps: Maps) -> OfHeads {
    mean_of_rows(maps, |b, i, row| {
        let readable = maps.readable.row(b, i).iter().filter(|&&readable| readable).count();
        let entropy: f64 = row.iter().map(|&weight| -x_ln_x(f64::from(weight))).sum();
        entropy / (readable as f64).ln()
    })
}

/// The greatest weight of the row.
pub fn confidence(maps: Maps) -> OfHeads {
    mean_of_rows(maps, |_, _, row| f64::from(row.iter().copied().fold(0.0, f32::max)))
}

/// Mean distance `Σ a |i − j|` from the query to what it reads, in positions.
pub fn distance(maps: Maps) -> OfHeads {
    mean_of_rows(maps, |_, i, row| {
        row.iter().enumerate().map(|(j, &weight)| f64::from(weight) * i.abs_diff(j) as f64).sum()
    })
}

/// Weight on key 0.
pub fn first_position(maps: Maps) -> OfHeads {
    share(maps, |_, _, j| j == 0)
}

/// Weight on the position before.
pub fn previous_token(maps: Maps) -> OfHeads {
    share(maps, |_, i, j| j + 1 == i)
}

/// Weight on earlier positions of the same token; `tokens` is `[B][L]`.
pub fn duplicate_token(maps: Maps, tokens: &[i32]) -> OfHeads {
    let length = maps.keys();
    share(maps, |b, i, j| j < i && tokens[b * length + j] == tokens[b * length + i])
}

/// Weight on positions right after an earlier one of the same token (Olsson 2022): what came next, when this token was last
/// there. The query's own position is none of them. `tokens` is `[B][L]`.
pub fn induction(maps: Maps, tokens: &[i32]) -> OfHeads {
    let length = maps.keys();
    share(maps, |b, i, j| 0 < j && j < i && tokens[b * length + j - 1] == tokens[b * length + i])
}

/// `[H][registers]`: weight on the latest write of each register, averaged over the scored rows, in which all have been
/// written. `tokens` and `is_scored` are `[B][L]`; token `r·values + v` writes register r. `None` where no row is scored.
pub fn registers(
    maps: Maps,
    tokens: &[i32],
    is_scored: &[bool],
    registers: usize,
    values: usize,
) -> Vec<Option<Vec<f64>>> {
    let length = maps.keys();
    let (mut sums, mut rows) = (vec![vec![0.0; registers]; maps.heads], 0usize);
    for (b, i) in maps.readable.rows().filter(|&(b, i)| is_scored[b * length + i]) {
        rows += 1;
        for register in 0..registers {
            let writes = |j: &usize| tokens[b * length + j] as usize / values == register;
            let Some(latest) = (0..=i).rev().find(writes) else { continue };
            for (h, sums) in sums.iter_mut().enumerate() {
                sums[register] += f64::from(maps.row(b, h, i)[latest]);
            }
        }
    }
    let mean = |sums: Vec<f64>| (rows > 0).then(|| sums.iter().map(|sum| sum / rows as f64).collect());
    sums.into_iter().map(mean).collect()
}

/// `x ln x`, and its limit 0 at 0.
pub(super) fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// The mean of `of_row(b, i, row)` over the rows that count.
fn mean_of_rows(maps: Maps, of_row: impl Fn(usize, usize, &[f32]) -> f64) -> OfHeads {
    let mean = |h: usize| {
        let (sum, rows) = maps
            .readable
            .rows()
            .fold((0.0, 0usize), |(sum, rows), (b, i)| (sum + of_row(b, i, maps.row(b, h, i)), rows + 1));
        (rows > 0).then(|| sum / rows as f64)
    };
    (0..maps.heads).map(mean).collect()
}

/// The weight on the readable keys j for which `is_meant(b, i, j)`, averaged over the rows that have some.
fn share(maps: Maps, is_meant: impl Fn(usize, usize, usize) -> bool) -> OfHeads {
    let (mut sums, mut rows) = (vec![0.0; maps.heads], 0usize);
    for (b, i) in maps.readable.rows() {
        let readable = maps.readable.row(b, i);
        let meant: Vec<usize> = (0..maps.keys()).filter(|&j| readable[j] && is_meant(b, i, j)).collect();
        if meant.is_empty() {
            continue;
        }
        rows += 1;
        for (h, sum) in sums.iter_mut().enumerate() {
            let row = maps.row(b, h, i);
            *sum += meant.iter().map(|&j| f64::from(row[j])).sum::<f64>();
        }
    }
    sums.into_iter().map(|sum| (rows > 0).then(|| sum / rows as f64)).collect()
}
