//! Multi-head attention (Vaswani 2017, section 3.2), with grouped queries (Ainslie 2023): projections, heads and their merge.
//! What happens between is [`kernels::attention()`], in the open where maps or nodes are asked for: they are returned by the call
//! rather than hooked.

use architecture::{AttentionConfig, Init, Merge, ModelError, Positions, ScoreScale};
use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Bool, Device, Tensor};
use kernels::PreparedMask;
use kernels::attention::{self, Attending, Projection, attention, self_attention};

use crate::cache::{KeyValues, Past};
use crate::dropout::DropoutAt;
use crate::initial::InitialWeights;
use crate::layers::projected;
use crate::positions::{Span, rotate};
use crate::trace::PartTrace;

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
    #[module(skip)]
    scale: ScoreScale,
    #[module(skip)]
    positions: Positions,
}

/// What a call of [`Attention::forward`] takes besides its inputs.
#[derive(Clone, Copy, Default)]
pub struct AttentionCall<'a> {
    /// Forbidden connections.
    pub mask: Option<&'a PreparedMask>,
    /// Dropout on the weights, after the softmax. None in evaluation.
    pub dropout: Option<DropoutAt>,
    /// Factor on each head's context, `[1, H]` for all samples or `[B, H]` for each: 0 removes a head, 1 leaves it, and its
    /// gradient is the head's importance.
    pub gates: Option<&'a Tensor<2>>,
    /// What takes the place of a removed head's context, `[H, Lq, K]`: with gate g the context is `g·context + (1 − g)·this`.
    /// Zero unless set; without gates it does nothing.
    pub replacement: Option<&'a Tensor<3>>,
    /// Where the tokens stand, for rotation; from 0 on where None.
    pub span: Option<&'a Span>,
    /// Return the maps.
    pub maps: bool,
    /// Return the contexts.
    pub contexts: bool,
    /// Where the nodes of the computation are kept.
    pub trace: Option<PartTrace<'a>>,
}

/// Weights that are dropped, and their probability.
type Dropped = Option<(Tensor<4, Bool>, f64)>;

impl AttentionCall<'_> {
    /// Whether the nodes between projections and contexts are asked for.
    fn shows_nodes(&self) -> bool {
        self.maps || self.trace.is_some()
    }

    /// Of scores `[B, H, Lq, Lk]`.
    fn dropped(&self, scores: [usize; 4], device: &Device) -> Dropped {
        let dropout = self.dropout?;
        Some((dropout.dropped(scores, device)?, dropout.probability()))
    }
}

/// What [`Attention::forward`] gives.
#[derive(Clone, Debug)]
pub struct AttentionOutput {
    /// `[B, Lq, D]`. Where a query may read nothing its heads give zeros, so the output there is `output.bias`, or zero
    /// without one.
    pub output: Tensor<3>,
    /// `[B, H, Lq, Lk]`, before dropout: each row sums to 1, or is 0 where nothing may be read. None unless asked for.
    pub maps: Option<Tensor<4>>,
    /// Each head's context before its gate, `[B, H, Lq, K]`. None unless asked for.
    pub contexts: Option<Tensor<4>>,
}

impl Attention {
    /// An attention of its own on `device`, with the initial weights that PyTorch would draw, under `seed`.
    ///
    /// # Errors
    /// What [`AttentionConfig::check`] refuses.
    pub fn init(config: &AttentionConfig, seed: u64, device: &Device) -> Result<Self, ModelError> {
        config.check()?;
        Ok(Self::new(config, "attention", &InitialWeights::new(Init::Torch, 1, seed, device)))
    }

    /// An attention in a model, with initial weights under `path`. `config` has passed its check.
    pub fn new(config: &AttentionConfig, path: &str, initial: &InitialWeights) -> Self {
        let (d, query, kv) = (config.d_model, config.query_width(), config.kv_width());
        Self {
            query: initial.linear(&format!("{path}.query"), d, query, config.bias),
            key: initial.linear(&format!("{path}.key"), d, kv, config.key_bias),
            value: initial.linear(&format!("{path}.value"), d, kv, config.bias),
            output: initial.residual_linear(&format!("{path}.output"), config.merged_width(), d, config.bias),
            heads: config.heads,
            kv_heads: config.kv_heads,
            d_head: config.d_head,
            average_heads: config.merge == Merge::Mean,
            scale: config.scale,
            positions: config.positions,
        }
    }

    /// `x` `[B, Lq, D]` reads itself, or `memory` `[B, Lk, D]` (cross-attention, where nothing is rotated).
    ///
    /// Keys that the mask forbids to every query, such as padding, may hold anything: NaN and infinity too leave no trace,
    /// neither in other rows' outputs nor in gradients.
    ///
    /// # Panics
    /// On inputs that are not `[B, L, D]`, gates that are not `[1, H]` or `[B, H]`, a replacement that isn't `[H, Lq, K]`, and
    /// a mask prepared for other lengths.
    pub fn forward(&self, x: Tensor<3>, memory: Option<Tensor<3>>, call: AttentionCall) -> AttentionOutput {
        match memory {
            Some(memory) => self.read(x, self.memory(memory, call.mask, call.trace), call),
            None => self.read_itself(x, None, call),
        }
    }

    /// `x` `[B, Lq, D]` reads `past` and itself, and is added to `past`; without one it reads itself alone. The mask is for
    /// scores from Lq queries to all keys, of which those of `x` are the last.
    pub(crate) fn read_itself(&self, x: Tensor<3>, past: Option<&mut Past>, call: AttentionCall) -> AttentionOutput {
        let l = x.dims()[1];
        let has_unread = call.mask.is_some_and(|mask| mask.unread_keys().is_some());
        if past.is_none() && !has_unread && !self.positions.rotates() && !call.shows_nodes() {
            let dropped = call.dropped([x.dims()[0], self.heads, l, l], &x.device());
            let projections = [&self.query, &self.key, &self.value].map(|layer| Projection {
                weight: layer.weight.val(),
                bias: layer.bias.as_ref().map(|bias| bias.val()),
            });
            let context = self_attention(x, projections, self.d_head, self.attending(&call, &dropped));
            return self.merge(context, None, call);
        }
        // What no query may read must not matter, whatever it holds: its key and value are those of a zero vector. Here
        // it still asks, but never with a NaN, whose gradient would reach every other key.
        let (asking, read) = match call.mask.and_then(|mask| mask.unread_keys().cloned()) {
            Some(unread) => {
                let keys = unread.dims()[1];
                let unread = if keys > l { unread.narrow(1, keys - l, l) } else { unread };
                let cleared = x.clone().mask_fill(unread, 0.0);
                (cleared.clone().mask_where(x.clone().is_finite(), x), cleared)
            }
            None => (x.clone(), x),
        };
        let start = Span::new(0, l);
        let span = Some(call.span.unwrap_or(&start));
        let (query, new) = (self.queries(asking, span, call.trace), self.keys_and_values(read, span, call.trace));
        let all = match past {
            Some(past) => past.add(new),
            None => new,
        };
        self.attend(query, all, call)
    }

    /// `x` `[B, Lq, D]` reads the keys and values that [`Attention::memory`] gave.
    pub(crate) fn read(&self, x: Tensor<3>, memory: KeyValues, call: AttentionCall) -> AttentionOutput {
        self.attend(self.queries(x, None, call.trace), memory, call)
    }

    /// What cross-attention reads of `memory` `[B, Lk, D]`; keys that `mask` forbids to every query are those of a zero
    /// vector.
    pub(crate) fn memory(&self, memory: Tensor<3>, mask: Option<&PreparedMask>, trace: Option<PartTrace>) -> KeyValues {
        let memory = match mask.and_then(|mask| mask.unread_keys().cloned()) {
            Some(unread) => memory.mask_fill(unread, 0.0),
            None => memory,
        };
        self.keys_and_values(memory, None, trace)
    }

    fn attending<'a>(&self, call: &AttentionCall<'a>, dropped: &'a Dropped) -> Attending<'a> {
        let own = match self.scale {
            ScoreScale::SqrtDHead => None, // what the kernels do unless told otherwise
            other => Some(other.factor(self.d_head)),
        };
        Attending {
            scale: own,
            mask: call.mask,
            dropout: dropped.as_ref().map(|(dropped, probability)| (dropped, *probability)),
        }
    }

    /// `[B, Lq, D]` to `[B, H, Lq, K]`, rotated as configured where the tokens' places are given.
    fn queries(&self, x: Tensor<3>, span: Option<&Span>, trace: Option<PartTrace>) -> Tensor<4> {
        keep(trace, "query_input", &x);
        let projected = projected(&self.query, x);
        keep(trace, "query", &projected);
        let queries = self.rotated(self.split(projected, self.heads), span);
        keep(trace, "query_heads", &queries);
        queries
    }

    /// `[B, Lk, D]` to `[B, G, Lk, K]`, the keys rotated as configured where the tokens' places are given.
    fn keys_and_values(&self, x: Tensor<3>, span: Option<&Span>, trace: Option<PartTrace>) -> KeyValues {
        keep(trace, "key_input", &x);
        let (key, value) = (projected(&self.key, x.clone()), projected(&self.value, x));
        keep(trace, "key", &key);
        keep(trace, "value", &value);
        let (keys, values) = (self.rotated(self.split(key, self.kv_heads), span), self.split(value, self.kv_heads));
        keep(trace, "key_heads", &keys);
        keep(trace, "value_heads", &values);
        KeyValues { keys, values }
    }

    fn rotated(&self, x: Tensor<4>, span: Option<&Span>) -> Tensor<4> {
        match span {
            Some(span) => rotate(self.positions, x, span),
            None => x,
        }
    }

    /// `[B, L, heads·K]` to `[B, heads, L, K]`.
    fn split(&self, z: Tensor<3>, heads: usize) -> Tensor<4> {
        let [b, length, _] = z.dims();
        z.reshape([b, length, heads, self.d_head]).swap_dims(1, 2)
    }

    /// Attention, its merge and the output projection, from queries `[B, H, Lq, K]`.
    fn attend(&self, query: Tensor<4>, KeyValues { keys, values }: KeyValues, call: AttentionCall) -> AttentionOutput {
        let [b, h, lq, _] = query.dims();
        let dropped = call.dropped([b, h, lq, keys.dims()[2]], &query.device());
        let attending = self.attending(&call, &dropped);
        let (context, maps) = if call.shows_nodes() {
            let attended = attention::plain(query, keys, values, attending);
            keep(call.trace, "scores", &attended.scores);
            keep(call.trace, "maps", &attended.maps);
            (attended.contexts, call.maps.then_some(attended.maps))
        } else {
            (attention(query, keys, values, attending), None)
        };
        self.merge(context, maps, call)
    }

    /// The merge and the output projection of contexts `[B, H, Lq, K]`.
    fn merge(&self, context: Tensor<4>, maps: Option<Tensor<4>>, call: AttentionCall) -> AttentionOutput {
        let [b, h, lq, k] = context.dims();
        let contexts = call.contexts.then(|| context.clone());
        let context = gated(context, call);
        keep(call.trace, "context", &context);
        let merged: Tensor<3> = if self.average_heads {
            context.mean_dim(1).reshape([b, lq, k])
        } else {
            context.swap_dims(1, 2).reshape([b, lq, h * k])
        };
        keep(call.trace, "merged", &merged);
        let output = projected(&self.output, merged);
        keep(call.trace, "output", &output);
        AttentionOutput { output, maps, contexts }
    }
}

/// `context` `[B, H, Lq, K]` with each head's gate, and its replacement to the extent that the gate is closed.
fn gated(context: Tensor<4>, call: AttentionCall) -> Tensor<4> {
    let Some(gates) = call.gates else { return context };
    let [samples, h] = gates.dims();
    let gates = gates.clone().reshape([samples, h, 1, 1]);
    let context = context * gates.clone();
    match call.replacement {
        Some(replacement) => context + replacement.clone().unsqueeze::<4>() * (-gates + 1.0),
        None => context,
    }
}

fn keep<const N: usize>(trace: Option<PartTrace>, node: &'static str, tensor: &Tensor<N>) {
    if let Some(trace) = trace {
        trace.keep(node, tensor);
    }
}
