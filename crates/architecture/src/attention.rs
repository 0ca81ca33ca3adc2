//! The sizes of one attention.

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, range};
use crate::positions::Positions;

/// What happens to the heads' contexts before the output projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Merge {
    /// Laid side by side: `[B, L, H·K]` (Vaswani 2017, section 3.2.2).
    Concat,
    /// Averaged: `[B, L, K]`. A common mistake, kept as an arm that can be measured.
    Mean,
}

/// What the products of queries and keys are multiplied by before the softmax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreScale {
    /// 1/sqrt(K): products of K independent numbers of variance 1 have variance K, and so scores have variance 1 whatever the
    /// width of a head (Vaswani 2017, section 3.2.1).
    SqrtDHead,
    /// Nothing. Scores grow with the width of a head, until the softmax gives all weight to one key and passes no gradient.
    /// A common mistake, kept as an arm that can be measured.
    None,
}

impl ScoreScale {
    /// The factor for heads of width `d_head`.
    pub fn factor(self, d_head: usize) -> f64 {
        match self {
            Self::SqrtDHead => 1.0 / (d_head as f64).sqrt(),
            Self::None => 1.0,
        }
    }
}

/// An attention of H query heads and G key/value heads of width K, from and to a stream of width D.
///
/// ```
/// use headcount_architecture::AttentionConfig;
///
/// let config = AttentionConfig { kv_heads: 2, ..AttentionConfig::new(64, 8)? };
/// assert_eq!(config.d_head, 8);
/// # Ok::<(), headcount_architecture::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionConfig {
    /// Width of what is read and of the output, D.
    pub d_model: usize,
    /// Query heads, H.
    pub heads: usize,
    /// Key/value heads, G.
    pub kv_heads: usize,
    /// Width of one head, K.
    pub d_head: usize,
    /// Biases on the query, value and output projections.
    pub bias: bool,
    /// A bias on the key projection.
    pub key_bias: bool,
    /// What scores are scaled by.
    pub scale: ScoreScale,
    /// What happens to the heads' contexts before the output projection.
    pub merge: Merge,
    /// Whether and how queries and keys are rotated.
    pub positions: Positions,
}

impl AttentionConfig {
    /// `heads` heads that share `d_model` among them, with biases as in PyTorch save on the keys, where one has no effect;
    /// nothing is rotated.
    ///
    /// # Errors
    /// Sizes out of range, and a width that can't be split evenly.
    pub fn new(d_model: usize, heads: usize) -> Result<Self, ModelError> {
        range("heads", heads, 1, MOST)?;
        if !d_model.is_multiple_of(heads) {
            return Err(ModelError::HeadsDoNotDivide { d_model, heads });
        }
        let config = Self {
            d_model,
            heads,
            kv_heads: heads,
            d_head: d_model / heads,
            bias: true,
            key_bias: false,
            scale: ScoreScale::SqrtDHead,
            merge: Merge::Concat,
            positions: Positions::None,
        };
        config.check()?;
        Ok(config)
    }

    /// Refuses what can't be built, naming the values at fault.
    pub fn check(&self) -> Result<(), ModelError> {
        let Self { d_model, heads, kv_heads, d_head, positions, .. } = *self;
        for (key, value) in [("d_model", d_model), ("heads", heads), ("kv_heads", kv_heads), ("d_head", d_head)] {
            range(key, value, 1, MOST)?;
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(ModelError::KvHeadsDoNotDivide { heads, kv_heads });
        }
        if positions.rotates() && !d_head.is_multiple_of(2) {
            return Err(ModelError::OddHeads { positions, d_head, d_model, heads });
        }
        Ok(())
    }

    /// Columns of the query projection, H·K.
    pub fn query_width(&self) -> usize {
        self.heads * self.d_head
    }

    /// Columns of the key projection and of the value projection, G·K.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.d_head
    }

    /// Rows of the output projection: H·K, or K where heads are averaged.
    pub fn merged_width(&self) -> usize {
        match self.merge {
            Merge::Concat => self.query_width(),
            Merge::Mean => self.d_head,
        }
    }
}

/// Most columns of a stream or a head, and most heads.
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_follows_the_width_or_nothing() {
        assert_eq!([1, 4, 16].map(|k| ScoreScale::SqrtDHead.factor(k)), [1.0, 0.5, 0.25]);
        assert_eq!([1, 4, 16].map(|k| ScoreScale::None.factor(k)), [1.0; 3]);
    }

    #[test]
    fn what_does_not_fit_names_its_values() {
        let error = AttentionConfig::new(30, 4).unwrap_err();
        assert_eq!(error, ModelError::HeadsDoNotDivide { d_model: 30, heads: 4 });
        assert_eq!(AttentionConfig::new(8, 0).unwrap_err().key(), "heads");
        assert_eq!(AttentionConfig::new(0, 1).unwrap_err().key(), "d_model");
        let base = || AttentionConfig::new(12, 4).unwrap();
        assert_eq!(AttentionConfig { kv_heads: 3, ..base() }.check().unwrap_err().key(), "kv_heads");
        assert_eq!(AttentionConfig { positions: Positions::Rope, ..base() }.check().unwrap_err().key(), "positions");
    }
}
