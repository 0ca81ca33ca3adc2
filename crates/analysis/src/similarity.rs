//! How alike the maps of two heads are.

use std::f64::consts::LN_2;

use runs::heads::Nearest;

use crate::{maps::Maps, measures::x_ln_x};

/// `[H][H]`: the Jensen-Shannon divergence between two heads' rows, `½ KL(p‖m) + ½ KL(q‖m)` with `m = ½(p + q)`, averaged over
/// rows with at least two readable keys; in nats, 0 to ln 2. (Cosine similarity would be inflated by early causal rows, which
/// have few keys to differ in.) Zero where there is no such row.
pub fn divergence(maps: Maps) -> Vec<Vec<f64>> {
    let heads = maps.heads;
    let rows: Vec<(usize, usize)> = maps.readable.rows().collect();
    let mut matrix = vec![vec![0.0; heads]; heads];
    for (one, other) in (0..heads).flat_map(|one| (one + 1..heads).map(move |other| (one, other))) {
        let sum: f64 = rows.iter().map(|&(b, i)| jensen_shannon(maps.row(b, one, i), maps.row(b, other, i))).sum();
        let mean = if rows.is_empty() { 0.0 } else { sum / rows.len() as f64 };
        (matrix[one][other], matrix[other][one]) = (mean, mean);
    }
    matrix
}

/// The Jensen-Shannon divergence between two distributions over the same keys, in nats.
pub fn jensen_shannon(p: &[f32], q: &[f32]) -> f64 {
    let of_key = |(&p, &q): (&f32, &f32)| {
        let (p, q) = (f64::from(p), f64::from(q));
        (x_ln_x(p) + x_ln_x(q)) / 2.0 - x_ln_x((p + q) / 2.0)
    };
    // Rows in f32 sum to 1 but for rounding, which may show at the bounds.
    p.iter().zip(q).map(of_key).sum::<f64>().clamp(0.0, LN_2)
}

/// The head most like each, the first of equals. `None` where there is no other.
pub fn nearest(divergence: &[Vec<f64>]) -> Vec<Option<Nearest>> {
    let nearest = |(h, row): (usize, &Vec<f64>)| {
        let others = row.iter().enumerate().filter(|&(other, _)| other != h);
        let least = others.min_by(|a, b| a.1.total_cmp(b.1))?;
        Some(Nearest { head: least.0, divergence: *least.1 })
    };
    divergence.iter().enumerate().map(nearest).collect()
}
