//! Initial weights, drawn on the host from (seed, parameter path).
//!
//! Every backend and every head count sees the same numbers wherever a tensor's path and shape agree, and Burn's
//! process-global random state is never touched.

use architecture::{Init, Initial};
use burn::module::Param;
use burn::nn::{LayerNorm, LayerNormConfig, Linear};
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::Stream;

/// Added to the variance in every norm, as in PyTorch.
pub(crate) const NORM_EPSILON: f64 = 1e-5;

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

    /// A layer norm with gain 1 and shift 0.
    pub fn norm(&self, d_model: usize) -> LayerNorm {
        let mut norm = LayerNormConfig::new(d_model).with_epsilon(NORM_EPSILON).init(self.device);
        norm.gamma = self.parameter(vec![1.0; d_model], [d_model]);
        norm.beta = Some(self.parameter(vec![0.0; d_model], [d_model]));
        norm
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
