//! Layer norm in one pass over each row, and its gradient in another.

use pulp::{Simd, WithSimd};

use super::buffer::unwritten;
use super::simd::{mul_add, vectorized};
use super::threads::for_each;

/// Rows a piece; see [`super::threads`].
const ROWS: usize = 256;

/// What the forward pass gives.
pub(crate) struct Forward {
    /// `[N, D]`.
    pub output: Vec<f32>,
    /// Mean and reciprocal deviation of each row, `[N, 2]`.
    pub moments: Vec<f32>,
}

/// `x` `[N, D]`, `gamma` and `beta` `[D]`.
pub(crate) fn forward(x: &[f32], gamma: &[f32], beta: &[f32], epsilon: f32) -> Forward {
    let d = gamma.len();
    let n = x.len() / d;
    let (mut output, mut moments) = (unwritten(n * d), unwritten(n * 2));
    let pieces: Vec<_> =
        x.chunks(ROWS * d).zip(output.chunks_mut(ROWS * d)).zip(moments.chunks_mut(ROWS * 2)).collect();
    for_each(n * d * 4, pieces, |((x, output), moments)| {
        vectorized(Normalise { x, output, moments, gamma, beta, epsilon });
    });
    Forward { output, moments }
}

struct Normalise<'a> {
    x: &'a [f32],
    output: &'a mut [f32],
    moments: &'a mut [f32],
    gamma: &'a [f32],
    beta: &'a [f32],
    epsilon: f32,
}

impl WithSimd for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let d = self.gamma.len();
        let scale = 1.0 / d as f32;
        let (gamma, gamma_tail) = S::as_simd_f32s(self.gamma);
        let (beta, beta_tail) = S::as_simd_f32s(self.beta);
        let rows = self.x.chunks_exact(d).zip(self.output.chunks_exact_mut(d)).zip(self.moments.chunks_exact_mut(2));
        for ((x, output), moments) in rows {
            let (x, x_tail) = S::as_simd_f32s(x);
            let mut sum = simd.splat_f32s(0.0);
            for &x in x {
                sum = simd.add_f32s(sum, x);
            }
            let mean = (simd.reduce_sum_f32s(sum) + x_tail.iter().sum::<f32>()) * scale;
            let means = simd.splat_f32s(mean);
            let mut squares = simd.splat_f32s(0.0);
            for &x in x {
                let centred = simd.sub_f32s(x, means);
                squares = mul_add(simd, centred, centred, squares);
            }
            let tail_squares: f32 = x_tail.iter().map(|x| (x - mean) * (x - mean)).sum();
            let variance = (simd.reduce_sum_f32s(squares) + tail_squares) * scale;
            let reciprocal = 1.0 / (variance + self.epsilon).sqrt();
            moments.copy_from_slice(&[mean, reciprocal]);

            let reciprocals = simd.splat_f32s(reciprocal);
            let (output, tail) = S::as_mut_simd_f32s(output);
            for (((y, &x), &gamma), &beta) in output.iter_mut().zip(x).zip(gamma).zip(beta) {
                let normal = simd.mul_f32s(simd.sub_f32s(x, means), reciprocals);
                *y = mul_add(simd, normal, gamma, beta);
            }
            for (((y, x), gamma), beta) in tail.iter_mut().zip(x_tail).zip(gamma_tail).zip(beta_tail) {
                *y = (x - mean) * reciprocal * gamma + beta;
            }
        }
    }
}

/// The gradients.
pub(crate) struct Backward {
    /// `[N, D]`.
    pub x: Vec<f32>,
    /// `[D]`.
    pub gamma: Vec<f32>,
    /// `[D]`.
    pub beta: Vec<f32>,
}

/// From the gradient of the output `[N, D]`, with the moments that [`forward`] gave.
pub(crate) fn backward(gradient: &[f32], x: &[f32], moments: &[f32], gamma: &[f32]) -> Backward {
    let d = gamma.len();
    let n = x.len() / d;
    let mut to = unwritten(n * d);
    let mut sums = vec![0.0; n.div_ceil(ROWS) * 2 * d];
    let pieces: Vec<_> = (gradient.chunks(ROWS * d).zip(x.chunks(ROWS * d)))
        .zip(moments.chunks(ROWS * 2).zip(to.chunks_mut(ROWS * d)))
        .zip(sums.chunks_mut(2 * d))
        .collect();
    for_each(n * d * 8, pieces, |(((gradient, x), (moments, to)), sums)| {
        vectorized(Differentiate { gradient, x, moments, gamma, to, sums });
    });
    let mut total = vec![0.0; 2 * d];
    for sums in sums.chunks_exact(2 * d) {
        total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
    }
    let beta = total.split_off(d);
    Backward { x: to, gamma: total, beta }
}

struct Differentiate<'a> {
    gradient: &'a [f32],
    x: &'a [f32],
    moments: &'a [f32],
    gamma: &'a [f32],
    to: &'a mut [f32],
    /// Of gamma's and of beta's gradient, `[2, D]`.
    sums: &'a mut [f32],
}

impl WithSimd for Differentiate<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let d = self.gamma.len();
        let scale = 1.0 / d as f32;
        let (gamma, gamma_tail) = S::as_simd_f32s(self.gamma);
        let (gamma_sum, beta_sum) = self.sums.split_at_mut(d);
        let (gamma_sum, gamma_sum_tail) = S::as_mut_simd_f32s(gamma_sum);
        let (beta_sum, beta_sum_tail) = S::as_mut_simd_f32s(beta_sum);
        let rows = (self.gradient.chunks_exact(d).zip(self.x.chunks_exact(d)))
            .zip(self.moments.chunks_exact(2).zip(self.to.chunks_exact_mut(d)));
        for ((gradient, x), (moments, to)) in rows {
            let (mean, reciprocal) = (moments[0], moments[1]);
            let (means, reciprocals) = (simd.splat_f32s(mean), simd.splat_f32s(reciprocal));
            let (gradient, gradient_tail) = S::as_simd_f32s(gradient);
            let (x, x_tail) = S::as_simd_f32s(x);

            // Of the gradient of the normalised row: its sum, and its sum with the row.
            let (mut sum, mut product) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
            let sums = gamma_sum.iter_mut().zip(beta_sum.iter_mut());
            for (((&g, &x), &gamma), (gamma_sum, beta_sum)) in gradient.iter().zip(x).zip(gamma).zip(sums) {
                let normal = simd.mul_f32s(simd.sub_f32s(x, means), reciprocals);
                *gamma_sum = mul_add(simd, g, normal, *gamma_sum);
                *beta_sum = simd.add_f32s(*beta_sum, g);
                let inner = simd.mul_f32s(g, gamma);
                sum = simd.add_f32s(sum, inner);
                product = mul_add(simd, inner, normal, product);
            }
            let (mut sum, mut product) = (simd.reduce_sum_f32s(sum), simd.reduce_sum_f32s(product));
            for (j, (g, x)) in gradient_tail.iter().zip(x_tail).enumerate() {
                let normal = (x - mean) * reciprocal;
                gamma_sum_tail[j] += g * normal;
                beta_sum_tail[j] += g;
                sum += g * gamma_tail[j];
                product += g * gamma_tail[j] * normal;
            }
            let (sum, product) = (sum * scale, product * scale);

            let (sums, products) = (simd.splat_f32s(sum), simd.splat_f32s(product));
            let (to, tail) = S::as_mut_simd_f32s(to);
            for (((to, &g), &x), &gamma) in to.iter_mut().zip(gradient).zip(x).zip(gamma) {
                let normal = simd.mul_f32s(simd.sub_f32s(x, means), reciprocals);
                let inner = simd.sub_f32s(simd.mul_f32s(g, gamma), sums);
                *to = simd.mul_f32s(simd.sub_f32s(inner, simd.mul_f32s(normal, products)), reciprocals);
            }
            for (j, (to, (g, x))) in tail.iter_mut().zip(gradient_tail.iter().zip(x_tail)).enumerate() {
                let normal = (x - mean) * reciprocal;
                *to = (g * gamma_tail[j] - sum - normal * product) * reciprocal;
            }
        }
    }
}
