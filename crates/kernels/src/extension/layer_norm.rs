use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;

use crate::fused::buffer::{Tracked, contiguous, slice, tensor};
use crate::fused::layer_norm::{backward, forward};

/// A forward pass with what the backward pass reads.
pub(super) struct Pass {
    pub output: FlexTensor,
    state: State,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    x: FlexTensor,
    gamma: FlexTensor,
    moments: FlexTensor,
}

impl Pass {
    pub fn run(x: FlexTensor, gamma: FlexTensor, beta: FlexTensor, epsilon: f64) -> Self {
        let (x, gamma, beta) = (contiguous(x), contiguous(gamma), contiguous(beta));
        let result = forward(slice(&x), slice(&gamma), slice(&beta), epsilon as f32);
        let moments = result.moments.len();
        Self {
            output: tensor(result.output, x.layout().shape().clone()),
            state: State { x, gamma, moments: tensor(result.moments, [moments]) },
        }
    }
}

#[derive(Debug)]
struct Step;

impl Backward<Flex, 3> for Step {
    type State = State;

    fn backward(self, ops: Ops<State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let State { x, gamma, moments } = ops.state;
        let gradient = contiguous(grads.consume::<Flex>(&ops.node));
        let result = backward(slice(&gradient), slice(&x), slice(&moments), slice(&gamma));
        let shapes = [&x, &gamma, &gamma].map(|of| of.layout().shape().clone());
        let gradients = [result.x, result.gamma, result.beta];
        for ((parent, values), shape) in ops.parents.into_iter().zip(gradients).zip(shapes) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, tensor(values, shape));
            }
        }
    }
}

pub(super) fn tracked<C: CheckpointStrategy>(x: Tracked, gamma: Tracked, beta: Tracked, epsilon: f64) -> Tracked {
    let nodes = [x.node(), gamma.node(), beta.node()];
    let pass = Pass::run(x.into_primitive(), gamma.into_primitive(), beta.into_primitive(), epsilon);
    match Step.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(pass.state, pass.output),
        OpsKind::UnTracked(prep) => prep.finish(pass.output),
    }
}
