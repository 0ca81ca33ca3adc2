//! Rows of heads in a tensor's storage, wherever they lie.

use std::ops::Range;

use burn::backend::flex::FlexTensor;

use crate::fused::simd::prefetch;

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
    /// The sample and the key head after these.
    pub(super) fn next(&self, sample: usize, group: usize) -> (usize, usize) {
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
    pub(super) k: usize,
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
    pub(super) fn row(&self, b: usize, h: usize, l: usize) -> &'a [f32] {
        let first = b * self.strides[0] + h * self.strides[1] + l * self.strides[2];
        &self.values[first..first + self.k]
    }

    /// Asks for the rows at `positions`, which are read soon. There need be no such sample, head or position.
    #[inline(always)]
    pub(super) fn prefetch(&self, b: usize, h: usize, positions: Range<usize>) {
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
