//! What a model costs, counted rather than measured.
//!
//! FLOPs are those of the matrix products: `2·m·n·k` each, attention over full `L×L` scores, logits where they are
//! computed; a backward pass counts as two forward passes (Kaplan 2020, section 2.1).

use crate::config::{Dims, ModelConfig};
use crate::parts::Parts;

/// Trainable parameters by part, in the order in which a sample meets them; what an encoder adds comes first, and is there
/// only where the task has a source.
pub fn parameters(config: &ModelConfig, dims: Dims) -> Parts {
    let of_source = ["source tokens", "source positions", "encoder attention", "encoder mlp", "cross-attention"];
    let of_source = of_source.into_iter().filter(|_| dims.source.is_some());
    let input: &[&str] = match (dims.inputs > 0, config.readout) {
        (true, true) => &["input", "read-out"],
        (true, false) => &["input"],
        (false, true) => &["token embedding", "read-out"],
        (false, false) => &["token embedding"],
    };
    let own = ["position embedding", "attention", "mlp", "norms", "logits"];
    let all = of_source.chain(input.iter().copied()).chain(own);
    let mut parts: Parts = all.map(|part| (part, 0)).collect();
    for parameter in crate::parameters::parameters(config, dims) {
        parts.add(parameter.part, parameter.count());
    }
    parts
}

/// FLOPs of one forward pass over `batch` inputs of full length, with logits at `scored` positions, by part.
pub fn forward_flops(config: &ModelConfig, dims: Dims, batch: u64, scored: u64) -> Parts {
    let (d, layers, l) = (config.d_model as u64, config.layers as u64, dims.length as u64);
    let (query, kv, merged) = widths(config);
    let tokens = batch * l;
    let mlp = |tokens: u64| if config.mlp { layers * 4 * tokens * d * config.d_ff() as u64 } else { 0 };
    // From Lq queries to Lk keys in each sample.
    let projections = |lq: u64, lk: u64| layers * 2 * batch * d * (lq * (query + merged) + lk * 2 * kv);
    let products = |lq: u64, lk: u64| layers * 2 * batch * lq * lk * query;
    let mut parts = vec![];
    if let Some(source) = dims.source {
        let ls = source.length as u64;
        parts.extend([
            ("encoder projections", projections(ls, ls)),
            ("encoder scores", products(ls, ls)),
            ("encoder contexts", products(ls, ls)),
            ("encoder mlp", mlp(batch * ls)),
            ("cross projections", projections(l, ls)),
            ("cross scores", products(l, ls)),
            ("cross contexts", products(l, ls)),
        ]);
    }
    if dims.inputs > 0 {
        let (f, hidden) = (dims.inputs as u64, config.d_ff() as u64);
        let columns = match config.input_layers {
            0 => 0,
            1 => f * d,
            _ => f * hidden + hidden * d,
        };
        // A read-out is a vector of its own.
        let read = tokens - batch * u64::from(config.readout);
        parts.push(("input", 2 * read * columns));
    }
    let logits = if config.output_layer { 2 * scored * d * dims.outputs as u64 } else { 0 };
    parts.extend([
        ("attention projections", projections(l, l)),
        ("attention scores", products(l, l)),
        ("attention contexts", products(l, l)),
        ("mlp", mlp(tokens)),
        ("logits", logits),
    ]);
    Parts::from_iter(parts)
}

/// FLOPs of one training step: forward and backward.
pub fn step_flops(config: &ModelConfig, dims: Dims, batch: u64, scored: u64) -> Parts {
    forward_flops(config, dims, batch, scored).iter().map(|(part, flops)| (part, 3 * flops)).collect()
}

/// Bytes of the keys and values that generation caches, in f32: 2 · layers · G · K for each of `batch · positions`. With an
/// encoder its source counts towards the positions.
pub fn cache_bytes(config: &ModelConfig, batch: u64, positions: u64) -> u64 {
    let (_, kv, _) = widths(config);
    2 * config.layers as u64 * kv * batch * positions * size_of::<f32>() as u64
}

/// Columns of the query projection, of each of key and value, and rows of the output projection.
fn widths(config: &ModelConfig) -> (u64, u64, u64) {
    let attention = config.attention();
    (attention.query_width() as u64, attention.kv_width() as u64, attention.merged_width() as u64)
}
