//! Which connections attention may not use. `true` = forbidden, here and everywhere.

use burn::tensor::{Bool, Device, Tensor, TensorData};
use thiserror::Error;

/// Forbidden connections of an attention from Lq queries to Lk keys.
///
/// | mask | what it forbids | shape |
/// |---|---|---|
/// | [`AttentionMask::none`] | nothing | `[1, 1, 1, 1]` |
/// | [`AttentionMask::causal`] | keys after a query's own place | `[1, 1, Lq, Lk]` |
/// | [`AttentionMask::padding`] | keys that hold padding | `[B, 1, 1, Lk]` |
/// | [`AttentionMask::marked`] | what is marked | each dimension full or 1 |
/// | [`AttentionMask::union`] | what either forbids | such as `[B, 1, Lq, Lk]` |
///
/// A dimension of 1 stands for "the same for all". [`AttentionMask::prepare`] brings a mask onto a device, for one or many
/// attentions:
///
/// ```
/// use burn::tensor::Device;
/// use headcount_kernels::AttentionMask;
///
/// let padding = AttentionMask::padding(2, 3, vec![false, false, true, false, false, false])?;
/// let mask = AttentionMask::causal().union(&padding)?;
/// assert_eq!(mask.forbidden(3, 3)?.0, [2, 1, 3, 3]);
/// let mask = mask.prepare([2, 8, 3, 3], &Device::flex())?; // B, H, Lq, Lk
/// # Ok::<(), headcount_kernels::MaskError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttentionMask {
    is_causal: bool,
    marked: Option<Marked>,
}

/// Marked connections, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marked {
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

impl AttentionMask {
    /// Nothing is forbidden.
    pub fn none() -> Self {
        Self::default()
    }

    /// A query may not read keys after its own place. Where there are more keys than queries or fewer, the last query stands
    /// at the last key (aligned bottom right), as in decoding with a cache.
    pub fn causal() -> Self {
        Self { is_causal: true, marked: None }
    }

    /// Keys that hold padding: `is_padding` is `[B, Lk]`, row-major.
    ///
    /// # Errors
    /// Another number of entries than B·Lk.
    pub fn padding(batch: usize, keys: usize, is_padding: Vec<bool>) -> Result<Self, MaskError> {
        Self::marked([batch, 1, 1, keys], is_padding)
    }

    /// `forbidden` in row-major order of `shape` `[B|1, H|1, Lq|1, Lk|1]`.
    ///
    /// # Errors
    /// Another number of entries than the shape's product.
    pub fn marked(shape: [usize; 4], forbidden: Vec<bool>) -> Result<Self, MaskError> {
        Ok(Self { is_causal: false, marked: Some(Marked::new(shape, forbidden)?) })
    }

    /// Forbidden by either.
    ///
    /// # Errors
    /// Shapes that differ in a dimension where neither is 1.
    pub fn union(&self, other: &Self) -> Result<Self, MaskError> {
        let marked = match (&self.marked, &other.marked) {
            (Some(one), Some(other)) => Some(one.union(other)?),
            (one, other) => one.as_ref().or(other.as_ref()).cloned(),
        };
        Ok(Self { is_causal: self.is_causal || other.is_causal, marked })
    }

    /// What is forbidden between Lq queries and Lk keys, row-major, and its shape `[B|1, H|1, Lq|1, Lk|1]`.
    ///
    /// # Errors
    /// Lengths that what is marked doesn't have.
    pub fn forbidden(&self, queries: usize, keys: usize) -> Result<([usize; 4], Vec<bool>), MaskError> {
        let causal = self.is_causal.then(|| Marked::causal(queries, keys));
        let Marked { shape, forbidden } = match (causal, &self.marked) {
            (Some(causal), Some(marked)) => causal.union(marked)?,
            (Some(causal), None) => causal,
            (None, Some(marked)) => marked.clone(),
            (None, None) => Marked { shape: [1; 4], forbidden: vec![false] },
        };
        Ok((shape, forbidden))
    }

    /// Brings the mask onto a device for scores of shape `[B, H, Lq, Lk]`. What the mask says of all alike fits other numbers
    /// too: prepared for one head it fits any number of heads, unless heads were marked.
    ///
    /// # Errors
    /// A dimension of what is marked that is neither 1 nor the scores'.
    pub fn prepare(&self, scores: [usize; 4], device: &Device) -> Result<PreparedMask, MaskError> {
        if let Some(Marked { shape: mask, .. }) = self.marked
            && mask.iter().zip(&scores).any(|(&m, &s)| m != s && m != 1)
        {
            return Err(MaskError::DoesNotBroadcast { mask, scores });
        }
        let [_, _, lq, lk] = scores;
        let (shape, mut forbidden) = self.forbidden(lq, lk)?;
        let [b, h, q, k] = shape;
        let causal = is_causal(shape, &forbidden).then_some([lq, lk]);
        let mut unread = vec![true; b * k];
        for (index, &forbidden) in forbidden.iter().enumerate() {
            unread[index / (h * q * k) * k + index % k] &= forbidden;
        }
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
        Ok(PreparedMask {
            causal,
            unread_keys: unread
                .contains(&true)
                .then(|| Tensor::<3, Bool>::from_data(TensorData::new(unread, [b, k, 1]), device)),
            forbidden: forbidden.contains(&true).then(|| bools(forbidden, shape)),
            empty_rows: empty.contains(&true).then(|| bools(empty, [b, h, q, 1])),
        })
    }
}

impl Marked {
    fn new(shape: [usize; 4], forbidden: Vec<bool>) -> Result<Self, MaskError> {
        let expected = shape.iter().product();
        if forbidden.len() != expected {
            return Err(MaskError::WrongCount { shape, expected, given: forbidden.len() });
        }
        Ok(Self { shape, forbidden })
    }

    fn causal(queries: usize, keys: usize) -> Self {
        let forbidden = (0..queries).flat_map(|i| (0..keys).map(move |j| j + queries > i + keys)).collect();
        Self { shape: [1, 1, queries, keys], forbidden }
    }

    fn union(&self, other: &Self) -> Result<Self, MaskError> {
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

    /// Whether the connection at `[b, h, i, j]` is forbidden; a dimension of 1 answers for every index.
    fn at(&self, index: [usize; 4]) -> bool {
        let flat = index.iter().zip(&self.shape).fold(0, |flat, (&i, &n)| flat * n + if n == 1 { 0 } else { i });
        self.forbidden[flat]
    }
}

/// Whether exactly the future is forbidden, for all samples and heads alike: the kernel needs no marks then.
fn is_causal([b, h, queries, keys]: [usize; 4], forbidden: &[bool]) -> bool {
    b * h == 1
        && queries <= keys
        && forbidden.iter().enumerate().all(|(at, &f)| f == (at % keys + queries > at / keys + keys))
}

fn indices(shape: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    let [b, h, q, k] = shape;
    (0..b * h * q * k).map(move |i| [i / (h * q * k), i / (q * k) % h, i / k % q, i % k])
}

/// An [`AttentionMask`] on a device, split into what the softmax needs and what has to be cleared around it.
#[derive(Clone, Debug)]
pub struct PreparedMask {
    /// Lq and Lk, where exactly the future is forbidden: that is what `forbidden` marks then.
    pub(crate) causal: Option<[usize; 2]>,
    /// `[B|1, Lk|1, 1]`.
    unread_keys: Option<Tensor<3, Bool>>,
    /// `[B|1, H|1, Lq|1, Lk|1]`; no row is wholly forbidden. None where nothing is forbidden.
    pub(crate) forbidden: Option<Tensor<4, Bool>>,
    /// `[B|1, H|1, Lq|1, 1]`: rows whose every key is forbidden. They give zero; `forbidden` leaves them open, so that the
    /// plain softmax stays finite.
    pub(crate) empty_rows: Option<Tensor<4, Bool>>,
}

impl PreparedMask {
    /// False where the mask forbids nothing.
    pub fn is_needed(&self) -> bool {
        self.forbidden.is_some() || self.empty_rows.is_some() || self.unread_keys.is_some()
    }

    /// Keys that no query may read, `[B|1, Lk|1, 1]`; None where each is read. What they hold, even infinities, must not
    /// matter, so whoever computes keys and values has to clear them: a weight of 0 times NaN is NaN.
    pub fn unread_keys(&self) -> Option<&Tensor<3, Bool>> {
        self.unread_keys.as_ref()
    }

    /// # Panics
    /// Unless the mask fits scores `[B, H, Lq, Lk]`.
    pub(crate) fn assert_fits(&self, scores: [usize; 4]) {
        let [_, _, lq, lk] = scores;
        if let Some(prepared) = self.causal {
            assert_eq!(prepared, [lq, lk], "queries and keys of a causal mask, and of the scores");
        }
        for mask in [&self.forbidden, &self.empty_rows].into_iter().flatten() {
            let fits = mask.dims().iter().zip(&scores).all(|(&mask, &score)| mask == score || mask == 1);
            assert!(fits, "a mask of shape {:?} for scores of shape {scores:?}", mask.dims());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn causal_rows(queries: usize, keys: usize) -> Vec<String> {
        let (shape, forbidden) = AttentionMask::causal().forbidden(queries, keys).unwrap();
        assert_eq!(shape, [1, 1, queries, keys]);
        forbidden.chunks(keys).map(|row| row.iter().map(|&f| if f { 'x' } else { '.' }).collect()).collect()
    }

    #[test]
    fn causal_forbids_the_future() {
        assert_eq!(causal_rows(3, 3), [".xx", "..x", "..."]);
    }

    #[test]
    fn causal_is_aligned_at_the_end() {
        assert_eq!(causal_rows(2, 4), ["...x", "...."]);
        assert_eq!(causal_rows(3, 2), ["xx", ".x", ".."]);
    }

    #[test]
    fn union_of_causal_and_padding_is_per_sample() {
        let padding = AttentionMask::padding(2, 3, vec![true, false, false, false, false, true]).unwrap();
        let (shape, both) = AttentionMask::causal().union(&padding).unwrap().forbidden(3, 3).unwrap();
        assert_eq!(shape, [2, 1, 3, 3]);
        assert_eq!(both[..9], [true, true, true, true, false, true, true, false, false]);
        assert_eq!(both[9..], [false, true, true, false, false, true, false, false, true]);
    }

    #[test]
    fn prepared_masks_open_empty_rows_and_mark_them() {
        let rows = vec![false, true, true, true, true, true];
        let prepared =
            AttentionMask::marked([1, 1, 2, 3], rows).unwrap().prepare([4, 2, 2, 3], &Device::flex()).unwrap();
        let bools = |tensor: Option<Tensor<4, Bool>>| tensor.unwrap().into_data().iter::<bool>().collect::<Vec<_>>();
        assert_eq!(bools(prepared.forbidden), [false, true, true, false, false, false]);
        assert_eq!(bools(prepared.empty_rows), [false, true]);
        let unread: Vec<bool> = prepared.unread_keys.unwrap().into_data().iter::<bool>().collect();
        assert_eq!(unread, [false, true, true]);

        let prepared = AttentionMask::causal().prepare([4, 2, 2, 3], &Device::flex()).unwrap();
        assert!(prepared.forbidden.is_some() && prepared.empty_rows.is_none() && prepared.unread_keys.is_none());
        assert!(!AttentionMask::none().prepare([4, 2, 2, 3], &Device::flex()).unwrap().is_needed());
    }

    #[test]
    fn wrong_shapes_name_both() {
        let padding = |keys: usize| AttentionMask::padding(2, keys, vec![true; 2 * keys]).unwrap();
        for mask in [padding(3), AttentionMask::causal().union(&padding(3)).unwrap()] {
            let text = mask.prepare([2, 4, 5, 5], &Device::flex()).unwrap_err().to_string();
            assert!(text.contains("[2, 1, 1, 3]") && text.contains("[2, 4, 5, 5]"), "{text}");
        }
        let text = padding(3).union(&padding(2)).unwrap_err().to_string();
        assert!(text.contains("[2, 1, 1, 3]") && text.contains("[2, 1, 1, 2]"), "{text}");
        assert!(AttentionMask::padding(2, 3, vec![true]).unwrap_err().to_string().contains("6 entries, but 1"));
    }

    proptest! {
        /// Causal: position i of the last `queries` of `keys` reads exactly the keys up to itself.
        #[test]
        fn causal_row_reads_its_past(queries in 1usize..12, more in 0usize..6) {
            let keys = queries + more;
            let (_, forbidden) = AttentionMask::causal().forbidden(queries, keys).unwrap();
            for (i, row) in forbidden.chunks(keys).enumerate() {
                prop_assert_eq!(row.iter().filter(|&&f| !f).count(), i + 1 + more);
                prop_assert!(!row[i + more]);
            }
        }

        /// A union forbids exactly what either forbids, whatever is broadcast.
        #[test]
        fn union_is_or(b in 1usize..3, q in 1usize..4, k in 1usize..4, is_causal: bool,
            bits in proptest::collection::vec(any::<bool>(), 32)) {
            let padding = AttentionMask::padding(b, k, bits[..b * k].to_vec()).unwrap();
            let marks = bits[8..8 + q * k].to_vec();
            let square = AttentionMask { is_causal, ..AttentionMask::marked([1, 1, q, k], marks.clone()).unwrap() };
            let both = padding.union(&square).unwrap();
            prop_assert_eq!(&both, &square.union(&padding).unwrap());
            let (shape, forbidden) = both.forbidden(q, k).unwrap();
            for ([sample, _, i, j], forbidden) in indices(shape).zip(forbidden) {
                let expected = bits[sample * k + j] || marks[i * k + j] || is_causal && j + q > i + k;
                prop_assert_eq!(forbidden, expected);
            }
        }
    }
}
