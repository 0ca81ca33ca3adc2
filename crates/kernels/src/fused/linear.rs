//! `activation(x·W + b)` row block by row block, so that a block is still in the cache when its bias and activation come.

use gemm::Parallelism;
use pulp::{Simd, WithSimd};

use super::buffer::unwritten;
use super::matmul::{Matrix, Write, product};
use super::simd::{normal, vectorized};
use super::threads::for_each;
use crate::linear::Activation;

/// Rows a block: more for larger weights, which are packed anew for each block. Part of how sums over rows are associated, so
/// it depends on the layer alone.
fn rows_of_block([i, o]: [usize; 2]) -> usize {
    match i * o {
        0..0x8000 => 256,
        0x8000..0x2_0000 => 512,
        _ => 1024,
    }
}

/// Blocks of rows whose contributions to the weight's gradient are summed one after the other; the sums are added at the end.
const GROUPS: usize = 4;
/// Weights of more entries get their gradient in one product: a copy of it for each group of rows would cost more than it
/// gains.
const LARGE: usize = 1 << 16;

/// What the forward pass gives.
pub(crate) struct Forward {
    /// `[N, O]`.
    pub output: Vec<f32>,
    /// The activation's derivative at each entry, `[N, O]`; None without one, or where it isn't asked for.
    pub slope: Option<Vec<f32>>,
}

/// `x` `[N, I]`, `weight` `[I, O]`, `bias` `[O]`.
pub(crate) fn forward(
    x: Matrix,
    weight: Matrix,
    bias: Option<&[f32]>,
    activation: Activation,
    keep_slope: bool,
) -> Forward {
    let ([n, i], [_, o]) = (x.dims(), weight.dims());
    let block = rows_of_block([i, o]);
    let mut output = unwritten(n * o);
    let mut slope = (keep_slope && activation == Activation::Gelu).then(|| unwritten(n * o));
    let slopes: Vec<Option<&mut [f32]>> = match &mut slope {
        Some(slope) => slope.chunks_mut((block * o).max(1)).map(Some).collect(),
        None => (0..n.div_ceil(block)).map(|_| None).collect(),
    };
    let pieces: Vec<_> = output.chunks_mut((block * o).max(1)).zip(slopes).enumerate().collect();
    for_each(n * i * o, pieces, |(piece, (output, slope))| {
        let count = output.len() / o;
        product(output, x.rows(piece * block, count), weight, Write::Replace, Parallelism::None);
        vectorized(Finish { output, slope, bias, activation, columns: o });
    });
    Forward { output, slope }
}

/// Adds the bias to rows and applies the activation.
struct Finish<'a> {
    output: &'a mut [f32],
    slope: Option<&'a mut [f32]>,
    bias: Option<&'a [f32]>,
    activation: Activation,
    columns: usize,
}

impl WithSimd for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { output, slope, bias, activation, columns } = self;
        if let Some(bias) = bias {
            let (bias, bias_tail) = S::as_simd_f32s(bias);
            for row in output.chunks_exact_mut(columns) {
                let (row, tail) = S::as_mut_simd_f32s(row);
                for (y, &b) in row.iter_mut().zip(bias) {
                    *y = simd.add_f32s(*y, b);
                }
                for (y, b) in tail.iter_mut().zip(bias_tail) {
                    *y += b;
                }
            }
        }
        match (activation, slope) {
            (Activation::None, _) => {}
            (Activation::Gelu, None) => {
                let (output, tail) = S::as_mut_simd_f32s(output);
                for u in output {
                    *u = simd.mul_f32s(*u, normal(simd, *u).0);
                }
                if !tail.is_empty() {
                    let u = simd.partial_load_f32s(tail);
                    simd.partial_store_f32s(tail, simd.mul_f32s(u, normal(simd, u).0));
                }
            }
            (Activation::Gelu, Some(slope)) => {
                let (output, tail) = S::as_mut_simd_f32s(output);
                let (slope, slope_tail) = S::as_mut_simd_f32s(slope);
                for (u, slope) in output.iter_mut().zip(slope) {
                    let (below, density) = normal(simd, *u);
                    *slope = simd.mul_add_e_f32s(*u, density, below);
                    *u = simd.mul_f32s(*u, below);
                }
                if !tail.is_empty() {
                    let u = simd.partial_load_f32s(tail);
                    let (below, density) = normal(simd, u);
                    simd.partial_store_f32s(slope_tail, simd.mul_add_e_f32s(u, density, below));
                    simd.partial_store_f32s(tail, simd.mul_f32s(u, below));
                }
            }
        }
    }
}

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub x: bool,
    pub weight: bool,
    pub bias: bool,
}

/// The gradients that were wanted, contiguous in the shape of what they are for.
#[derive(Default)]
pub(crate) struct Backward {
    pub x: Option<Vec<f32>>,
    pub weight: Option<Vec<f32>>,
    pub bias: Option<Vec<f32>>,
}

/// From the gradient of the output `[N, O]`.
pub(crate) fn backward(gradient: &[f32], slope: Option<&[f32]>, x: Matrix, weight: Matrix, wanted: Wanted) -> Backward {
    let ([n, i], [_, o]) = (x.dims(), weight.dims());
    let block = rows_of_block([i, o]);
    let mut x_gradient = wanted.x.then(|| unwritten(n * i));
    let is_large = i * o > LARGE;
    let in_groups = wanted.weight && !is_large;
    let in_one = wanted.weight && is_large;
    // Where the weight's gradient comes in one product, the gradient before the activation is kept whole.
    let mut inner = (in_one && slope.is_some()).then(|| unwritten(n * o));

    let rows_of_group = n.div_ceil(GROUPS).next_multiple_of(block).max(1);
    let groups = n.div_ceil(rows_of_group);
    let mut weight_sums: Vec<Vec<f32>> =
        (0..groups).map(|_| if in_groups { unwritten(i * o) } else { vec![] }).collect();
    let mut bias_sums: Vec<Vec<f32>> = (0..groups).map(|_| if wanted.bias { vec![0.0; o] } else { vec![] }).collect();
    let x_parts = parts(x_gradient.as_mut(), rows_of_group * i, groups);
    let inner_parts = parts(inner.as_mut(), rows_of_group * o, groups);
    let pieces: Vec<_> = weight_sums.iter_mut().zip(&mut bias_sums).zip(x_parts).zip(inner_parts).enumerate().collect();
    for_each(2 * n * i * o, pieces, |(group, (((weight_sum, bias_sum), mut x_part), mut inner_part))| {
        let mut scratch = if slope.is_some() && inner_part.is_none() { unwritten(block * o) } else { vec![] };
        let end = ((group + 1) * rows_of_group).min(n);
        let mut write = Write::Replace;
        for first in (group * rows_of_group..end).step_by(block) {
            let count = block.min(end - first);
            let within = first - group * rows_of_group;
            let outer = &gradient[first * o..(first + count) * o];
            let before: &[f32] = match slope {
                Some(slope) => {
                    let to = match &mut inner_part {
                        Some(inner) => &mut inner[within * o..(within + count) * o],
                        None => &mut scratch[..count * o],
                    };
                    vectorized(Times { left: outer, right: &slope[first * o..(first + count) * o], to });
                    to
                }
                None => outer,
            };
            let inner_block = Matrix::new(before, count, o);
            if let Some(x_part) = &mut x_part {
                let to = &mut x_part[within * i..(within + count) * i];
                product(to, inner_block, weight.transposed(), Write::Replace, Parallelism::None);
            }
            if in_groups {
                product(weight_sum, x.rows(first, count).transposed(), inner_block, write, Parallelism::None);
                write = Write::Add;
            }
            if wanted.bias {
                vectorized(AddRows { rows: before, to: bias_sum });
            }
        }
    });
    let weight_gradient = match (in_groups, in_one) {
        (true, _) => Some(sum(weight_sums, i * o)),
        (_, true) => {
            let mut to = unwritten(i * o);
            let whole = Matrix::new(inner.as_deref().unwrap_or(gradient), n, o);
            product(&mut to, x.transposed(), whole, Write::Replace, Parallelism::Rayon(0));
            Some(to)
        }
        _ => None,
    };
    Backward { x: x_gradient, weight: weight_gradient, bias: wanted.bias.then(|| sum(bias_sums, o)) }
}

/// A buffer cut into `count` parts of `size`, or as many Nones.
fn parts(buffer: Option<&mut Vec<f32>>, size: usize, count: usize) -> Vec<Option<&mut [f32]>> {
    match buffer {
        Some(buffer) if size > 0 => buffer.chunks_mut(size).map(Some).collect(),
        _ => (0..count).map(|_| None).collect(),
    }
}

/// The sum of buffers in their order; zeros where there is none.
fn sum(buffers: Vec<Vec<f32>>, count: usize) -> Vec<f32> {
    let mut buffers = buffers.into_iter();
    let mut total = buffers.next().unwrap_or_else(|| vec![0.0; count]);
    for buffer in buffers {
        vectorized(AddRows { rows: &buffer, to: &mut total });
    }
    total
}

/// `to = left ⊙ right`.
struct Times<'a> {
    left: &'a [f32],
    right: &'a [f32],
    to: &'a mut [f32],
}

impl WithSimd for Times<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (left, left_tail) = S::as_simd_f32s(self.left);
        let (right, right_tail) = S::as_simd_f32s(self.right);
        let (to, tail) = S::as_mut_simd_f32s(self.to);
        for ((to, &a), &b) in to.iter_mut().zip(left).zip(right) {
            *to = simd.mul_f32s(a, b);
        }
        for ((to, a), b) in tail.iter_mut().zip(left_tail).zip(right_tail) {
            *to = a * b;
        }
    }
}

/// Adds every row to `to`.
struct AddRows<'a> {
    rows: &'a [f32],
    to: &'a mut [f32],
}

impl WithSimd for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.to.len().max(1);
        let (to, tail) = S::as_mut_simd_f32s(self.to);
        for row in self.rows.chunks_exact(width) {
            let (row, row_tail) = S::as_simd_f32s(row);
            for (to, &y) in to.iter_mut().zip(row) {
                *to = simd.add_f32s(*to, y);
            }
            for (to, y) in tail.iter_mut().zip(row_tail) {
                *to += y;
            }
        }
    }
}
