//! Attention maps of one layer on the host, and which of their entries count.

/// Which keys each query of each sample may read, `[B][Lq][Lk]`. A padded query may read nothing: its row counts nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readable {
    batch: usize,
    queries: usize,
    keys: usize,
    readable: Vec<bool>,
}

impl Readable {
    /// From padding (`true` = padding) of the queries `[B][Lq]` and keys `[B][Lk]`. `causal`: keys up to the query's own
    /// position alone.
    ///
    /// # Panics
    /// On paddings that aren't whole samples of the same batch.
    pub fn new(batch: usize, query_padding: &[bool], key_padding: &[bool], causal: bool) -> Self {
        let (queries, keys) = (query_padding.len() / batch, key_padding.len() / batch);
        assert_eq!((query_padding.len(), key_padding.len()), (batch * queries, batch * keys));
        let mut readable = Vec::with_capacity(batch * queries * keys);
        for b in 0..batch {
            for i in 0..queries {
                let is_readable =
                    |j: usize| !query_padding[b * queries + i] && !key_padding[b * keys + j] && (j <= i || !causal);
                readable.extend((0..keys).map(is_readable));
            }
        }
        Self { batch, queries, keys, readable }
    }

    /// The row of query `i` of sample `b`, `[Lk]`.
    pub fn row(&self, b: usize, i: usize) -> &[bool] {
        let start = (b * self.queries + i) * self.keys;
        &self.readable[start..start + self.keys]
    }

    /// Samples and queries whose rows count: those with at least two readable keys. Where there is one, no head has a choice.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize)> {
        let all = (0..self.batch).flat_map(|b| (0..self.queries).map(move |i| (b, i)));
        all.filter(|&(b, i)| self.row(b, i).iter().filter(|&&readable| readable).nth(1).is_some())
    }
}

/// The maps of one layer.
#[derive(Clone, Copy, Debug)]
pub struct Maps<'a> {
    /// H.
    pub heads: usize,
    /// `[B][H][Lq][Lk]`: each row sums to 1 over the keys that it may read, and is 0 elsewhere.
    pub weights: &'a [f32],
    /// `[B][Lq][Lk]`.
    pub readable: &'a Readable,
}

impl<'a> Maps<'a> {
    /// Weights of `heads` heads.
    ///
    /// # Panics
    /// On another number of weights than B·H·Lq·Lk.
    pub fn new(heads: usize, weights: &'a [f32], readable: &'a Readable) -> Self {
        let Readable { batch, queries, keys, .. } = readable;
        assert_eq!(weights.len(), batch * heads * queries * keys);
        Self { heads, weights, readable }
    }

    /// Samples, B.
    pub fn batch(&self) -> usize {
        self.readable.batch
    }

    /// Queries of each sample, Lq.
    pub fn queries(&self) -> usize {
        self.readable.queries
    }

    /// Keys of each sample, Lk.
    pub fn keys(&self) -> usize {
        self.readable.keys
    }

    /// What query `i` of sample `b` reads by head `h`, `[Lk]`.
    pub fn row(&self, b: usize, h: usize, i: usize) -> &'a [f32] {
        let start = ((b * self.heads + h) * self.queries() + i) * self.keys();
        &self.weights[start..start + self.keys()]
    }
}
