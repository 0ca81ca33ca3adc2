//! One attention against PyTorch's `scaled_dot_product_attention` and `nn.MultiheadAttention`.
//!
//! Expected numbers are made by `attention` and `multihead` in `scripts/attention_fixtures.py`, which also checks that
//! PyTorch's two ways agree.

use std::collections::BTreeSet;

use architecture::ModelConfig;
use headcount_model::attention::AttentionCall;
use headcount_model::parameters::{self, flat_gradients, from_host};
use kernels::AttentionMask;

use crate::support::{Backend, Fixture, Worst, attention, corner};

checks![agrees_with_pytorch];

const B: usize = 2;
const D: usize = 16;

/// Heads × key/value heads × masks × self/cross: outputs, maps and every gradient.
fn agrees_with_pytorch(backend: &Backend) {
    let fixture = Fixture::load("attention.safetensors");
    let mut worst = Worst::new(backend.name, backend.tolerance);
    let mut done = BTreeSet::new();
    for kind in ["self", "cross"] {
        for mask in ["none", "causal", "padding", "both"] {
            for heads in [1, 2, 4, 8] {
                for kv_heads in BTreeSet::from([1, (heads / 2).max(1), heads]) {
                    let config = ModelConfig { d_model: D, heads, kv_heads: Some(kv_heads), ..Default::default() };
                    let case = format!("{kind}.h{heads}.g{kv_heads}.{mask}");
                    one_case(&fixture, backend, &mut worst, &case, "full", &config);
                    done.insert(case);
                }
            }
        }
        let wide = ModelConfig { d_model: D, heads: 4, kv_heads: Some(2), d_head: Some(6), ..Default::default() };
        let case = format!("{kind}.wide.both");
        one_case(&fixture, backend, &mut worst, &case, "wide", &wide);
        done.insert(case);
    }
    let config = ModelConfig { d_model: D, heads: 4, ..Default::default() };
    one_case(&fixture, backend, &mut worst, "self.h4.g4.empty", "full", &config);
    done.insert("self.h4.g4.empty".to_string());

    let made = fixture.names_under("").into_iter().filter_map(|name| Some(name.strip_suffix("/output")?.to_string()));
    assert_eq!(made.collect::<BTreeSet<_>>(), done, "every case of the fixture is compared");
}

fn one_case(
    fixture: &Fixture,
    backend: &Backend,
    worst: &mut Worst,
    case: &str,
    parameters: &str,
    config: &ModelConfig,
) {
    let (kind, mask) = (case.split('.').next().unwrap(), case.split('.').next_back().unwrap());
    let module = attention(config, backend);
    let tensors = parameters::of(&module).into_iter().map(|place| {
        let tensor = corner(fixture.get(&format!("{parameters}/{}", place.path)), &place.shape);
        (place.path, tensor)
    });
    let module = from_host(module.clone(), &tensors.collect()).unwrap();

    let x = fixture.tensor::<3>("x", backend);
    let memory = (kind == "cross").then(|| fixture.tensor::<3>("memory", backend));
    let [_, lq, _] = x.dims();
    let lk = memory.as_ref().unwrap_or(&x).dims()[1];
    let mask_name = format!("mask.{kind}.{mask}");
    let given =
        AttentionMask::marked(fixture.get(&mask_name).shape.clone().try_into().unwrap(), fixture.bools(&mask_name))
            .unwrap();
    let constructed = by_constructors(mask, lk, &given);
    assert_eq!(given.forbidden(lq, lk), constructed.forbidden(lq, lk), "{mask_name}");
    let mask = constructed.prepare([B, config.heads, lq, lk], &backend.device).unwrap();

    let call = AttentionCall { mask: Some(&mask), maps: true, ..Default::default() };
    let result = module.forward(x.clone(), memory.clone(), call);
    let loss = (result.output.clone() * fixture.tensor::<3>("cotangent", backend).detach()).sum();
    let mut gradients = loss.backward();
    worst.compare(&format!("{case}/output"), result.output, fixture.get(&format!("{case}/output")));
    worst.compare(&format!("{case}/maps"), result.maps.unwrap(), fixture.get(&format!("{case}/maps")));

    let mut compared = BTreeSet::from(["x".to_string()]);
    let expected = |name: &str| fixture.get(&format!("{case}/gradient.{name}"));
    worst.compare(&format!("{case}/gradient.x"), x.grad(&gradients).unwrap(), expected("x"));
    if let Some(memory) = memory {
        worst.compare(&format!("{case}/gradient.memory"), memory.grad(&gradients).unwrap(), expected("memory"));
        compared.insert("memory".to_string());
    }
    for (place, gradient) in parameters::of(&module).into_iter().zip(flat_gradients(&module, &mut gradients)) {
        let expected = expected(&place.path);
        assert_eq!(place.shape, expected.shape, "{case}: {}", place.path);
        let got = crate::support::values(gradient);
        worst.compare_values(&format!("{case}/gradient.{}", place.path), &got, &expected.values);
        compared.insert(place.path);
    }
    let made = fixture.names_under(&format!("{case}/gradient."));
    assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), compared, "{case}: every gradient is compared");
}

/// The mask as the crate's constructors make it: what the fixture passes explicitly is what they mean.
fn by_constructors(name: &str, keys: usize, given: &AttentionMask) -> AttentionMask {
    let padding = || {
        let mut padding = vec![false; B * keys];
        for place in [keys - 1, keys + 1, keys + 2] {
            padding[place] = true;
        }
        AttentionMask::padding(B, keys, padding).unwrap()
    };
    match name {
        "none" => AttentionMask::none(),
        "causal" => AttentionMask::causal(),
        "padding" => padding(),
        "both" => padding().union(&AttentionMask::causal()).unwrap(),
        _ => given.clone(),
    }
}
