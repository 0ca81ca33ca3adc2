//! Initial weights, drawn on the host from (seed, parameter path).
//!
//! Every backend and every head count sees the same numbers wherever a tensor's path and shape agree, and Burn's
//! process-global random state is never touched.

use architecture::{Init, Initial, ModelConfig, Norm, NormKind};
use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};

use crate::norm::StreamNorm;
use crate::random::Stream;

/// Makes initialised layers; each call names the path its parameters have in the model.
pub struct InitialWeights<'a> {
    seed: u64,
    init: Init,
    residual_divisor: f64,
    device: &'a Device,
}

impl<'a> InitialWeights<'a> {
    /// The weights of a stack of `layers` under `seed`, to be placed on `device`.
    pub fn new(init: Init, layers: usize, seed: u64, device: &'a Device) -> Self {
        Self { seed, init, residual_divisor: Init::residual_divisor(layers), device }
    }

    /// A linear layer, weight `[d_in, d_out]` and perhaps a bias `[d_out]`.
    pub fn linear(&self, path: &str, d_in: usize, d_out: usize, bias: bool) -> Linear {
        self.linear_divided(path, d_in, d_out, bias, 1.0)
    }

    /// A linear layer whose output is added to the residual stream.
    pub fn residual_linear(&self, path: &str, d_in: usize, d_out: usize, bias: bool) -> Linear {
        self.linear_divided(path, d_in, d_out, bias, self.residual_divisor)
    }

    fn linear_divided(&self, path: &str, d_in: usize, d_out: usize, bias: bool, divisor: f64) -> Linear {
        Linear {
            weight: self.draw(&format!("{path}.weight"), [d_in, d_out], self.init.weight(d_in, divisor)),
            bias: bias.then(|| self.draw(&format!("{path}.bias"), [d_out], self.init.bias(d_in))),
        }
    }

    /// The weight of an embedding, `[rows, d_model]`.
    pub fn embedding(&self, path: &str, rows: usize, d_model: usize) -> Param<Tensor<2>> {
        self.draw(&format!("{path}.weight"), [rows, d_model], self.init.embedding())
    }

    /// A vector of the stream, as a row of an embedding is.
    pub fn vector(&self, path: &str, d_model: usize) -> Param<Tensor<1>> {
        self.draw(path, [d_model], self.init.embedding())
    }

    /// A norm of `config`: gain or factor 1, shift 0. `None` where it has none.
    pub fn norm(&self, config: &ModelConfig) -> Option<StreamNorm> {
        let d = config.d_model;
        match (config.norm, config.norm_kind) {
            (Norm::None, _) => None,
            (_, NormKind::Layer) => Some(StreamNorm {
                gamma: Some(self.parameter(vec![1.0; d], [d])),
                beta: Some(self.parameter(vec![0.0; d], [d])),
                factor: None,
            }),
            (_, NormKind::Length) => {
                Some(StreamNorm { gamma: None, beta: None, factor: Some(self.parameter(vec![1.0], [1])) })
            }
        }
    }

    /// The norm after the last block of a stack: with norms before sublayers alone.
    pub fn final_norm(&self, config: &ModelConfig) -> Option<StreamNorm> {
        if config.norm == Norm::Pre { self.norm(config) } else { None }
    }

    fn draw<const N: usize>(&self, path: &str, shape: [usize; N], initial: Initial) -> Param<Tensor<N>> {
        let mut stream = Stream::new(path, self.seed, &[]);
        let mut one = || match initial {
            Initial::Uniform { bound } => (2.0 * stream.uniform() - 1.0) * bound,
            Initial::Normal { std, divisor } => stream.normal() * std / divisor,
            Initial::Constant(value) => value,
        };
        self.parameter((0..shape.iter().product()).map(|_| one() as f32).collect(), shape)
    }

    fn parameter<const N: usize>(&self, values: Vec<f32>, shape: [usize; N]) -> Param<Tensor<N>> {
        Param::from_data(TensorData::new(values, shape), self.device)
    }
}
