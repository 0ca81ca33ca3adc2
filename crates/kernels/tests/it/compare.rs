//! One computation three times: by the kernels, by the plain composition in f32, and in f64.

use burn::tensor::{DType, Device, Tensor, TensorData};

/// Numbers of a simple generator, normal enough: the sum of four uniform ones.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u64 << 24) as f32
    }

    pub fn normal(&mut self) -> f32 {
        ((0..4).map(|_| self.uniform()).sum::<f32>() - 2.0) * 1.732
    }

    pub fn vector(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.normal() * scale).collect()
    }
}

/// Output and gradients of `inputs` on the host.
pub type Results = Vec<Vec<f64>>;

/// Runs `function` on tracked flat tensors and takes the gradients of its output's sum weighted by `weights`.
pub fn run(
    inputs: &[Vec<f32>],
    weights: &[f32],
    dtype: DType,
    function: &dyn Fn(&[Tensor<1>]) -> Tensor<1>,
) -> Results {
    let device = Device::flex().autodiff();
    let tensor = |values: &[f32]| -> Tensor<1> {
        Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), (&device, dtype))
    };
    let leaves: Vec<Tensor<1>> = inputs.iter().map(|values| tensor(values).require_grad()).collect();
    let output = function(&leaves);
    let host = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<f64>>();
    let mut results = vec![host(output.clone().inner())];
    let gradients = (output.clone() * tensor(&weights[..output.dims()[0]])).sum().backward();
    for leaf in &leaves {
        results.push(leaf.grad(&gradients).map(host).unwrap_or_else(|| vec![0.0; leaf.dims()[0]]));
    }
    results
}

/// The largest difference relative to the largest entry; infinite where one is not finite and the other is.
pub fn difference(found: &[f64], expected: &[f64]) -> f64 {
    relative(found, expected, largest(expected))
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(1e-30f64, |largest, x| largest.max(x.abs()))
}

fn relative(found: &[f64], expected: &[f64], scale: f64) -> f64 {
    assert_eq!(found.len(), expected.len());
    found.iter().zip(expected).fold(0.0, |worst, (x, y)| match x.is_nan() || y.is_nan() {
        true if x.is_nan() == y.is_nan() => worst,
        true => f64::INFINITY,
        false => worst.max((x - y).abs() / scale),
    })
}

/// Unit roundoff of f32.
pub const ROUNDOFF: f64 = 1.0 / (1u64 << 24) as f64;

/// Asserts that the kernels are within 1e-5 of the f64 composition (relative to the largest entry), or no more than a few times as far from it
/// as the plain composition in f32 is, where numbers are extreme.
pub fn agree(
    what: &str,
    inputs: &[Vec<f32>],
    weights: &[f32],
    fused: &dyn Fn(&[Tensor<1>]) -> Tensor<1>,
    plain: &dyn Fn(&[Tensor<1>]) -> Tensor<1>,
) {
    agree_within(what, 1e-5, &[], inputs, weights, fused, plain);
}

/// What rounding may do to a softmax of products of `k` numbers, relative to the largest entry, where no sum of absolute products
/// is above `largest`.
///
/// Each of the k products, and each sum on the way, is off by up to u times `largest`; errors of random sign add up to √k of
/// that, which is the error of a score. A weight exp(score) is off by as much in relative terms, its row's sum by the mean of its
/// scores' errors, so together by up to twice as much; and twice that is allowed for the worst of many entries. How far off
/// the plain composition happens to be says nothing here: where there are few entries it may be exact by luck.
pub fn softmax_tolerance(k: usize, largest: f64) -> f64 {
    4.0 * ROUNDOFF * (k as f64).sqrt() * largest
}

/// [`agree`] within `least` in the place of 1e-5. Where the terms of an input's gradient cancel, `summed` has the largest sum of
/// their absolute values, by input: rounding is in proportion to that, however little is left.
pub fn agree_within(
    what: &str,
    least: f64,
    summed: &[f64],
    inputs: &[Vec<f32>],
    weights: &[f32],
    fused: &dyn Fn(&[Tensor<1>]) -> Tensor<1>,
    plain: &dyn Fn(&[Tensor<1>]) -> Tensor<1>,
) {
    let kernels = run(inputs, weights, DType::F32, fused);
    let composed = run(inputs, weights, DType::F32, plain);
    let exact = run(inputs, weights, DType::F64, plain);
    // A gradient that cancels to nothing, as that of a query with one key, is measured by what cancelled.
    let gradients = exact[1..].iter().map(|gradient| largest(gradient)).fold(0.0, f64::max);
    for (index, ((found, composed), exact)) in kernels.iter().zip(&composed).zip(&exact).enumerate() {
        let scale = match index.checked_sub(1) {
            None => largest(exact),
            Some(input) => largest(exact).max(gradients / 20.0).max(summed.get(input).copied().unwrap_or(0.0)),
        };
        let (error, floor) = (relative(found, exact, scale), relative(composed, exact, scale));
        let name = if index == 0 { "output".to_string() } else { format!("gradient of input {}", index - 1) };
        assert!(
            error <= least.max(8.0 * floor),
            "{what}: {name} is off by {error:.2e}, the plain composition by {floor:.2e}; allowed {least:.2e}"
        );
    }
}
