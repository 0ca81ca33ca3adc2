//! Matrix products on slices, by the gemm crate.

use gemm::Parallelism;

/// A matrix in a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Matrix<'a> {
    /// Rows one after the other.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::strided(values, [rows, columns], [columns as isize, 1])
    }

    /// Entry (i, j) at `i·strides[0] + j·strides[1]`.
    ///
    /// # Panics
    /// Where an entry would lie outside of `values`.
    pub fn strided(values: &'a [f32], [rows, columns]: [usize; 2], [row_stride, column_stride]: [isize; 2]) -> Self {
        assert!(row_stride >= 0 && column_stride >= 0, "negative strides {row_stride}, {column_stride}");
        if rows > 0 && columns > 0 {
            let last = (rows - 1) * row_stride as usize + (columns - 1) * column_stride as usize;
            assert!(last < values.len(), "a {rows}×{columns} matrix ends at {last} of {}", values.len());
        }
        Self { values, rows, columns, row_stride, column_stride }
    }

    pub fn dims(self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }

    /// `count` rows from `first` on.
    pub fn rows(self, first: usize, count: usize) -> Self {
        assert!(first + count <= self.rows);
        Self { values: &self.values[(first * self.row_stride as usize).min(self.values.len())..], rows: count, ..self }
    }
}

/// Whether a product is added to what stands there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Replace,
    Add,
}

/// `into` = (or +=) `left · right`, rows of `into` one after the other; by the calling thread alone, or shared.
///
/// Which thread computes an entry does not change the order of its sum.
pub(crate) fn product(into: &mut [f32], left: Matrix, right: Matrix, write: Write, parallelism: Parallelism) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!(k, right.rows, "inner dimensions");
    assert_eq!(into.len(), m * n, "size of the product");
    if m * n == 0 {
        return;
    }
    // SAFETY: all three matrices lie within their slices, `into` is not shared, and gemm reads it only when adding.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            into.as_mut_ptr(),
            1,
            n as isize,
            write == Write::Add,
            left.values.as_ptr(),
            left.column_stride,
            left.row_stride,
            right.values.as_ptr(),
            right.column_stride,
            right.row_stride,
            1.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
