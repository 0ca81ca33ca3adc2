//! Models that read and say numbers, post-norm, norms of length and read-outs, against `number_model` in
//! `scripts/attention_fixtures.py`; and what they refuse.

use architecture::{Dims, MlpActivation, ModelConfig, Norm, NormKind, Positions};
use burn::tensor::{Device, Int, Tensor, TensorData};
use headcount_model::parameters::{self, flat_gradients, from_host};
use headcount_model::{Call, CallError, Decoder};

use crate::support::{Backend, Fixture, Worst, scrambled, values};

checks![numbers_loss_maps_and_gradients_agree_with_pytorch, what_stands_at_a_read_out_changes_nothing];

fn config() -> ModelConfig {
    ModelConfig {
        d_model: 16,
        layers: 2,
        heads: 4,
        d_ff: Some(32),
        positions: Positions::None,
        causal: false,
        ..Default::default()
    }
}

const DIMS: Dims = Dims { inputs: 3, readout: true, ..Dims::of_tokens(0, 2, 6) };

/// `NUMBER_VARIANTS` of the script.
fn variants() -> [(&'static str, ModelConfig, Dims); 5] {
    let relu = MlpActivation::Relu;
    let (post, length) = (Norm::Post, NormKind::Length);
    let wide = Dims { inputs: 16, outputs: 16, ..DIMS };
    [
        ("pre", config(), DIMS),
        ("post", ModelConfig { norm: post, activation: relu, ..config() }, DIMS),
        (
            "length",
            ModelConfig {
                norm: post,
                norm_kind: length,
                activation: relu,
                input_layers: 0,
                output_layer: false,
                ..config()
            },
            wide,
        ),
        ("pre_length", ModelConfig { norm_kind: length, ..config() }, DIMS),
        (
            "readout",
            ModelConfig { input_layers: 2, readout: true, norm: Norm::None, residual: false, ..config() },
            DIMS,
        ),
    ]
}

fn numbers_loss_maps_and_gradients_agree_with_pytorch(backend: &Backend) {
    let fixture = Fixture::load("numbers.safetensors");
    let mut worst = Worst::new(backend.name, 1e-4);
    let padding = fixture.bools("padding");
    for (variant, config, dims) in variants() {
        let model = Decoder::new(&config, dims, 0, &backend.device).unwrap();
        let of = |path: String| (path.clone(), fixture.get(&format!("parameters/{path}")).clone());
        let tensors = parameters::of(&model).into_iter().map(|place| of(place.path)).collect();
        let model = from_host(model, &tensors).unwrap();
        let numbers: Tensor<3> = fixture.tensor(&format!("{variant}/numbers"), backend);
        let [b, l, _] = numbers.dims();
        let read = Call { padding: Some(&padding), ..Default::default() };

        let all = model.forward(numbers.clone(), Call { maps: true, ..read }).unwrap();
        let said = all.logits.reshape([b, l, dims.outputs]);
        // What padding says does not matter, and its rows are other ones where nothing may be read.
        let real = |tensor: &[f32]| -> Vec<f32> {
            let rows = tensor.chunks(dims.outputs).zip(&padding).filter(|(_, padded)| !**padded);
            rows.flat_map(|(row, _)| row.to_vec()).collect()
        };
        let expected = &fixture.get(&format!("{variant}/said")).values;
        worst.compare_values(&format!("{variant}/said"), &real(&values(said)), &real(expected));
        let maps = format!("{variant}/maps");
        worst.compare(&maps, Tensor::stack::<5>(all.maps, 0), fixture.get(&maps));

        let asked = fixture.bools(&format!("{variant}/scored"));
        let scored: Vec<i32> = (0..b * l).filter(|&at| asked[at]).map(|at| at as i32).collect();
        let n = scored.len();
        let scored = Tensor::<1, Int>::from_data(TensorData::new(scored, [n]), &backend.device);
        let said = model.forward(numbers, Call { scored: Some(&scored), ..read }).unwrap().logits;
        let wanted: Tensor<3> = fixture.tensor(&format!("{variant}/wanted"), backend);
        let error = said - wanted.reshape([b * l, dims.outputs]).select(0, scored);
        let loss = (error.clone() * error).mean();
        worst.compare(&format!("{variant}/loss"), loss.clone(), fixture.get(&format!("{variant}/loss")));

        worst.compare_gradients(variant, &model, loss, &fixture);
    }
}

/// The first position belongs to the read-out, which reads all others.
fn what_stands_at_a_read_out_changes_nothing(backend: &Backend) {
    let config = ModelConfig { readout: true, ..config() };
    let said = |model: &Decoder, numbers: Tensor<3>| values(model.forward(numbers, Call::default()).unwrap().logits);
    let model = Decoder::new(&config, DIMS, 0, &backend.device).unwrap();
    let numbers: Tensor<3> = scrambled([2, 6, 3], 1, backend);
    // With other numbers at a position of both samples.
    let other = |position: usize| {
        let mut all = values(numbers.clone());
        (0..2).for_each(|b| all[(b * 6 + position) * 3..][..3].fill(7.0));
        Tensor::<3>::from_data(TensorData::new(all, [2, 6, 3]), &backend.device)
    };
    assert_eq!(said(&model, numbers.clone()), said(&model, other(0)));
    let (before, after) = (said(&model, numbers.clone()), said(&model, other(5)));
    assert!((before[0] - after[0]).abs() > 1e-4, "the read-out reads the last position");
    // Tokens have a read-out too; no token stands there.
    let dims = Dims { inputs: 0, vocab: 5, ..DIMS };
    let model = Decoder::new(&config, dims, 0, &backend.device).unwrap();
    let of = |first: i32| {
        let rows = [[first, 1, 2, 3, 4, 0], [first, 0, 0, 1, 1, 2]];
        let tokens = Tensor::<2, Int>::from_data(rows, &backend.device);
        values(model.forward(tokens, Call::default()).unwrap().logits)
    };
    assert_eq!(of(5), of(0), "its token is none of the vocabulary");
}

#[test]
fn an_input_of_another_kind_is_refused() {
    let device = Device::flex();
    let model = Decoder::new(&config(), DIMS, 0, &device).unwrap();
    let tokens = Tensor::<2, Int>::zeros([2, 6], &device);
    let refusal = model.forward(tokens.clone(), Call::default()).unwrap_err();
    assert_eq!(refusal, CallError::Input { expected: 3, given: 0 });
    assert_eq!(refusal.to_string(), "the model reads 3 numbers a position, but the call has tokens");
    let refusal = model.forward(Tensor::<3>::zeros([2, 6, 1], &device), Call::default()).unwrap_err();
    assert!(refusal.to_string().ends_with("the call has 1 number a position"), "{refusal}");
    let of_tokens = Decoder::new(&config(), Dims::of_tokens(5, 2, 6), 0, &device).unwrap();
    let refusal = of_tokens.forward(Tensor::<3>::zeros([2, 6, 3], &device), Call::default()).unwrap_err();
    assert_eq!(refusal, CallError::Input { expected: 0, given: 3 });
    let readout = Decoder::new(&ModelConfig { readout: true, ..config() }, DIMS, 0, &device).unwrap();
    let refusal = readout.forward(Tensor::<3>::zeros([2, 1, 3], &device), Call::default()).unwrap_err();
    assert_eq!(refusal, CallError::ReadoutAlone { length: 1 });
}

#[test]
fn a_position_of_zeros_keeps_finite_gradients() {
    let device = Device::flex().autodiff();
    let config = ModelConfig { norm_kind: NormKind::Length, bias: false, input_layers: 0, ..config() };
    let model = Decoder::new(&config, Dims { inputs: 16, ..DIMS }, 0, &device).unwrap();
    let loss = model.forward(Tensor::<3>::zeros([1, 6, 16], &device), Call::default()).unwrap().logits.sum();
    let mut gradients = loss.backward();
    for gradient in flat_gradients(&model, &mut gradients) {
        assert!(values(gradient).iter().all(|x: &f32| x.is_finite()));
    }
}
