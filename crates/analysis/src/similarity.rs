//! How alike the maps of two heads are.

use std::f64::consts::LN_2;

use runs::heads::{AlikeHeads, AttentionAnalysis, AttentionSite, Nearest};

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

/// Heads of a layer that differ by less than this, in nats, look alike.
pub const ALIKE: f64 = 0.05;
/// So do those that differ by less than this much of what they did before training, as long as that is less than [`DIFFERENT`].
pub const AS_UNTRAINED: f64 = 1.5;
/// Heads that differ by more than this look different, whatever they did before training.
pub const DIFFERENT: f64 = 0.15;

/// The mean over pairs of heads; `None` with less than two.
pub fn mean_divergence(divergence: &[Vec<f64>]) -> Option<f64> {
    let pairs: Vec<f64> = divergence.iter().enumerate().flat_map(|(h, row)| row.iter().skip(h + 1)).copied().collect();
    (!pairs.is_empty()).then(|| pairs.iter().sum::<f64>() / pairs.len() as f64)
}

/// Whether heads that differ by `divergence` look alike, having differed by `untrained` before training.
pub fn are_alike(divergence: f64, untrained: f64) -> bool {
    divergence < ALIKE.max((AS_UNTRAINED * untrained).min(DIFFERENT))
}

/// The attentions whose heads all look alike, by those of the untrained model.
pub fn alike(now: &[AttentionAnalysis], untrained: &[AttentionAnalysis]) -> Vec<AlikeHeads> {
    let of = |(now, untrained): (&AttentionAnalysis, &AttentionAnalysis)| {
        let (divergence, before) = (mean_divergence(&now.divergence)?, mean_divergence(&untrained.divergence)?);
        are_alike(divergence, before).then(|| alike_heads(now.site, now.layer, divergence, before))
    };
    now.iter().zip(untrained).filter_map(of).collect()
}

/// What is told of heads that look alike.
pub fn alike_heads(site: AttentionSite, layer: usize, divergence: f64, untrained: f64) -> AlikeHeads {
    let place = match site {
        AttentionSite::Decoder => format!("layer {layer}"),
        AttentionSite::Encoder => format!("layer {layer} of the encoder"),
        AttentionSite::Cross => format!("the cross-attention of layer {layer}"),
    };
    let words = format!(
        "All heads of {place} look alike: train longer, or check the initialisation. Their maps differ by {divergence:.3} nats on \
         average, {untrained:.3} before training; ln 2 = 0.693 if they never read the same"
    );
    AlikeHeads { site, layer, divergence, untrained, words }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_look_alike_by_comparison_with_untrained_ones() {
        // h8 on registers: untrained, after 50 steps, after 800.
        assert!(are_alike(0.0232, 0.0232) && are_alike(0.0415, 0.0232) && !are_alike(0.499, 0.0232));
        // Heads that are sharp from the start have not become different, unless they are far apart.
        assert!(are_alike(0.12, 0.1) && !are_alike(0.16, 0.1) && !are_alike(0.3, 0.3));
        assert!(are_alike(0.0, 0.0));
        assert_eq!(
            (mean_divergence(&[vec![0.0]]), mean_divergence(&[vec![0.0, 0.3], vec![0.3, 0.0]])),
            (None, Some(0.3))
        );
    }
}
