//! Each kernel beside the plain composition, forward alone and forward with backward:
//!
//! cargo bench --profile dev -p headcount-kernels -p trainer --bench kernels
//!
//! At the sizes of `configs/h8.toml`: 64 samples of 32 positions, d_model 64, 8 heads.

use burn::tensor::{Device, Int, Tensor, TensorData};
use divan::Bencher;
use headcount_kernels::adamw::{self, Flat, Update};
use headcount_kernels::{Activation, Attending, AttentionMask, attention, cross_entropy, in_pool, layer_norm, linear};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const B: usize = 64;
const L: usize = 32;
const D: usize = 64;
const H: usize = 8;
const F: usize = 4 * D;
const V: usize = 64;

fn main() {
    in_pool(divan::main);
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Kernel,
    Plain,
    KernelWithBackward,
    PlainWithBackward,
}

const WAYS: [Way; 4] = [Way::Kernel, Way::Plain, Way::KernelWithBackward, Way::PlainWithBackward];

impl Way {
    fn is_plain(self) -> bool {
        matches!(self, Self::Plain | Self::PlainWithBackward)
    }

    fn has_backward(self) -> bool {
        matches!(self, Self::KernelWithBackward | Self::PlainWithBackward)
    }

    fn device(self) -> Device {
        if self.has_backward() { Device::flex().autodiff() } else { Device::flex() }
    }

    /// An input of numbers between −1 and 1, tracked where there is a backward pass.
    fn input<const N: usize>(self, shape: [usize; N]) -> Tensor<N> {
        let count = shape.iter().product::<usize>();
        let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1000) as f32 / 500.0 - 1.0).collect();
        let tensor = Tensor::from_data(TensorData::new(values, shape), &self.device());
        if self.has_backward() { tensor.require_grad() } else { tensor }
    }

    fn measure<const N: usize>(self, bencher: Bencher, function: impl Fn() -> Tensor<N> + Sync) {
        bencher.bench(|| {
            let output = function();
            if self.has_backward() {
                divan::black_box(output.sum().backward());
            } else {
                divan::black_box(output);
            }
        });
    }
}

#[divan::bench(args = WAYS)]
fn norm(bencher: Bencher, way: Way) {
    let (x, gamma, beta) = (way.input([B * L, D]), way.input([D]), way.input([D]));
    way.measure(bencher, || {
        let (x, gamma, beta) = (x.clone(), gamma.clone(), beta.clone());
        if way.is_plain() { layer_norm::plain(x, gamma, beta, 1e-5) } else { layer_norm(x, gamma, beta, 1e-5) }
    });
}

#[divan::bench(args = WAYS)]
fn linear_with_gelu(bencher: Bencher, way: Way) {
    let (x, weight, bias) = (way.input([B * L, D]), way.input([D, F]), way.input([F]));
    way.measure(bencher, || {
        let (x, weight, bias) = (x.clone(), weight.clone(), Some(bias.clone()));
        let run = if way.is_plain() { linear::plain } else { linear };
        run(x, weight, bias, Activation::Gelu)
    });
}

#[divan::bench(args = WAYS)]
fn linear_alone(bencher: Bencher, way: Way) {
    let (x, weight, bias) = (way.input([B * L, F]), way.input([F, D]), way.input([D]));
    way.measure(bencher, || {
        let (x, weight, bias) = (x.clone(), weight.clone(), Some(bias.clone()));
        let run = if way.is_plain() { linear::plain } else { linear };
        run(x, weight, bias, Activation::None)
    });
}

#[divan::bench(args = WAYS)]
fn causal_attention(bencher: Bencher, way: Way) {
    let leaf = || way.input([B, L, H, D / H]);
    let (query, key, value) = (leaf(), leaf(), leaf());
    let mask = AttentionMask::causal().prepare([B, H, L, L], &way.device()).unwrap();
    way.measure(bencher, || {
        let attending = Attending { mask: Some(&mask), ..Default::default() };
        let heads = |leaf: &Tensor<4>| leaf.clone().swap_dims(1, 2);
        let (query, key, value) = (heads(&query), heads(&key), heads(&value));
        if way.is_plain() {
            attention::plain(query, key, value, attending).contexts
        } else {
            attention(query, key, value, attending)
        }
    });
}

#[divan::bench(args = WAYS)]
fn loss(bencher: Bencher, way: Way) {
    let logits = way.input([B * L, V]);
    let targets: Vec<i32> = (0..B * L).map(|i| (i % V) as i32).collect();
    let targets = Tensor::<1, Int>::from_data(TensorData::new(targets, [B * L]), &way.device());
    way.measure(bencher, || {
        let (logits, targets) = (logits.clone(), targets.clone());
        if way.is_plain() { cross_entropy::plain(logits, targets) } else { cross_entropy(logits, targets) }
    });
}

#[divan::bench(args = [Way::Kernel, Way::Plain])]
fn adamw_update(bencher: Bencher, way: Way) {
    let gradient: Tensor<1> = way.input([adamw::ROW * 256]);
    let update =
        Update { gradient_scale: 0.5, lr: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01, step: 1 };
    let flat = || Flat {
        parameters: way.input([adamw::ROW * 256]),
        first_moment: gradient.zeros_like(),
        second_moment: gradient.zeros_like(),
    };
    bencher.with_inputs(flat).bench_values(|flat| {
        let run = if way.is_plain() { adamw::plain } else { adamw::step };
        run(flat, gradient.clone(), update)
    });
}
