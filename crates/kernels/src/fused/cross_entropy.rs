//! Softmax and negative log-likelihood of each row in one pass, and their gradient in another.

use pulp::{Simd, WithSimd};

use super::buffer::unwritten;
use super::simd::{exp, vectorized};
use super::threads::for_each;

/// Rows a piece.
const ROWS: usize = 256;

/// What the forward pass gives.
pub(crate) struct Forward {
    /// `[N]`.
    pub losses: Vec<f32>,
    /// Each row's largest logit, and one over the sum of exponentials relative to it, `[N, 2]`. Kept apart, since their
    /// logarithmic sum would lose digits of large logits.
    pub normalisers: Vec<f32>,
}

/// `logits` `[N, V]`, `targets` `[N]` in `0..V`.
///
/// # Panics
/// On a target out of range.
pub(crate) fn forward(logits: &[f32], targets: &[usize]) -> Forward {
    let n = targets.len();
    let v = logits.len() / n.max(1);
    let (mut losses, mut normalisers) = (unwritten(n), unwritten(2 * n));
    let pieces: Vec<_> = logits
        .chunks((ROWS * v).max(1))
        .zip(targets.chunks(ROWS))
        .zip(normalisers.chunks_mut(2 * ROWS).zip(losses.chunks_mut(ROWS)))
        .collect();
    for_each(n * v * 16, pieces, |((logits, targets), (normalisers, losses))| {
        vectorized(Normalisers { logits, normalisers, columns: v });
        let rows = logits.chunks_exact(v).zip(targets).zip(normalisers.chunks_exact(2).zip(losses));
        for ((logits, &target), (normaliser, loss)) in rows {
            *loss = (normaliser[0] - logits[target]) - normaliser[1].ln();
        }
    });
    Forward { losses, normalisers }
}

struct Normalisers<'a> {
    logits: &'a [f32],
    normalisers: &'a mut [f32],
    columns: usize,
}

impl WithSimd for Normalisers<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (row, normaliser) in self.logits.chunks_exact(self.columns).zip(self.normalisers.chunks_exact_mut(2)) {
            let (row, tail) = S::as_simd_f32s(row);
            let lowest = simd.splat_f32s(f32::NEG_INFINITY);
            let mut largest = lowest;
            for &x in row {
                largest = simd.max_f32s(largest, x);
            }
            let largest = tail.iter().copied().fold(simd.reduce_max_f32s(largest), f32::max);
            let shift = simd.splat_f32s(largest);
            let mut sum = simd.splat_f32s(0.0);
            for &x in row {
                sum = simd.add_f32s(sum, exp(simd, simd.sub_f32s(x, shift)));
            }
            let mut sum = simd.reduce_sum_f32s(sum);
            if !tail.is_empty() {
                let mut powers = [0.0f32; 16];
                let last = exp(simd, simd.sub_f32s(simd.partial_load_f32s(tail), shift));
                simd.partial_store_f32s(&mut powers[..tail.len()], last);
                sum += powers[..tail.len()].iter().sum::<f32>();
            }
            normaliser.copy_from_slice(&[largest, 1.0 / sum]);
        }
    }
}

/// The gradient of the logits `[N, V]`, from that of the losses `[N]`.
pub(crate) fn backward(gradient: &[f32], logits: &[f32], normalisers: &[f32], targets: &[usize]) -> Vec<f32> {
    let n = targets.len();
    let v = logits.len() / n.max(1);
    let mut to = unwritten(n * v);
    let pieces: Vec<_> = (logits.chunks((ROWS * v).max(1)).zip(to.chunks_mut((ROWS * v).max(1))))
        .zip(targets.chunks(ROWS).zip(normalisers.chunks(2 * ROWS)).zip(gradient.chunks(ROWS)))
        .collect();
    for_each(n * v * 16, pieces, |((logits, to), ((targets, normalisers), gradient))| {
        vectorized(Differences { logits, to, normalisers, gradient, columns: v });
        for ((to, &target), gradient) in to.chunks_exact_mut(v).zip(targets).zip(gradient) {
            to[target] -= gradient;
        }
    });
    to
}

struct Differences<'a> {
    logits: &'a [f32],
    to: &'a mut [f32],
    normalisers: &'a [f32],
    gradient: &'a [f32],
    columns: usize,
}

impl WithSimd for Differences<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.logits.chunks_exact(self.columns).zip(self.to.chunks_exact_mut(self.columns));
        for ((row, to), (normaliser, gradient)) in rows.zip(self.normalisers.chunks_exact(2).zip(self.gradient)) {
            let (largest, factor) = (simd.splat_f32s(normaliser[0]), simd.splat_f32s(normaliser[1] * gradient));
            let (row, row_tail) = S::as_simd_f32s(row);
            let (to, to_tail) = S::as_mut_simd_f32s(to);
            for (to, &x) in to.iter_mut().zip(row) {
                *to = simd.mul_f32s(exp(simd, simd.sub_f32s(x, largest)), factor);
            }
            if !row_tail.is_empty() {
                let x = simd.partial_load_f32s(row_tail);
                simd.partial_store_f32s(to_tail, simd.mul_f32s(exp(simd, simd.sub_f32s(x, largest)), factor));
            }
        }
    }
}
