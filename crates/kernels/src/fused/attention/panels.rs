//! Matrices as panels of W rows, and back.

use std::ops::Range;

use super::heads::Heads;
use crate::fused::simd::prefetch;
use crate::fused::transpose::Four;

/// Packs the rows of one head, each times `factor`, into panels `[ceil(L/W)][K][W]`; rows beyond L are zero.
#[inline(always)]
pub(super) fn pack<const W: usize>(to: &mut [f32], from: Heads, b: usize, h: usize, length: usize, factor: f32) {
    let k = from.k;
    let factors = Four::splat(factor);
    for (panel, first) in to.chunks_exact_mut(k * W).zip((0..length).step_by(W)) {
        let count = W.min(length - first);
        if count < W {
            panel.fill(0.0);
        }
        let columns = panel.as_chunks_mut::<W>().0;
        for lane in (0..count / 4 * 4).step_by(4) {
            let rows: [&[f32]; 4] = std::array::from_fn(|i| from.row(b, h, first + lane + i));
            let fours = rows.map(|row| row.as_chunks::<4>().0);
            let (quads, rest) = columns.as_chunks_mut::<4>();
            for (columns, (((r0, r1), r2), r3)) in
                quads.iter_mut().zip(fours[0].iter().zip(fours[1]).zip(fours[2]).zip(fours[3]))
            {
                let turned = Four::transposed([r0, r1, r2, r3].map(Four::read));
                for (column, four) in columns.iter_mut().zip(turned) {
                    four.times(factors).write(quad(column, lane));
                }
            }
            for (i, column) in rest.iter_mut().enumerate() {
                for (to, row) in quad(column, lane).iter_mut().zip(rows) {
                    *to = row[k / 4 * 4 + i] * factor;
                }
            }
        }
        for lane in count / 4 * 4..count {
            for (column, &x) in columns.iter_mut().zip(from.row(b, h, first + lane)) {
                column[lane] = x * factor;
            }
        }
    }
}

/// Four numbers of a column from `lane` on.
#[inline(always)]
fn quad<const W: usize>(column: &mut [f32; W], lane: usize) -> &mut [f32; 4] {
    &mut column.as_chunks_mut::<4>().0[lane / 4]
}

/// Where rows of heads are written, by several threads at once: `[B, L, heads, K]`, or columns of something wider.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    start: *mut f32,
    length: usize,
    positions: usize,
    width: usize,
    column: usize,
    k: usize,
}

// SAFETY: each (sample, head) is written by one piece of work alone; see `Target::unpack`.
unsafe impl Send for Target {}
unsafe impl Sync for Target {}

impl Target {
    /// A target in `values` `[B, L, width]`, which must outlive it; heads of width K begin at the first column.
    pub fn new(values: &mut [f32], positions: usize, width: usize, k: usize) -> Self {
        Self { start: values.as_mut_ptr(), length: values.len(), positions, width, column: 0, k }
    }

    /// The same, but heads begin at `column`.
    pub fn at_column(self, column: usize) -> Self {
        assert!(column <= self.width);
        Self { column, ..self }
    }

    fn place(&self, b: usize, h: usize, l: usize) -> usize {
        (b * self.positions + l) * self.width + self.column + h * self.k
    }

    /// Asks for the rows of head `h` of sample `b` at `positions`, which are written soon.
    #[inline(always)]
    pub fn prefetch(&self, b: usize, h: usize, positions: Range<usize>) {
        for l in positions {
            let row = self.start.wrapping_add(self.place(b, h, l));
            for column in (0..self.k).step_by(16) {
                prefetch(row.wrapping_add(column));
            }
        }
    }

    /// Writes the lanes of a block as rows of head `h` of sample `b` from position `first` on, each times its lane's factor.
    ///
    /// # Safety
    /// No other thread may write the same rows, and the target's values must still be there.
    #[inline(always)]
    pub unsafe fn unpack<const W: usize>(&self, block: &[f32], b: usize, h: usize, first: usize, factors: &[f32; W]) {
        let count = W.min(self.positions - first);
        // SAFETY: by the caller's promise.
        let row = |lane: usize| unsafe { self.row(b, h, first + lane) };
        let columns = block.as_chunks::<W>().0;
        let (quads, rest) = columns.as_chunks::<4>();
        for lane in (0..count / 4 * 4).step_by(4) {
            let factor = Four::read(&factors.as_chunks().0[lane / 4]);
            let rows = [row(lane), row(lane + 1), row(lane + 2), row(lane + 3)];
            let [r0, r1, r2, r3] = rows.map(|row| row.as_chunks_mut::<4>());
            for (columns, (((to0, to1), to2), to3)) in quads.iter().zip(r0.0.iter_mut().zip(r1.0).zip(r2.0).zip(r3.0)) {
                let turned = columns.each_ref().map(|column| Four::read(&column.as_chunks().0[lane / 4]).times(factor));
                for (to, four) in [to0, to1, to2, to3].into_iter().zip(Four::transposed(turned)) {
                    four.write(to);
                }
            }
            for (i, to) in [r0.1, r1.1, r2.1, r3.1].into_iter().enumerate() {
                for (to, column) in to.iter_mut().zip(rest) {
                    *to = column[lane + i] * factors[lane + i];
                }
            }
        }
        for lane in count / 4 * 4..count {
            for (y, column) in row(lane).iter_mut().zip(columns) {
                *y = column[lane] * factors[lane];
            }
        }
    }

    /// Writes the row of head `h` of sample `b` at position `l`.
    ///
    /// # Safety
    /// As [`Target::unpack`].
    #[inline(always)]
    pub unsafe fn write(&self, values: &[f32], b: usize, h: usize, l: usize) {
        // SAFETY: by the caller's promise.
        unsafe { self.row(b, h, l) }.copy_from_slice(values);
    }

    /// # Safety
    /// As [`Target::unpack`]; rows that are held at a time must differ.
    #[inline(always)]
    unsafe fn row<'a>(&self, b: usize, h: usize, l: usize) -> &'a mut [f32] {
        let start = self.place(b, h, l);
        assert!(start + self.k <= self.length);
        // SAFETY: within the target; not shared, by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), self.k) }
    }
}
