//! An encoder-decoder against `encoder_decoder` in `scripts/attention_fixtures.py`, and what it promises of padding, order,
//! dropout and wrong inputs.

use std::collections::BTreeSet;

use architecture::{Architecture, Dims, Init, Merge, ModelConfig, Norm, Parts, Positions, SourceDims, cost};
use burn::tensor::{Device, Int, Tensor, TensorData};
use headcount_model::dropout::Dropout;
use headcount_model::initial::InitialWeights;
use headcount_model::parameters::{self, flat_gradients, flat_parameters, from_host, replace_parameters, to_host};
use headcount_model::{Call, CallError, Decoder, Source};
use kernels::{MaskError, cross_entropy};

use crate::support::{Backend, Fixture, Worst, corner, tokens, values};

checks![
    logits_loss_maps_and_gradients_agree_with_pytorch,
    what_stands_in_padding_changes_nothing,
    keras_23038_a_target_token_changes_nothing_before_it,
];

fn config() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::EncoderDecoder,
        d_model: 16,
        layers: 2,
        heads: 4,
        d_ff: Some(32),
        ..Default::default()
    }
}

const DIMS: Dims = Dims { source: Some(SourceDims { vocab: 9, length: 5 }), ..Dims::of_tokens(11, 7, 6) };

fn logits_loss_maps_and_gradients_agree_with_pytorch(backend: &Backend) {
    let fixture = Fixture::load("encoder_decoder.safetensors");
    let mut worst = Worst::new(backend.name, 1e-4);
    let ints = |name: &str| -> Vec<i32> { fixture.get(name).values.iter().map(|&value| value as i32).collect() };
    let table = |name: &str| {
        let shape: [usize; 2] = fixture.get(name).shape.clone().try_into().unwrap();
        Tensor::<2, Int>::from_data(TensorData::new(ints(name), shape), &backend.device)
    };
    let (tokens, source, padding) = (table("tokens"), table("source"), fixture.bools("source_padding"));
    let [b, l] = tokens.dims();
    let (scored, targets): (Vec<i32>, Vec<i32>) =
        ints("targets").into_iter().enumerate().filter(|(_, t)| *t >= 0).map(|(i, t)| (i as i32, t)).unzip();
    let int_list = |values: Vec<i32>| {
        let count = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [count]), &backend.device)
    };
    let (scored, targets) = (int_list(scored), int_list(targets));
    let read = Call { source: Some(Source { tokens: &source, padding: &padding }), ..Default::default() };

    for (variant, config) in [
        ("learned", config()),
        ("one_head", ModelConfig { heads: 1, ..config() }),
        ("rope", ModelConfig { positions: Positions::Rope, ..config() }),
        ("sinusoidal", ModelConfig { positions: Positions::Sinusoidal, ..config() }),
        ("tied", ModelConfig { tied: true, init: Init::Gpt2, ..config() }),
        ("multi_query", ModelConfig { kv_heads: Some(1), ..config() }),
        ("bare", ModelConfig { norm: Norm::None, residual: false, mlp: false, merge: Merge::Mean, ..config() }),
    ] {
        let outputs = if config.tied { DIMS.vocab } else { DIMS.outputs };
        let model = Decoder::new(&config, Dims { outputs, ..DIMS }, 0, &backend.device).unwrap();
        let tensors = parameters::of(&model).into_iter().map(|place| {
            let tensor = corner(fixture.get(&format!("parameters/{}", place.path)), &place.shape);
            (place.path, tensor)
        });
        let model = from_host(model.clone(), &tensors.collect()).unwrap();

        let all = model.forward(tokens.clone(), Call { maps: true, ..read }).unwrap();
        let logits = all.logits.reshape([b, l, outputs]);
        worst.compare(&format!("{variant}/logits"), logits, fixture.get(&format!("{variant}/logits")));
        for (what, maps) in [("encoder_maps", all.encoder_maps), ("maps", all.maps), ("cross_maps", all.cross_maps)] {
            let what = format!("{variant}/{what}");
            worst.compare(&what, Tensor::stack::<5>(maps, 0), fixture.get(&what));
        }

        let logits = model.forward(tokens.clone(), Call { scored: Some(&scored), ..read }).unwrap().logits;
        let loss = cross_entropy(logits, targets.clone()).mean();
        worst.compare(&format!("{variant}/loss"), loss.clone(), fixture.get(&format!("{variant}/loss")));

        worst.compare_gradients(variant, &model, loss, &fixture);
    }
}

const PADDING: [bool; 10] = [false, false, false, true, true, false, false, false, false, false];

/// Logits, then every gradient of their squares.
fn outcome(model: &Decoder, source: &[&[i32]], padding: &[bool], dropout: bool, backend: &Backend) -> Vec<Vec<f32>> {
    let pass = Dropout { seed: 3, step: 5, micro_batch: 1 };
    let source = tokens(source, backend);
    let source = Some(Source { tokens: &source, padding });
    let call = Call { source, dropout: dropout.then_some(&pass), ..Default::default() };
    let logits = model.forward(tokens(&[&[3, 1, 4, 1, 5, 2], &[2; 6]], backend), call).unwrap().logits;
    let mut gradients = logits.clone().powi_scalar(2).sum().backward();
    let gradients = flat_gradients(model, &mut gradients);
    std::iter::once(values(logits.flatten::<1>(0, 1))).chain(gradients.into_iter().map(values)).collect()
}

fn with_dropout() -> ModelConfig {
    ModelConfig { embedding_dropout: 0.1, attention_dropout: 0.2, residual_dropout: 0.2, ..config() }
}

/// huggingface/trl#6357: a padded source position is known as such by its place; the token there, be it one that is real
/// elsewhere, reaches nothing.
fn what_stands_in_padding_changes_nothing(backend: &Backend) {
    let model = Decoder::new(&with_dropout(), DIMS, 0, &backend.device).unwrap();
    for dropout in [false, true] {
        let with = |first: i32, second: i32| {
            outcome(&model, &[&[1, 2, 0, first, second], &[5, 6, 7, 8, 0]], &PADDING, dropout, backend)
        };
        let expected = with(0, 0);
        for (first, second) in [(1, 2), (8, 8), (0, 5)] {
            let found = with(first, second);
            for (found, expected) in found.iter().zip(&expected) {
                Worst::new(backend.name, 1e-6).compare_values("padding", found, expected);
            }
        }
        // The same token where it is real is read: logits change in its sample and nowhere else.
        let read = outcome(&model, &[&[1, 2, 3, 0, 0], &[5, 6, 7, 8, 0]], &PADDING, dropout, backend);
        let half = expected[0].len() / 2;
        assert_ne!(read[0][..half], expected[0][..half], "{}", backend.name);
        assert_eq!(read[0][half..], expected[0][half..], "{}", backend.name);
    }
    // A shorter source without padding gives what the longer one with padding gives.
    let padded = outcome(
        &model,
        &[&[1, 2, 3, 4, 4], &[5, 6, 7, 8, 8]],
        &[&PADDING[..5], &PADDING[..5]].concat(),
        false,
        backend,
    );
    let short = outcome(&model, &[&[1, 2, 3], &[5, 6, 7]], &[false; 6], false, backend);
    for (short, padded) in short.iter().zip(&padded) {
        Worst::new(backend.name, 1e-4).compare_values("short source", short, padded);
    }
}

/// https://github.com/keras-team/keras/issues/23038
fn keras_23038_a_target_token_changes_nothing_before_it(backend: &Backend) {
    let model = Decoder::new(&with_dropout(), DIMS, 0, &backend.device).unwrap();
    let pass = Dropout { seed: 3, step: 5, micro_batch: 1 };
    let source = tokens(&[&[1, 2, 3, 0, 0], &[5, 6, 7, 8, 0]], backend);
    for (dropout, maps) in [(None, false), (None, true), (Some(&pass), false), (Some(&pass), true)] {
        let logits = |row: &[i32]| {
            let source = Some(Source { tokens: &source, padding: &PADDING });
            let call = Call { source, dropout, maps, ..Default::default() };
            values(model.forward(tokens(&[row, &[1; 6]], backend), call).unwrap().logits)
        };
        let base = [3, 1, 4, 1, 5, 2];
        let before = logits(&base);
        for t in 0..6 {
            let mut changed = base;
            changed[t] = 6;
            let after = logits(&changed);
            let (o, end) = (DIMS.outputs, before.len());
            assert_eq!(before[..t * o], after[..t * o], "{}: token {t} leaks", backend.name);
            assert_ne!(before[t * o..6 * o], after[t * o..6 * o], "{}: token {t} is read", backend.name);
            assert_eq!(before[6 * o..end], after[6 * o..end], "{}: the other sample", backend.name);
        }
    }
}

/// The decoder's own paths are those of a decoder alone, with the same initial values; the encoder and the cross-attention
/// come beside them.
#[test]
fn places_are_the_documented_ones() {
    let device = Device::flex();
    let alone_config = ModelConfig { architecture: Architecture::Decoder, ..config() };
    let alone = to_host(&Decoder::new(&alone_config, Dims { source: None, ..DIMS }, 5, &device).unwrap());
    let both = to_host(&Decoder::new(&config(), DIMS, 5, &device).unwrap());
    let mut expected: BTreeSet<String> = alone.keys().cloned().collect();
    assert!(alone.iter().all(|(path, tensor)| &both[path] == tensor));
    expected.extend(alone.keys().filter(|path| !path.starts_with("logits")).map(|path| format!("encoder.{path}")));
    for (part, as_in) in [("cross_attention", "attention"), ("norm_cross", "norm1")] {
        let paths = alone.keys().filter(|path| path.contains(&format!(".{as_in}.")));
        expected.extend(paths.map(|path| path.replace(&format!(".{as_in}."), &format!(".{part}."))));
    }
    assert_eq!(both.keys().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(both["encoder.token.weight"].shape, [9, 16]);
    assert_eq!(both["encoder.position.weight"].shape, [5, 16]);

    // Each is drawn under the very path by which it is saved, so no two are alike.
    let (config, paths) = (config(), ["encoder.blocks.1.attention.query", "blocks.0.cross_attention.value"]);
    let weights = InitialWeights::new(config.init, config.layers, 5, &device);
    for path in paths {
        let drawn = values(weights.linear(path, 16, 16, true).weight.val());
        assert_eq!(both[&format!("{path}.weight")].values, drawn);
    }
    let token = values(weights.embedding("encoder.token", 9, 16).val());
    assert_eq!(both["encoder.token.weight"].values, token);
}

/// Counted by hand: B=2, L=6, Ls=5, D=4, F=16, one layer, 3 scored positions, 7 outputs.
#[test]
fn flops_are_counted_by_part() {
    let config = ModelConfig { d_model: 4, layers: 1, heads: 2, d_ff: None, ..config() };
    let expected = Parts::from_iter([
        ("encoder projections", 4 * 2 * 10 * 4 * 4),
        ("encoder scores", 2 * 2 * 5 * 5 * 4), // heads × K = 4
        ("encoder contexts", 2 * 2 * 5 * 5 * 4),
        ("encoder mlp", 2 * 2 * 10 * 4 * 16),
        ("cross projections", 2 * 2 * 12 * 4 * 4 + 2 * 2 * 10 * 4 * 4), // query and output, key and value
        ("cross scores", 2 * 2 * 6 * 5 * 4),
        ("cross contexts", 2 * 2 * 6 * 5 * 4),
        ("attention projections", 4 * 2 * 12 * 4 * 4),
        ("attention scores", 2 * 2 * 6 * 6 * 4),
        ("attention contexts", 2 * 2 * 6 * 6 * 4),
        ("mlp", 2 * 2 * 12 * 4 * 16),
        ("logits", 2 * 3 * 4 * 7),
    ]);
    assert_eq!(cost::forward_flops(&config, DIMS, 2, 3), expected);
    let parameters = cost::parameters(&config, DIMS);
    let built: usize = parameters::of(&Decoder::new(&config, DIMS, 0, &Device::flex()).unwrap())
        .iter()
        .map(|place| place.count())
        .sum();
    assert_eq!(parameters.total(), built as u64);
    for heads in [1, 4] {
        let other = ModelConfig { heads, ..config.clone() };
        assert_eq!(cost::parameters(&other, DIMS), parameters);
        assert_eq!(cost::forward_flops(&other, DIMS, 2, 3), expected);
    }
}

#[test]
fn a_source_that_does_not_fit_is_refused() {
    let device = Device::flex();
    let model = Decoder::new(&config(), DIMS, 0, &device).unwrap();
    let inputs = Tensor::<2, Int>::zeros([2, 6], &device);
    let refusal = |model: &Decoder, shape: [usize; 2], padding: &[bool]| {
        let source = Tensor::<2, Int>::zeros(shape, &device);
        let source = Some(Source { tokens: &source, padding });
        model.forward(inputs.clone(), Call { source, ..Default::default() }).err()
    };
    assert_eq!(refusal(&model, [2, 5], &PADDING), None);
    assert_eq!(refusal(&model, [3, 5], &[false; 15]), Some(CallError::SourceBatch { sources: 3, batch: 2 }));
    assert_eq!(refusal(&model, [2, 6], &[false; 12]), Some(CallError::SourceTooLong { length: 6, most: 5 }));
    let expected = MaskError::WrongCount { shape: [2, 1, 1, 5], expected: 10, given: 9 };
    assert_eq!(refusal(&model, [2, 5], &PADDING[..9]), Some(CallError::Padding(expected)));
    assert_eq!(model.forward(inputs.clone(), Call::default()).err(), Some(CallError::NoSource));

    let alone = ModelConfig { architecture: Architecture::Decoder, ..config() };
    let alone = Decoder::new(&alone, Dims { source: None, ..DIMS }, 0, &device).unwrap();
    assert_eq!(refusal(&alone, [2, 5], &PADDING), Some(CallError::UnreadSource));
}

/// Numbers below `most` that look random.
fn numbers(count: usize, most: u64, state: &mut u64) -> Vec<i32> {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) % most) as i32
    };
    (0..count).map(|_| next()).collect()
}

/// Sources of 2 to 5 tokens, backwards: only an encoder that is read where it is real can tell them. Plain Adam.
#[test]
fn it_learns_to_reverse() {
    let (b, longest, symbols) = (32, 5, 4);
    let device = Device::flex().autodiff();
    let dims = Dims {
        vocab: symbols + 1,
        outputs: symbols,
        length: longest,
        source: Some(SourceDims { vocab: symbols, length: longest }),
        ..Dims::default()
    };
    let config = ModelConfig { d_model: 32, layers: 1, heads: 4, ..config() };
    let mut model = Decoder::new(&config, dims, 0, &device).unwrap();
    let mut moments: Vec<[Tensor<1>; 2]> = vec![];
    let mut state = 1;
    let mut losses = vec![];
    for step in 1..=400 {
        let (mut inputs, mut sources, mut padding, mut scored, mut targets) = (vec![], vec![], vec![], vec![], vec![]);
        for sample in 0..b {
            let real = 2 + numbers(1, longest as u64 - 1, &mut state)[0] as usize;
            let source = numbers(longest, symbols as u64, &mut state); // padding looks like the rest
            let target: Vec<i32> = source[..real].iter().rev().copied().collect();
            inputs.push(symbols as i32);
            inputs.extend((1..longest).map(|t| if t < real { target[t - 1] } else { 0 }));
            scored.extend((0..real).map(|t| (sample * longest + t) as i32));
            padding.extend((0..longest).map(|t| t >= real));
            sources.extend(source);
            targets.extend(target);
        }
        let table = |values: Vec<i32>| Tensor::<2, Int>::from_data(TensorData::new(values, [b, longest]), &device);
        let list = |values: Vec<i32>| {
            let count = values.len();
            Tensor::<1, Int>::from_data(TensorData::new(values, [count]), &device)
        };
        let (sources, scored) = (table(sources), list(scored));
        let source = Some(Source { tokens: &sources, padding: &padding });
        let call = Call { scored: Some(&scored), source, ..Default::default() };
        let loss = cross_entropy(model.forward(table(inputs), call).unwrap().logits, list(targets)).mean();
        losses.push(values(loss.clone().inner())[0]);

        let mut gradients = loss.backward();
        let gradients = flat_gradients(&model, &mut gradients);
        if moments.is_empty() {
            moments = gradients.iter().map(|gradient| [gradient.zeros_like(), gradient.zeros_like()]).collect();
        }
        let parameters = flat_parameters(&model).into_iter().zip(gradients).zip(&mut moments);
        let stepped = parameters.map(|((parameter, gradient), [first, second])| {
            *first = first.clone() * 0.9 + gradient.clone() * 0.1;
            *second = second.clone() * 0.99 + gradient.powi_scalar(2) * 0.01;
            let (mean, square) = (1.0 - 0.9f64.powi(step), 1.0 - 0.99f64.powi(step));
            parameter - first.clone() / mean / ((second.clone() / square).sqrt() + 1e-8) * 3e-3
        });
        model = replace_parameters(model, stepped.collect());
    }
    let last = losses[losses.len() - 20..].iter().sum::<f32>() / 20.0;
    let chance = (symbols as f32).ln();
    assert!((losses[0] - chance).abs() < 0.5, "it begins near chance: {}", losses[0]);
    assert!(last < 0.1 * chance, "the loss stays at {last}, and chance is {chance}");
}
