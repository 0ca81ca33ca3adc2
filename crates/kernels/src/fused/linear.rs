//! `activation(x·W + b)` row block by row block, so that a block is still in the cache when its bias and activation come.

use gemm::Parallelism;
use pulp::{Simd, WithSimd};

use super::buffer::unwritten;
use super::matmul::{Matrix, Write, product};
use super::simd::{mul_add, normal, vectorized};
use super::threads::for_each;
use crate::activation::Activation;

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

/// Adds the bias to rows and applies the activation, in one pass.
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
        let zeros;
        let bias = match (bias, activation) {
            (Some(bias), _) => bias,
            (None, Activation::None) => return,
            (None, Activation::Gelu) => {
                zeros = vec![0.0; columns];
                &zeros
            }
        };
        let (bias, bias_tail) = S::as_simd_f32s(bias);
        let mut slopes = slope.map(|slope| slope.chunks_exact_mut(columns));
        for row in output.chunks_exact_mut(columns) {
            let (row, tail) = S::as_mut_simd_f32s(row);
            let tail_bias = simd.partial_load_f32s(bias_tail);
            match (activation, slopes.as_mut().and_then(Iterator::next)) {
                (Activation::None, _) => {
                    for (y, &b) in row.iter_mut().zip(bias) {
                        *y = simd.add_f32s(*y, b);
                    }
                    let y = simd.add_f32s(simd.partial_load_f32s(tail), tail_bias);
                    simd.partial_store_f32s(tail, y);
                }
                (Activation::Gelu, None) => {
                    for (y, &b) in row.iter_mut().zip(bias) {
                        *y = gelu(simd, simd.add_f32s(*y, b)).0;
                    }
                    let y = simd.add_f32s(simd.partial_load_f32s(tail), tail_bias);
                    simd.partial_store_f32s(tail, gelu(simd, y).0);
                }
                (Activation::Gelu, Some(slope)) => {
                    let (slope, slope_tail) = S::as_mut_simd_f32s(slope);
                    for ((y, &b), slope) in row.iter_mut().zip(bias).zip(slope) {
                        (*y, *slope) = gelu(simd, simd.add_f32s(*y, b));
                    }
                    let y = simd.add_f32s(simd.partial_load_f32s(tail), tail_bias);
                    let (y, slope) = gelu(simd, y);
                    simd.partial_store_f32s(tail, y);
                    simd.partial_store_f32s(slope_tail, slope);
                }
            }
        }
    }
}

/// `u·Φ(u)` and its derivative.
#[inline(always)]
fn gelu<S: Simd>(simd: S, u: S::f32s) -> (S::f32s, S::f32s) {
    let (below, density) = normal(simd, u);
    (simd.mul_f32s(u, below), mul_add(simd, u, density, below))
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

/// The gradient of the output, rows of O numbers.
pub(crate) enum Gradient<'a> {
    /// Of what had no activation.
    Plain(&'a [f32]),
    /// Of what had one: it becomes the gradient before the activation, in place.
    Activated { gradient: &'a mut [f32], slope: &'a [f32] },
}

impl<'a> Gradient<'a> {
    /// The same, for a time.
    fn again(&mut self) -> Gradient<'_> {
        match self {
            Self::Plain(gradient) => Gradient::Plain(gradient),
            Self::Activated { gradient, slope } => Gradient::Activated { gradient, slope },
        }
    }

    /// As it is now.
    fn values(&self) -> &[f32] {
        match self {
            Self::Plain(gradient) => gradient,
            Self::Activated { gradient, .. } => gradient,
        }
    }

    /// In pieces of `size` numbers.
    fn chunks(self, size: usize) -> Vec<Self> {
        let size = size.max(1);
        match self {
            Self::Plain(gradient) => gradient.chunks(size).map(Self::Plain).collect(),
            Self::Activated { gradient, slope } => gradient
                .chunks_mut(size)
                .zip(slope.chunks(size))
                .map(|(gradient, slope)| Self::Activated { gradient, slope })
                .collect(),
        }
    }

    /// The gradient before the activation, whose rows are added to `sums`, unless they are none.
    fn before(self, sums: &mut [f32]) -> &'a [f32] {
        match self {
            Self::Plain(rows) => {
                if !sums.is_empty() {
                    vectorized(AddRows { rows, to: sums });
                }
                rows
            }
            Self::Activated { gradient, slope } => {
                vectorized(Times { rows: &mut *gradient, slope, sums });
                gradient
            }
        }
    }
}

/// From the gradient of the output.
pub(crate) fn backward(mut gradient: Gradient, x: Matrix, weight: Matrix, wanted: Wanted) -> Backward {
    let ([n, i], [_, o]) = (x.dims(), weight.dims());
    let block = rows_of_block([i, o]);
    // Without outputs there is no piece of work that would write it.
    let mut x_gradient = wanted.x.then(|| if o == 0 { vec![0.0; n * i] } else { unwritten(n * i) });
    let is_large = i * o > LARGE;
    let in_groups = wanted.weight && !is_large;
    let in_one = wanted.weight && is_large;

    let rows_of_group = n.div_ceil(GROUPS).next_multiple_of(block).max(1);
    let groups = n.div_ceil(rows_of_group);
    let mut weight_sums: Vec<Vec<f32>> =
        (0..groups).map(|_| if in_groups { unwritten(i * o) } else { vec![] }).collect();
    let mut bias_sums: Vec<Vec<f32>> = (0..groups).map(|_| if wanted.bias { vec![0.0; o] } else { vec![] }).collect();
    let x_parts: Vec<Option<&mut [f32]>> = match &mut x_gradient {
        Some(buffer) if i > 0 => buffer.chunks_mut(rows_of_group * i).map(Some).collect(),
        _ => (0..groups).map(|_| None).collect(),
    };
    let gradients = gradient.again().chunks(rows_of_group * o);
    let pieces: Vec<_> = weight_sums.iter_mut().zip(&mut bias_sums).zip(x_parts).zip(gradients).enumerate().collect();
    for_each(2 * n * i * o, pieces, |(group, (((weight_sum, bias_sum), mut x_part), gradient))| {
        let mut write = Write::Replace;
        for (number, gradient) in gradient.chunks(block * o).into_iter().enumerate() {
            let gradient = gradient.before(bias_sum);
            let (within, count) = (number * block, gradient.len() / o);
            let gradient = Matrix::new(gradient, count, o);
            if let Some(x_part) = &mut x_part {
                let to = &mut x_part[within * i..(within + count) * i];
                product(to, gradient, weight.transposed(), Write::Replace, Parallelism::None);
            }
            if in_groups {
                let x = x.rows(group * rows_of_group + within, count);
                product(weight_sum, x.transposed(), gradient, write, Parallelism::None);
                write = Write::Add;
            }
        }
    });
    let weight_gradient = match (in_groups, in_one) {
        (true, _) => Some(sum(weight_sums, i * o)),
        (_, true) => {
            let mut to = unwritten(i * o);
            product(
                &mut to,
                x.transposed(),
                Matrix::new(gradient.values(), n, o),
                Write::Replace,
                Parallelism::Rayon(0),
            );
            Some(to)
        }
        _ => None,
    };
    Backward { x: x_gradient, weight: weight_gradient, bias: wanted.bias.then(|| sum(bias_sums, o)) }
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

/// `rows ⊙= slope`, and adds every row of that to `sums`, unless they are none.
struct Times<'a> {
    rows: &'a mut [f32],
    slope: &'a [f32],
    sums: &'a mut [f32],
}

impl WithSimd for Times<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { rows, slope, sums } = self;
        if sums.is_empty() {
            let (rows, tail) = S::as_mut_simd_f32s(rows);
            let (slope, slope_tail) = S::as_simd_f32s(slope);
            for (y, &slope) in rows.iter_mut().zip(slope) {
                *y = simd.mul_f32s(*y, slope);
            }
            for (y, slope) in tail.iter_mut().zip(slope_tail) {
                *y *= slope;
            }
            return;
        }
        let width = sums.len();
        let (sums, sums_tail) = S::as_mut_simd_f32s(sums);
        for (row, slope) in rows.chunks_exact_mut(width).zip(slope.chunks_exact(width)) {
            let (row, tail) = S::as_mut_simd_f32s(row);
            let (slope, slope_tail) = S::as_simd_f32s(slope);
            for ((y, &slope), sum) in row.iter_mut().zip(slope).zip(&mut *sums) {
                *y = simd.mul_f32s(*y, slope);
                *sum = simd.add_f32s(*sum, *y);
            }
            for ((y, slope), sum) in tail.iter_mut().zip(slope_tail).zip(&mut *sums_tail) {
                *y *= slope;
                *sum += *y;
            }
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
