//! Ten optimiser steps on a whole small decoder against PyTorch: see scripts/optimiser_fixtures.py.

use std::collections::BTreeMap;

use architecture::{Dims, HostTensor, ModelConfig};
use burn::tensor::Device;
use data::{Batch, IGNORE};
use model::Decoder;
use model::parameters;
use runs::TrainConfig;
use serde::Deserialize;
use trainer::training::gradient::accumulate;
use trainer::training::optimiser::AdamW;
use trainer::training::schedule::learning_rate;

#[derive(Deserialize)]
struct Fixture {
    steps: Vec<Step>,
    parameters: BTreeMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct Step {
    loss: f64,
    norm: f64,
    lr: f64,
}

const DIMS: Dims = Dims::of_tokens(6, 5, 7);
const BATCH: usize = 3;

/// The weights of the script: a sine, around 1 for the gains.
fn initial(model: &Decoder) -> BTreeMap<String, HostTensor> {
    let mut parameters = parameters::to_host(model);
    for (k, (path, tensor)) in parameters.iter_mut().enumerate() {
        for (i, value) in tensor.values.iter_mut().enumerate() {
            let wave = (0.7 * i as f64 + k as f64).sin();
            *value = if path.ends_with("gamma") { 1.0 + 0.1 * wave } else { 0.4 * wave } as f32;
        }
    }
    parameters
}

/// The samples of the script.
fn batch(step: usize) -> Batch {
    let positions = 0..BATCH * DIMS.length;
    let target = |i: usize| if i % 4 == 1 { IGNORE } else { ((5 * i + step + i * i / 3) % DIMS.outputs) as i32 };
    let tokens = positions.clone().map(|i| ((7 * i + 3 * step + i * i) % DIMS.vocab) as i32).collect();
    Batch::new(BATCH, DIMS.length, tokens, positions.map(target).collect())
}

#[test]
fn ten_steps_follow_pytorch() {
    let fixture: Fixture = serde_json::from_str(include_str!("../fixtures/optimiser.json")).unwrap();
    let device = Device::flex().autodiff();
    let config = ModelConfig { d_model: 8, heads: 2, layers: 2, mlp_ratio: 2, ..Default::default() };
    let settings = TrainConfig {
        steps: 10,
        warmup: 4,
        lr: 2e-2,
        min_lr: 1e-3,
        weight_decay: 0.1,
        clip_norm: 1.5,
        beta2: 0.98,
        ..Default::default()
    };
    let model = Decoder::new(&config, DIMS, 0, &device).unwrap();
    let weights = initial(&model);
    let mut model = parameters::from_host(model, &weights).unwrap();
    let mut optimiser = AdamW::new(&settings, &model);
    for (step, expected) in (0..).zip(&fixture.steps) {
        let (tally, gradient) = accumulate(&model, &[batch(step as usize)], 0, step, &device).unwrap();
        let gradient = gradient.unwrap();
        let (norm, lr) = (gradient.norm(), learning_rate(&settings, None, step + 1));
        assert!((lr - expected.lr).abs() < 1e-12, "step {step}: rate {lr} instead of {}", expected.lr);
        assert!((tally.mean_loss() - expected.loss).abs() < 1e-4, "step {step}: {tally:?}, not {}", expected.loss);
        assert!((norm - expected.norm).abs() < 1e-4 * expected.norm, "step {step}: {norm}, not {}", expected.norm);
        model = optimiser.step(model, gradient, norm, lr, step + 1);
    }
    let found = parameters::to_host(&model);
    assert_eq!(found.keys().collect::<Vec<_>>(), fixture.parameters.keys().collect::<Vec<_>>());
    for (path, expected) in &fixture.parameters {
        assert_eq!(found[path].values.len(), expected.len(), "{path}");
        let pairs = found[path].values.iter().zip(expected);
        let worst = pairs.map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{path} is off by {worst}");
    }
    let pairs = |path: &String| weights[path].values.iter().zip(found[path].values.clone());
    let moved = found.keys().flat_map(pairs).map(|(before, after)| (before - after).abs()).fold(0.0, f32::max);
    assert!(moved > 0.05, "ten steps at such rates move a weight by more than {moved}");
}
