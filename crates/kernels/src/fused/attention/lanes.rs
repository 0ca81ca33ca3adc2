//! Vectors of W numbers, one a lane, and the products of panels with them.

use pulp::Simd;

use crate::fused::simd::{exp, mul_add};

/// A vector of a number for each lane.
#[inline(always)]
pub(super) fn lanes<S: Simd, const W: usize>(_: S, of_lane: impl Fn(usize) -> f32) -> S::f32s {
    let mut numbers = [0.0; W];
    for (lane, number) in numbers.iter_mut().enumerate() {
        *number = of_lane(lane);
    }
    // Not a partial load, which is a call even where nothing is partial.
    S::as_simd_f32s(&numbers).0[0]
}

/// The lanes for which `is_so`.
#[inline(always)]
pub(super) fn which<S: Simd, const W: usize>(simd: S, is_so: impl Fn(usize) -> bool) -> S::m32s {
    let numbers = lanes::<S, W>(simd, |lane| if is_so(lane) { 1.0 } else { 0.0 });
    simd.greater_than_f32s(numbers, simd.splat_f32s(0.5))
}

/// 0, 1, ... W − 1.
#[inline(always)]
pub(super) fn index<S: Simd, const W: usize>(simd: S) -> S::f32s {
    lanes::<S, W>(simd, |lane| lane as f32)
}

/// `rows · block`: for each of W rows of a panel its products with the block, K numbers each, one a lane of the block.
#[inline(always)]
pub(super) fn dot<S: Simd, const W: usize>(simd: S, panel: &[f32], block: &[S::f32s]) -> [S::f32s; W] {
    let mut sums = [simd.splat_f32s(0.0); W];
    for (numbers, &vector) in panel.as_chunks::<W>().0.iter().zip(block) {
        for t in 0..W {
            sums[t] = mul_add(simd, simd.splat_f32s(numbers[t]), vector, sums[t]);
        }
    }
    sums
}

/// Adds to each of K sums the W rows of a panel, weighted lane by lane.
#[inline(always)]
pub(super) fn add_weighted<S: Simd, const W: usize>(
    simd: S,
    panel: &[f32],
    weights: &[S::f32s; W],
    sums: &mut [S::f32s],
) {
    for (numbers, sum) in panel.as_chunks::<W>().0.iter().zip(sums) {
        let mut even = *sum;
        let mut odd = simd.splat_f32s(0.0);
        for t in 0..W / 2 {
            even = mul_add(simd, simd.splat_f32s(numbers[2 * t]), weights[2 * t], even);
            odd = mul_add(simd, simd.splat_f32s(numbers[2 * t + 1]), weights[2 * t + 1], odd);
        }
        *sum = simd.add_f32s(even, odd);
    }
}

/// `exp(score − largest)`.
#[inline(always)]
pub(super) fn power<S: Simd>(simd: S, score: S::f32s, largest: S::f32s) -> S::f32s {
    exp(simd, simd.sub_f32s(score, largest))
}
