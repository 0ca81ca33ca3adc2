//! What may be read and which weights are dropped, asked by head and by tile.

use burn::backend::flex::FlexTensor;
use burn::tensor::DType;
use pulp::Simd;

use super::lanes::{index, which};

/// How scores become weights: their scale, what may not be read, and which weights are dropped.
#[derive(Clone, Debug)]
pub struct Weighting {
    /// Factor of the products of queries and keys.
    pub(crate) scale: f32,
    pub(crate) forbidden: Forbidden,
    pub(crate) dropped: Option<Dropped>,
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
    pub(super) fn plane(&self, b: usize, h: usize) -> Plane<'_> {
        let first = b * self.strides[0] + h * self.strides[1];
        Plane { marks: &self.tensor.storage::<u8>()[first..], strides: [self.strides[2], self.strides[3]] }
    }
}

/// The marks of connections `[Lq, Lk]`.
#[derive(Clone, Copy)]
pub(super) struct Plane<'a> {
    marks: &'a [u8],
    strides: [usize; 2],
}

impl Plane<'_> {
    pub(super) fn at(&self, i: usize, j: usize) -> bool {
        self.marks[i * self.strides[0] + j * self.strides[1]] != 0
    }
}

/// What one head of one sample may read.
#[derive(Clone, Copy)]
pub(super) enum Reads<'a> {
    All,
    Past,
    Unmarked(Plane<'a>),
}

impl Forbidden {
    pub(super) fn of(&self, b: usize, h: usize) -> Reads<'_> {
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
pub(super) struct Tiles<'a> {
    pub reads: Reads<'a>,
    pub lq: usize,
    pub lk: usize,
}

impl Tiles<'_> {
    /// Keys that the queries from `first` on, W of them, may read lie below this.
    pub fn end_of_keys(&self, first: usize, w: usize) -> usize {
        match self.reads {
            Reads::Past => ((first + w).min(self.lq) + self.lk).saturating_sub(self.lq),
            _ => self.lk,
        }
    }

    #[inline(always)]
    pub fn may_read(&self, i: usize, j: usize) -> bool {
        i < self.lq
            && j < self.lk
            && match self.reads {
                Reads::All => true,
                Reads::Past => j + self.lq <= i + self.lk,
                Reads::Unmarked(plane) => !plane.at(i, j),
            }
    }

    /// Whether every query of a tile may read every key of it.
    pub fn is_open(&self, first_query: usize, first_key: usize, w: usize) -> bool {
        first_key + w <= self.lk
            && match self.reads {
                Reads::All => true,
                Reads::Past => first_key + w - 1 + self.lq <= first_query + self.lk,
                Reads::Unmarked(_) => false,
            }
    }

    /// Which of W queries from `first` on, one a lane, may read key `j`. What lanes beyond Lq say is never used.
    #[inline(always)]
    pub fn queries_of_key<S: Simd, const W: usize>(&self, simd: S, first: usize, j: usize) -> S::m32s {
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
