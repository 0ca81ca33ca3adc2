//! One pass over parameters, gradient and moments.

use pulp::{Simd, WithSimd};

use super::simd::{mul_add, vectorized};
use super::threads::for_each;
use crate::adamw::update::Update;

/// Entries a piece.
const ENTRIES: usize = 1 << 15;

/// Writes new parameters and updates moments in place; all of one length.
pub(crate) fn step(
    old: &[f32],
    parameters: &mut [f32],
    gradient: &[f32],
    first: &mut [f32],
    second: &mut [f32],
    update: Update,
) {
    let pieces: Vec<_> = (old.chunks(ENTRIES).zip(parameters.chunks_mut(ENTRIES)))
        .zip(gradient.chunks(ENTRIES))
        .zip(first.chunks_mut(ENTRIES).zip(second.chunks_mut(ENTRIES)))
        .collect();
    for_each(gradient.len() * 16, pieces, |(((old, parameters), gradient), (first, second))| {
        vectorized(Step { old, parameters, gradient, first, second, update });
    });
}

struct Step<'a> {
    old: &'a [f32],
    parameters: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
    update: Update,
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let numbers = Numbers::new(simd, self.update);
        let (old, old_tail) = S::as_simd_f32s(self.old);
        let (parameters, parameters_tail) = S::as_mut_simd_f32s(self.parameters);
        let (gradient, gradient_tail) = S::as_simd_f32s(self.gradient);
        let (first, first_tail) = S::as_mut_simd_f32s(self.first);
        let (second, second_tail) = S::as_mut_simd_f32s(self.second);
        for ((((p, &old), &g), m), v) in parameters.iter_mut().zip(old).zip(gradient).zip(first).zip(second) {
            (*p, *m, *v) = numbers.update(simd, old, g, *m, *v);
        }
        if !parameters_tail.is_empty() {
            let [p, m, v] = [old_tail, &*first_tail, &*second_tail].map(|tail| simd.partial_load_f32s(tail));
            let (p, m, v) = numbers.update(simd, p, simd.partial_load_f32s(gradient_tail), m, v);
            simd.partial_store_f32s(parameters_tail, p);
            simd.partial_store_f32s(first_tail, m);
            simd.partial_store_f32s(second_tail, v);
        }
    }
}

/// The numbers of an update in every lane.
struct Numbers<S: Simd> {
    scale: S::f32s,
    decay: S::f32s,
    beta1: S::f32s,
    rest1: S::f32s,
    beta2: S::f32s,
    rest2: S::f32s,
    rate: S::f32s,
    correction2: S::f32s,
    epsilon: S::f32s,
    least_first: S::f32s,
    least_second: S::f32s,
}

impl<S: Simd> Numbers<S> {
    #[inline(always)]
    fn new(simd: S, update: Update) -> Self {
        let Update { gradient_scale, lr, beta1, beta2, epsilon, weight_decay, .. } = update;
        Self {
            scale: simd.splat_f32s(gradient_scale as f32),
            decay: simd.splat_f32s((1.0 - lr * weight_decay) as f32),
            beta1: simd.splat_f32s(beta1 as f32),
            rest1: simd.splat_f32s((1.0 - beta1) as f32),
            beta2: simd.splat_f32s(beta2 as f32),
            rest2: simd.splat_f32s((1.0 - beta2) as f32),
            rate: simd.splat_f32s((lr / update.correction1()) as f32),
            correction2: simd.splat_f32s((1.0 / update.correction2()) as f32),
            epsilon: simd.splat_f32s(epsilon as f32),
            least_first: simd.splat_f32s(update.least_first_moment()),
            least_second: simd.splat_f32s(update.least_second_moment()),
        }
    }

    /// New parameters and moments of one vector of entries.
    #[inline(always)]
    fn update(&self, simd: S, p: S::f32s, g: S::f32s, m: S::f32s, v: S::f32s) -> (S::f32s, S::f32s, S::f32s) {
        let g = simd.mul_f32s(g, self.scale);
        let m = mul_add(simd, m, self.beta1, simd.mul_f32s(g, self.rest1));
        let m = flushed(simd, m, self.least_first);
        let v = mul_add(simd, v, self.beta2, simd.mul_f32s(simd.mul_f32s(g, g), self.rest2));
        let v = flushed(simd, v, self.least_second);
        let deviation = mul_add(simd, simd.sqrt_f32s(v), self.correction2, self.epsilon);
        let change = simd.mul_f32s(simd.div_f32s(m, deviation), self.rate);
        (simd.sub_f32s(simd.mul_f32s(p, self.decay), change), m, v)
    }
}

/// `moment` with 0 in the place of what is nearer to it than `least`. NaN stays NaN.
#[inline(always)]
fn flushed<S: Simd>(simd: S, moment: S::f32s, least: S::f32s) -> S::f32s {
    simd.select_f32s(simd.less_than_f32s(simd.abs_f32s(moment), least), simd.splat_f32s(0.0), moment)
}

/// The sum of squares, entry by entry in a fixed order, in f64 from piece to piece.
pub(crate) fn sum_of_squares(values: &[f32]) -> f64 {
    let mut sums = vec![0.0; values.len().div_ceil(ENTRIES)];
    let pieces: Vec<_> = values.chunks(ENTRIES).zip(&mut sums).collect();
    for_each(values.len(), pieces, |(values, sum)| *sum = f64::from(vectorized(Squares { values })));
    sums.iter().sum()
}

struct Squares<'a> {
    values: &'a [f32],
}

impl WithSimd for Squares<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f32 {
        let (values, tail) = S::as_simd_f32s(self.values);
        let (quads, rest) = pulp::as_arrays::<4, _>(values);
        let mut sums = [simd.splat_f32s(0.0); 4];
        for quad in quads {
            for (sum, &x) in sums.iter_mut().zip(quad) {
                *sum = mul_add(simd, x, x, *sum);
            }
        }
        for &x in rest {
            sums[0] = mul_add(simd, x, x, sums[0]);
        }
        let sum = simd.add_f32s(simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3]));
        simd.reduce_sum_f32s(sum) + tail.iter().map(|x| x * x).sum::<f32>()
    }
}
