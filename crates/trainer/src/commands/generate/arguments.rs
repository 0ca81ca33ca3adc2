//! What `trainer generate` can be asked.

use std::path::PathBuf;

use clap::Args;
use runs::Backend;

use crate::cli::values::{Ids, parse_backend, parse_ids, parse_temperature};

/// Arguments of `generate`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        trainer generate runs/sort-seed0-... --sample 0             source, generated, expected\n  \
        trainer generate runs/sort-seed0-... --source \"9 3 3 7\"\n  \
        trainer generate runs/h8-seed0-... --prompt 0,5,10,15,1     the class at each position\n  \
        trainer generate --config configs/h8.toml --bench           tokens a second, cache bytes")]
pub struct GenerateArguments {
    /// The run directory.
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub run: Option<PathBuf>,
    /// Tokens to go on from, as numbers; in sequence-to-sequence tasks the beginning of the target.
    #[arg(long, value_name = "IDS", value_parser = parse_ids)]
    pub prompt: Option<Ids>,
    /// What an encoder reads, as numbers.
    #[arg(long, value_name = "IDS", value_parser = parse_ids)]
    pub source: Option<Ids>,
    /// Take the prompt, or the source, from sample N of the validation set, and show what is expected.
    #[arg(long, value_name = "N", conflicts_with_all = ["prompt", "source"])]
    pub sample: Option<u64>,
    /// Generate at most N tokens, each read in turn; without it a decoder's answer at each position is shown.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub tokens: Option<u32>,
    /// Draw tokens from the softmax of logits / T; 0 takes the largest.
    #[arg(long, value_name = "T", default_value_t = 0.0, value_parser = parse_temperature, allow_negative_numbers = true)]
    pub temperature: f64,
    /// Draw among the K largest logits only.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub top_k: Option<u32>,
    /// Names the random numbers: the same seed draws the same tokens.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Beyond the context the model was trained on, go on from its last tokens (each then costs a full pass).
    #[arg(long)]
    pub window: bool,
    /// The checkpoint of this step; the last one unless set.
    #[arg(long, value_name = "N", conflicts_with = "best")]
    pub step: Option<u64>,
    /// The checkpoint with the smallest validation loss.
    #[arg(long)]
    pub best: bool,
    /// Where to compute; the run's backend unless set.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// Measure tokens a second with and without the cache, with untrained weights, by the number of key/value heads.
    #[arg(long, conflicts_with_all = ["prompt", "source", "sample", "tokens", "temperature", "top_k", "window", "step", "best"])]
    pub bench: bool,
    /// With --bench: the config file, instead of a run.
    #[arg(long, value_name = "FILE", requires = "bench")]
    pub config: Option<PathBuf>,
    /// With --config: override a key of the config, such as model.layers=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    pub overrides: Vec<String>,
    /// With --bench: lengths of context to measure at.
    #[arg(long, value_name = "LIST", requires = "bench", value_delimiter = ',', default_values_t = [128, 512, 2048],
        value_parser = clap::value_parser!(u32).range(1..=1 << 17))]
    pub context: Vec<u32>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
