//! Dropout whose masks are drawn on the host from (seed, step, micro-batch, layer, site).
//!
//! The same entries fall out on every backend and after every resume, and Burn's process-global random state is never
//! touched.

use burn::tensor::{Bool, Device, Tensor, TensorData};

use crate::random::Stream;

/// Where in a layer a dropout acts. The numbers are part of a mask's name, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropoutSite {
    /// On the sum of token and position embedding.
    Embedding = 0,
    /// On the attention weights, after the softmax.
    Attention = 1,
    /// On what the attention adds to the residual stream.
    AttentionOutput = 2,
    /// On what the MLP adds to the residual stream.
    MlpOutput = 3,
    /// On the weights of the attention to an encoder's output.
    CrossAttention = 4,
    /// On what that attention adds to the residual stream.
    CrossAttentionOutput = 5,
}

/// The dropout of one forward pass in training. In evaluation there is none to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropout {
    /// Seed of the run.
    pub seed: u64,
    /// Optimiser step.
    pub step: u64,
    /// Micro-batch within the step.
    pub micro_batch: u64,
}

impl Dropout {
    /// The dropout at one site of one layer, which sets each entry to zero with `probability` in 0..1.
    pub fn at(self, layer: usize, site: DropoutSite, probability: f64) -> DropoutAt {
        DropoutAt { pass: self, layer, site, probability }
    }
}

/// The dropout at one site of a forward pass. Made by [`Dropout::at`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropoutAt {
    pass: Dropout,
    layer: usize,
    site: DropoutSite,
    probability: f64,
}

impl DropoutAt {
    /// Sets entries to zero at random and divides the others by the probability of being kept, so that the expectation
    /// stays (Srivastava 2014, section 10).
    pub fn apply<const N: usize>(self, x: Tensor<N>) -> Tensor<N> {
        match self.dropped(x.dims(), &x.device()) {
            Some(dropped) => (x / (1.0 - self.probability)).mask_fill(dropped, 0.0),
            None => x,
        }
    }

    /// The entries that are set to zero; None where none is.
    pub fn dropped<const N: usize>(self, shape: [usize; N], device: &Device) -> Option<Tensor<N, Bool>> {
        if self.probability == 0.0 {
            return None;
        }
        let Dropout { seed, step, micro_batch } = self.pass;
        let mut stream = Stream::new("dropout", seed, &[step, micro_batch, self.layer as u64, self.site as u64]);
        let threshold = (self.probability * (1u64 << 32) as f64) as u64;
        let dropped: Vec<bool> = (0..shape.iter().product()).map(|_| u64::from(stream.bits()) < threshold).collect();
        Some(Tensor::from_data(TensorData::new(dropped, shape), device))
    }

    /// Probability with which an entry is set to zero.
    pub fn probability(self) -> f64 {
        self.probability
    }
}
