use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;

use super::{Masks, Tracked};
use crate::fused::attention::{Heads, Sizes, backward, forward, readable};
use crate::fused::buffer::{dims, slice, strided, tensor};

/// A forward pass with what the backward pass reads.
pub(super) struct Pass {
    pub contexts: FlexTensor,
    state: State,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    inputs: [FlexTensor; 3],
    moments: FlexTensor,
    masks: Masks,
    sizes: Sizes,
}

impl Pass {
    pub fn run(query: FlexTensor, key: FlexTensor, value: FlexTensor, masks: Masks) -> Self {
        let inputs = [query, key, value].map(readable);
        let ([b, h, lq, k], [_, g, lk, _]) = (dims(&inputs[0]), dims(&inputs[1]));
        let sizes = Sizes { b, h, g, lq, lk, k };
        let scale = scale(sizes);
        let heads = inputs.each_ref().map(Heads::of);
        let result = forward(sizes, heads, scale, &masks.forbidden, masks.dropped.as_ref());
        let moments = tensor(result.moments, [b, h, lq, 2]);
        Self { contexts: by_head(result.contexts, [b, h, lq, k]), state: State { inputs, moments, masks, sizes } }
    }
}

/// Of scores.
fn scale(sizes: Sizes) -> f32 {
    1.0 / (sizes.k as f32).sqrt()
}

/// `values` `[B, L, heads, K]` as a tensor `[B, heads, L, K]`.
fn by_head(values: Vec<f32>, [b, heads, l, k]: [usize; 4]) -> FlexTensor {
    let strides = [l * heads * k, k, heads * k, 1].map(|stride| stride as isize);
    strided(values, [b, heads, l, k], strides.to_vec())
}

#[derive(Debug)]
struct Step;

impl Backward<Flex, 3> for Step {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let state = ops.state;
        let Sizes { b, h, g, lq, lk, k } = state.sizes;
        let gradient = readable(grads.consume::<Flex>(&ops.node));
        let (inputs, moments) = (state.inputs.each_ref().map(Heads::of), slice(&state.moments));
        let Masks { forbidden, dropped } = &state.masks;
        let result = backward(
            state.sizes,
            inputs,
            Heads::of(&gradient),
            moments,
            scale(state.sizes),
            forbidden,
            dropped.as_ref(),
        );
        let shapes = [[b, h, lq, k], [b, g, lk, k], [b, g, lk, k]];
        let gradients = [result.query, result.key, result.value];
        for ((parent, values), shape) in ops.parents.into_iter().zip(gradients).zip(shapes) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, by_head(values, shape));
            }
        }
    }
}

pub(super) fn tracked<C: CheckpointStrategy>(query: Tracked, key: Tracked, value: Tracked, masks: Masks) -> Tracked {
    let nodes = [query.node(), key.node(), value.node()];
    let pass = Pass::run(query.into_primitive(), key.into_primitive(), value.into_primitive(), masks);
    match Step.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(pass.state, pass.contexts),
        OpsKind::UnTracked(prep) => prep.finish(pass.contexts),
    }
}
