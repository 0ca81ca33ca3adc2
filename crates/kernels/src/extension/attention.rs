use burn::backend::Flex;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::FlexTensor;

use crate::fused::attention::{Heads, Sizes, Target, Weighting, backward, forward, readable};
use crate::fused::buffer::{Tracked, contiguous, dims, slice, strided, tensor, unwritten};

/// A forward pass with what the backward pass reads.
pub(super) struct Pass<I> {
    pub contexts: FlexTensor,
    state: State<I>,
}

#[derive(Clone, Debug)]
pub(super) struct State<I> {
    inputs: I,
    moments: FlexTensor,
    weighting: Weighting,
    sizes: Sizes,
}

/// Queries, keys and values apart, `[B, heads, L, K]` each.
pub(super) type Apart = [FlexTensor; 3];

/// Queries, keys and values in one, `[B, L, (H + 2G)·K]`.
#[derive(Clone, Debug)]
pub(super) struct Packed(FlexTensor);

pub(super) trait Inputs {
    /// Queries, keys and values.
    fn heads(&self, sizes: Sizes) -> [Heads<'_>; 3];
}

impl Inputs for Apart {
    fn heads(&self, _: Sizes) -> [Heads<'_>; 3] {
        self.each_ref().map(Heads::of)
    }
}

impl Inputs for Packed {
    fn heads(&self, Sizes { h, g, lq, k, .. }: Sizes) -> [Heads<'_>; 3] {
        let width = (h + 2 * g) * k;
        [0, h, h + g].map(|head| Heads::columns(slice(&self.0), lq, width, head * k, k))
    }
}

impl Pass<Apart> {
    pub fn apart(query: FlexTensor, key: FlexTensor, value: FlexTensor, weighting: Weighting) -> Self {
        let inputs = [query, key, value].map(readable);
        let ([b, h, lq, k], [_, g, lk, _]) = (dims(&inputs[0]), dims(&inputs[1]));
        Self::run(inputs, Sizes { b, h, g, lq, lk, k }, weighting)
    }
}

impl Pass<Packed> {
    pub fn packed(projections: FlexTensor, [h, g]: [usize; 2], weighting: Weighting) -> Self {
        let [b, l, width] = dims(&projections);
        let sizes = Sizes { b, h, g, lq: l, lk: l, k: width / (h + 2 * g) };
        Self::run(Packed(contiguous(projections)), sizes, weighting)
    }
}

impl<I: Inputs> Pass<I> {
    fn run(inputs: I, sizes: Sizes, weighting: Weighting) -> Self {
        let Sizes { b, h, lq, k, .. } = sizes;
        let result = forward(sizes, inputs.heads(sizes), &weighting);
        let moments = tensor(result.moments, [b, h, lq, 2]);
        Self { contexts: by_head(result.contexts, [b, h, lq, k]), state: State { inputs, moments, weighting, sizes } }
    }
}

impl<I: Inputs> State<I> {
    /// Writes the gradients of the inputs, from that of the contexts.
    fn backward(&self, gradient: FlexTensor, targets: [Target; 3]) {
        let gradient = readable(gradient);
        let (inputs, moments) = (self.inputs.heads(self.sizes), slice(&self.moments));
        backward(self.sizes, inputs, Heads::of(&gradient), moments, &self.weighting, targets);
    }
}

/// `values` `[B, L, heads, K]` as a tensor `[B, heads, L, K]`.
fn by_head(values: Vec<f32>, [b, heads, l, k]: [usize; 4]) -> FlexTensor {
    let strides = [l * heads * k, k, heads * k, 1].map(|stride| stride as isize);
    strided(values, [b, heads, l, k], strides.to_vec())
}

#[derive(Debug)]
struct ApartStep;

impl Backward<Flex, 3> for ApartStep {
    type State = State<Apart>;

    fn backward(self, ops: Ops<State<Apart>, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
        let Sizes { b, h, g, lq, lk, k } = ops.state.sizes;
        let shapes = [[b, h, lq, k], [b, g, lk, k], [b, g, lk, k]];
        let mut gradients = shapes.map(|shape| unwritten(shape.iter().product()));
        let [query, key, value] = &mut gradients;
        let targets =
            [Target::new(query, lq, h * k, k), Target::new(key, lk, g * k, k), Target::new(value, lk, g * k, k)];
        ops.state.backward(grads.consume::<Flex>(&ops.node), targets);
        for ((parent, values), shape) in ops.parents.into_iter().zip(gradients).zip(shapes) {
            if let Some(parent) = parent {
                grads.register::<Flex>(parent.id, by_head(values, shape));
            }
        }
    }
}

#[derive(Debug)]
struct PackedStep;

impl Backward<Flex, 1> for PackedStep {
    type State = State<Packed>;

    fn backward(self, ops: Ops<State<Packed>, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let Sizes { b, h, g, lq, k, .. } = ops.state.sizes;
        let width = (h + 2 * g) * k;
        let mut values = unwritten(b * lq * width);
        let all = Target::new(&mut values, lq, width, k);
        let targets = [all, all.at_column(h * k), all.at_column((h + g) * k)];
        ops.state.backward(grads.consume::<Flex>(&ops.node), targets);
        if let [Some(parent)] = ops.parents {
            grads.register::<Flex>(parent.id, tensor(values, [b, lq, width]));
        }
    }
}

pub(super) fn tracked<C: CheckpointStrategy>(
    query: Tracked,
    key: Tracked,
    value: Tracked,
    weighting: Weighting,
) -> Tracked {
    let nodes = [query.node(), key.node(), value.node()];
    let pass = Pass::apart(query.into_primitive(), key.into_primitive(), value.into_primitive(), weighting);
    match ApartStep.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(pass.state, pass.contexts),
        OpsKind::UnTracked(prep) => prep.finish(pass.contexts),
    }
}

pub(super) fn tracked_packed<C: CheckpointStrategy>(
    projections: Tracked,
    heads: [usize; 2],
    weighting: Weighting,
) -> Tracked {
    let nodes = [projections.node()];
    let pass = Pass::packed(projections.into_primitive(), heads, weighting);
    match PackedStep.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(pass.state, pass.contexts),
        OpsKind::UnTracked(prep) => prep.finish(pass.contexts),
    }
}
