//! Layer norm, linear layers, cross-entropy, AdamW.

use burn::tensor::{Device, Int, Tensor, TensorData};
use headcount_kernels::adamw::{self, Flat, Update};
use headcount_kernels::{Activation, cross_entropy, layer_norm, linear};
use proptest::prelude::*;

use crate::compare::{Numbers, ROUNDOFF, agree, agree_within, difference};

fn check_layer_norm(n: usize, d: usize, seed: u64, scale: f32) {
    let mut numbers = Numbers::new(seed);
    let inputs = [numbers.vector(n * d, scale), numbers.vector(d, 1.0), numbers.vector(d, 1.0)];
    let weights = numbers.vector(n * d, 1.0);
    let fused =
        |x: &[Tensor<1>]| layer_norm(x[0].clone().reshape([n, d]), x[1].clone(), x[2].clone(), 1e-5).flatten(0, 1);
    let plain = |x: &[Tensor<1>]| {
        layer_norm::plain(x[0].clone().reshape([n, d]), x[1].clone(), x[2].clone(), 1e-5).flatten(0, 1)
    };
    // Where the numbers of a row are nearly alike, their deviations are off by up to u times the numbers themselves, relative to
    // the standard deviation. And what is left of a row's gradient after its mean and its part along the row are taken off may be
    // little, with few columns nothing: it is measured by what it was taken off from.
    let (mut tolerance, mut summed) = (1e-5f64, 0.0f64);
    for (row, upstream) in inputs[0].chunks(d).zip(weights.chunks(d)) {
        let row: Vec<f64> = row.iter().copied().map(f64::from).collect();
        let mean = row.iter().sum::<f64>() / d as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
        let deviation = (variance + 1e-5).sqrt();
        let largest = row.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        tolerance = tolerance.max(8.0 * ROUNDOFF * largest / deviation);
        let products = upstream.iter().zip(&inputs[1]).map(|(g, gamma)| f64::from(g * gamma).abs());
        summed = summed.max(products.fold(0.0, f64::max) / deviation);
    }
    agree_within(&format!("layer norm {n}×{d} scale {scale}"), tolerance, &[summed], &inputs, &weights, &fused, &plain);
}

fn check_linear(n: usize, i: usize, o: usize, has_bias: bool, activation: Activation, seed: u64, scale: f32) {
    let mut numbers = Numbers::new(seed);
    let inputs = [numbers.vector(n * i, scale), numbers.vector(i * o, 1.0 / (i as f32).sqrt()), numbers.vector(o, 1.0)];
    let weights = numbers.vector(n * o, 1.0);
    let parts = |x: &[Tensor<1>]| {
        let bias = has_bias.then(|| x[2].clone());
        // The weight is a transposed view, as that of tied embeddings.
        (x[0].clone().reshape([n, i]), x[1].clone().reshape([o, i]).transpose(), bias)
    };
    let fused = |x: &[Tensor<1>]| {
        let (x, weight, bias) = parts(x);
        linear(x, weight, bias, activation).flatten(0, 1)
    };
    let plain = |x: &[Tensor<1>]| {
        let (x, weight, bias) = parts(x);
        linear::plain(x, weight, bias, activation).flatten(0, 1)
    };
    agree(&format!("linear {n}×{i}×{o} {has_bias} {activation:?} scale {scale}"), &inputs, &weights, &fused, &plain);
}

fn check_cross_entropy(n: usize, v: usize, seed: u64, scale: f32) {
    let mut numbers = Numbers::new(seed);
    let inputs = [numbers.vector(n * v, scale)];
    let weights = numbers.vector(n, 1.0);
    let targets: Vec<i32> = (0..n).map(|_| (numbers.bits() % v as u64) as i32).collect();
    let targets = |device: &Device| Tensor::<1, Int>::from_data(TensorData::new(targets.clone(), [n]), device);
    let fused = |x: &[Tensor<1>]| cross_entropy(x[0].clone().reshape([n, v]), targets(&x[0].device()));
    let plain = |x: &[Tensor<1>]| cross_entropy::plain(x[0].clone().reshape([n, v]), targets(&x[0].device()));
    agree(&format!("cross-entropy {n}×{v} scale {scale}"), &inputs, &weights, &fused, &plain);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layer_norm_is_the_plain_one(n in 1usize..600, d in 3usize..140, seed: u64, power in -3i32..4) {
        check_layer_norm(n, d, seed, 10f32.powi(power));
    }

    #[test]
    fn linear_is_the_plain_one(
        n in 1usize..600, i in 1usize..70, o in 1usize..70, has_bias: bool, gelu: bool, seed: u64, power in -2i32..3
    ) {
        let activation = if gelu { Activation::Gelu } else { Activation::None };
        check_linear(n, i, o, has_bias, activation, seed, 10f32.powi(power));
    }

    #[test]
    fn cross_entropy_is_the_plain_one(n in 1usize..600, v in 1usize..140, seed: u64, scale in 0.01f32..80.0) {
        check_cross_entropy(n, v, seed, scale);
    }
}

#[test]
fn large_layers_get_their_gradient_in_one_product() {
    for activation in [Activation::None, Activation::Gelu] {
        check_linear(700, 256, 300, true, activation, 1, 1.0);
    }
    check_linear(1030, 64, 256, true, Activation::Gelu, 2, 1.0);
}

/// A weight that isn't trained gets no gradient and costs none; neither does an input.
#[test]
fn only_tracked_inputs_get_gradients() {
    let device = Device::flex().autodiff();
    let ones = |shape: [usize; 2]| Tensor::<2>::ones(shape, &device);
    let (x, weight) = (ones([3, 4]), ones([4, 5]).require_grad());
    let gradients = linear(x.clone(), weight.clone(), None, Activation::Gelu).sum().backward();
    assert!(x.grad(&gradients).is_none());
    assert_eq!(weight.grad(&gradients).unwrap().dims(), [4, 5]);
    let (x, weight) = (ones([3, 4]).require_grad(), ones([4, 5]));
    let gradients = linear(x.clone(), weight.clone(), None, Activation::Gelu).sum().backward();
    assert!(weight.grad(&gradients).is_none());
    assert_eq!(x.grad(&gradients).unwrap().dims(), [3, 4]);
}

/// A run that diverges must show it: no kernel may turn NaN or infinity into a number.
#[test]
fn what_is_not_finite_stays_so() {
    let device = Device::flex();
    let row = |values: [f32; 3]| Tensor::<2>::from_data(TensorData::new(values.to_vec(), [1, 3]), &device);
    let one = || Tensor::<1>::ones([3], &device);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let x = row([1.0, bad, 2.0]);
        let finite = |tensor: Tensor<2>| tensor.is_finite().all().into_scalar::<bool>();
        assert!(!finite(layer_norm(x.clone(), one(), one(), 1e-5)), "layer norm of {bad}");
        let identity = Tensor::<2>::eye(3, &device);
        if bad != f32::NEG_INFINITY {
            assert!(!finite(linear(x.clone(), identity, None, Activation::Gelu)), "GELU of {bad}");
        }
        let target = Tensor::<1, Int>::from_data(TensorData::new(vec![1i32], [1]), &device);
        assert!(!finite(cross_entropy(x, target).unsqueeze()), "cross-entropy of {bad}");
    }
}

#[test]
fn gelu_is_exact_in_its_tails() {
    // torch.nn.functional.gelu(torch.tensor(x, dtype=torch.float64)).tolist()
    let x = [-6.0f32, -4.0, -2.0, -1.0, -1e-3, 0.0, 1e-30, 0.5, 1.0, 3.0, 80.0, -80.0];
    let expected = [
        -5.919525966220842e-09,
        -0.00012668496733247186,
        -0.045500263896358395,
        -0.15865525393145707,
        -0.0004996010577860892,
        0.0,
        5e-31,
        0.34573123063700656,
        0.8413447460685429,
        2.99595030590511,
        80.0,
        -0.0,
    ];
    let device = Device::flex();
    let x = Tensor::<2>::from_data(TensorData::new(x.to_vec(), [12, 1]), &device);
    let found = linear(x, Tensor::eye(1, &device), None, Activation::Gelu);
    for (found, expected) in found.into_data().iter::<f64>().zip(expected) {
        assert!((found - expected).abs() <= 4e-6 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn adamw_is_the_plain_one() {
    let device = Device::flex();
    for seed in 0..8u64 {
        let mut numbers = Numbers::new(seed);
        let count = adamw::ROW * (1 + seed as usize * 40);
        let mut tensor =
            |scale: f32| Tensor::<1>::from_data(TensorData::new(numbers.vector(count, scale), [count]), &device);
        let (parameters, gradient) = (tensor(1.0), tensor(0.1));
        let flat = Flat { parameters, first_moment: tensor(0.1), second_moment: tensor(0.1).abs() };
        let update = Update {
            gradient_scale: if seed.is_multiple_of(2) { 1.0 } else { 0.3 },
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.01,
            step: 1 + seed,
        };
        let host = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<f64>>();
        let fused = adamw::step(flat.clone(), gradient.clone(), update);
        let before = host(flat.parameters.clone());
        let plain = adamw::plain(flat.clone(), gradient.clone(), update);
        for (found, expected) in [
            (fused.parameters, plain.parameters),
            (fused.first_moment, plain.first_moment),
            (fused.second_moment, plain.second_moment),
        ] {
            assert!(difference(&host(found), &host(expected)) < 1e-6);
        }
        assert_eq!(host(flat.parameters), before, "tensors that others hold are left alone");
        let (norm, plain) = (adamw::norm(&gradient), adamw::plain_norm(&gradient));
        assert!((norm - plain).abs() < 1e-5 * plain, "{norm} {plain}");
    }
}

/// dfdx#59: moments of what gets no gradient any more, such as rows of tokens that are rare, shrank until they were no normal
/// numbers, stayed there, and halved the speed of every later step.
#[test]
fn dfdx_59_no_denormal_remains_in_moments() {
    let device = Device::flex();
    let count = adamw::ROW;
    let tensor = |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [count]), &device);
    let host = |tensor: &Tensor<1>| tensor.to_data().iter::<f32>().collect::<Vec<f32>>();
    let mut numbers = Numbers::new(59);
    let once = numbers.vector(count, 1.0);
    let start = numbers.vector(count, 1.0);
    for (name, run) in [("kernel", adamw::step as fn(Flat, Tensor<1>, Update) -> Flat), ("plain", adamw::plain)] {
        // The last quarter goes on to get gradients, whose moments must stay what they are.
        let gradient = |step: u64| {
            let one = |(i, &g): (usize, &f32)| if step == 1 || i >= count / 4 * 3 { g } else { 0.0 };
            tensor(once.iter().enumerate().map(one).collect())
        };
        let zeros = Tensor::<1>::zeros([count], &device);
        let mut flat =
            Flat { parameters: tensor(start.clone()), first_moment: zeros.clone(), second_moment: zeros.clone() };
        let mut smallest = f32::INFINITY;
        for step in 1..=1200 {
            let update = Update {
                gradient_scale: 1.0,
                lr: 1e-3,
                beta1: 0.9,
                beta2: 0.9,
                epsilon: 1e-8,
                weight_decay: 0.01,
                step,
            };
            flat = run(flat, gradient(step), update);
            for moments in [&flat.first_moment, &flat.second_moment] {
                let moments = host(moments);
                assert!(moments.iter().all(|m| !m.is_subnormal()), "{name}, step {step}");
                let nonzero = moments.iter().map(|m| m.abs()).filter(|&m| m > 0.0);
                smallest = nonzero.fold(smallest, f32::min);
            }
        }
        let (first, second) = (host(&flat.first_moment), host(&flat.second_moment));
        assert!(first[..count / 4 * 3].iter().chain(&second[..count / 4 * 3]).all(|&m| m == 0.0), "{name}");
        assert!(smallest < 1e-37, "{name}: moments were kept as long as they are normal numbers, down to {smallest:e}");
        for (m, g) in first.iter().zip(&once).skip(count / 4 * 3) {
            assert!((m - g).abs() <= 1e-5 * g.abs(), "{name}: {m} {g}");
        }
    }
}

/// With an epsilon that is lost beside the root of a tiny second moment, that moment is kept: 0 in its place would make the
/// next change a hundred times as large.
#[test]
fn a_tiny_second_moment_is_kept_where_epsilon_is_smaller() {
    let device = Device::flex();
    let full = |x: f32| Tensor::<1>::full([adamw::ROW], x, &device);
    let update = Update {
        gradient_scale: 1.0,
        lr: 1e-3,
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-22,
        weight_decay: 0.0,
        step: 1_000_000,
    };
    for run in [adamw::step, adamw::plain] {
        let flat = Flat { parameters: full(0.0), first_moment: full(1e-20), second_moment: full(1e-38) };
        let after = run(flat, full(0.0), update);
        let change = after.parameters.into_data().iter::<f32>().next().unwrap().abs();
        assert!((0.5e-4..2e-4).contains(&change), "{change:e}"); // 0.9e-20 / 1e-19 · 1e-3
    }
}
