//! Multi-head attention (Vaswani 2017, section 3.2), with grouped queries (Ainslie 2023), in the open: every node of
//! the computation is a line, and the maps are returned by the call rather than hooked.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, activation::softmax};

use crate::config::{Merge, ModelConfig, Positions};
use crate::dropout::DropoutAt;
use crate::mask::Prepared;
use crate::positions::rotate;
use crate::trace::Part;
use crate::weights::Weights;

/// Attention from Lq queries to Lk keys; self-attention where both come from one input.
///
/// | parameter | shape |
/// |---|---|
/// | `query.weight` | `[D, H·K]` |
/// | `key.weight`, `value.weight` | `[D, G·K]` |
/// | `output.weight` | `[H·K, D]`, or `[K, D]` when heads are averaged |
/// | `query.bias`, `key.bias`, `value.bias`, `output.bias` | the columns of their weight, where configured |
///
/// Columns `h·K .. (h+1)·K` belong to head h; query head h reads key/value head `h / (H/G)`, rounded down.
#[derive(Module, Debug)]
pub struct Attention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    heads: usize,
    kv_heads: usize,
    d_head: usize,
    average_heads: bool,
    rotate: bool,
}

/// What a call of [`Attention::forward`] takes besides its inputs.
#[derive(Clone, Copy, Default)]
pub struct AttentionCall<'a> {
    /// Forbidden connections.
    pub mask: Option<&'a Prepared>,
    /// Dropout on the weights, after the softmax. None in evaluation.
    pub dropout: Option<DropoutAt>,
    /// Factor on each head's context, `[H]`: 0 removes a head, 1 leaves it, and its gradient is the head's importance.
    pub gates: Option<&'a Tensor<1>>,
    /// Return the maps.
    pub maps: bool,
    /// Where the nodes of the computation are kept.
    pub trace: Option<Part<'a>>,
}

/// What [`Attention::forward`] gives.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[B, Lq, D]`. Where a query may read nothing its heads give zeros, so the output there is `output.bias`, or zero
    /// without one.
    pub output: Tensor<3>,
    /// `[B, H, Lq, Lk]`, before dropout: each row sums to 1, or is 0 where nothing may be read. None unless asked for.
    pub maps: Option<Tensor<4>>,
}

impl Attention {
    /// An attention for `config` with initial weights under `path`.
    pub fn new(config: &ModelConfig, path: &str, weights: &Weights) -> Self {
        let (d, h, g, k) = (config.d_model, config.heads, config.kv_heads(), config.d_head());
        let merged = match config.merge {
            Merge::Concat => h * k,
            Merge::Mean => k,
        };
        Self {
            query: weights.linear(&format!("{path}.query"), d, h * k, config.bias),
            key: weights.linear(&format!("{path}.key"), d, g * k, config.key_bias),
            value: weights.linear(&format!("{path}.value"), d, g * k, config.bias),
            output: weights.residual_linear(&format!("{path}.output"), merged, d, config.bias),
            heads: h,
            kv_heads: g,
            d_head: k,
            average_heads: config.merge == Merge::Mean,
            rotate: config.positions == Positions::Rope,
        }
    }

    /// `x` `[B, Lq, D]` reads itself, or `memory` `[B, Lk, D]` (cross-attention, where nothing is rotated).
    ///
    /// Keys that the mask forbids to every query, such as padding, may hold anything: NaN and infinity too leave no trace,
    /// neither in other rows' outputs nor in gradients.
    ///
    /// # Panics
    /// On inputs that are not `[B, L, D]`, gates that are not `[H]`, and a mask prepared for other lengths.
    pub fn forward(&self, x: Tensor<3>, memory: Option<Tensor<3>>, call: AttentionCall) -> AttentionOutput {
        let cross = memory.is_some();
        let unread = call.mask.and_then(|mask| mask.unread_keys.clone());
        // What no query may read must not matter, whatever it holds: its key and value are those of a zero vector. In
        // self-attention it still asks, but never with a NaN, whose gradient would reach every other key.
        let (x, memory) = match (memory, unread) {
            (Some(memory), Some(unread)) => (x, memory.mask_fill(unread, 0.0)),
            (Some(memory), None) => (x, memory),
            (None, Some(unread)) => {
                let cleared = x.clone().mask_fill(unread, 0.0);
                (cleared.clone().mask_where(x.clone().is_finite(), x), cleared)
            }
            (None, None) => (x.clone(), x),
        };
        let [b, lq, _] = x.dims();
        let [_, lk, _] = memory.dims();
        let (h, g, k) = (self.heads, self.kv_heads, self.d_head);

        let split = |z: Tensor<3>, heads: usize, length: usize| {
            z.reshape([b, length, heads, k]).swap_dims(1, 2) // [B, heads, L, K]
        };
        keep(call.trace, "query_input", &x);
        keep(call.trace, "key_input", &memory);
        let (query, key, value) = (self.query.forward(x), self.key.forward(memory.clone()), self.value.forward(memory));
        keep(call.trace, "query", &query);
        keep(call.trace, "key", &key);
        keep(call.trace, "value", &value);
        let (mut query, mut key, value) = (split(query, h, lq), split(key, g, lk), split(value, g, lk));
        if self.rotate && !cross {
            (query, key) = (rotate(query, 0), rotate(key, 0));
        }
        keep(call.trace, "query_heads", &query);
        keep(call.trace, "key_heads", &key);
        keep(call.trace, "value_heads", &value);
        let query = query * (1.0 / (k as f64).sqrt());

        // The H/G query heads of a group are more rows for their key head: no key is copied.
        let query = query.reshape([b, g, h / g * lq, k]);
        let scores = query.matmul(key.transpose()).reshape([b, h, lq, lk]);
        keep(call.trace, "scores", &scores);
        let maps = masked_softmax(scores, call.mask);
        keep(call.trace, "maps", &maps);

        let kept = match call.dropout {
            Some(dropout) => dropout.apply(maps.clone()),
            None => maps.clone(),
        };
        let context = kept.reshape([b, g, h / g * lq, lk]).matmul(value).reshape([b, h, lq, k]);
        let context = match call.gates {
            Some(gates) => context * gates.clone().reshape([1, h, 1, 1]),
            None => context,
        };
        keep(call.trace, "context", &context);
        let merged: Tensor<3> = if self.average_heads {
            context.mean_dim(1).reshape([b, lq, k])
        } else {
            context.swap_dims(1, 2).reshape([b, lq, h * k])
        };
        keep(call.trace, "merged", &merged);
        let output = self.output.forward(merged);
        keep(call.trace, "output", &output);
        AttentionOutput { output, maps: call.maps.then_some(maps) }
    }
}

fn keep<const N: usize>(trace: Option<Part>, node: &'static str, tensor: &Tensor<N>) {
    if let Some(trace) = trace {
        trace.keep(node, tensor);
    }
}

/// Softmax over the keys a query may read; a row with none is 0 and has a gradient of 0.
fn masked_softmax(scores: Tensor<4>, mask: Option<&Prepared>) -> Tensor<4> {
    let Some(mask) = mask else { return softmax(scores, 3) };
    let shape = scores.dims();
    let scores = match &mask.forbidden {
        // Minus infinity, not a large number: a score of −2e4 must not let the future through.
        Some(forbidden) => scores.mask_fill(forbidden.clone().expand(shape), f32::NEG_INFINITY),
        None => scores,
    };
    let maps = softmax(scores, 3);
    match &mask.empty_rows {
        Some(empty) => maps.mask_fill(empty.clone().expand(shape), 0.0),
        None => maps,
    }
}
