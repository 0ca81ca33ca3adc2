//! Attention in the plane, one (sample, key head) at a time, without keeping a map: the weights of a tile live in registers
//! and are computed again on the way back (Dao 2022, FlashAttention, sections 3.1 and B.2; here in two passes over a block,
//! since rows of these lengths fit into the cache).
//!
//! W is the number of lanes of a vector. A block is W queries, one a lane; a tile is a block against W keys. Every matrix is
//! packed once into panels `[L/W][K][W]`: read as vectors it is a block, read number by number (each broadcast to all lanes)
//! the other side of a tile. So heads of width 8 cost as little a product as wide ones, and no sum runs across lanes. Only the
//! sums over queries, for the gradients of keys and values, have columns in their lanes. With a causal mask, tiles in the
//! future are skipped.

mod backward;
mod forward;
mod panels;

pub(crate) use backward::backward;
pub(crate) use forward::forward;
pub(crate) use panels::Target;

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use burn::tensor::DType;
use pulp::Simd;

use super::simd::{exp, mul_add, prefetch};

/// Sizes: B samples, H heads, G key/value heads, Lq queries, Lk keys, width K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub b: usize,
    pub h: usize,
    pub g: usize,
    pub lq: usize,
    pub lk: usize,
    pub k: usize,
}

impl Sizes {
    /// Of scores.
    fn scale(&self) -> f32 {
        1.0 / (self.k as f32).sqrt()
    }

    /// The sample and the key head after these.
    fn next(&self, sample: usize, group: usize) -> (usize, usize) {
        if group + 1 < self.g { (sample, group + 1) } else { (sample + 1, 0) }
    }

    /// About how many operations a forward pass has.
    pub fn operations(&self) -> usize {
        self.b * self.h * self.lq * self.lk * (2 * self.k + 16)
    }
}

/// A tensor `[B, heads, L, K]`, its rows contiguous.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<'a> {
    values: &'a [f32],
    /// Of samples, heads and positions.
    strides: [usize; 3],
    k: usize,
}

impl<'a> Heads<'a> {
    /// A view of `tensor`, whose rows must be contiguous; see [`readable`].
    pub fn of(tensor: &'a FlexTensor) -> Self {
        let (layout, storage) = (tensor.layout(), tensor.storage::<f32>());
        let (shape, strides) = (layout.shape(), layout.strides());
        let strides = std::array::from_fn(|i| if shape[i] == 1 { 0 } else { strides[i] as usize });
        Self { values: &storage[layout.start_offset().min(storage.len())..], strides, k: shape[3] }
    }

    /// Heads of width K from `column` on in rows of `width`, `[B, L, width]`.
    pub fn columns(values: &'a [f32], positions: usize, width: usize, column: usize, k: usize) -> Self {
        Self { values: &values[column.min(values.len())..], strides: [positions * width, k, width], k }
    }

    /// The row at position `l`, `[K]`.
    fn row(&self, b: usize, h: usize, l: usize) -> &'a [f32] {
        let first = b * self.strides[0] + h * self.strides[1] + l * self.strides[2];
        &self.values[first..first + self.k]
    }

    /// Asks for the rows at `positions`, which are read soon. There need be no such sample, head or position.
    #[inline(always)]
    fn prefetch(&self, b: usize, h: usize, positions: Range<usize>) {
        let start = self.values.as_ptr().wrapping_add(b * self.strides[0] + h * self.strides[1]);
        for l in positions {
            for column in (0..self.k).step_by(16) {
                prefetch(start.wrapping_add(l * self.strides[2] + column));
            }
        }
    }
}

/// The tensor, copied unless its rows are contiguous and its strides are positive.
pub(crate) fn readable(tensor: FlexTensor) -> FlexTensor {
    let layout = tensor.layout();
    let is_row = layout.shape()[3] == 1 || layout.strides()[3] == 1;
    if is_row && layout.strides().iter().all(|&stride| stride >= 0) { tensor } else { tensor.to_contiguous() }
}

/// Which connections are forbidden.
#[derive(Clone, Debug)]
pub(crate) enum Forbidden {
    /// None.
    Nothing,
    /// Keys after the query's own place, both aligned at the end.
    Future,
    /// Those marked: `[B|1, H|1, Lq|1, Lk|1]`.
    Marked(Marks),
}

/// A tensor of booleans of four dimensions, each of which may be 1 and stands for any index then.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    tensor: FlexTensor,
    strides: [usize; 4],
}

impl Marks {
    pub fn new(tensor: FlexTensor) -> Self {
        let tensor = tensor.to_contiguous();
        let shape: [usize; 4] = std::array::from_fn(|i| tensor.layout().shape()[i]);
        let full = [shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1];
        let strides = std::array::from_fn(|i| if shape[i] == 1 { 0 } else { full[i] });
        debug_assert!(matches!(tensor.dtype(), DType::Bool(_)));
        Self { tensor, strides }
    }

    /// The marks of one head of one sample.
    fn plane(&self, b: usize, h: usize) -> Plane<'_> {
        let first = b * self.strides[0] + h * self.strides[1];
        Plane { marks: &self.tensor.storage::<u8>()[first..], strides: [self.strides[2], self.strides[3]] }
    }
}

/// The marks of connections `[Lq, Lk]`.
#[derive(Clone, Copy)]
struct Plane<'a> {
    marks: &'a [u8],
    strides: [usize; 2],
}

impl Plane<'_> {
    fn at(&self, i: usize, j: usize) -> bool {
        self.marks[i * self.strides[0] + j * self.strides[1]] != 0
    }
}

/// What one head of one sample may read.
#[derive(Clone, Copy)]
enum Reads<'a> {
    All,
    Past,
    Unmarked(Plane<'a>),
}

impl Forbidden {
    fn of(&self, b: usize, h: usize) -> Reads<'_> {
        match self {
            Self::Nothing => Reads::All,
            Self::Future => Reads::Past,
            Self::Marked(marks) => Reads::Unmarked(marks.plane(b, h)),
        }
    }
}

/// Weights that are dropped, `[B, H, Lq, Lk]`, and the factor of those that are kept.
#[derive(Clone, Debug)]
pub(crate) struct Dropped {
    pub marks: Marks,
    pub scale: f32,
}

/// The mask of one head, asked by tile.
#[derive(Clone, Copy)]
struct Tiles<'a> {
    reads: Reads<'a>,
    lq: usize,
    lk: usize,
}

impl Tiles<'_> {
    /// Keys that the queries from `first` on, W of them, may read lie below this.
    fn end_of_keys(&self, first: usize, w: usize) -> usize {
        match self.reads {
            Reads::Past => ((first + w).min(self.lq) + self.lk).saturating_sub(self.lq),
            _ => self.lk,
        }
    }

    #[inline(always)]
    fn may_read(&self, i: usize, j: usize) -> bool {
        i < self.lq
            && j < self.lk
            && match self.reads {
                Reads::All => true,
                Reads::Past => j + self.lq <= i + self.lk,
                Reads::Unmarked(plane) => !plane.at(i, j),
            }
    }

    /// Whether every query of a tile may read every key of it.
    fn is_open(&self, first_query: usize, first_key: usize, w: usize) -> bool {
        first_key + w <= self.lk
            && match self.reads {
                Reads::All => true,
                Reads::Past => first_key + w - 1 + self.lq <= first_query + self.lk,
                Reads::Unmarked(_) => false,
            }
    }

    /// Which of W queries from `first` on, one a lane, may read key `j`. What lanes beyond Lq say is never used.
    #[inline(always)]
    fn queries_of_key<S: Simd, const W: usize>(&self, simd: S, first: usize, j: usize) -> S::m32s {
        match self.reads {
            Reads::Past => {
                let least = (j + self.lq) as f32 - (self.lk + first) as f32;
                simd.greater_than_or_equal_f32s(index::<S, W>(simd), simd.splat_f32s(least))
            }
            Reads::All => which::<S, W>(simd, |_| j < self.lk),
            Reads::Unmarked(_) => which::<S, W>(simd, |lane| self.may_read(first + lane, j)),
        }
    }
}

/// A vector of a number for each lane.
#[inline(always)]
fn lanes<S: Simd, const W: usize>(_: S, of_lane: impl Fn(usize) -> f32) -> S::f32s {
    let mut numbers = [0.0; W];
    for (lane, number) in numbers.iter_mut().enumerate() {
        *number = of_lane(lane);
    }
    // Not a partial load, which is a call even where nothing is partial.
    S::as_simd_f32s(&numbers).0[0]
}

/// The lanes for which `is_so`.
#[inline(always)]
fn which<S: Simd, const W: usize>(simd: S, is_so: impl Fn(usize) -> bool) -> S::m32s {
    let numbers = lanes::<S, W>(simd, |lane| if is_so(lane) { 1.0 } else { 0.0 });
    simd.greater_than_f32s(numbers, simd.splat_f32s(0.5))
}

/// 0, 1, ... W − 1.
#[inline(always)]
fn index<S: Simd, const W: usize>(simd: S) -> S::f32s {
    lanes::<S, W>(simd, |lane| lane as f32)
}

/// `rows · block`: for each of W rows of a panel its products with the block, K numbers each, one a lane of the block.
#[inline(always)]
fn dot<S: Simd, const W: usize>(simd: S, panel: &[f32], block: &[S::f32s]) -> [S::f32s; W] {
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
fn add_weighted<S: Simd, const W: usize>(simd: S, panel: &[f32], weights: &[S::f32s; W], sums: &mut [S::f32s]) {
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
fn power<S: Simd>(simd: S, score: S::f32s, largest: S::f32s) -> S::f32s {
    exp(simd, simd.sub_f32s(score, largest))
}
