//! What `trainer bench` can be asked.

use std::path::PathBuf;

use clap::Args;
use runs::Backend;

use crate::bench::Sizes;
use crate::bench::growth::Sweep;
use crate::cli::values::{parse_backend, parse_seconds};

/// Arguments of `bench`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Without a config or a size: configs/h8.toml. With a size: a decoder that reads uniform random\n\
        tokens, as in scripts/torch_step.py; sizes not given are 64, 2, 8, 32, 64, 64 in the order above.\n\n\
        Examples:\n  \
        trainer bench --config configs/mqar.toml --threads 1\n  \
        trainer bench --d-model 128 --heads 4 --json\n  \
        trainer bench --growth growth                       every size in turn, with figures, 5 minutes\n  \
        trainer bench --growth growth --sweep heads=1,8,64 --d-model 256"
)]
pub struct BenchArguments {
    /// The config file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Sizes", "growth"])]
    pub config: Option<PathBuf>,
    /// Override a key of the config, such as model.heads=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with_all = ["Sizes", "growth"])]
    pub overrides: Vec<String>,
    #[command(flatten)]
    pub sizes: SizeArguments,
    /// Where to compute; flex unless set here or in the config.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// CPU threads; all cores unless set.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Optimiser steps to take; the first quarter warms up.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(4..=1 << 20))]
    pub steps: u32,
    /// Take fewer steps, 4 or even 2, where all would need longer than this [with --growth: 3 for each point].
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Let each size grow in turn; write a figure for each, growth.csv and growth.json into this folder.
    #[arg(long, value_name = "FOLDER", conflicts_with = "json")]
    pub growth: Option<PathBuf>,
    /// With --growth: only this size (length, d_model, heads, vocabulary, batch), at these values; may be repeated.
    #[arg(long = "sweep", value_name = "SIZE[=LIST]", requires = "growth")]
    pub sweeps: Vec<Sweep>,
    /// Print one line of JSON.
    #[arg(long)]
    pub json: bool,
}

/// The sizes of a plain decoder.
#[derive(Args, Clone, Copy, Debug)]
#[group(id = "Sizes", multiple = true)]
pub struct SizeArguments {
    /// Width of a plain decoder.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub d_model: Option<u32>,
    /// Its blocks.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub layers: Option<u32>,
    /// Its heads.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub heads: Option<u32>,
    /// Samples of a step.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub batch: Option<u32>,
    /// Tokens of a sample.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 17))]
    pub seq: Option<u32>,
    /// Different tokens.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub vocab: Option<u32>,
}

impl SizeArguments {
    /// The sizes, if any is given, with the default of those that aren't.
    pub fn given(&self) -> Option<Sizes> {
        let given = [self.d_model, self.layers, self.heads, self.batch, self.seq, self.vocab];
        given.iter().any(Option::is_some).then(|| {
            let usual = Sizes::default();
            let or = |size: Option<u32>, usual: usize| size.map_or(usual, |size| size as usize);
            Sizes {
                d_model: or(self.d_model, usual.d_model),
                layers: or(self.layers, usual.layers),
                heads: or(self.heads, usual.heads),
                batch: or(self.batch, usual.batch),
                seq: or(self.seq, usual.seq),
                vocab: or(self.vocab, usual.vocab),
            }
        })
    }
}
