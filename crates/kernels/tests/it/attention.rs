//! Attention under every mask, with and without dropout.

use burn::tensor::{Bool, DType, Device, Tensor, TensorData};
use headcount_kernels::attention::plain_self_attention;
use headcount_kernels::{Attending, AttentionMask, Projection, attention, self_attention};
use proptest::prelude::*;

use crate::compare::{Numbers, agree_within, run, softmax_tolerance};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Masking {
    None,
    Causal,
    Padding,
    Random,
}

#[derive(Clone, Debug)]
struct Case {
    b: usize,
    g: usize,
    group: usize,
    lq: usize,
    lk: usize,
    k: usize,
    masking: Masking,
    dropout: bool,
    /// Of scores; 1/√K where None.
    factor: Option<f64>,
    /// Of queries.
    scale: f32,
    seed: u64,
}

fn check(case: Case) {
    let Case { b, g, group, lq, lk, k, masking, dropout, factor, scale, seed } = case;
    let h = g * group;
    let lk = if masking == Masking::Causal { lk.max(lq) } else { lk };
    let mut numbers = Numbers::new(seed);
    // In the layout of a projection's output, [B, L, heads, K]: heads are strided views.
    let inputs = [
        numbers.vector(b * lq * h * k, scale),
        numbers.vector(b * lk * g * k, 1.0),
        numbers.vector(b * lk * g * k, 1.0),
    ];
    let weights = numbers.vector(b * lq * h * k, 1.0);
    let device = Device::flex();
    let mut marks = |count: usize, share: f32| (0..count).map(|_| numbers.uniform() < share).collect::<Vec<bool>>();
    let mask = match masking {
        Masking::None => AttentionMask::none(),
        Masking::Causal => AttentionMask::causal(),
        Masking::Padding => AttentionMask::padding(b, lk, marks(b * lk, 0.4)).unwrap(),
        Masking::Random => AttentionMask::marked([b, h, lq, lk], marks(b * h * lq * lk, 0.5)).unwrap(),
    };
    let mask = mask.prepare([b, h, lq, lk], &device).unwrap();
    let dropped = TensorData::new(marks(b * h * lq * lk, 0.3), [b, h, lq, lk]);
    let dropped = Tensor::<4, Bool>::from_data(dropped, &device);
    let attending = Attending { scale: factor, mask: Some(&mask), dropout: dropout.then_some((&dropped, 0.3)) };
    let heads = |x: &Tensor<1>, l: usize, heads: usize| x.clone().reshape([b, l, heads, k]).swap_dims(1, 2);
    let merged = |x: Tensor<4>| x.swap_dims(1, 2).reshape([b * lq * h * k]);
    let fused =
        |x: &[Tensor<1>]| merged(attention(heads(&x[0], lq, h), heads(&x[1], lk, g), heads(&x[2], lk, g), attending));
    let plain = |x: &[Tensor<1>]| {
        merged(attention::plain(heads(&x[0], lq, h), heads(&x[1], lk, g), heads(&x[2], lk, g), attending).contexts)
    };
    // The largest sum of absolute products that a score is made of.
    let factor = factor.unwrap_or(1.0 / (k as f64).sqrt());
    let row = |values: &'_ [f32], heads: usize, l: usize, at: [usize; 3]| -> Vec<f64> {
        let [sample, head, i] = at;
        values[((sample * l + i) * heads + head) * k..][..k].iter().map(|&x| f64::from(x).abs()).collect()
    };
    let mut largest = 0.0f64;
    for at in 0..b * h * lq {
        let (sample, head, i) = (at / (h * lq), at / lq % h, at % lq);
        let query = row(&inputs[0], h, lq, [sample, head, i]);
        for j in 0..lk {
            let key = row(&inputs[1], g, lk, [sample, head / group, j]);
            largest = largest.max(query.iter().zip(&key).map(|(q, k)| q * k).sum::<f64>() * factor);
        }
    }
    let tolerance = softmax_tolerance(k, largest).max(1e-5);
    agree_within(&format!("{case:?}"), tolerance, &[], &inputs, &weights, &fused, &plain);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn attention_is_the_plain_one(
        (b, g, group) in (1usize..3, 1usize..4, 1usize..4),
        (lq, lk, k) in (1usize..40, 1usize..40, 1usize..20),
        masking in prop::sample::select(vec![Masking::None, Masking::Causal, Masking::Padding, Masking::Random]),
        dropout: bool,
        factor in prop::sample::select(vec![None, Some(1.0), Some(0.3)]),
        scale in prop::sample::select(vec![1e-40f32, 0.1, 1.0, 8.0, 80.0]),
        seed: u64,
    ) {
        check(Case { b, g, group, lq, lk, k, masking, dropout, factor, scale, seed });
    }
}

#[test]
fn long_and_wide_ones() {
    for (lq, lk, k, masking) in [
        (257, 257, 8, Masking::Causal),
        (128, 128, 32, Masking::Causal),
        (64, 64, 64, Masking::Causal),
        (1, 257, 16, Masking::Causal),
        (257, 1, 8, Masking::None),
        (200, 130, 5, Masking::Padding),
        (1, 1, 1, Masking::Causal),
    ] {
        check(Case { b: 2, g: 2, group: 1, lq, lk, k, masking, dropout: false, factor: None, scale: 1.0, seed: 7 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn self_attention_is_the_plain_one(
        (b, g, group) in (1usize..3, 1usize..4, 1usize..4),
        (l, k, d) in (1usize..40, 1usize..20, 1usize..24),
        biases: [bool; 3],
        is_causal: bool,
        seed: u64,
    ) {
        let (h, device) = (g * group, Device::flex());
        let mut numbers = Numbers::new(seed);
        let widths = [h * k, g * k, g * k];
        let mut inputs = vec![numbers.vector(b * l * d, 1.0)];
        for width in widths {
            inputs.extend([numbers.vector(d * width, 0.5), numbers.vector(width, 1.0)]);
        }
        let weights = numbers.vector(b * l * h * k, 1.0);
        let mask = if is_causal { AttentionMask::causal() } else { AttentionMask::none() };
        let mask = mask.prepare([b, h, l, l], &device).unwrap();
        let attending = Attending { mask: Some(&mask), ..Default::default() };
        let through = |inputs: &[Tensor<1>], is_plain: bool| {
            let projections = [0, 1, 2].map(|i| Projection {
                weight: inputs[1 + 2 * i].clone().reshape([d, widths[i]]),
                bias: biases[i].then(|| inputs[2 + 2 * i].clone()),
            });
            let run = if is_plain { plain_self_attention } else { self_attention };
            let contexts = run(inputs[0].clone().reshape([b, l, d]), projections, k, attending);
            contexts.swap_dims(1, 2).reshape([b * l * h * k])
        };
        // A bias's gradient is the sum of what each row's would be. Softmax does not see what is added to all keys, so that of the
        // key's bias cancels to nothing.
        let with_rows = |inputs: &[Tensor<1>]| {
            let (inputs, rows) = inputs.split_at(7);
            let [query, key, value] = [0, 1, 2].map(|i| {
                let weight = inputs[1 + 2 * i].clone().reshape([d, widths[i]]);
                let product = inputs[0].clone().reshape([b * l, d]).matmul(weight) + rows[i].clone().reshape([b * l, widths[i]]);
                let bias = inputs[2 + 2 * i].clone().reshape([1, widths[i]]);
                let projected = if biases[i] { product + bias } else { product };
                projected.reshape([b, l, widths[i] / k, k]).swap_dims(1, 2)
            });
            let contexts = attention::plain(query, key, value, attending).contexts;
            contexts.swap_dims(1, 2).reshape([b * l * h * k])
        };
        let rows = widths.map(|width| vec![0.0; b * l * width]);
        let with_zeros: Vec<Vec<f32>> = inputs.iter().chain(&rows).cloned().collect();
        let of_rows = run(&with_zeros, &weights, DType::F64, &with_rows);
        let mut summed = vec![0.0; 7];
        for (i, width) in widths.into_iter().enumerate() {
            let gradient = &of_rows[8 + i];
            let columns = (0..width).map(|column| gradient.iter().skip(column).step_by(width).map(|x| x.abs()).sum::<f64>());
            summed[2 + 2 * i] = columns.fold(0.0, f64::max);
        }
        agree_within(
            &format!("b {b}, g {g}, group {group}, l {l}, k {k}, d {d}, biases {biases:?}, causal {is_causal}"),
            1e-5,
            &summed,
            &inputs,
            &weights,
            &|inputs| through(inputs, false),
            &|inputs| through(inputs, true),
        );
    }
}

/// The factor of scores is applied once: queries that are as many times larger as it is smaller give the same bytes, where
/// both are powers of two.
#[test]
fn the_factor_of_scores_is_that_of_queries() {
    let device = Device::flex();
    let mut numbers = Numbers::new(9);
    let mut tensor = || Tensor::<4>::from_data(TensorData::new(numbers.vector(20 * 16, 1.0), [1, 1, 20, 16]), &device);
    let (query, key, value) = (tensor(), tensor(), tensor());
    let contexts = |query: Tensor<4>, scale| {
        let attending = Attending { scale, ..Default::default() };
        attention(query, key.clone(), value.clone(), attending).into_data().iter::<f32>().collect::<Vec<f32>>()
    };
    let unscaled = contexts(query.clone(), Some(1.0));
    assert_eq!(unscaled, contexts(query.clone() * 4.0, None), "1/√16 = 1/4");
    assert_eq!(unscaled, contexts(query.clone() * 8.0, Some(0.125)));
    assert_ne!(unscaled, contexts(query, None));
}

/// minGPT#75: allowed scores near −2e4 let nothing of the future through, whether the kernel knows the mask as causal or
/// reads marks, as it does of masks that are for each sample.
#[test]
fn allowed_scores_far_below_zero_keep_the_future_out() {
    let device = Device::flex();
    let (b, l, k) = (2, 20, 8);
    let tensor = |value: f32| Tensor::<4>::full([b, 1, l, k], value, &device);
    let values: Vec<f32> = (0..b * l * k).map(|i| (i / k % l) as f32).collect();
    let values = Tensor::<4>::from_data(TensorData::new(values, [b, 1, l, k]), &device);
    let no_padding = AttentionMask::padding(b, l, vec![false; b * l]).unwrap();
    for mask in [AttentionMask::causal(), AttentionMask::causal().union(&no_padding).unwrap()] {
        let mask = mask.prepare([b, 1, l, l], &device).unwrap();
        let attending = Attending { mask: Some(&mask), ..Default::default() };
        let contexts = attention(tensor(-100.0), tensor(70.0), values.clone(), attending);
        for (i, found) in contexts.into_data().iter::<f32>().enumerate() {
            let expected = (i / k % l) as f32 / 2.0; // the mean of 0..=i
            assert!((found - expected).abs() < 1e-4, "row {}: {found} instead of {expected}", i / k);
        }
    }
}

/// A mask made for other lengths is refused, by the kernel and by the plain composition: it would forbid something else.
#[test]
fn a_causal_mask_of_other_lengths_is_refused() {
    let device = Device::flex();
    let x = || Tensor::<4>::ones([1, 1, 6, 4], &device);
    let mask = AttentionMask::causal().prepare([1, 1, 5, 5], &device).unwrap();
    let attending = Attending { mask: Some(&mask), ..Default::default() };
    for run in [attention, |q, k, v, attending: Attending| attention::plain(q, k, v, attending).contexts] {
        let run = std::panic::AssertUnwindSafe(|| run(x(), x(), x(), attending));
        assert!(std::panic::catch_unwind(run).is_err());
    }
}

/// pytorch#103749 and #41508: a row with every key forbidden.
#[test]
fn a_row_that_may_read_nothing_is_zero_with_a_zero_gradient() {
    let device = Device::flex().autodiff();
    let mut numbers = Numbers::new(3);
    let mut tensor =
        || Tensor::<4>::from_data(TensorData::new(numbers.vector(3 * 4, 1.0), [1, 1, 3, 4]), &device).require_grad();
    let (query, key, value) = (tensor(), tensor(), tensor());
    let row = AttentionMask::marked([1, 1, 3, 1], vec![false, true, false]).unwrap();
    let row = row.prepare([1, 1, 3, 3], &Device::flex()).unwrap();
    let attending = Attending { mask: Some(&row), ..Default::default() };
    let contexts = attention(query.clone(), key.clone(), value.clone(), attending);
    let row: Vec<f32> = contexts.clone().inner().narrow(2, 1, 1).into_data().iter().collect();
    assert_eq!(row, [0.0; 4]);
    let gradients = contexts.sum().backward();
    for tensor in [&query, &key, &value] {
        assert!(tensor.grad(&gradients).unwrap().is_finite().all().into_scalar::<bool>());
    }
    let row: Vec<f32> = query.grad(&gradients).unwrap().narrow(2, 1, 1).into_data().iter().collect();
    assert_eq!(row, [0.0; 4]);
}

/// A NaN among queries, keys or values must show.
#[test]
fn what_is_not_finite_shows() {
    let device = Device::flex();
    for place in 0..3 {
        let tensor = |which: usize| {
            let mut values = vec![0.5f32; 20 * 8];
            if which == place {
                values[3 * 8] = f32::NAN;
            }
            Tensor::<4>::from_data(TensorData::new(values, [1, 1, 20, 8]), &device)
        };
        let contexts = attention(tensor(0), tensor(1), tensor(2), Attending::default());
        assert!(!contexts.is_finite().all().into_scalar::<bool>(), "input {place}");
    }
}
