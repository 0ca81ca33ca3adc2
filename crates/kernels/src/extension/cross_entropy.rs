use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;

use crate::fused::buffer::{Tracked, contiguous, slice, tensor};
use crate::fused::cross_entropy::{backward, forward};

/// A forward pass with what the backward pass reads.
pub(super) struct Pass {
    pub losses: FlexTensor,
    state: State,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    logits: FlexTensor,
    normalisers: FlexTensor,
    targets: Vec<usize>,
}

impl Pass {
    pub fn run(logits: FlexTensor, targets: FlexTensor) -> Self {
        let logits = contiguous(logits);
        let targets: Vec<usize> = targets.into_data().iter::<i64>().map(|target| target as usize).collect();
        let result = forward(slice(&logits), &targets);
        let n = targets.len();
        let normalisers = tensor(result.normalisers, [n, 2]);
        Self { losses: tensor(result.losses, [n]), state: State { logits, normalisers, targets } }
    }
}

#[derive(Debug)]
struct Step;

impl Backward<Flex, 1> for Step {
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let State { logits, normalisers, targets } = ops.state;
        let gradient = contiguous(grads.consume::<Flex>(&ops.node));
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            let values = backward(slice(&gradient), slice(&logits), slice(&normalisers), &targets);
            grads.register::<Flex>(parent.id, tensor(values, logits.layout().shape().clone()));
        }
    }
}

pub(super) fn tracked<C: CheckpointStrategy>(logits: Tracked, targets: FlexTensor) -> Tracked {
    let nodes = [logits.node()];
    let pass = Pass::run(logits.into_primitive(), targets);
    match Step.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(pass.state, pass.losses),
        OpsKind::UnTracked(prep) => prep.finish(pass.losses),
    }
}
