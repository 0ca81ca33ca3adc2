//! Initial weights, drawn on the host from (seed, parameter path).
//!
//! Every backend and every head count sees the same numbers wherever a tensor's path and shape agree, and Burn's
//! process-global random state is never touched.

use burn::module::Param;
use burn::nn::{Embedding, LayerNorm, LayerNormConfig, Linear};
use burn::tensor::{Device, Tensor, TensorData};

use crate::random::Stream;
use architecture::{Init, ModelConfig};

/// Added to the variance in every norm, as in PyTorch.
pub(crate) const NORM_EPSILON: f64 = 1e-5;

/// Makes initialised layers; each call names the path its parameters have in the model.
pub struct Weights<'a> {
    seed: u64,
    init: Init,
    /// Divides the weights that end on the residual stream under [`Init::Gpt2`]: sqrt(2·layers).
    residual_divisor: f64,
    device: &'a Device,
}

/// Standard deviation of GPT-2's weights (Radford 2019; `initializer_range` of its published code).
const GPT2_STD: f64 = 0.02;

impl<'a> Weights<'a> {
    /// Weights for `config` under `seed`, to be placed on `device`.
    pub fn new(config: &ModelConfig, seed: u64, device: &'a Device) -> Self {
        let residual_divisor = (2.0 * config.layers.max(1) as f64).sqrt();
        Self { seed, init: config.init, residual_divisor, device }
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
        let bound = 1.0 / (d_in as f64).sqrt();
        let uniform = |stream: &mut Stream| (2.0 * stream.uniform() - 1.0) * bound;
        let weight = self.draw(&format!("{path}.weight"), d_in * d_out, |stream| match self.init {
            Init::Torch => uniform(stream),
            Init::Gpt2 => stream.normal() * GPT2_STD / divisor,
        });
        let bias = bias.then(|| {
            self.draw(&format!("{path}.bias"), d_out, |stream| match self.init {
                Init::Torch => uniform(stream),
                Init::Gpt2 => 0.0,
            })
        });
        Linear {
            weight: self.parameter::<2>(weight, [d_in, d_out]),
            bias: bias.map(|values| self.parameter::<1>(values, [d_out])),
        }
    }

    /// An embedding, weight `[rows, d_model]`.
    pub fn embedding(&self, path: &str, rows: usize, d_model: usize) -> Embedding {
        let std = match self.init {
            Init::Torch => 1.0,
            Init::Gpt2 => GPT2_STD,
        };
        let values = self.draw(&format!("{path}.weight"), rows * d_model, |stream| stream.normal() * std);
        Embedding { weight: self.parameter::<2>(values, [rows, d_model]) }
    }

    /// A layer norm with gain 1 and shift 0.
    pub fn norm(&self, d_model: usize) -> LayerNorm {
        let mut norm = LayerNormConfig::new(d_model).with_epsilon(NORM_EPSILON).init(self.device);
        norm.gamma = self.parameter::<1>(vec![1.0; d_model], [d_model]);
        norm.beta = Some(self.parameter::<1>(vec![0.0; d_model], [d_model]));
        norm
    }

    fn draw(&self, path: &str, count: usize, mut one: impl FnMut(&mut Stream) -> f64) -> Vec<f32> {
        let mut stream = Stream::new(path, self.seed, &[]);
        (0..count).map(|_| one(&mut stream) as f32).collect()
    }

    fn parameter<const N: usize>(&self, values: Vec<f32>, shape: [usize; N]) -> Param<Tensor<N>> {
        Param::from_data(TensorData::new(values, shape), self.device)
    }
}
