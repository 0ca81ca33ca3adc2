//! Gradients of attention against central differences, both in f64.
//!
//! A binary of its own: the precision of a device is set once, before its first tensor.

use architecture::{ModelConfig, Positions};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use headcount_model::attention::{Attention, AttentionCall};
use headcount_model::parameters::{self, flat_gradients, flat_parameters, replace_parameters};
use kernels::AttentionMask;

/// Half the distance of the two points whose values are compared: the error of the difference is about its square.
const STEP: f64 = 1e-5;

struct Shape {
    batch: usize,
    queries: usize,
    /// None: self-attention.
    keys: Option<usize>,
    /// Width of a head; d_model is 8 times that, so that every head count divides it.
    width: usize,
}

/// 20 shapes: every batch, length and width from 1, self- and cross-attention, more keys than queries and fewer.
fn shapes() -> Vec<Shape> {
    let sizes = [
        (1, 1, None, 1),
        (1, 2, None, 1),
        (2, 3, None, 1),
        (3, 2, None, 2),
        (2, 4, None, 2),
        (1, 5, None, 3),
        (2, 7, None, 1),
        (4, 3, None, 1),
        (1, 9, None, 2),
        (2, 5, None, 4),
        (1, 1, Some(1), 1),
        (1, 1, Some(4), 1),
        (2, 2, Some(3), 1),
        (2, 3, Some(2), 2),
        (1, 4, Some(4), 2),
        (3, 2, Some(5), 1),
        (1, 3, Some(8), 3),
        (2, 6, Some(3), 1),
        (2, 5, Some(4), 2),
        (1, 2, Some(9), 4),
    ];
    sizes.into_iter().map(|(batch, queries, keys, width)| Shape { batch, queries, keys, width }).collect()
}

fn mask(name: &str, batch: usize, keys: usize) -> AttentionMask {
    // The last key of every other sample; where it is the only one, its rows are empty.
    let padding = || {
        let last = |index: usize| index % keys == keys - 1 && (index / keys).is_multiple_of(2);
        AttentionMask::padding(batch, keys, (0..batch * keys).map(last).collect()).unwrap()
    };
    match name {
        "none" => AttentionMask::none(),
        "causal" => AttentionMask::causal(),
        "padding" => padding(),
        "both" => padding().union(&AttentionMask::causal()).unwrap(),
        other => panic!("{other}"),
    }
}

/// Values in −1..1 from a linear congruential generator (Knuth's MMIX constants).
struct Numbers(u64);

impl Numbers {
    fn tensor<const N: usize>(&mut self, shape: [usize; N], device: &Device) -> Tensor<N> {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        };
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
        Tensor::from_data(TensorData::new(values, shape), device)
    }
}

fn number<const N: usize>(tensor: Tensor<N>) -> f64 {
    let values: Vec<f64> = tensor.into_data().try_into_vec().unwrap();
    assert_eq!(values.len(), 1);
    values[0]
}

/// One attention with everything that its output depends on.
#[derive(Clone)]
struct Case {
    module: Attention,
    x: Tensor<3>,
    memory: Option<Tensor<3>>,
    gates: Tensor<2>,
    replacement: Tensor<3>,
}

/// The sum of the output's entries with fixed factors: a number with a gradient at every entry of the output.
fn loss(case: &Case, mask: &AttentionMask, factors: &Tensor<3>) -> Tensor<1> {
    let ([batch, queries, _], [_, heads]) = (case.x.dims(), case.gates.dims());
    let [_, keys, _] = case.memory.as_ref().unwrap_or(&case.x).dims();
    let mask = mask.prepare([batch, heads, queries, keys], &case.x.device()).unwrap();
    let call = AttentionCall {
        mask: Some(&mask),
        gates: Some(&case.gates),
        replacement: Some(&case.replacement),
        ..Default::default()
    };
    (case.module.forward(case.x.clone(), case.memory.clone(), call).output * factors.clone()).sum()
}

#[test]
fn autodiff_agrees_with_central_differences() {
    let mut device = Device::flex();
    device.configure(FloatDType::F64).unwrap();
    let trained = device.clone().autodiff();

    let (mut numbers, mut cases, mut compared, mut worst) = (Numbers(1), 0, 0, 0.0f64);
    for (index, shape) in shapes().iter().enumerate() {
        for heads in [1, 2, 4, 8] {
            for name in ["none", "causal", "padding", "both"] {
                let Shape { batch, queries, keys, width } = *shape;
                let d_model = 8 * width;
                let config = ModelConfig {
                    d_model,
                    heads,
                    kv_heads: Some(if index % 3 == 0 { 1 } else { heads }),
                    key_bias: true,
                    positions: if index % 2 == 0 && d_model / heads % 2 == 0 {
                        Positions::Rope
                    } else {
                        Positions::None
                    },
                    ..Default::default()
                };
                let mask = mask(name, batch, keys.unwrap_or(queries));
                let factors = numbers.tensor([batch, queries, d_model], &device);
                let case = Case {
                    module: Attention::init(&config.attention(), index as u64, &trained).unwrap(),
                    x: (numbers.tensor([batch, queries, d_model], &device) * 2.0),
                    memory: keys.map(|keys| numbers.tensor([batch, keys, d_model], &device) * 2.0),
                    gates: numbers.tensor([if index % 2 == 0 { batch } else { 1 }, heads], &device) + 1.0,
                    replacement: numbers.tensor([heads, queries, d_model / heads], &device),
                };
                let gradients = by_autodiff(&case, &mask, &factors);
                let plain = Attention::init(&config.attention(), index as u64, &device).unwrap();
                let case = Case { module: plain, ..case };
                cases += 1;
                for (what, gradient) in gradients {
                    let direction = numbers.tensor(gradient.dims(), &device);
                    let slope = number((gradient.clone() * direction.clone()).sum());
                    let at = |step: f64| number(loss(&moved(&case, &what, direction.clone() * step), &mask, &factors));
                    let difference = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                    // Where a gradient is truly 0, as a key bias's is, what counts is the rounding of the loss.
                    let scale = slope.abs().max(difference.abs()).max(1e-3);
                    let deviation = (slope - difference).abs() / scale;
                    assert!(
                        deviation <= 1e-5,
                        "shape {index}, {heads} heads, mask {name}: along the gradient of {what} autodiff gives {slope}, \
                         central differences {difference}"
                    );
                    (compared, worst) = (compared + 1, worst.max(deviation));
                    if what == "key.bias" && config.positions == Positions::None {
                        assert!(slope.abs() < 1e-12, "a key bias adds the same to every score of a row: {slope}");
                    }
                }
            }
        }
    }
    println!("{cases} cases, {compared} gradients, greatest relative deviation {worst:.1e}");
    assert_eq!(cases, 20 * 4 * 4);
}

/// The gradient of every input and parameter, flattened, by name.
fn by_autodiff(case: &Case, mask: &AttentionMask, factors: &Tensor<3>) -> Vec<(String, Tensor<1>)> {
    let case = Case {
        module: case.module.clone(),
        x: Tensor::from_inner(case.x.clone()).require_grad(),
        memory: case.memory.clone().map(|memory| Tensor::from_inner(memory).require_grad()),
        gates: Tensor::from_inner(case.gates.clone()).require_grad(),
        replacement: Tensor::from_inner(case.replacement.clone()).require_grad(),
    };
    let mut gradients = loss(&case, mask, &Tensor::from_inner(factors.clone())).backward();
    let mut found = vec![
        ("x".to_string(), case.x.grad(&gradients).unwrap().flatten(0, 2)),
        ("gates".to_string(), case.gates.grad(&gradients).unwrap().flatten(0, 1)),
        ("replacement".to_string(), case.replacement.grad(&gradients).unwrap().flatten(0, 2)),
    ];
    if let Some(memory) = &case.memory {
        found.push(("memory".to_string(), memory.grad(&gradients).unwrap().flatten(0, 2)));
    }
    let parameters = parameters::of(&case.module).into_iter().map(|place| place.path);
    found.extend(parameters.zip(flat_gradients(&case.module, &mut gradients)));
    found
}

/// The case with one of its inputs or parameters moved.
fn moved(case: &Case, what: &str, by: Tensor<1>) -> Case {
    let mut case = case.clone();
    match what {
        "x" => case.x = case.x.clone() + by.reshape(case.x.dims()),
        "memory" => case.memory = case.memory.map(|memory| memory.clone() + by.reshape(memory.dims())),
        "gates" => case.gates = case.gates.clone() + by.reshape(case.gates.dims()),
        "replacement" => case.replacement = case.replacement.clone() + by.reshape(case.replacement.dims()),
        path => {
            let flat = parameters::of(&case.module).into_iter().zip(flat_parameters(&case.module));
            let flat = flat.map(|(place, tensor)| if place.path == path { tensor + by.clone() } else { tensor });
            let flat: Vec<_> = flat.collect();
            case.module = replace_parameters(case.module, flat);
        }
    }
    case
}
