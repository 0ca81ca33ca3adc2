//! Every parameter of a model: its path, its shape, the part of the model that it belongs to and what it is drawn from.

use crate::attention::AttentionConfig;
use crate::config::{Dims, ModelConfig, Norm, NormKind};
use crate::init::{Init, Initial};

/// A parameter of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Such as `blocks.0.attention.query.weight`.
    pub path: String,
    /// Such as `[64, 64]`.
    pub shape: Vec<usize>,
    /// The part in whose count it is, see [`cost::parameters`](crate::cost::parameters).
    pub part: &'static str,
    /// What its entries are drawn from.
    pub initial: Initial,
}

impl Parameter {
    /// Number of entries.
    pub fn count(&self) -> u64 {
        self.shape.iter().map(|&length| length as u64).product()
    }
}

/// All parameters of the model that `config` and the task's `dims` make, both having passed [`ModelConfig::check`].
pub fn parameters(config: &ModelConfig, dims: Dims) -> Vec<Parameter> {
    let mut list = List { config, parameters: vec![] };
    if dims.inputs > 0 {
        list.input(dims.inputs);
    }
    if config.readout {
        list.push("readout".into(), &[config.d_model], "read-out", config.init.embedding());
    }
    list.stack("", dims.vocab, dims.length, &DECODER);
    if !config.tied && config.output_layer {
        list.linear("logits", [config.d_model, dims.outputs], true, 1.0, "logits");
    }
    if let Some(source) = dims.source {
        list.stack("encoder.", source.vocab, source.length, &ENCODER);
    }
    list.parameters
}

/// The parts of a stack.
struct StackParts {
    token: &'static str,
    position: &'static str,
    attention: &'static str,
    mlp: &'static str,
}

const DECODER: StackParts =
    StackParts { token: "token embedding", position: "position embedding", attention: "attention", mlp: "mlp" };
const ENCODER: StackParts = StackParts {
    token: "source tokens",
    position: "source positions",
    attention: "encoder attention",
    mlp: "encoder mlp",
};

struct List<'a> {
    config: &'a ModelConfig,
    parameters: Vec<Parameter>,
}

impl List<'_> {
    /// From `inputs` numbers to the stream.
    fn input(&mut self, inputs: usize) {
        let (d, f) = (self.config.d_model, self.config.d_ff());
        match self.config.input_layers {
            0 => {}
            1 => self.linear("input.linear", [inputs, d], true, 1.0, "input"),
            _ => {
                self.linear("input.up", [inputs, f], true, 1.0, "input");
                self.linear("input.down", [f, d], true, 1.0, "input");
            }
        }
    }

    fn stack(&mut self, path: &str, vocab: usize, length: usize, parts: &StackParts) {
        let config = self.config;
        let (d, embedding) = (config.d_model, config.init.embedding());
        if vocab > 0 {
            self.push(format!("{path}token.weight"), &[vocab, d], parts.token, embedding);
        }
        if let Some(shape) = config.positions.trained(length, d) {
            self.push(format!("{path}position.weight"), &shape, parts.position, embedding);
        }
        // Only the blocks beside an encoder attend to it.
        let has_cross = config.has_encoder() && path.is_empty();
        for block in (0..config.layers).map(|layer| format!("{path}blocks.{layer}")) {
            self.norm(&format!("{block}.norm1"));
            self.attention(&format!("{block}.attention"), parts.attention);
            if has_cross {
                self.norm(&format!("{block}.norm_cross"));
                self.attention(&format!("{block}.cross_attention"), "cross-attention");
            }
            if config.mlp {
                let (f, divisor) = (config.d_ff(), Init::residual_divisor(config.layers));
                self.norm(&format!("{block}.norm2"));
                self.linear(&format!("{block}.mlp.up"), [d, f], true, 1.0, parts.mlp);
                self.linear(&format!("{block}.mlp.down"), [f, d], true, divisor, parts.mlp);
            }
        }
        // After the last sublayer of a block there is one already.
        if config.norm == Norm::Pre {
            self.norm(&format!("{path}norm"));
        }
    }

    fn attention(&mut self, path: &str, part: &'static str) {
        let config: AttentionConfig = self.config.attention();
        let (d, query, kv, merged) = (config.d_model, config.query_width(), config.kv_width(), config.merged_width());
        let divisor = Init::residual_divisor(self.config.layers);
        for (name, sizes, bias, divisor) in [
            ("query", [d, query], config.bias, 1.0),
            ("key", [d, kv], config.key_bias, 1.0),
            ("value", [d, kv], config.bias, 1.0),
            ("output", [merged, d], config.bias, divisor),
        ] {
            self.linear(&format!("{path}.{name}"), sizes, bias, divisor, part);
        }
    }

    fn linear(&mut self, path: &str, [d_in, d_out]: [usize; 2], bias: bool, divisor: f64, part: &'static str) {
        let init = self.config.init;
        self.push(format!("{path}.weight"), &[d_in, d_out], part, init.weight(d_in, divisor));
        if bias {
            self.push(format!("{path}.bias"), &[d_out], part, init.bias(d_in));
        }
    }

    fn norm(&mut self, path: &str) {
        if self.config.norm == Norm::None {
            return;
        }
        let shape = [self.config.d_model];
        match self.config.norm_kind {
            NormKind::Layer => {
                self.push(format!("{path}.gamma"), &shape, "norms", Initial::Constant(1.0));
                self.push(format!("{path}.beta"), &shape, "norms", Initial::Constant(0.0));
            }
            NormKind::Length => self.push(format!("{path}.factor"), &[1], "norms", Initial::Constant(1.0)),
        }
    }

    fn push(&mut self, path: String, shape: &[usize], part: &'static str, initial: Initial) {
        self.parameters.push(Parameter { path, shape: shape.to_vec(), part, initial });
    }
}
