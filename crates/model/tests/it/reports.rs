//! Small inputs that attention or training code elsewhere got wrong, each named after the public report.

use architecture::{Dims, HostTensor, ModelConfig};
use burn::tensor::{Int, Tensor, TensorData};
use headcount_model::attention::{Attention, AttentionCall};
use headcount_model::dropout::{Dropout, DropoutSite};
use headcount_model::parameters::{self, flat_gradients, from_host, to_host};
use headcount_model::{Call, Decoder};
use kernels::{AttentionMask, cross_entropy};

use crate::support::{Backend, Worst, attention, scrambled, scrambled_values, tokens, values};

checks![
    pytorch_103749_a_row_with_every_key_forbidden_gives_zeros,
    pytorch_41508_such_a_row_has_finite_gradients,
    mingpt_75_scores_near_minus_20000_keep_the_future_at_exactly_0,
    keras_23038_a_token_changes_nothing_before_it,
    keras_23038_the_future_has_no_gradient,
    pytorch_101967_a_padded_key_acts_as_0_whatever_it_holds,
    pytorch_42929_maps_are_taken_before_dropout,
    pytorch_116349_no_scored_position_gives_no_nan,
];

const B: usize = 2;
const L: usize = 4;
const D: usize = 8;

fn config() -> ModelConfig {
    ModelConfig { d_model: D, heads: 2, ..Default::default() }
}

/// Row 1 of sample 0 may read nothing, and all of sample 1 is padding; the rest is causal.
fn mask_with_empty_rows() -> AttentionMask {
    let mut row = vec![false; B * L * L];
    row[L..2 * L].fill(true);
    let padding = AttentionMask::padding(B, L, [[false; L], [true; L]].concat()).unwrap();
    AttentionMask::causal().union(&AttentionMask::marked([B, 1, L, L], row).unwrap()).unwrap().union(&padding).unwrap()
}

/// https://github.com/pytorch/pytorch/issues/103749: `nn.MultiheadAttention` gives NaN.
fn pytorch_103749_a_row_with_every_key_forbidden_gives_zeros(backend: &Backend) {
    let mask = mask_with_empty_rows().prepare([B, 2, L, L], &backend.device).unwrap();
    let call = AttentionCall { mask: Some(&mask), maps: true, ..Default::default() };
    let x = scrambled::<3>([B, L, D], 1, backend);
    for bias in [false, true] {
        let module = attention(&ModelConfig { bias, ..config() }, backend);
        let result = module.forward(x.clone(), None, call);
        // The heads' context is zero, so the output projection gives its bias.
        let zero = to_host(&module).get("output.bias").map_or(vec![0.0; D], |bias| bias.values.clone());
        for (row, output) in values(result.output).chunks(D).enumerate() {
            let is_empty = row == 1 || row >= L;
            assert_eq!(output == zero, is_empty, "{}: row {row} is {output:?}", backend.name);
            assert!(output.iter().all(|value| value.is_finite()));
        }
        for (row, weights) in values(result.maps.unwrap()).chunks(L).enumerate() {
            let (sample, query) = (row / (2 * L), row % L);
            let expected = if sample == 1 || query == 1 { 0.0 } else { 1.0 };
            let sum: f32 = weights.iter().sum();
            assert!((sum - expected).abs() < 1e-6, "{}: map row {row} sums to {sum}", backend.name);
            assert!(expected == 1.0 || weights.iter().all(|&weight| weight == 0.0));
        }
    }
}

/// https://github.com/pytorch/pytorch/issues/41508
fn pytorch_41508_such_a_row_has_finite_gradients(backend: &Backend) {
    let mask = mask_with_empty_rows().prepare([B, 2, L, L], &backend.device).unwrap();
    let module = attention(&config(), backend);
    let x = scrambled::<3>([B, L, D], 2, backend).require_grad();
    let call = AttentionCall { mask: Some(&mask), ..Default::default() };
    let output = module.forward(x.clone(), None, call).output;
    let mut gradients = output.powi_scalar(2).sum().backward();
    let of_x = values(x.grad(&gradients).unwrap());
    assert!(of_x.iter().all(|g| g.is_finite()), "{}: {of_x:?}", backend.name);
    assert!(of_x[L * D..].iter().all(|&g| g == 0.0), "{}: nothing reads sample 1", backend.name);
    assert!(of_x[..L * D].iter().any(|&g| g.abs() > 1e-3));
    for (place, gradient) in parameters::of(&module).into_iter().zip(flat_gradients(&module, &mut gradients)) {
        let gradient = values(gradient);
        assert!(gradient.iter().all(|g| g.is_finite()), "{}: {} {gradient:?}", backend.name, place.path);
        assert!(gradient.iter().any(|&g| g.abs() > 1e-4), "{}: {} is reached", backend.name, place.path);
    }
}

/// https://github.com/karpathy/minGPT/issues/75: a fill of −1e4 lets the future win.
fn mingpt_75_scores_near_minus_20000_keep_the_future_at_exactly_0(backend: &Backend) {
    let module = attention(&ModelConfig { d_model: 1, heads: 1, bias: false, ..Default::default() }, backend);
    let weights = [("query.weight", 200.0), ("key.weight", -100.0), ("value.weight", 1.0), ("output.weight", 1.0)];
    let weights =
        weights.map(|(path, value)| (path.to_string(), HostTensor { shape: vec![1, 1], values: vec![value] }));
    let module = from_host(module, &weights.into()).unwrap();
    // Every score is −2e4 but those of the last key, which are +2e4: nobody but itself may read it.
    let x = Tensor::<3>::from_data([[[1.0], [1.0], [-1.0]]], &backend.device);
    let mask = AttentionMask::causal().prepare([1, 1, 3, 3], &backend.device).unwrap();
    let result = module.forward(x, None, AttentionCall { mask: Some(&mask), maps: true, ..Default::default() });
    assert_eq!(values(result.maps.unwrap())[..6], [1.0, 0.0, 0.0, 0.5, 0.5, 0.0], "{}", backend.name);
    assert_eq!(values(result.output)[..2], [1.0, 1.0], "{}", backend.name);
}

fn with_dropout() -> (ModelConfig, Dims, Dropout) {
    let config =
        ModelConfig { layers: 2, embedding_dropout: 0.1, attention_dropout: 0.2, residual_dropout: 0.2, ..config() };
    (config, Dims::of_tokens(7, 5, 6), Dropout { seed: 3, step: 5, micro_batch: 1 })
}

/// https://github.com/keras-team/keras/issues/23038
fn keras_23038_a_token_changes_nothing_before_it(backend: &Backend) {
    let (config, dims, dropout) = with_dropout();
    let model = Decoder::new(&config, dims, 0, &backend.device).unwrap();
    for (dropout, maps) in [(None, false), (None, true), (Some(&dropout), false), (Some(&dropout), true)] {
        let logits = |row: &[i32]| {
            let call = Call { dropout, maps, ..Default::default() };
            values(model.forward(tokens(&[row, &[1; 6]], backend), call).unwrap().logits)
        };
        let base = [3, 1, 4, 1, 5, 2];
        let before = logits(&base);
        for t in 0..6 {
            let mut changed = base;
            changed[t] = 6;
            let after = logits(&changed);
            let (o, end) = (dims.outputs, before.len());
            assert_eq!(before[..t * o], after[..t * o], "{}: token {t} leaks", backend.name);
            assert_ne!(before[t * o..6 * o], after[t * o..6 * o], "{}: token {t} is read", backend.name);
            assert_eq!(before[6 * o..end], after[6 * o..end], "{}: the other sample", backend.name);
        }
    }
}

/// The same promise seen from behind: what is trained at t can't reach inputs after t.
fn keras_23038_the_future_has_no_gradient(backend: &Backend) {
    let module = attention(&config(), backend);
    let mask = AttentionMask::causal().prepare([B, 2, L, L], &backend.device).unwrap();
    for t in 0..L {
        let x = scrambled::<3>([B, L, D], 7, backend).require_grad();
        let output = module.forward(x.clone(), None, AttentionCall { mask: Some(&mask), ..Default::default() }).output;
        let gradients = output.narrow(1, t, 1).powi_scalar(2).sum().backward();
        for (row, gradient) in values(x.grad(&gradients).unwrap()).chunks(D).enumerate() {
            let is_zero = gradient.iter().all(|&g| g == 0.0);
            assert_eq!(is_zero, row % L > t, "{}: gradient of output {t} at input row {row}", backend.name);
        }
    }
}

/// Output at the rows that are real, then the gradients of their loss by parameter and input.
fn outcome(
    module: &Attention,
    mask: &AttentionMask,
    queries: Vec<f32>,
    memory: Option<Vec<f32>>,
    real: &[i32],
    backend: &Backend,
) -> Vec<(String, Vec<f32>)> {
    let on_device = |values: Vec<f32>| {
        let length = values.len() / B / D;
        Tensor::<3>::from_data(TensorData::new(values, [B, length, D]), &backend.device).require_grad()
    };
    let (x, memory) = (on_device(queries), memory.map(on_device));
    let (lq, lk) = (x.dims()[1], memory.as_ref().unwrap_or(&x).dims()[1]);
    let mask = mask.prepare([B, 2, lq, lk], &backend.device).unwrap();
    let call = AttentionCall { mask: Some(&mask), ..Default::default() };
    let output = module.forward(x.clone(), memory.clone(), call).output;
    let real = Tensor::<1, Int>::from_data(TensorData::new(real.to_vec(), [real.len()]), &backend.device);
    let output = output.reshape([B * lq, D]).select(0, real);
    let mut gradients = output.clone().powi_scalar(2).sum().backward();
    let mut found = vec![("output".to_string(), values(output))];
    found.push(("gradient of x".to_string(), values(x.grad(&gradients).unwrap())));
    if let Some(memory) = memory {
        found.push(("gradient of memory".to_string(), values(memory.grad(&gradients).unwrap())));
    }
    let flat = flat_gradients(module, &mut gradients);
    found.extend(parameters::of(module).into_iter().zip(flat).map(|(place, gradient)| (place.path, values(gradient))));
    found
}

/// https://github.com/pytorch/pytorch/issues/101967: weight 0 times NaN is NaN.
fn pytorch_101967_a_padded_key_acts_as_0_whatever_it_holds(backend: &Backend) {
    let module = attention(&config(), backend);
    // Sample 0 ends with padding, sample 1 starts with it.
    let is_padding = [[false, false, false, true], [true, false, false, false]].concat();
    let real: Vec<i32> = (0..8).filter(|&row| !is_padding[row as usize]).collect();
    let padding = AttentionMask::padding(B, L, is_padding.clone()).unwrap();
    let with = |at_padding: f32| {
        let mut x = scrambled_values(B * L * D, 8);
        for (row, _) in is_padding.iter().enumerate().filter(|(_, padded)| **padded) {
            x[row * D..(row + 1) * D].fill(at_padding);
        }
        x
    };
    let queries = scrambled_values(B * 3 * D, 9);
    let all: Vec<i32> = (0..6).collect();
    for mask in [padding.clone(), padding.union(&AttentionMask::causal()).unwrap()] {
        let expected = outcome(&module, &mask, with(0.0), None, &real, backend);
        for held in [1e10, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut worst = Worst::new(backend.name, backend.tolerance);
            let found = outcome(&module, &mask, with(held), None, &real, backend);
            for ((what, found), (_, expected)) in found.iter().zip(&expected) {
                worst.compare_values(&format!("self-attention, padding holds {held}: {what}"), found, expected);
            }
        }
    }
    let expected = outcome(&module, &padding, queries.clone(), Some(with(0.0)), &all, backend);
    for held in [1e10, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut worst = Worst::new(backend.name, backend.tolerance);
        let found = outcome(&module, &padding, queries.clone(), Some(with(held)), &all, backend);
        for ((what, found), (_, expected)) in found.iter().zip(&expected) {
            worst.compare_values(&format!("cross-attention, padding holds {held}: {what}"), found, expected);
        }
    }
}

/// https://github.com/pytorch/pytorch/issues/42929
fn pytorch_42929_maps_are_taken_before_dropout(backend: &Backend) {
    let module = attention(&config(), backend);
    let x = scrambled::<3>([B, L, D], 10, backend);
    let mask = AttentionMask::causal().prepare([B, 2, L, L], &backend.device).unwrap();
    let dropout = Dropout { seed: 0, step: 0, micro_batch: 0 };
    let plain = AttentionCall { mask: Some(&mask), maps: true, ..Default::default() };
    let dropped = AttentionCall { dropout: Some(dropout.at(0, DropoutSite::Attention, 0.2)), ..plain };
    let (plain, dropped) = (module.forward(x.clone(), None, plain), module.forward(x, None, dropped));
    let maps = values(dropped.maps.unwrap());
    for row in maps.chunks(L) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{}: {row:?}", backend.name);
    }
    assert_eq!(maps, values(plain.maps.unwrap()), "{}", backend.name);
    assert_ne!(values(dropped.output), values(plain.output), "{}: dropout acts on the output", backend.name);
}

/// https://github.com/pytorch/pytorch/issues/116349: the mean over nothing is NaN. Here it is a batch of weight zero.
fn pytorch_116349_no_scored_position_gives_no_nan(backend: &Backend) {
    let (config, dims, _) = with_dropout();
    let model = Decoder::new(&config, dims, 0, &backend.device).unwrap();
    let none = Tensor::<1, Int>::from_data(TensorData::new(Vec::<i32>::new(), [0]), &backend.device);
    let call = Call { scored: Some(&none), ..Default::default() };
    let logits = model.forward(tokens(&[&[1, 2, 3]], backend), call).unwrap().logits;
    assert_eq!(logits.dims(), [0, dims.outputs]);
    let losses = cross_entropy(logits, none);
    assert_eq!(losses.dims(), [0]);
    assert_eq!(values(losses.clone()), [] as [f32; 0]);
    assert_eq!(values(losses.sum()), [0.0], "{}", backend.name);
}
