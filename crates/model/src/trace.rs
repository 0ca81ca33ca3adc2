//! What stands at the nodes of one forward pass: for those who look for a mistake rather than for a result.

use std::cell::RefCell;

use architecture::HostTensor;
use burn::tensor::Tensor;

/// Keeps every node of the forward passes that it is given to (see [`Call::trace`](crate::Call::trace)), in the order in
/// which they are computed.
///
/// | node of a decoder | shape |
/// |---|---|
/// | `embedding`, `encoder.embedding` | `[B, L, D]`, positions added |
/// | `blocks.i.attention.…` | see below; `encoder.blocks.i.attention.…`, `blocks.i.cross_attention.…` |
/// | `blocks.i.output`, `encoder.blocks.i.output` | `[B, L, D]` |
/// | `logits` | `[N, outputs]` |
///
/// | node of an attention | shape |
/// |---|---|
/// | `query_input`, `key_input` | `[B, Lq, D]`, `[B, Lk, D]`: what is projected |
/// | `query`, `key`, `value` | `[B, Lq, H·K]`, `[B, Lk, G·K]` twice |
/// | `query_heads`, `key_heads`, `value_heads` | `[B, H, Lq, K]`, `[B, G, Lk, K]` twice: split into heads, rotated where configured |
/// | `scores` | `[B, H, Lq, Lk]`, scaled and not masked |
/// | `maps` | `[B, H, Lq, Lk]`, after mask and softmax, before dropout |
/// | `context` | `[B, H, Lq, K]` |
/// | `merged` | `[B, Lq, H·K]`, or `[B, Lq, K]` where heads are averaged |
/// | `output` | `[B, Lq, D]` |
#[derive(Debug, Default)]
pub struct Trace {
    block: RefCell<String>,
    nodes: RefCell<Vec<Node>>,
}

/// One tensor of a forward pass.
#[derive(Clone, Debug)]
pub struct Node {
    /// Such as `blocks.0.attention.scores`.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    values: Tensor<1>,
}

impl Node {
    /// Its values on the host.
    pub fn to_host(&self) -> HostTensor {
        HostTensor { shape: self.shape.clone(), values: crate::parameters::host_values(self.values.clone()) }
    }
}

impl Trace {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The nodes kept so far.
    pub fn nodes(&self) -> Vec<Node> {
        self.nodes.borrow().clone()
    }

    /// Says which block, such as `blocks.0`, the nodes of [`Trace::part`] belong to from here on.
    pub fn enter(&self, block: String) {
        self.block.replace(block);
    }

    /// Keeps a node under its full name.
    pub fn keep<const N: usize>(&self, name: impl Into<String>, tensor: &Tensor<N>) {
        let (shape, values) = (tensor.dims().to_vec(), tensor.clone().flatten(0, N - 1));
        self.nodes.borrow_mut().push(Node { name: name.into(), shape, values });
    }

    /// A part of the block entered last, such as `attention`.
    pub fn part(&self, name: &'static str) -> PartTrace<'_> {
        PartTrace { trace: self, name }
    }
}

/// A part of a block, under whose name its nodes are kept.
#[derive(Clone, Copy, Debug)]
pub struct PartTrace<'a> {
    trace: &'a Trace,
    name: &'static str,
}

impl PartTrace<'_> {
    /// Keeps a node of this part.
    pub fn keep<const N: usize>(self, node: &'static str, tensor: &Tensor<N>) {
        let name = format!("{}.{}.{node}", self.trace.block.borrow(), self.name);
        self.trace.keep(name, tensor);
    }
}
