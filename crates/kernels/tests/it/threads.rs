//! The same bytes whatever the number of threads.

use std::process::Command;

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use headcount_kernels::{Activation, Attending, AttentionMask, attention, cross_entropy, layer_norm, linear};

use crate::compare::{Numbers, run};

/// A small model's worth of kernels, large enough to be shared among threads.
pub fn fingerprint() -> u64 {
    let (b, l, h, k, d, f) = (16usize, 40usize, 4usize, 16usize, 64usize, 1200usize);
    let mut numbers = Numbers::new(5);
    let inputs = [
        numbers.vector(b * l * d, 1.0),
        numbers.vector(d, 1.0),
        numbers.vector(d, 1.0),
        numbers.vector(d * 3 * d, 0.1),
        numbers.vector(d * f, 0.1),
        numbers.vector(f, 0.1),
    ];
    let mask = AttentionMask::causal().prepare([b, h, l, l], &Device::flex()).unwrap();
    let targets: Vec<i32> = (0..b * l).map(|_| (numbers.bits() % f as u64) as i32).collect();
    let weights = numbers.vector(b * l, 1.0);
    let model = |x: &[Tensor<1>]| {
        let y = layer_norm(x[0].clone().reshape([b * l, d]), x[1].clone(), x[2].clone(), 1e-5);
        let y = linear(y, x[3].clone().reshape([d, 3 * d]), None, Activation::None);
        let heads = |i: usize| y.clone().narrow(1, i * d, d).reshape([b, l, h, k]).swap_dims(1, 2);
        let attending = Attending { mask: Some(&mask), ..Default::default() };
        let y = attention(heads(0), heads(1), heads(2), attending).swap_dims(1, 2).reshape([b * l, d]);
        let logits = linear(y, x[4].clone().reshape([d, f]), Some(x[5].clone()), Activation::Gelu);
        let device = x[0].device();
        cross_entropy(logits, Tensor::<1, Int>::from_data(TensorData::new(targets.clone(), [b * l]), &device))
    };
    let results = run(&inputs, &weights, DType::F32, &model);
    results
        .iter()
        .flatten()
        .fold(14_695_981_039_346_656_037, |hash, x| (hash ^ x.to_bits()).wrapping_mul(1_099_511_628_211))
}

/// Prints the fingerprint where the test below asks for it.
#[test]
fn print_fingerprint() {
    if std::env::var("HEADCOUNT_PRINT").is_ok() {
        println!("fingerprint {}", fingerprint());
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let with = |threads: &str| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "threads::print_fingerprint", "--nocapture"])
            .env("RAYON_NUM_THREADS", threads)
            .env("HEADCOUNT_PRINT", "1")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.split("fingerprint ").nth(1));
        line.unwrap_or_else(|| panic!("no fingerprint in {text}")).to_string()
    };
    let one = with("1");
    for threads in ["2", "3", "7"] {
        assert_eq!(with(threads), one, "{threads} threads");
    }
}
