//! Dropout whose masks are drawn on the host from (seed, step, micro-batch, layer, place).
//!
//! The same entries fall out on every backend and after every resume, and Burn's process-global random state is never
//! touched.

use burn::tensor::{Bool, Tensor, TensorData};

use crate::random::Stream;

/// Where in a layer a dropout acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
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
    /// Sets each entry to zero with `probability` and scales the others by `1 / (1 − probability)` (Srivastava 2014,
    /// section 10: "inverted dropout").
    pub fn apply<const N: usize>(&self, x: Tensor<N>, probability: f64, layer: usize, place: Place) -> Tensor<N> {
        if probability == 0.0 {
            return x;
        }
        let counters = [self.step, self.micro_batch, layer as u64, place as u64];
        let mut stream = Stream::new("dropout", self.seed, &counters);
        let threshold = (probability * (1u64 << 32) as f64) as u64;
        let shape = x.dims();
        let dropped: Vec<bool> = (0..shape.iter().product()).map(|_| u64::from(stream.bits()) < threshold).collect();
        let dropped = Tensor::<N, Bool>::from_data(TensorData::new(dropped, shape), &x.device());
        (x / (1.0 - probability)).mask_fill(dropped, 0.0)
    }
}
