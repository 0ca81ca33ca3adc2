//! Matrices as panels of W rows, and back.

use super::Heads;

/// Packs the rows of one head, each times `factor`, into panels `[ceil(L/W)][K][W]`; rows beyond L are zero.
#[inline(always)]
pub(super) fn pack<const W: usize>(to: &mut [f32], from: Heads, b: usize, h: usize, length: usize, factor: f32) {
    let k = from.k;
    for (panel, first) in to.chunks_exact_mut(k * W).zip((0..length).step_by(W)) {
        let count = W.min(length - first);
        if count < W {
            panel.fill(0.0);
        }
        for lane in (0..count / 4 * 4).step_by(4) {
            let row = first + lane;
            let rows = [from.row(b, h, row), from.row(b, h, row + 1), from.row(b, h, row + 2), from.row(b, h, row + 3)];
            for column in (0..k / 4 * 4).step_by(4) {
                let [r0, r1, r2, r3] = rows;
                let tile = [four(&r0[column..]), four(&r1[column..]), four(&r2[column..]), four(&r3[column..])];
                for (i, four) in transposed(tile).into_iter().enumerate() {
                    let at = (column + i) * W + lane;
                    panel[at..at + 4].copy_from_slice(&times(four, [factor; 4]));
                }
            }
            for column in k / 4 * 4..k {
                for (i, row) in rows.iter().enumerate() {
                    panel[column * W + lane + i] = row[column] * factor;
                }
            }
        }
        for lane in count / 4 * 4..count {
            for (column, &x) in panel.chunks_exact_mut(W).zip(from.row(b, h, first + lane)) {
                column[lane] = x * factor;
            }
        }
    }
}

#[inline(always)]
fn four(values: &[f32]) -> [f32; 4] {
    [values[0], values[1], values[2], values[3]]
}

/// Four rows as four columns: in shuffles, where moving numbers one by one would make scatters.
#[inline(always)]
fn transposed([a, b, c, d]: [[f32; 4]; 4]) -> [[f32; 4]; 4] {
    [[a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]], [a[2], b[2], c[2], d[2]], [a[3], b[3], c[3], d[3]]]
}

#[inline(always)]
fn times([a, b, c, d]: [f32; 4], factors: [f32; 4]) -> [f32; 4] {
    [a * factors[0], b * factors[1], c * factors[2], d * factors[3]]
}

/// Where rows of heads are written, `[B, L, heads, K]`, by several threads at once.
#[derive(Clone, Copy)]
pub(super) struct Target {
    start: *mut f32,
    length: usize,
    heads: usize,
    positions: usize,
    k: usize,
}

// SAFETY: each (sample, head) is written by one piece of work alone; see `Target::unpack`.
unsafe impl Send for Target {}
unsafe impl Sync for Target {}

impl Target {
    /// A target in `values`, which must outlive it.
    pub fn new(values: &mut [f32], heads: usize, positions: usize, k: usize) -> Self {
        Self { start: values.as_mut_ptr(), length: values.len(), heads, positions, k }
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
        let wholes = if count == W { self.k / 4 * 4 } else { 0 };
        for lane in (0..if wholes > 0 { W } else { 0 }).step_by(4) {
            let rows = [row(lane), row(lane + 1), row(lane + 2), row(lane + 3)];
            let factors = four(&factors[lane..]);
            for column in (0..wholes).step_by(4) {
                let at = column * W + lane;
                let columns = [
                    times(four(&block[at..]), factors),
                    times(four(&block[at + W..]), factors),
                    times(four(&block[at + 2 * W..]), factors),
                    times(four(&block[at + 3 * W..]), factors),
                ];
                for (i, four) in transposed(columns).into_iter().enumerate() {
                    rows[i][column..column + 4].copy_from_slice(&four);
                }
            }
        }
        for lane in 0..count {
            for (y, column) in row(lane).iter_mut().zip(block.chunks_exact(W)).skip(wholes) {
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
        let start = ((b * self.positions + l) * self.heads + h) * self.k;
        assert!(start + self.k <= self.length);
        // SAFETY: within the target; not shared, by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), self.k) }
    }
}
