use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;

use crate::activation::Activation;
use crate::fused::Matrix;
use crate::fused::buffer::{Tracked, contiguous, dims, slice, tensor};
use crate::fused::linear::{Gradient, Wanted, backward, forward};

/// A forward pass with what the backward pass reads.
pub(super) struct Pass {
    pub output: FlexTensor,
    state: State,
}

#[derive(Clone, Debug)]
pub(super) struct State {
    x: FlexTensor,
    weight: FlexTensor,
    slope: Option<FlexTensor>,
}

impl Pass {
    pub fn run(
        x: FlexTensor,
        weight: FlexTensor,
        bias: Option<FlexTensor>,
        activation: Activation,
        keep: bool,
    ) -> Self {
        let (x, weight) = (contiguous(x), readable(weight));
        let bias = bias.map(contiguous);
        let result = forward(rows(&x), matrix(&weight), bias.as_ref().map(slice), activation, keep);
        let [_, o] = dims(&weight);
        let mut shape = x.layout().shape().clone();
        if let Some(last) = shape.iter_mut().last() {
            *last = o;
        }
        let slope = result.slope.map(|slope| tensor(slope, shape.clone()));
        Self { output: tensor(result.output, shape), state: State { x, weight, slope } }
    }
}

/// The last dimension as columns, all others as rows.
fn rows(x: &FlexTensor) -> Matrix<'_> {
    let shape = x.layout().shape();
    let columns = shape[shape.num_dims() - 1];
    Matrix::new(slice(x), shape.num_elements() / columns.max(1), columns)
}

/// A weight may be a transposed view, as that of tied embeddings.
fn matrix(weight: &FlexTensor) -> Matrix<'_> {
    let (layout, storage) = (weight.layout(), weight.storage::<f32>());
    let strides = [layout.strides()[0], layout.strides()[1]];
    Matrix::strided(&storage[layout.start_offset().min(storage.len())..], dims(weight), strides)
}

fn readable(weight: FlexTensor) -> FlexTensor {
    if weight.layout().strides().iter().all(|&stride| stride >= 0) { weight } else { weight.to_contiguous() }
}

/// The backward pass; N is 3 with a bias and 2 without.
#[derive(Debug)]
struct Step;

impl<const N: usize> Backward<Flex, N> for Step {
    type State = State;

    fn backward(self, ops: Ops<State, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let State { x, weight, slope } = ops.state;
        let mut gradient = contiguous(grads.consume::<Flex>(&ops.node));
        let is_wanted = |parent: usize| ops.parents.get(parent).is_some_and(Option::is_some);
        let wanted = Wanted { x: is_wanted(0), weight: is_wanted(1), bias: is_wanted(2) };
        let count = gradient.layout().num_elements();
        let gradient = match &slope {
            // In place, unless somebody else holds the gradient too: it is copied then.
            Some(slope) => {
                let first = gradient.layout().start_offset();
                let gradient = &mut gradient.storage_mut::<f32>()[first..first + count];
                Gradient::Activated { gradient, slope: slice(slope) }
            }
            None => Gradient::Plain(slice(&gradient)),
        };
        let result = backward(gradient, rows(&x), matrix(&weight), wanted);
        let [_, o]: [usize; 2] = dims(&weight);
        let shapes = [x.layout().shape().clone(), weight.layout().shape().clone(), [o].into()];
        let gradients = [result.x, result.weight, result.bias];
        for ((parent, values), shape) in ops.parents.into_iter().zip(gradients).zip(shapes) {
            if let (Some(parent), Some(values)) = (parent, values) {
                grads.register::<Flex>(parent.id, tensor(values, shape));
            }
        }
    }
}

pub(super) fn tracked_with_bias<C: CheckpointStrategy>(
    x: Tracked,
    weight: Tracked,
    bias: Tracked,
    activation: Activation,
) -> Tracked {
    let prepared = Step.prepare::<C>([x.node(), weight.node(), bias.node()]).compute_bound().stateful();
    let run =
        |keep| Pass::run(x.into_primitive(), weight.into_primitive(), Some(bias.into_primitive()), activation, keep);
    match prepared {
        OpsKind::Tracked(prep) => {
            let pass = run(true);
            prep.finish(pass.state, pass.output)
        }
        OpsKind::UnTracked(prep) => prep.finish(run(false).output),
    }
}

pub(super) fn tracked_without_bias<C: CheckpointStrategy>(
    x: Tracked,
    weight: Tracked,
    activation: Activation,
) -> Tracked {
    let prepared = Step.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful();
    let run = |keep| Pass::run(x.into_primitive(), weight.into_primitive(), None, activation, keep);
    match prepared {
        OpsKind::Tracked(prep) => {
            let pass = run(true);
            prep.finish(pass.state, pass.output)
        }
        OpsKind::UnTracked(prep) => prep.finish(run(false).output),
    }
}
