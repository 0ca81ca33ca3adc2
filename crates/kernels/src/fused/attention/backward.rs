//! From the gradient of the contexts to those of queries, keys and values.

use std::ops::Range;

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::heads::{Heads, Sizes};
use super::lanes::{add_weighted, dot, lanes, power};
use super::masks::{Plane, Tiles, Weighting};
use super::panels::{Target, pack};
use crate::fused::buffer::unwritten;
use crate::fused::simd::{mul_add, vectorized};
use crate::fused::threads::for_each;

/// From the gradient `[B, H, Lq, K]` of the contexts, with what the forward pass read and its moments, to those of queries,
/// keys and values, which are written to `targets`.
pub(crate) fn backward(
    sizes: Sizes,
    inputs: [Heads; 3],
    gradient: Heads,
    moments: &[f32],
    weighting: &Weighting,
    targets: [Target; 3],
) {
    let pieces: Vec<usize> = (0..sizes.b * sizes.g).collect();
    for_each(3 * sizes.operations(), pieces, |piece| {
        let (sample, group) = (piece / sizes.g, piece % sizes.g);
        vectorized(Group { sizes, inputs, gradient, moments, weighting, sample, group, targets });
    });
}

struct Group<'a> {
    sizes: Sizes,
    inputs: [Heads<'a>; 3],
    gradient: Heads<'a>,
    moments: &'a [f32],
    weighting: &'a Weighting,
    sample: usize,
    group: usize,
    targets: [Target; 3],
}

impl WithSimd for Group<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        match S::F32_LANES {
            16 => self.run::<S, 16, 8>(simd),
            8 => self.run::<S, 8, 8>(simd),
            _ => self.run::<S, 4, 4>(simd),
        }
    }
}

impl Group<'_> {
    /// Asks for rows of the next group's heads; see the forward pass.
    #[inline(always)]
    fn prefetch(&self, positions: Range<usize>) {
        let (sample, group) = self.sizes.next(self.sample, self.group);
        let heads = self.sizes.h / self.sizes.g;
        for head in group * heads..(group + 1) * heads {
            self.inputs[0].prefetch(sample, head, positions.clone());
            self.gradient.prefetch(sample, head, positions.clone());
        }
        self.inputs[1].prefetch(sample, group, positions.clone());
        self.inputs[2].prefetch(sample, group, positions);
    }

    /// T keys are summed at a time.
    #[inline(always)]
    fn run<S: Simd, const W: usize, const T: usize>(self, simd: S) {
        debug_assert_eq!(S::F32_LANES, W);
        let Sizes { h, g, lq, lk, k, .. } = self.sizes;
        let (b, group, panel) = (self.sample, self.group, k * W);
        let [query, key, value] = self.inputs;
        let Weighting { scale, forbidden, dropped } = self.weighting;
        let zero = simd.splat_f32s(0.0);
        let (queries_size, keys_size) = (lq.div_ceil(W) * panel, lk.div_ceil(W) * panel);
        let (mut queries, mut gradients) = (unwritten(queries_size), unwritten(queries_size));
        let (mut keys, mut values) = (unwritten(keys_size), unwritten(keys_size));
        pack::<W>(&mut keys, key, b, group, lk, 1.0);
        pack::<W>(&mut values, value, b, group, lk, 1.0);
        // The same queries and gradients row by row, each in whole vectors.
        let vectors = k.div_ceil(W);
        let rows = || vec![zero; lq.div_ceil(W) * W * vectors];
        let (mut query_rows, mut gradient_rows) = (rows(), rows());
        // Sums over the group's heads, a row a key.
        let sums = || vec![zero; lk.div_ceil(W) * W * vectors];
        let (mut key_sums, mut value_sums) = (sums(), sums());
        let mut query_sums = vec![zero; k];
        // Of a block of queries: a vector a key.
        let column = || vec![zero; lk.div_ceil(W) * W];
        let (mut weights, mut differences) = (column(), column());

        for of_group in 0..h / g {
            let head = group * (h / g) + of_group;
            let tiles = Tiles { reads: forbidden.of(b, head), lq, lk };
            let dropped = dropped.as_ref().map(|dropped| (dropped.marks.plane(b, head), dropped.scale));
            pack::<W>(&mut queries, query, b, head, lq, *scale);
            pack::<W>(&mut gradients, self.gradient, b, head, lq, 1.0);
            copy_rows::<W>(cast_slice_mut(&mut query_rows), query, b, head, lq, *scale);
            copy_rows::<W>(cast_slice_mut(&mut gradient_rows), self.gradient, b, head, lq, 1.0);
            let moments = &self.moments[(b * h + head) * lq * 2..][..lq * 2];

            for first in (0..lq).step_by(W) {
                if of_group == 0 {
                    self.prefetch(first..first + W);
                    self.targets[1].prefetch(b, group, first..first + W);
                    self.targets[2].prefetch(b, group, first..first + W);
                }
                self.targets[0].prefetch(b, head, first..first + W);
                let (block, _) = S::as_simd_f32s(&queries[first * k..first * k + panel]);
                let (gradient, _) = S::as_simd_f32s(&gradients[first * k..first * k + panel]);
                // Lanes beyond Lq get a weight of zero.
                let moment =
                    |lane: usize, which: usize| moments.get(2 * (first + lane) + which).copied().unwrap_or(0.0);
                let largest = lanes::<S, W>(simd, |lane| moment(lane, 0));
                let reciprocal = lanes::<S, W>(simd, |lane| moment(lane, 1));
                let end = tiles.end_of_keys(first, W).next_multiple_of(W);

                // Weights, the gradients of the weights, and the sum of each lane's products of both.
                let mut together = zero;
                for first_key in (0..end).step_by(W) {
                    let panel_of = |packed| panel_at::<W>(packed, first_key, k);
                    let mut of_tile = dot::<S, W>(simd, panel_of(&keys), block);
                    let mut products = dot::<S, W>(simd, panel_of(&values), gradient);
                    for weight in &mut of_tile {
                        *weight = simd.mul_f32s(power(simd, *weight, largest), reciprocal);
                    }
                    if !tiles.is_open(first, first_key, W) {
                        for (t, weight) in of_tile.iter_mut().enumerate() {
                            let allowed = tiles.queries_of_key::<S, W>(simd, first, first_key + t);
                            *weight = simd.select_f32s(allowed, *weight, zero);
                        }
                    }
                    if let Some((plane, scale)) = dropped {
                        for (t, product) in products.iter_mut().enumerate() {
                            let kept = kept::<S, W>(simd, first, first_key + t, plane, scale, &tiles);
                            *product = simd.mul_f32s(*product, kept);
                        }
                    }
                    for (&weight, &product) in of_tile.iter().zip(&products) {
                        together = mul_add(simd, weight, product, together);
                    }
                    weights[first_key..first_key + W].copy_from_slice(&of_tile);
                    differences[first_key..first_key + W].copy_from_slice(&products);
                }

                // Gradients of the scores, and of the queries.
                query_sums.fill(zero);
                for first_key in (0..end).step_by(W) {
                    let (weights, differences) =
                        (&mut weights[first_key..first_key + W], &mut differences[first_key..first_key + W]);
                    let mut scores = [zero; W];
                    for t in 0..W {
                        scores[t] = simd.mul_f32s(weights[t], simd.sub_f32s(differences[t], together));
                    }
                    differences.copy_from_slice(&scores);
                    if let Some((plane, scale)) = dropped {
                        for (t, weight) in weights.iter_mut().enumerate() {
                            *weight =
                                simd.mul_f32s(*weight, kept::<S, W>(simd, first, first_key + t, plane, scale, &tiles));
                        }
                    }
                    add_weighted(simd, panel_at::<W>(&keys, first_key, k), &scores, &mut query_sums);
                }
                let factors = [*scale; W];
                // SAFETY: the rows of this group of this sample are this piece's alone.
                unsafe { self.targets[0].unpack::<W>(cast_slice(&query_sums), b, head, first, &factors) };

                // Gradients of keys and values: here the lanes are columns. The rows of queries hold the scale already.
                let of_block = first * vectors..(first + W) * vectors;
                for (all, rows, sums) in [
                    (&weights, &gradient_rows[of_block.clone()], &mut value_sums),
                    (&differences, &query_rows[of_block], &mut key_sums),
                ] {
                    let of_keys = cast_slice::<_, f32>(&all[..end]).as_chunks::<W>().0;
                    for (numbers, sums) in of_keys.as_chunks::<T>().0.iter().zip(sums.chunks_exact_mut(T * vectors)) {
                        add_rows::<S, W, T>(simd, numbers, rows, sums);
                    }
                }
            }
        }
        for (target, sums) in [(self.targets[1], &key_sums), (self.targets[2], &value_sums)] {
            for (j, sum) in sums.chunks_exact(vectors).take(lk).enumerate() {
                // SAFETY: as above.
                unsafe { target.write(&cast_slice(sum)[..k], b, group, j) };
            }
        }
    }
}

/// Copies the rows of one head, each times `factor` and padded with what stands there to whole vectors of W.
#[inline(always)]
fn copy_rows<const W: usize>(to: &mut [f32], from: Heads, b: usize, h: usize, length: usize, factor: f32) {
    let width = from.k.next_multiple_of(W);
    for (l, to) in to.chunks_exact_mut(width).take(length).enumerate() {
        for (to, x) in to.iter_mut().zip(from.row(b, h, l)) {
            *to = x * factor;
        }
    }
}

/// Adds to each of T sums (rows of vectors) the W rows, weighted by the sum's W numbers.
#[inline(always)]
fn add_rows<S: Simd, const W: usize, const T: usize>(
    simd: S,
    numbers: &[[f32; W]; T],
    rows: &[S::f32s],
    sums: &mut [S::f32s],
) {
    let vectors = rows.len() / W;
    // Two vectors at a time, for each of which a number that is read serves.
    for v in (0..vectors / 2 * 2).step_by(2) {
        add_vectors::<S, W, T, 2>(simd, numbers, rows, sums, vectors, v);
    }
    if vectors % 2 == 1 {
        add_vectors::<S, W, T, 1>(simd, numbers, rows, sums, vectors, vectors - 1);
    }
}

/// [`add_rows`] for V vectors from the `first` on.
#[inline(always)]
fn add_vectors<S: Simd, const W: usize, const T: usize, const V: usize>(
    simd: S,
    numbers: &[[f32; W]; T],
    rows: &[S::f32s],
    sums: &mut [S::f32s],
    vectors: usize,
    first: usize,
) {
    let mut of_tile = [[simd.splat_f32s(0.0); V]; T];
    for t in 0..T {
        for v in 0..V {
            of_tile[t][v] = sums[t * vectors + first + v];
        }
    }
    for (i, row) in rows.chunks_exact(vectors).take(W).enumerate() {
        for t in 0..T {
            let number = simd.splat_f32s(numbers[t][i]);
            for v in 0..V {
                of_tile[t][v] = mul_add(simd, number, row[first + v], of_tile[t][v]);
            }
        }
    }
    for t in 0..T {
        for v in 0..V {
            sums[t * vectors + first + v] = of_tile[t][v];
        }
    }
}

/// The panel of rows `first..first + W`.
#[inline(always)]
fn panel_at<const W: usize>(packed: &[f32], first: usize, k: usize) -> &[f32] {
    &packed[first * k..first * k + k * W]
}

/// The factor under dropout of the weight that each lane's query gives key `j`.
#[inline(always)]
fn kept<S: Simd, const W: usize>(simd: S, first: usize, j: usize, plane: Plane, scale: f32, tiles: &Tiles) -> S::f32s {
    lanes::<S, W>(simd, |lane| {
        let i = first + lane;
        if i < tiles.lq && j < tiles.lk && !plane.at(i, j) { scale } else { 0.0 }
    })
}
