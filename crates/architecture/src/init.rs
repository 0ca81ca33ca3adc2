//! What initial weights are drawn from.

use serde::{Deserialize, Serialize};

/// The distribution of the initial weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// PyTorch's defaults: embeddings N(0, 1), linear weights and biases uniform in ±1/sqrt(fan_in).
    Torch,
    /// GPT-2's: N(0, 0.02), zero biases, the two projections that end on the residual stream divided by
    /// sqrt(2·layers).
    Gpt2,
}

/// The distribution of a parameter's entries. Parameters of one path and shape that have the same are drawn alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Uniform in ±`bound`.
    Uniform { bound: f64 },
    /// Normal around 0 with standard deviation `std / divisor`.
    Normal { std: f64, divisor: f64 },
    /// All the same.
    Constant(f64),
}

/// Standard deviation of GPT-2's weights (Radford 2019; `initializer_range` of its published code).
const GPT2_STD: f64 = 0.02;

impl Init {
    /// Of an embedding's weight.
    pub fn embedding(self) -> Initial {
        let std = match self {
            Self::Torch => 1.0,
            Self::Gpt2 => GPT2_STD,
        };
        Initial::Normal { std, divisor: 1.0 }
    }

    /// Of a linear layer's weight `[d_in, d_out]`; `divisor` is 1, or [`Init::residual_divisor`] where its output is added to
    /// the residual stream.
    pub fn weight(self, d_in: usize, divisor: f64) -> Initial {
        match self {
            Self::Torch => Initial::Uniform { bound: 1.0 / (d_in as f64).sqrt() },
            Self::Gpt2 => Initial::Normal { std: GPT2_STD, divisor },
        }
    }

    /// Of a linear layer's bias.
    pub fn bias(self, d_in: usize) -> Initial {
        match self {
            Self::Torch => self.weight(d_in, 1.0),
            Self::Gpt2 => Initial::Constant(0.0),
        }
    }

    /// sqrt(2·layers), for the two sublayers of each block.
    pub fn residual_divisor(layers: usize) -> f64 {
        (2.0 * layers.max(1) as f64).sqrt()
    }
}
