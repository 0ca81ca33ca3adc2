//! A whole decoder against `decoder` in `scripts/attention_fixtures.py`: plain PyTorch, written from the documented
//! names and shapes of the parameters.

use architecture::{Dims, Init, Merge, ModelConfig, Norm, Positions};
use burn::tensor::{Device, Int, Tensor, TensorData};
use headcount_model::dropout::{Dropout, DropoutSite};
use headcount_model::parameters::{self, from_host, to_host};
use headcount_model::{Call, CallError, Decoder, Gating};
use kernels::{MaskError, cross_entropy};

use crate::support::{Backend, Fixture, Worst, corner, values};

checks![logits_loss_maps_and_gradients_agree_with_pytorch, dropout_acts_at_every_place_of_every_layer];

fn variants() -> Vec<(&'static str, ModelConfig)> {
    let base = || ModelConfig { d_model: 16, layers: 2, heads: 4, d_ff: Some(32), ..Default::default() };
    vec![
        ("learned", base()),
        ("one_head", ModelConfig { heads: 1, ..base() }),
        ("rope", ModelConfig { positions: Positions::Rope, ..base() }),
        ("sinusoidal", ModelConfig { positions: Positions::Sinusoidal, ..base() }),
        ("tied", ModelConfig { tied: true, init: Init::Gpt2, ..base() }),
        ("multi_query", ModelConfig { kv_heads: Some(1), ..base() }),
        ("encoder", ModelConfig { causal: false, positions: Positions::None, ..base() }),
        ("key_bias", ModelConfig { key_bias: true, ..base() }),
        ("bare", ModelConfig { norm: Norm::None, residual: false, mlp: false, merge: Merge::Mean, ..base() }),
    ]
}

fn logits_loss_maps_and_gradients_agree_with_pytorch(backend: &Backend) {
    let fixture = Fixture::load("decoder.safetensors");
    let mut worst = Worst::new(backend.name, 1e-4);
    let ints = |name: &str| -> Vec<i32> { fixture.get(name).values.iter().map(|&value| value as i32).collect() };
    let [b, l] = fixture.get("tokens").shape[..] else { panic!() };
    let tokens = Tensor::<2, Int>::from_data(TensorData::new(ints("tokens"), [b, l]), &backend.device);
    let padding = fixture.bools("padding");
    let (scored, targets): (Vec<i32>, Vec<i32>) =
        ints("targets").into_iter().enumerate().filter(|(_, t)| *t >= 0).map(|(i, t)| (i as i32, t)).unzip();
    let int_list = |values: Vec<i32>| {
        let count = values.len();
        Tensor::<1, Int>::from_data(TensorData::new(values, [count]), &backend.device)
    };
    let (scored, targets) = (int_list(scored), int_list(targets));

    for (variant, config) in variants() {
        let outputs = if config.tied { 11 } else { 7 };
        let model = Decoder::new(&config, Dims::of_tokens(11, outputs, l), 0, &backend.device).unwrap();
        let tensors = parameters::of(&model).into_iter().map(|place| {
            let tensor = corner(fixture.get(&format!("parameters/{}", place.path)), &place.shape);
            (place.path, tensor)
        });
        let model = from_host(model.clone(), &tensors.collect()).unwrap();

        let call = Call { padding: Some(&padding), maps: true, ..Default::default() };
        let all = model.forward(tokens.clone(), call).unwrap();
        let logits = all.logits.reshape([b, l, outputs]);
        worst.compare(&format!("{variant}/logits"), logits, fixture.get(&format!("{variant}/logits")));
        let maps = Tensor::stack::<5>(all.maps, 0);
        worst.compare(&format!("{variant}/maps"), maps, fixture.get(&format!("{variant}/maps")));

        let call = Call { scored: Some(&scored), padding: Some(&padding), ..Default::default() };
        let logits = model.forward(tokens.clone(), call).unwrap().logits;
        let loss = cross_entropy(logits, targets.clone()).mean();
        worst.compare(&format!("{variant}/loss"), loss.clone(), fixture.get(&format!("{variant}/loss")));

        worst.compare_gradients(variant, &model, loss, &fixture);
    }
}

/// A model whose sublayers give ones, so that its logits are the sum of what its dropouts let through.
fn dropout_acts_at_every_place_of_every_layer(backend: &Backend) {
    let (b, l, d, h) = (2, 4, 8, 2);
    let pass = Dropout { seed: 1, step: 2, micro_batch: 3 };
    let logits = |config: ModelConfig, ones: &[&str], identities: &[&str]| {
        let config = ModelConfig {
            d_model: d,
            layers: 2,
            heads: h,
            causal: false,
            positions: Positions::None,
            norm: Norm::None,
            ..config
        };
        let model = Decoder::new(&config, Dims::of_tokens(3, d, l), 0, &backend.device).unwrap();
        let mut tensors = to_host(&model);
        for (path, tensor) in &mut tensors {
            let is_one = ones.iter().any(|end| path.ends_with(end));
            tensor.values.fill(if is_one { 1.0 } else { 0.0 });
            if identities.iter().any(|end| path.ends_with(end)) {
                (0..d).for_each(|i| tensor.values[i * d + i] = 1.0);
            }
        }
        let model = from_host(model, &tensors).unwrap();
        let call = Call { dropout: Some(&pass), ..Default::default() };
        values(model.forward(Tensor::<2, Int>::zeros([b, l], &backend.device), call).unwrap().logits)
    };

    // Embedding, both attentions and both MLPs give ones.
    let config = ModelConfig { embedding_dropout: 0.5, residual_dropout: 0.75, ..Default::default() };
    let got = logits(config, &["token.weight", "output.bias", "down.bias"], &["logits.weight"]);
    let ones = || Tensor::<3>::ones([b, l, d], &backend.device);
    let mut expected = pass.at(0, DropoutSite::Embedding, 0.5).apply(ones());
    for layer in 0..2 {
        expected = expected + pass.at(layer, DropoutSite::AttentionOutput, 0.75).apply(ones());
        expected = expected + pass.at(layer, DropoutSite::MlpOutput, 0.75).apply(ones());
    }
    assert_eq!(got, values(expected), "{}", backend.name);

    // Every query reads all four keys alike, and every value is one.
    let config = ModelConfig { attention_dropout: 0.5, ..Default::default() };
    let got = logits(config, &["value.bias"], &["attention.output.weight", "logits.weight"]);
    let quarters = || Tensor::<4>::full([b, h, l, l], 0.25, &backend.device);
    let kept = |layer| pass.at(layer, DropoutSite::Attention, 0.5).apply(quarters()).sum_dim(3); // [B, H, L, 1]
    let expected = (kept(0) + kept(1)).expand([b, h, l, d / h]).swap_dims(1, 2).reshape([b, l, d]);
    assert_eq!(got, values(expected), "{}", backend.name);
}

fn refusal(config: ModelConfig, length: usize, call: Call) -> Option<CallError> {
    let device = Device::flex();
    let model = Decoder::new(&config, Dims::of_tokens(11, 7, 6), 0, &device).unwrap();
    model.forward(Tensor::<2, Int>::zeros([2, length], &device), call).err()
}

#[test]
fn an_input_longer_than_the_learned_positions_names_both_numbers() {
    let base = || ModelConfig { d_model: 16, heads: 4, ..Default::default() };
    let error = refusal(base(), 9, Call::default()).unwrap();
    assert_eq!(error, CallError::TooLong { length: 9, most: 6 });
    assert_eq!(error.to_string(), "an input of 9 tokens is longer than the 6 learned positions of the model");
    assert_eq!(refusal(base(), 6, Call::default()), None);
    assert_eq!(refusal(base(), 1, Call::default()), None);
    for &positions in Positions::ALL {
        let is_limited = positions.trained(6, 16).is_some();
        let error = refusal(ModelConfig { positions, ..base() }, 9, Call::default());
        assert_eq!(error.is_some(), is_limited, "{}", positions.name());
    }
}

#[test]
fn gates_and_padding_of_another_shape_are_refused() {
    let base = || ModelConfig { d_model: 16, heads: 4, layers: 2, ..Default::default() };
    let (one, each) = ([1, 4], [2, 4]); // the batch is of 2 samples
    for given in [vec![one], vec![one; 3], vec![one, [1, 3]], vec![[1, 1]; 2], vec![[3, 4]; 2], vec![each, [4, 2]]] {
        let gates: Vec<_> = given.iter().map(|&shape| Tensor::<2>::ones(shape, &Device::flex())).collect();
        let gating = Gating { gates: Some(&gates), ..Default::default() };
        let call = Call { decoder: gating, ..Default::default() };
        let error = CallError::Gates { stack: "decoder", given: given.clone(), layers: 2, heads: 4, batch: 2 };
        assert_eq!(refusal(base(), 6, call), Some(error));
        let error = CallError::Gates { stack: "encoder", given, layers: 0, heads: 4, batch: 2 };
        assert_eq!(refusal(base(), 6, Call { encoder: gating, ..Default::default() }), Some(error));
    }
    let gates = [one, each].map(|shape| Tensor::<2>::ones(shape, &Device::flex()));
    let open = Gating { gates: Some(&gates), ..Default::default() };
    assert_eq!(refusal(base(), 6, Call { decoder: open, ..Default::default() }), None);
    let expected = [4, 6, 4];
    for given in [vec![expected], vec![expected, [4, 5, 4]], vec![[1, 6, 4]; 2], vec![[4, 6, 16]; 2]] {
        let replacements: Vec<_> = given.iter().map(|&shape| Tensor::<3>::ones(shape, &Device::flex())).collect();
        let gating = Gating { replacements: Some(&replacements), ..open };
        let error = CallError::Replacements { stack: "decoder", given, layers: 2, expected };
        assert_eq!(refusal(base(), 6, Call { decoder: gating, ..Default::default() }), Some(error));
    }
    let padding = [false; 11];
    let call = Call { padding: Some(&padding), ..Default::default() };
    let expected = MaskError::WrongCount { shape: [2, 1, 1, 6], expected: 12, given: 11 };
    assert_eq!(refusal(base(), 6, call), Some(CallError::Padding(expected)));
}
