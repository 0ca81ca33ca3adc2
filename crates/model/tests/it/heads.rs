//! What heads are: slices of the projections that attend alone, and whose order doesn't matter.

use std::collections::BTreeMap;

use architecture::{Dims, HostTensor, Merge, ModelConfig, ScoreScale};
use burn::tensor::{Tensor, TensorData};
use headcount_model::attention::{Attention, AttentionCall};
use headcount_model::parameters::{from_host, to_host};
use headcount_model::{Call, Decoder, Gating};
use kernels::AttentionMask;

use crate::support::{Backend, Worst, attention, scrambled, tokens, values};

checks![
    one_head_is_textbook_attention,
    each_head_is_textbook_attention_on_its_slice,
    scores_are_scaled_as_configured,
    merge_mean_averages_the_heads,
    permuting_heads_changes_nothing,
    permuting_groups_changes_nothing,
    gate_0_removes_a_head,
    a_replacement_takes_the_place_of_what_a_gate_closes,
    gates_of_each_sample_are_its_own,
    gradient_of_a_gate_is_the_effect_of_its_head,
    gates_reach_their_layer,
    key_bias_changes_nothing,
];

const B: usize = 2;
const L: usize = 5;
const D: usize = 8;

type Weights = BTreeMap<String, HostTensor>;

/// Single-head causal attention as a textbook writes it, for one sample `x` `[L][D]`: the context `[L][K]` of head
/// `head`, whose queries are columns `head·K..` and whose keys and values are columns `kv_head·K..`; scores are times `scale`.
fn textbook(weights: &Weights, x: &[Vec<f64>], [head, kv_head]: [usize; 2], k: usize, scale: f64) -> Vec<Vec<f64>> {
    let project = |name: &str, head: usize, row: &[f64]| -> Vec<f64> {
        let weight = &weights[&format!("{name}.weight")];
        let columns = weight.shape[1];
        (head * k..(head + 1) * k)
            .map(|column| {
                let bias = weights.get(&format!("{name}.bias")).map_or(0.0, |bias| f64::from(bias.values[column]));
                bias + (0..D).map(|d| row[d] * f64::from(weight.values[d * columns + column])).sum::<f64>()
            })
            .collect()
    };
    let keys: Vec<_> = x.iter().map(|row| project("key", kv_head, row)).collect();
    let values: Vec<_> = x.iter().map(|row| project("value", kv_head, row)).collect();
    let attend = |i: usize| {
        let query = project("query", head, &x[i]);
        let score = |j: usize| query.iter().zip(&keys[j]).map(|(q, k)| q * k).sum::<f64>() * scale;
        let weights: Vec<f64> = (0..=i).map(|j| score(j).exp()).collect();
        let sum: f64 = weights.iter().sum();
        (0..k).map(|c| (0..=i).map(|j| weights[j] / sum * values[j][c]).sum()).collect()
    };
    (0..x.len()).map(attend).collect()
}

/// The whole attention from [`textbook`] heads, `[B·L·D]`.
fn by_hand(weights: &Weights, x: &[f32], config: &ModelConfig) -> Vec<f32> {
    by_hand_with(weights, x, config, |_, context| context)
}

/// The same with each head's context `[L][K]` changed by `change`, which is told the head.
fn by_hand_with(
    weights: &Weights,
    x: &[f32],
    config: &ModelConfig,
    change: impl Fn(usize, Vec<Vec<f64>>) -> Vec<Vec<f64>>,
) -> Vec<f32> {
    let (k, group) = (config.d_head(), config.heads / config.kv_heads());
    let output = &weights["output.weight"];
    let bias = &weights["output.bias"];
    let mut out = Vec::new();
    for sample in x.chunks(L * D) {
        let rows: Vec<Vec<f64>> = sample.chunks(D).map(|row| row.iter().map(|&v| f64::from(v)).collect()).collect();
        let heads: Vec<_> = (0..config.heads)
            .map(|h| change(h, textbook(weights, &rows, [h, h / group], k, config.scale.factor(k))))
            .collect();
        for i in 0..L {
            let merged: Vec<f64> = match config.merge {
                Merge::Concat => heads.iter().flat_map(|context| context[i].clone()).collect(),
                Merge::Mean => {
                    (0..k).map(|c| heads.iter().map(|h| h[i][c]).sum::<f64>() / heads.len() as f64).collect()
                }
            };
            for d in 0..D {
                let product = merged.iter().enumerate().map(|(m, v)| v * f64::from(output.values[m * D + d]));
                out.push((f64::from(bias.values[d]) + product.sum::<f64>()) as f32);
            }
        }
    }
    out
}

fn agrees_with_hand(backend: &Backend, config: ModelConfig) {
    let module = attention(&config, backend);
    let x = scrambled::<3>([B, L, D], 1, backend) * 2.0;
    let mask = AttentionMask::causal().prepare([B, config.heads, L, L], &backend.device).unwrap();
    let call = AttentionCall { mask: Some(&mask), ..Default::default() };
    let got = values(module.forward(x.clone(), None, call).output);
    let expected = by_hand(&to_host(&module), &values(x), &config);
    Worst::new(backend.name, backend.tolerance).compare_values(&format!("{} heads", config.heads), &got, &expected);
}

fn one_head_is_textbook_attention(backend: &Backend) {
    agrees_with_hand(backend, ModelConfig { d_model: D, heads: 1, ..Default::default() });
}

fn each_head_is_textbook_attention_on_its_slice(backend: &Backend) {
    for (heads, kv_heads, d_head) in [(2, 2, None), (4, 2, None), (8, 1, None), (4, 2, Some(3))] {
        let config = ModelConfig { d_model: D, heads, kv_heads: Some(kv_heads), d_head, ..Default::default() };
        agrees_with_hand(backend, config);
    }
}

/// Without a scale every score is larger, which the kernels, the plain composition and the cross-attention must know alike.
fn scores_are_scaled_as_configured(backend: &Backend) {
    for (heads, d_head) in [(1, None), (4, None), (2, Some(3))] {
        let config = ModelConfig { d_model: D, heads, d_head, scale: ScoreScale::None, ..Default::default() };
        agrees_with_hand(backend, config.clone());
        let scaled = ModelConfig { scale: ScoreScale::SqrtDHead, ..config.clone() };
        let [unscaled, scaled] = [config, scaled].map(|config| attention(&config, backend));
        let x = scrambled::<3>([B, L, D], 1, backend) * 2.0;
        let memory = scrambled::<3>([B, L, D], 2, backend);
        for memory in [None, Some(memory)] {
            let read = |module: &Attention, maps| {
                let output = module.forward(x.clone(), memory.clone(), AttentionCall { maps, ..Default::default() });
                values(output.output)
            };
            let mut worst = Worst::new(backend.name, backend.tolerance);
            worst.compare_values("with maps and without", &read(&unscaled, true), &read(&unscaled, false));
            assert_ne!(read(&unscaled, false), read(&scaled, false));
        }
    }
}

fn merge_mean_averages_the_heads(backend: &Backend) {
    for kv_heads in [1, 4] {
        let config =
            ModelConfig { d_model: D, heads: 4, kv_heads: Some(kv_heads), merge: Merge::Mean, ..Default::default() };
        agrees_with_hand(backend, config);
    }
}

/// The tensor with its blocks of `k` columns (or rows, or entries of a bias) in another order.
fn permuted(tensor: &HostTensor, rows: bool, k: usize, order: &[usize]) -> HostTensor {
    let width = *tensor.shape.last().unwrap();
    let from = |index: usize| order[index / k] * k + index % k;
    let values = (0..tensor.values.len()).map(|at| {
        let (row, column) = (at / width, at % width);
        tensor.values[if rows { from(row) * width + column } else { row * width + from(column) }]
    });
    HostTensor { shape: tensor.shape.clone(), values: values.collect() }
}

fn permutation_changes_nothing(backend: &Backend, kv_heads: usize, order: [usize; 4], kv_order: &[usize]) {
    let config = ModelConfig { d_model: D, heads: 4, kv_heads: Some(kv_heads), ..Default::default() };
    let module = attention(&config, backend);
    let moved = to_host(&module).into_iter().map(|(path, tensor)| {
        let tensor = match path.as_str() {
            "output.bias" => tensor,
            "output.weight" => permuted(&tensor, true, config.d_head(), &order),
            path if path.starts_with("query") => permuted(&tensor, false, config.d_head(), &order),
            _ => permuted(&tensor, false, config.d_head(), kv_order),
        };
        (path, tensor)
    });
    let other = from_host(module.clone(), &moved.collect()).unwrap();

    let x = scrambled::<3>([B, L, D], 2, backend);
    let mask = AttentionMask::causal().prepare([B, 4, L, L], &backend.device).unwrap();
    let call = AttentionCall { mask: Some(&mask), maps: true, ..Default::default() };
    let (a, b) = (module.forward(x.clone(), None, call), other.forward(x, None, call));
    let mut worst = Worst::new(backend.name, backend.tolerance);
    worst.compare_values("output", &values(b.output), &values(a.output));
    let maps = a.maps.unwrap();
    let reordered = Tensor::cat(order.map(|head| maps.clone().narrow(1, head, 1)).to_vec(), 1);
    worst.compare_values("maps", &values(b.maps.unwrap()), &values(reordered.clone()));
    assert_ne!(values(reordered), values(maps), "the heads differ, so their order shows");
}

fn permuting_heads_changes_nothing(backend: &Backend) {
    permutation_changes_nothing(backend, 4, [2, 0, 3, 1], &[2, 0, 3, 1]);
    permutation_changes_nothing(backend, 1, [2, 0, 3, 1], &[0]);
}

/// With grouped queries heads move with their group, or within it.
fn permuting_groups_changes_nothing(backend: &Backend) {
    permutation_changes_nothing(backend, 2, [2, 3, 0, 1], &[1, 0]);
    permutation_changes_nothing(backend, 2, [1, 0, 3, 2], &[0, 1]);
}

fn gates(numbers: [f32; 4], backend: &Backend) -> Tensor<2> {
    Tensor::from_data(TensorData::new(numbers.to_vec(), [1, 4]), &backend.device)
}

fn gate_0_removes_a_head(backend: &Backend) {
    let config = ModelConfig { d_model: D, heads: 4, ..Default::default() };
    let module = attention(&config, backend);
    let mut without = to_host(&module);
    let rows = config.d_head() * D;
    without.get_mut("output.weight").unwrap().values[rows..2 * rows].fill(0.0); // head 1
    let without = from_host(module.clone(), &without).unwrap();

    let x = scrambled::<3>([B, L, D], 3, backend);
    let plain = AttentionCall::default();
    let closed = gates([1.0, 0.0, 1.0, 1.0], backend);
    let got = values(module.forward(x.clone(), None, AttentionCall { gates: Some(&closed), ..plain }).output);
    let all = values(module.forward(x.clone(), None, plain).output);
    let expected = values(without.forward(x.clone(), None, plain).output);
    Worst::new(backend.name, backend.tolerance).compare_values("output", &got, &expected);
    assert!(got.iter().zip(&all).any(|(a, b)| (a - b).abs() > 1e-2), "head 1 mattered");

    let open = gates([1.0; 4], backend);
    assert_eq!(values(module.forward(x, None, AttentionCall { gates: Some(&open), ..plain }).output), all);
}

/// Gate 0 puts the replacement in the context's place, gate 0.25 three quarters of it; contexts come as they were before.
fn a_replacement_takes_the_place_of_what_a_gate_closes(backend: &Backend) {
    let config = ModelConfig { d_model: D, heads: 4, ..Default::default() };
    let k = config.d_head();
    let module = attention(&config, backend);
    let weights = to_host(&module);
    let x = scrambled::<3>([B, L, D], 6, backend);
    let replacement = scrambled::<3>([4, L, k], 7, backend);
    let mask = AttentionMask::causal().prepare([B, 4, L, L], &backend.device).unwrap();
    let numbers = [1.0, 0.0, 0.25, 1.0];
    let gates = gates(numbers, backend);
    let call = AttentionCall {
        mask: Some(&mask),
        gates: Some(&gates),
        replacement: Some(&replacement),
        contexts: true,
        ..Default::default()
    };
    let got = module.forward(x.clone(), None, call);
    let other = values(replacement.clone());
    let expected = by_hand_with(&weights, &values(x.clone()), &config, |head, context| {
        let gate = f64::from(numbers[head]);
        let at = |i: usize, c: usize| gate * context[i][c] + (1.0 - gate) * f64::from(other[(head * L + i) * k + c]);
        (0..L).map(|i| (0..k).map(|c| at(i, c)).collect()).collect()
    });
    let mut worst = Worst::new(backend.name, backend.tolerance);
    worst.compare_values("output", &values(got.output), &expected);

    let contexts = got.contexts.unwrap();
    assert_eq!(contexts.dims(), [B, 4, L, k]);
    let rows: Vec<Vec<Vec<f64>>> = values(x)
        .chunks(L * D)
        .map(|sample| sample.chunks(D).map(|row| row.iter().map(|&v| f64::from(v)).collect()).collect())
        .collect();
    let by_hand =
        rows.iter().flat_map(|rows| (0..4).flat_map(|h| textbook(&weights, rows, [h, h], k, config.scale.factor(k))));
    let by_hand: Vec<f32> = by_hand.flatten().map(|value| value as f32).collect();
    worst.compare_values("contexts", &values(contexts), &by_hand);
}

fn gates_of_each_sample_are_its_own(backend: &Backend) {
    let config = ModelConfig { d_model: D, heads: 4, ..Default::default() };
    let module = attention(&config, backend);
    let x = scrambled::<3>([B, L, D], 8, backend);
    let of_sample = [[1.0, 0.0, 1.0, 0.5], [0.0, 1.0, -1.0, 1.0]];
    let both = Tensor::cat(of_sample.map(|numbers| gates(numbers, backend)).to_vec(), 0);
    let output = |gates: &Tensor<2>| {
        module.forward(x.clone(), None, AttentionCall { gates: Some(gates), ..Default::default() }).output
    };
    let got = values(output(&both));
    for (sample, numbers) in of_sample.into_iter().enumerate() {
        let alone = values(output(&gates(numbers, backend)));
        let range = sample * L * D..(sample + 1) * L * D;
        let mut worst = Worst::new(backend.name, backend.tolerance);
        worst.compare_values("output", &got[range.clone()], &alone[range]);
    }
}

/// The output is linear in each gate.
fn gradient_of_a_gate_is_the_effect_of_its_head(backend: &Backend) {
    let module = attention(&ModelConfig { d_model: D, heads: 4, ..Default::default() }, backend);
    let x = scrambled::<3>([B, L, D], 4, backend);
    let cotangent = scrambled::<3>([B, L, D], 5, backend);
    let loss = |gates: &Tensor<2>| {
        let call = AttentionCall { gates: Some(gates), ..Default::default() };
        (module.forward(x.clone(), None, call).output * cotangent.clone()).sum()
    };
    let open = gates([1.0; 4], backend).require_grad();
    let all = loss(&open);
    let gradients = values(open.grad(&all.backward()).unwrap());
    let all = values(all)[0];
    let mut worst = Worst::new(backend.name, 10.0 * backend.tolerance); // differences of sums over 80 entries
    for head in 0..4 {
        let mut numbers = [1.0; 4];
        numbers[head] = 0.0;
        let effect = all - values(loss(&gates(numbers, backend)))[0];
        worst.compare_values(&format!("head {head}"), &[gradients[head]], &[effect]);
        assert!(effect.abs() > 1e-3, "head {head} mattered: {effect}");
    }
}

fn gates_reach_their_layer(backend: &Backend) {
    let config = ModelConfig { d_model: D, heads: 4, layers: 2, ..Default::default() };
    let model = Decoder::new(&config, Dims::of_tokens(5, 3, 4), 0, &backend.device).unwrap();
    let tokens = tokens(&[&[0, 4, 2, 1]], backend);
    let logits = |gates: &[Tensor<2>]| {
        model
            .forward(
                tokens.clone(),
                Call { decoder: Gating { gates: Some(gates), ..Default::default() }, ..Default::default() },
            )
            .unwrap()
            .logits
    };
    let plain = values(model.forward(tokens.clone(), Call::default()).unwrap().logits);
    let open = [gates([1.0; 4], backend).require_grad(), gates([1.0; 4], backend).require_grad()];
    let result = logits(&open);
    assert_eq!(values(result.clone()), plain);
    let gradients = result.powi_scalar(2).sum().backward();
    for gates in &open {
        let gradient = values(gates.grad(&gradients).unwrap());
        assert!(gradient.iter().all(|g| g.is_finite() && g.abs() > 1e-6), "{gradient:?}");
    }
    let closed = gates([0.0; 4], backend);
    let first = values(logits(&[closed.clone(), open[1].clone()]));
    let second = values(logits(&[open[0].clone(), closed]));
    assert!(first != plain && second != plain && first != second);
}

/// It adds the same number to every score of a row.
fn key_bias_changes_nothing(backend: &Backend) {
    let config = ModelConfig { d_model: D, heads: 2, key_bias: true, ..Default::default() };
    let module = attention(&config, backend);
    let mut weights = to_host(&module);
    weights.get_mut("key.bias").unwrap().values.fill(0.0);
    let without = from_host(module.clone(), &weights).unwrap();
    let x = scrambled::<3>([B, L, D], 6, backend);
    let mask = AttentionMask::causal().prepare([B, 2, L, L], &backend.device).unwrap();
    let call = AttentionCall { mask: Some(&mask), ..Default::default() };
    let got = values(module.forward(x.clone(), None, call).output);
    let expected = values(without.forward(x, None, call).output);
    Worst::new(backend.name, backend.tolerance).compare_values("output", &got, &expected);
}
