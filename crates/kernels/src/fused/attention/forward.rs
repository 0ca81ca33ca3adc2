//! From queries, keys and values to contexts.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::heads::{Heads, Sizes};
use super::lanes::{add_weighted, dot, lanes, power};
use super::masks::{Tiles, Weighting};
use super::panels::{Target, pack};
use crate::fused::buffer::unwritten;
use crate::fused::simd::vectorized;
use crate::fused::threads::for_each;

/// What the forward pass gives.
pub(crate) struct Forward {
    /// `[B, Lq, H, K]`.
    pub contexts: Vec<f32>,
    /// Of each row its largest score and one over the sum of exponentials relative to it, `[B, H, Lq, 2]`; (0, 0) where
    /// nothing may be read.
    pub moments: Vec<f32>,
}

/// `query` `[B, H, Lq, K]`, `key` and `value` `[B, G, Lk, K]`.
pub(crate) fn forward(sizes: Sizes, [query, key, value]: [Heads; 3], weighting: &Weighting) -> Forward {
    let Sizes { b, h, g, lq, k, .. } = sizes;
    let (mut contexts, mut moments) = (unwritten(b * lq * h * k), unwritten(b * h * lq * 2));
    let target = Target::new(&mut contexts, lq, h * k, k);
    // One piece is a sample's group of heads; their moments lie one after the other.
    let pieces: Vec<_> = moments.chunks_mut((h / g * lq * 2).max(1)).enumerate().collect();
    for_each(sizes.operations(), pieces, |(piece, moments)| {
        let (sample, group) = (piece / g, piece % g);
        vectorized(Group { sizes, query, key, value, weighting, sample, group, target, moments });
    });
    Forward { contexts, moments }
}

struct Group<'a> {
    sizes: Sizes,
    query: Heads<'a>,
    key: Heads<'a>,
    value: Heads<'a>,
    weighting: &'a Weighting,
    sample: usize,
    group: usize,
    target: Target,
    moments: &'a mut [f32],
}

impl WithSimd for Group<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 16>(simd),
            8 => self.run::<S, 8>(simd),
            _ => self.run::<S, 4>(simd),
        }
    }
}

impl Group<'_> {
    /// Asks for rows of the next group's heads. A head's rows lie apart, so that no processor foresees them.
    #[inline(always)]
    fn prefetch(&self, positions: Range<usize>) {
        let (sample, group) = self.sizes.next(self.sample, self.group);
        let heads = self.sizes.h / self.sizes.g;
        for head in group * heads..(group + 1) * heads {
            self.query.prefetch(sample, head, positions.clone());
        }
        self.key.prefetch(sample, group, positions.clone());
        self.value.prefetch(sample, group, positions);
    }

    #[inline(always)]
    fn run<S: Simd, const W: usize>(mut self, simd: S) {
        debug_assert_eq!(S::F32_LANES, W);
        let Sizes { h, g, lq, lk, k, .. } = self.sizes;
        let (b, group) = (self.sample, self.group);
        let Weighting { scale, forbidden, dropped } = self.weighting;
        let panel = k * W;
        let mut keys = unwritten(lk.div_ceil(W) * panel);
        let mut values = unwritten(lk.div_ceil(W) * panel);
        let mut queries = unwritten(lq.div_ceil(W) * panel);
        pack::<W>(&mut keys, self.key, b, group, lk, 1.0);
        pack::<W>(&mut values, self.value, b, group, lk, 1.0);
        // Scores of a block: a vector a key.
        let mut scores = vec![simd.splat_f32s(0.0); lk.div_ceil(W) * W];
        let mut sums = vec![simd.splat_f32s(0.0); k];

        let moments = std::mem::take(&mut self.moments);
        for (of_group, moments) in moments.chunks_exact_mut((lq * 2).max(1)).enumerate() {
            let head = group * (h / g) + of_group;
            let tiles = Tiles { reads: forbidden.of(b, head), lq, lk };
            let dropped = dropped.as_ref().map(|dropped| (dropped.marks.plane(b, head), dropped.scale));
            pack::<W>(&mut queries, self.query, b, head, lq, *scale);
            for first in (0..lq).step_by(W) {
                if of_group == 0 {
                    self.prefetch(first..first + W);
                }
                self.target.prefetch(b, head, first..first + W);
                let (block, _) = S::as_simd_f32s(&queries[first * k..first * k + panel]);
                let end = tiles.end_of_keys(first, W);
                let lowest = simd.splat_f32s(f32::NEG_INFINITY);

                // Scores and the largest of each lane.
                let mut largest = lowest;
                for first_key in (0..end).step_by(W) {
                    let tile = dot::<S, W>(simd, &keys[first_key * k..first_key * k + panel], block);
                    let to = &mut scores[first_key..first_key + W];
                    if tiles.is_open(first, first_key, W) {
                        for t in 0..W {
                            to[t] = tile[t];
                            largest = simd.max_f32s(largest, tile[t]);
                        }
                    } else {
                        for t in 0..W {
                            let allowed = tiles.queries_of_key::<S, W>(simd, first, first_key + t);
                            to[t] = simd.select_f32s(allowed, tile[t], lowest);
                            largest = simd.max_f32s(largest, to[t]);
                        }
                    }
                }
                // Where nothing may be read, any finite number keeps the weights at zero.
                let is_empty = simd.equal_f32s(largest, lowest);
                largest = simd.select_f32s(is_empty, simd.splat_f32s(0.0), largest);

                // Weights and contexts.
                let mut total = simd.splat_f32s(0.0);
                sums.fill(simd.splat_f32s(0.0));
                for first_key in (0..end).step_by(W) {
                    let mut weights = [simd.splat_f32s(0.0); W];
                    for t in 0..W {
                        weights[t] = power(simd, scores[first_key + t], largest);
                    }
                    for &weight in &weights {
                        total = simd.add_f32s(total, weight);
                    }
                    if let Some((plane, scale)) = dropped {
                        for (t, weight) in weights.iter_mut().enumerate() {
                            let kept = lanes::<S, W>(simd, |lane| {
                                let (i, j) = (first + lane, first_key + t);
                                if i < lq && j < lk && !plane.at(i, j) { scale } else { 0.0 }
                            });
                            *weight = simd.mul_f32s(*weight, kept);
                        }
                    }
                    add_weighted(simd, &values[first_key * k..first_key * k + panel], &weights, &mut sums);
                }

                let is_nothing = simd.equal_f32s(total, simd.splat_f32s(0.0));
                let reciprocal = simd.div_f32s(simd.splat_f32s(1.0), total);
                let reciprocal = simd.select_f32s(is_nothing, simd.splat_f32s(0.0), reciprocal);
                let (mut factors, mut shifts) = ([0.0f32; W], [0.0f32; W]);
                S::as_mut_simd_f32s(&mut factors).0[0] = reciprocal;
                S::as_mut_simd_f32s(&mut shifts).0[0] = largest;
                for lane in 0..W.min(lq - first) {
                    moments[2 * (first + lane)] = shifts[lane];
                    moments[2 * (first + lane) + 1] = factors[lane];
                }
                // SAFETY: the rows of this head of this sample are this piece's alone.
                unsafe { self.target.unpack::<W>(pulp::bytemuck::cast_slice(&sums), b, head, first, &factors) };
            }
        }
    }
}
