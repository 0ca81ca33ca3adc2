//! Which connections attention may not use. `true` = forbidden, here and everywhere.

use burn::tensor::{Bool, Device, Tensor, TensorData};
use thiserror::Error;

/// Forbidden connections of an attention from Lq queries to Lk keys.
///
/// A mask has the shape `[B, H, Lq, Lk]`, where each dimension is either full or 1; a 1 stands for "the same for all"
/// and is broadcast when the mask is used:
///
/// | mask | shape |
/// |---|---|
/// | [`Mask::causal`] | `[1, 1, Lq, Lk]` |
/// | [`Mask::padding`] | `[B, 1, 1, Lk]` |
/// | both, by [`Mask::union`] | `[B, 1, Lq, Lk]` |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    shape: [usize; 4],
    forbidden: Vec<bool>,
}

/// A mask that doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MaskError {
    /// Neither equal nor 1 in some dimension.
    #[error(
        "a mask of shape {mask:?} can't be broadcast to the scores' shape [B, H, Lq, Lk] = {scores:?}: each of its dimensions must be equal or 1"
    )]
    DoesNotBroadcast { mask: [usize; 4], scores: [usize; 4] },
    /// Two masks that can't both hold.
    #[error("masks of shapes {left:?} and {right:?} can't be combined: each dimension must be equal or 1")]
    DoNotCombine { left: [usize; 4], right: [usize; 4] },
    /// The number of entries isn't the product of the shape.
    #[error("a mask of shape {shape:?} has {expected} entries, but {given} were given")]
    WrongCount { shape: [usize; 4], expected: usize, given: usize },
}

impl Mask {
    /// Nothing is forbidden. Shape `[1, 1, 1, 1]`.
    pub fn none() -> Self {
        Self { shape: [1; 4], forbidden: vec![false] }
    }

    /// `forbidden` in row-major order of `shape`, each of whose dimensions is full or 1.
    ///
    /// # Errors
    /// Another number of entries than the shape's product.
    pub fn new(shape: [usize; 4], forbidden: Vec<bool>) -> Result<Self, MaskError> {
        let expected = shape.iter().product();
        if forbidden.len() != expected {
            return Err(MaskError::WrongCount { shape, expected, given: forbidden.len() });
        }
        Ok(Self { shape, forbidden })
    }

    /// A query may not read keys after its own place. With `queries` and `keys` that differ, the last query stands at
    /// the last key (aligned bottom right), as in decoding with a cache. Shape `[1, 1, Lq, Lk]`.
    pub fn causal(queries: usize, keys: usize) -> Self {
        let forbidden = (0..queries).flat_map(|i| (0..keys).map(move |j| j + queries > i + keys)).collect();
        Self { shape: [1, 1, queries, keys], forbidden }
    }

    /// Keys that hold padding: `is_padding` is `[B, Lk]`, row-major. Shape `[B, 1, 1, Lk]`.
    ///
    /// # Errors
    /// Another number of entries than B·Lk.
    pub fn padding(batch: usize, keys: usize, is_padding: Vec<bool>) -> Result<Self, MaskError> {
        Self::new([batch, 1, 1, keys], is_padding)
    }

    /// Forbidden by either.
    ///
    /// # Errors
    /// Shapes that differ in a dimension where neither is 1.
    pub fn union(&self, other: &Self) -> Result<Self, MaskError> {
        let mut shape = [0; 4];
        for ((to, &a), &b) in shape.iter_mut().zip(&self.shape).zip(&other.shape) {
            *to = match (a, b) {
                (1, n) | (n, 1) => n,
                (n, m) if n == m => n,
                _ => return Err(MaskError::DoNotCombine { left: self.shape, right: other.shape }),
            };
        }
        let forbidden = indices(shape).map(|at| self.at(at) || other.at(at)).collect();
        Ok(Self { shape, forbidden })
    }

    /// The mask's shape, each dimension full or 1.
    pub fn shape(&self) -> [usize; 4] {
        self.shape
    }

    /// Whether the connection at `[b, h, i, j]` is forbidden; a dimension of 1 answers for every index.
    ///
    /// # Panics
    /// On an index out of range.
    pub fn at(&self, index: [usize; 4]) -> bool {
        let flat = index.iter().zip(&self.shape).fold(0, |flat, (&i, &n)| flat * n + if n == 1 { 0 } else { i });
        self.forbidden[flat]
    }

    /// Whether it forbids what [`Mask::causal`] forbids, for all samples and heads.
    fn is_causal(&self) -> bool {
        let [b, h, queries, keys] = self.shape;
        b * h == 1
            && queries <= keys
            && self.forbidden.iter().enumerate().all(|(at, &f)| f == (at % keys + queries > at / keys + keys))
    }

    /// Brings the mask onto a device for scores of shape `[B, H, Lq, Lk]`.
    ///
    /// # Errors
    /// A dimension of the mask that is neither 1 nor the scores'.
    pub fn prepare(&self, scores: [usize; 4], device: &Device) -> Result<Prepared, MaskError> {
        if self.shape.iter().zip(&scores).any(|(&m, &s)| m != s && m != 1) {
            return Err(MaskError::DoesNotBroadcast { mask: self.shape, scores });
        }
        let [b, h, q, k] = self.shape;
        let mut unread = vec![true; b * k];
        for (index, &forbidden) in self.forbidden.iter().enumerate() {
            unread[index / (h * q * k) * k + index % k] &= forbidden;
        }
        let mut forbidden = self.forbidden.clone();
        let mut empty = Vec::with_capacity(b * h * q);
        for row in forbidden.chunks_mut(k.max(1)) {
            // A row with nothing to read: opened for the softmax, so that it stays finite, then set to zero.
            let nothing = row.iter().all(|&f| f);
            if nothing {
                row.fill(false);
            }
            empty.push(nothing);
        }
        let bools =
            |values: Vec<bool>, shape: [usize; 4]| Tensor::<4, Bool>::from_data(TensorData::new(values, shape), device);
        Ok(Prepared {
            is_causal: self.is_causal(),
            unread_keys: unread
                .contains(&true)
                .then(|| Tensor::<3, Bool>::from_data(TensorData::new(unread, [b, k, 1]), device)),
            forbidden: forbidden.contains(&true).then(|| bools(forbidden, self.shape)),
            empty_rows: empty.contains(&true).then(|| bools(empty, [b, h, q, 1])),
        })
    }
}

fn indices(shape: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    let [b, h, q, k] = shape;
    (0..b * h * q * k).map(move |i| [i / (h * q * k), i / (q * k) % h, i / k % q, i % k])
}

/// A [`Mask`] on a device, split into what the softmax needs and what has to be cleared around it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// That `forbidden` is exactly causal, the same for all samples and heads.
    pub(crate) is_causal: bool,
    /// `[B|1, Lk|1, 1]`: keys that no query may read. What they hold, even infinities, must not matter: a weight of 0
    /// times NaN is NaN.
    pub(crate) unread_keys: Option<Tensor<3, Bool>>,
    /// `[B|1, H|1, Lq|1, Lk|1]`; no row is wholly forbidden. None where nothing is forbidden.
    pub(crate) forbidden: Option<Tensor<4, Bool>>,
    /// `[B|1, H|1, Lq|1, 1]`: rows whose every key is forbidden.
    pub(crate) empty_rows: Option<Tensor<4, Bool>>,
}

impl Prepared {
    /// False where the mask forbids nothing.
    pub fn is_needed(&self) -> bool {
        self.forbidden.is_some() || self.empty_rows.is_some() || self.unread_keys.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(mask: &Mask) -> Vec<String> {
        let [_, _, q, k] = mask.shape();
        (0..q).map(|i| (0..k).map(|j| if mask.at([0, 0, i, j]) { 'x' } else { '.' }).collect()).collect()
    }

    #[test]
    fn causal_forbids_the_future() {
        assert_eq!(rows(&Mask::causal(3, 3)), [".xx", "..x", "..."]);
    }

    #[test]
    fn causal_is_aligned_at_the_end() {
        assert_eq!(rows(&Mask::causal(2, 4)), ["...x", "...."]);
        assert_eq!(rows(&Mask::causal(3, 2)), ["xx", ".x", ".."]);
    }

    #[test]
    fn union_of_causal_and_padding_is_per_sample() {
        let padding = Mask::padding(2, 3, vec![true, false, false, false, false, true]).unwrap();
        let both = Mask::causal(3, 3).union(&padding).unwrap();
        assert_eq!(both.shape(), [2, 1, 3, 3]);
        let sample = |b: usize| -> Vec<bool> { (0..9).map(|i| both.at([b, 0, i / 3, i % 3])).collect() };
        assert_eq!(sample(0), [true, true, true, true, false, true, true, false, false]);
        assert_eq!(sample(1), [false, true, true, false, false, true, false, false, true]);
    }

    #[test]
    fn prepared_masks_open_empty_rows_and_mark_them() {
        let rows = vec![false, true, true, true, true, true];
        let prepared = Mask::new([1, 1, 2, 3], rows).unwrap().prepare([4, 2, 2, 3], &Device::flex()).unwrap();
        let bools = |tensor: Option<Tensor<4, Bool>>| tensor.unwrap().into_data().iter::<bool>().collect::<Vec<_>>();
        assert_eq!(bools(prepared.forbidden), [false, true, true, false, false, false]);
        assert_eq!(bools(prepared.empty_rows), [false, true]);
        let unread: Vec<bool> = prepared.unread_keys.unwrap().into_data().iter::<bool>().collect();
        assert_eq!(unread, [false, true, true]);

        let prepared = Mask::causal(2, 3).prepare([4, 2, 2, 3], &Device::flex()).unwrap();
        assert!(prepared.forbidden.is_some() && prepared.empty_rows.is_none() && prepared.unread_keys.is_none());
        assert!(!Mask::none().prepare([4, 2, 2, 3], &Device::flex()).unwrap().is_needed());
    }

    #[test]
    fn wrong_shapes_name_both() {
        let text = Mask::causal(3, 3).prepare([2, 4, 5, 5], &Device::flex()).unwrap_err().to_string();
        assert!(text.contains("[1, 1, 3, 3]") && text.contains("[2, 4, 5, 5]"), "{text}");
        let text = Mask::causal(3, 3).union(&Mask::causal(2, 2)).unwrap_err().to_string();
        assert!(text.contains("[1, 1, 3, 3]") && text.contains("[1, 1, 2, 2]"), "{text}");
        assert!(Mask::padding(2, 3, vec![true]).unwrap_err().to_string().contains("6 entries, but 1"));
    }

    proptest! {
        /// Causal: position i of the last `queries` of `keys` reads exactly the keys up to itself.
        #[test]
        fn causal_row_reads_its_past(queries in 1usize..12, more in 0usize..6) {
            let keys = queries + more;
            let mask = Mask::causal(queries, keys);
            for i in 0..queries {
                let open = (0..keys).filter(|&j| !mask.at([0, 0, i, j])).count();
                prop_assert_eq!(open, i + 1 + more);
                prop_assert!(!mask.at([0, 0, i, i + more]));
            }
        }

        /// A union forbids exactly what either forbids, whatever is broadcast.
        #[test]
        fn union_is_or(b in 1usize..3, q in 1usize..4, k in 1usize..4, bits in proptest::collection::vec(any::<bool>(), 32)) {
            let padding = Mask::padding(b, k, bits[..b * k].to_vec()).unwrap();
            let square = Mask::new([1, 1, q, k], bits[8..8 + q * k].to_vec()).unwrap();
            let both = padding.union(&square).unwrap();
            prop_assert_eq!(&both, &square.union(&padding).unwrap());
            for at in indices([b, 1, q, k]) {
                prop_assert_eq!(both.at(at), padding.at(at) || square.at(at));
            }
        }
    }
}
