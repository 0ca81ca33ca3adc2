//! Parameters by path: documented names, initial values, counts, cost, dropout.

use std::collections::BTreeMap;

use architecture::{
    Architecture, Dims, HostTensor, Init, Initial, Merge, ModelConfig, ModelError, Norm, Parameter, Parts, Positions,
    SourceDims, cost,
};
use burn::tensor::{Device, Int, Tensor};
use headcount_model::dropout::{Dropout, DropoutSite};
use headcount_model::initial::InitialWeights;
use headcount_model::parameters::{
    self, LoadError, flat_gradients, flat_parameters, from_host, replace_parameters, to_host,
};
use headcount_model::{Call, Decoder, Source};
use proptest::prelude::*;

use crate::support::{Backend, tokens, values};

checks![initial_tensors_are_the_same_on_every_backend, weights_survive_the_host, dropout_is_the_same_on_every_backend,];

const DIMS: Dims = Dims::of_tokens(11, 7, 6);

fn config() -> ModelConfig {
    ModelConfig { d_model: 16, layers: 2, heads: 4, ..Default::default() }
}

fn decoder(config: &ModelConfig, seed: u64) -> Decoder {
    Decoder::new(config, DIMS, seed, &Device::flex()).unwrap()
}

#[test]
fn paths_are_the_documented_ones() {
    let config = ModelConfig { kv_heads: Some(2), key_bias: true, ..config() };
    let found: BTreeMap<_, _> = parameters::of(&decoder(&config, 0)).into_iter().map(|p| (p.path, p.shape)).collect();
    let mut expected = BTreeMap::from([
        ("token.weight".to_string(), vec![11, 16]),
        ("position.weight".to_string(), vec![6, 16]),
        ("norm.gamma".to_string(), vec![16]),
        ("norm.beta".to_string(), vec![16]),
        ("logits.weight".to_string(), vec![16, 7]),
        ("logits.bias".to_string(), vec![7]),
    ]);
    for layer in 0..2 {
        for (name, shape) in [
            ("norm1.gamma", vec![16]),
            ("norm1.beta", vec![16]),
            ("norm2.gamma", vec![16]),
            ("norm2.beta", vec![16]),
            ("attention.query.weight", vec![16, 16]),
            ("attention.query.bias", vec![16]),
            ("attention.key.weight", vec![16, 8]),
            ("attention.key.bias", vec![8]),
            ("attention.value.weight", vec![16, 8]),
            ("attention.value.bias", vec![8]),
            ("attention.output.weight", vec![16, 16]),
            ("attention.output.bias", vec![16]),
            ("mlp.up.weight", vec![16, 64]),
            ("mlp.up.bias", vec![64]),
            ("mlp.down.weight", vec![64, 16]),
            ("mlp.down.bias", vec![16]),
        ] {
            expected.insert(format!("blocks.{layer}.{name}"), shape);
        }
    }
    assert_eq!(found, expected);
}

/// Each tensor is drawn under the very path by which it is saved.
#[test]
fn weights_are_drawn_under_the_path_they_have() {
    let config = ModelConfig { key_bias: true, ..config() };
    let device = Device::flex();
    let weights = InitialWeights::new(config.init, config.layers, 5, &device);
    let mut drawn = 0;
    for (path, tensor) in to_host(&decoder(&config, 5)) {
        let (base, part) = path.rsplit_once('.').unwrap();
        let expected = match part {
            "gamma" => vec![1.0; 16],
            "beta" => vec![0.0; 16],
            "weight" if base == "token" || base == "position" => {
                values(weights.embedding(base, tensor.shape[0], tensor.shape[1]).val())
            }
            "weight" => values(weights.linear(base, tensor.shape[0], tensor.shape[1], true).weight.val()),
            "bias" => {
                let fan_in = if base.ends_with("mlp.down") { 64 } else { 16 };
                values(weights.linear(base, fan_in, tensor.shape[0], true).bias.unwrap().val())
            }
            other => panic!("{other}"),
        };
        assert_eq!(tensor.values, expected, "{path}");
        drawn += 1;
    }
    assert_eq!(drawn, 2 * 16 + 6);
}

/// Each tensor holds what it is described to be drawn from: a bound that is reached, a standard deviation, a constant.
#[test]
fn weights_are_drawn_from_what_is_described() {
    for init in [Init::Torch, Init::Gpt2] {
        let config = ModelConfig { init, key_bias: true, ..config() };
        let drawn = to_host(&decoder(&config, 5));
        for Parameter { path, initial, .. } in architecture::parameters(&config, DIMS) {
            let values = drawn[&path].values.iter().map(|&value| f64::from(value));
            let (largest, n) = (values.clone().map(f64::abs).fold(0.0, f64::max), values.len() as f64);
            let deviation = (values.clone().map(|value| value * value).sum::<f64>() / n).sqrt();
            match initial {
                Initial::Uniform { bound } => {
                    assert!(largest <= bound + 1e-7 && largest > bound * (1.0 - 3.0 / n.sqrt()), "{path}: {largest}");
                }
                Initial::Normal { std, divisor } => {
                    assert!((deviation / std * divisor - 1.0).abs() < 4.0 / n.sqrt(), "{path}: {deviation}");
                }
                Initial::Constant(value) => assert!(values.clone().all(|drawn| drawn == value), "{path}"),
            }
        }
    }
}

/// Matched arms: all that a head count can share with another, it shares.
#[test]
fn initial_tensors_are_the_same_for_every_head_count() {
    for init in [Init::Torch, Init::Gpt2] {
        let one = to_host(&decoder(&ModelConfig { heads: 1, init, ..config() }, 0));
        for heads in [2, 4, 8, 16] {
            let many = to_host(&decoder(&ModelConfig { heads, init, ..config() }, 0));
            assert_eq!(one, many, "{heads} heads");
            let grouped = to_host(&decoder(&ModelConfig { heads, kv_heads: Some(1), init, ..config() }, 0));
            for (path, tensor) in &grouped {
                assert_eq!(tensor.shape == one[path].shape, tensor == &one[path], "{path}, {heads} heads, 1 kv_head");
            }
            assert!(grouped.iter().filter(|(path, tensor)| one[*path] == **tensor).count() >= 30);
        }
        let other = to_host(&decoder(&ModelConfig { heads: 1, init, ..config() }, 1));
        assert_ne!(one["blocks.0.attention.query.weight"], other["blocks.0.attention.query.weight"], "seeds differ");
        assert_ne!(one["blocks.0.attention.query.weight"], one["blocks.1.attention.query.weight"], "layers differ");
    }
}

fn initial_tensors_are_the_same_on_every_backend(backend: &Backend) {
    for init in [Init::Torch, Init::Gpt2] {
        let config = ModelConfig { init, ..config() };
        let here = to_host(&Decoder::new(&config, DIMS, 3, &backend.device).unwrap());
        let there = to_host(&decoder(&config, 3));
        assert_eq!(here.len(), there.len());
        for (path, tensor) in there {
            let bits =
                |tensor: &HostTensor| -> Vec<u32> { tensor.values.iter().map(|value| value.to_bits()).collect() };
            assert_eq!(bits(&here[&path]), bits(&tensor), "{}: {path}", backend.name);
        }
    }
}

fn spread(values: &[f32]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
    (mean, (values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn initial_distributions_are_those_named() {
    let wide = |init| ModelConfig { d_model: 64, layers: 2, init, ..Default::default() };
    let dims = Dims::of_tokens(200, 100, 64);
    let near = |values: &[f32], std: f64, what: &str| {
        let (mean, found) = spread(values);
        let slack = 4.0 * std / (values.len() as f64).sqrt();
        assert!(mean.abs() < slack && (found - std).abs() < slack, "{what}: mean {mean}, std {found}, expected {std}");
    };
    // torch.nn.Linear: uniform in ±1/sqrt(fan_in), so its standard deviation is that over sqrt(3).
    for (path, tensor) in to_host(&Decoder::new(&wide(Init::Torch), dims, 0, &Device::flex()).unwrap()) {
        let fan_in = if path.contains("mlp.down") { 256.0 } else { 64.0f64 };
        let bound = 1.0 / fan_in.sqrt();
        match path.as_str() {
            "token.weight" | "position.weight" => near(&tensor.values, 1.0, &path),
            path if path.contains("norm") => {}
            path => {
                near(&tensor.values, bound / 3f64.sqrt(), path);
                let greatest = tensor.values.iter().fold(0.0, |most: f32, v| most.max(v.abs()));
                assert!(f64::from(greatest) <= bound && f64::from(greatest) > 0.9 * bound, "{path}: {greatest}");
            }
        }
    }
    // GPT-2: 0.02, and 0.02 / sqrt(2·layers) = 0.01 for the two projections that end on the residual stream.
    for (path, tensor) in to_host(&Decoder::new(&wide(Init::Gpt2), dims, 0, &Device::flex()).unwrap()) {
        match path.as_str() {
            path if path.ends_with("bias") => assert!(tensor.values.iter().all(|&v| v == 0.0), "{path}"),
            path if path.contains("norm") => {}
            path if path.ends_with("output.weight") || path.ends_with("down.weight") => {
                near(&tensor.values, 0.01, path)
            }
            path => near(&tensor.values, 0.02, path),
        }
    }
}

fn weights_survive_the_host(backend: &Backend) {
    for device in [backend.device.clone(), backend.device.clone().inner()] {
        let model = Decoder::new(&config(), DIMS, 0, &device).unwrap();
        let other = Decoder::new(&config(), DIMS, 1, &device).unwrap();
        let host = to_host(&other);
        let loaded = from_host(model, &host).unwrap();
        assert_eq!(to_host(&loaded), host, "{}", backend.name);
    }
    // A model on an autodiff device is trained after it is loaded.
    let model = Decoder::new(&config(), DIMS, 0, &backend.device).unwrap();
    let host = to_host(&model);
    let model = from_host(model, &host).unwrap();
    let flat: Vec<Tensor<1>> = flat_parameters(&model).into_iter().map(|tensor| tensor * 0.5).collect();
    let model = replace_parameters(model, flat);
    for (path, tensor) in to_host(&model) {
        let half: Vec<f32> = host[&path].values.iter().map(|value| value * 0.5).collect();
        assert_eq!(tensor.values, half, "{}: {path}", backend.name);
    }
    let logits = model.forward(tokens(&[&[1, 2, 3, 4, 5, 6]], backend), Call::default()).unwrap().logits;
    let mut gradients = logits.powi_scalar(2).sum().backward();
    for (place, gradient) in parameters::of(&model).into_iter().zip(flat_gradients(&model, &mut gradients)) {
        let gradient = values(gradient);
        assert_eq!(gradient.len(), place.count());
        assert!(gradient.iter().any(|&g| g != 0.0), "{}: {} is trained", backend.name, place.path);
    }
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let host = to_host(&decoder(&config(), 0));
    let load = |host: &BTreeMap<String, HostTensor>| from_host(decoder(&config(), 0), host).err().unwrap();
    let path = "blocks.1.mlp.up.weight".to_string();

    let mut missing = host.clone();
    missing.remove(&path);
    assert_eq!(load(&missing), LoadError::Missing { path: path.clone(), shape: vec![16, 64] });

    let mut shape = host.clone();
    shape.get_mut(&path).unwrap().shape = vec![64, 16];
    assert_eq!(load(&shape), LoadError::Shape { path, found: vec![64, 16], expected: vec![16, 64] });

    let mut unknown = host;
    unknown.insert("blocks.2.extra".to_string(), HostTensor { shape: vec![1], values: vec![0.0] });
    assert_eq!(load(&unknown), LoadError::Unknown { path: "blocks.2.extra".to_string() });
}

fn dropout_is_the_same_on_every_backend(backend: &Backend) {
    let base = Dropout { seed: 1, step: 2, micro_batch: 3 };
    let on = |device: &Device, dropout: Dropout, layer, place| {
        values(dropout.at(layer, place, 0.25).apply(Tensor::<3>::full([10, 20, 50], 3.0, device)))
    };
    let here = on(&backend.device, base, 1, DropoutSite::MlpOutput);
    assert_eq!(here, on(&Device::flex(), base, 1, DropoutSite::MlpOutput), "{}", backend.name);

    // What is kept is divided by the probability of keeping it, 0.75.
    assert!(here.iter().all(|&value| value == 0.0 || value == 4.0));
    let kept = here.iter().filter(|&&value| value != 0.0).count() as f64 / 1e4;
    assert!((kept - 0.75).abs() < 4.0 * (0.75 * 0.25 / 1e4f64).sqrt(), "{kept}");

    // Each part of its name changes it, and about 2 · 0.75 · 0.25 of the entries differ.
    for other in [
        on(&backend.device, Dropout { seed: 2, ..base }, 1, DropoutSite::MlpOutput),
        on(&backend.device, Dropout { step: 3, ..base }, 1, DropoutSite::MlpOutput),
        on(&backend.device, Dropout { micro_batch: 4, ..base }, 1, DropoutSite::MlpOutput),
        on(&backend.device, base, 2, DropoutSite::MlpOutput),
        on(&backend.device, base, 1, DropoutSite::AttentionOutput),
    ] {
        let differ = here.iter().zip(&other).filter(|(a, b)| a != b).count() as f64 / 1e4;
        assert!((differ - 0.375).abs() < 0.02, "{differ}");
    }
    let x = Tensor::<1>::full([100], 3.0, &backend.device);
    assert_eq!(values(base.at(0, DropoutSite::Embedding, 0.0).apply(x)), [3.0; 100]);
}

/// What a run's ledger claims of matched arms.
#[test]
fn every_head_count_has_the_same_parameters_and_flops() {
    let arm = |heads| ModelConfig { d_model: 64, layers: 3, heads, ..Default::default() };
    for heads in [2, 4, 8, 16, 32, 64] {
        assert_eq!(cost::parameters(&arm(heads), DIMS), cost::parameters(&arm(1), DIMS));
        assert_eq!(cost::step_flops(&arm(heads), DIMS, 32, 100), cost::step_flops(&arm(1), DIMS, 32, 100));
    }
    let grouped = ModelConfig { kv_heads: Some(1), ..arm(8) };
    assert!(cost::parameters(&grouped, DIMS).total() < cost::parameters(&arm(8), DIMS).total());
}

/// Counted by hand: B=2, L=6, D=4, F=16, one layer, 3 scored positions, 7 outputs.
#[test]
fn flops_are_two_for_each_multiplication_in_a_matrix_product() {
    let config = ModelConfig { d_model: 4, heads: 2, ..Default::default() };
    let expected = Parts::from_iter([
        ("attention projections", 4 * 2 * 12 * 4 * 4),
        ("attention scores", 2 * 2 * 6 * 6 * 4), // heads × K = 4
        ("attention contexts", 2 * 2 * 6 * 6 * 4),
        ("mlp", 2 * 2 * 12 * 4 * 16),
        ("logits", 2 * 3 * 4 * 7),
    ]);
    assert_eq!(cost::forward_flops(&config, DIMS, 2, 3), expected);
    assert_eq!(cost::step_flops(&config, DIMS, 2, 3).total(), 3 * expected.total());
}

/// Configs of every kind, some of them impossible.
fn configs() -> impl Strategy<Value = ModelConfig> {
    let sizes = (1usize..=4, 0usize..=2, 0usize..=3, 0usize..=3, proptest::option::of(1usize..=5), 1usize..=3);
    let kinds = (proptest::sample::select(Positions::ALL), any::<[bool; 10]>());
    (sizes, kinds).prop_map(|((width, layers, heads, kv, d_head, mlp_ratio), (positions, flags))| {
        let [encoder, causal, gpt2, bias, key_bias, mean, norm, residual, mlp, tied] = flags;
        ModelConfig {
            architecture: if encoder { Architecture::EncoderDecoder } else { Architecture::Decoder },
            d_model: 8 * width,
            layers: layers.max(usize::from(encoder)),
            heads: 1 << heads,
            kv_heads: (kv < 3).then_some(1 << kv),
            d_head,
            d_ff: (mlp_ratio == 3).then_some(5),
            mlp_ratio,
            positions,
            causal,
            init: if gpt2 { Init::Gpt2 } else { Init::Torch },
            bias,
            key_bias,
            merge: if mean { Merge::Mean } else { Merge::Concat },
            norm: if norm { Norm::Pre } else { Norm::None },
            residual,
            mlp,
            tied,
            ..Default::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What is described is what is built, and what is accepted runs.
    #[test]
    fn described_parameters_are_the_built_ones(config in configs()) {
        let source = config.has_encoder().then_some(SourceDims { vocab: 5, length: 6 });
        let dims = Dims { source, ..Dims::of_tokens(7, 7, 4) };
        match Decoder::new(&config, dims, 0, &Device::flex()) {
            Err(error) => {
                let sizes = matches!(error, ModelError::OutOfRange { .. } | ModelError::TooLarge { .. });
                prop_assert!(!sizes, "{error}");
            }
            Ok(model) => {
                let built = parameters::of(&model);
                let count: usize = built.iter().map(|parameter| parameter.count()).sum();
                prop_assert_eq!(cost::parameters(&config, dims).total(), count as u64);
                let built: Vec<_> = built.into_iter().map(|parameter| (parameter.path, parameter.shape)).collect();
                let described = architecture::parameters(&config, dims).into_iter();
                prop_assert_eq!(described.map(|one| (one.path, one.shape)).collect::<Vec<_>>(), built);
                let tokens = Tensor::<2, Int>::from_data([[0, 6, 3], [1, 2, 2]], &Device::flex());
                let read = Tensor::from_data([[0, 4, 3, 1], [1, 2, 2, 0]], &Device::flex());
                let padding = [false, false, false, false, false, false, true, true];
                let source = source.map(|_| Source { tokens: &read, padding: &padding });
                let output = model.forward(tokens, Call { source, maps: true, ..Default::default() }).unwrap();
                prop_assert_eq!(output.logits.dims(), [6, 7]);
                prop_assert_eq!(output.maps.len(), config.layers);
                prop_assert!(output.maps.iter().all(|map| map.dims() == [2, config.heads, 3, 3]));
                let beside = if config.has_encoder() { config.layers } else { 0 };
                prop_assert_eq!((output.encoder_maps.len(), output.cross_maps.len()), (beside, beside));
                prop_assert!(output.encoder_maps.iter().all(|map| map.dims() == [2, config.heads, 4, 4]));
                prop_assert!(output.cross_maps.iter().all(|map| map.dims() == [2, config.heads, 3, 4]));
                prop_assert!(values(output.logits).iter().all(|logit| logit.is_finite()));
            }
        }
    }
}
