//! How much is computed, so that a large model is examined in minutes too: about 2e12 FLOPs, beside some 40 passes over samples
//! that are the shorter and fewer the larger the model is.

use architecture::{Dims, SourceDims, cost};
use runs::Config;

/// The sizes that bound the work. Everything is counted, nothing is timed: the same config gives the same checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Positions of each sample; more where nothing is scored so early.
    pub length: usize,
    /// Positions of each source.
    pub source_length: usize,
    /// Attentions whose nodes are recomputed.
    pub attentions: usize,
    /// Rows of a projection that are recomputed.
    pub rows: usize,
    /// Parameters whose gradients are compared with differences.
    pub tensors: usize,
    /// Samples in the batches that are differentiated and overfitted.
    pub samples: usize,
    /// Updates within which those samples must be learnt.
    pub steps: u64,
    /// What was bounded, in words.
    pub bounds: Vec<String>,
}

/// Longest part of a sample that is looked at.
const LENGTH: usize = 64;
/// The same for a model of so many parameters that even this would take minutes.
const SHORT: (u64, usize) = (200_000_000, 16);
/// Multiplications that recomputing one projection may take.
const PRODUCTS: usize = 200_000_000;
/// The same for all projections together.
const ALL_PRODUCTS: usize = 4_000_000_000;
/// FLOPs that all passes of the gradient check may take.
const GRADIENT_FLOPS: u64 = 200_000_000_000;
/// FLOPs that all updates of the overfitting check may take.
const OVERFIT_FLOPS: u64 = 400_000_000_000;

impl Effort {
    /// The effort for `config`, whose model has `tensors` parameter tensors.
    pub fn new(config: &Config, tensors: usize) -> Self {
        let (model, dims) = (&config.model, config.dims());
        let parameters = cost::parameters(model, dims).total();
        let most = if parameters > SHORT.0 { SHORT.1 } else { LENGTH };
        let mut bounds = vec![];
        let mut bounded = |what: &str, full: usize, most: usize| {
            if full > most {
                bounds.push(format!("{what}: {most} of {full}"));
            }
            full.min(most)
        };
        let length = bounded("positions of each sample", dims.length, most);
        let source_length = dims.source.map_or(0, |source| bounded("positions of each source", source.length, most));
        let width = model.d_model * model.d_model.max(model.heads * model.d_head());
        let all_rows = 2 * length.max(source_length);
        let rows = bounded("rows of each projection recomputed", all_rows, (PRODUCTS / width).max(4));
        let stacks = if model.has_encoder() { 3 } else { 1 };
        // Queries, keys, values and outputs; shared by any two attentions, so that the first and the last are looked at.
        let each = 4 * rows * width;
        let attentions = bounded("attentions recomputed", stacks * model.layers, (ALL_PRODUCTS / each.max(1)).max(2));
        // The longer the samples, the fewer: 8 of length 32.
        let samples = (256 / (length + source_length).max(1)).clamp(2, 8);
        let short =
            Dims { length, source: dims.source.map(|source| SourceDims { length: source_length, ..source }), ..dims };
        let forward = cost::forward_flops(model, short, samples as u64, (samples * length) as u64).total();
        let differences = (GRADIENT_FLOPS / (2 * forward).max(1)).clamp(6, 64) as usize;
        let tensors = bounded("parameters whose gradients are compared with differences", tensors, differences);
        // Beside forward and backward, an update passes over every parameter some 30 times.
        let update = 3 * forward + 30 * parameters;
        let steps = bounded("updates to overfit a batch", 300, (OVERFIT_FLOPS / update.max(1)).max(5) as usize);
        Self { length, source_length, attentions, rows, tensors, samples, steps: steps as u64, bounds }
    }

    /// Whether there are too few updates to demand that a batch is learnt by heart.
    pub fn is_short(&self) -> bool {
        self.steps < 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort(text: &str) -> Effort {
        Effort::new(&Config::parse(&format!("[task]\nkind = \"registers\"\n{text}"), "test.toml").unwrap(), 20)
    }

    #[test]
    fn a_small_model_is_examined_whole() {
        let effort = effort("");
        assert_eq!(effort.bounds, Vec::<String>::new());
        assert_eq!((effort.length, effort.samples, effort.steps), (32, 8, 300));
        assert!(!effort.is_short());
    }

    #[test]
    fn a_large_model_is_bounded_and_says_so() {
        let effort = effort(
            "seq_len = 512\n[model]\nd_model = 4096\nheads = 32\nlayers = 4\n[train]\nbatch_size = 8\neval_batch = 8\n",
        );
        assert_eq!((effort.length, effort.samples, effort.steps), (16, 8, 5));
        assert!(effort.is_short());
        assert_eq!(effort.bounds.len(), 4, "{:?}", effort.bounds);
        assert_eq!(effort.bounds[0], "positions of each sample: 16 of 512");
        assert_eq!(effort.attentions, 4);
    }

    /// However deep a model is, what is recomputed on the host stays within the same number of multiplications.
    #[test]
    fn a_deep_model_is_looked_at_in_places() {
        let deep = effort("[model]\nd_model = 1024\nheads = 16\nlayers = 48\n");
        assert_eq!(deep.attentions, 29);
        assert!(deep.bounds.contains(&"attentions recomputed: 29 of 48".to_string()), "{:?}", deep.bounds);
        assert!(deep.attentions * 4 * deep.rows * 1024 * 1024 <= ALL_PRODUCTS);
    }
}
