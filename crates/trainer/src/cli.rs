//! The command line: what can be asked, and nothing of how it is done.

mod bench;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use runs::Backend;

pub use bench::{BenchArguments, SizeArguments};

/// How many attention heads does a task need? Train matched arms and see.
#[derive(Debug, Parser)]
#[command(
    name = "trainer",
    version,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Exit codes: 0 done, 1 failed, 2 a mistake in the command or a file it names, 3 something that doctor or\n\
        runs found, 4 diverged (a loss or gradient that is not finite), 130 stopped and saved.\n\n\
        Examples:\n  \
        trainer --config configs/h8.toml                    train 8 heads, half a minute\n  \
        trainer --config configs/h8.toml --set model.heads=2 --seed 1\n  \
        trainer --config configs/h8.toml --dry-run          what it would cost\n  \
        trainer tasks registers --show 3                    look at samples"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub train: TrainArguments,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train one arm (the same as giving --config alone).
    Train(TrainArguments),
    /// Train the arms of an experiment over paired seeds and decide which is better.
    Compare(CompareArguments),
    /// Make results, figures and report.html anew from run directories: of an experiment, or of one run.
    Report(ReportArguments),
    /// Show what each attention head of a run reads and is worth.
    Heads(HeadsArguments),
    /// List the tasks, or explain one and show samples of it.
    Tasks(TasksArguments),
    /// Write a run's weights, config and an example into one safetensors file.
    Export(ExportArguments),
    /// Look for what is wrong with a config's model, or with a run: shapes, masks, leaks, gradients, and more.
    Doctor(DoctorArguments),
    /// List run directories: how far each is, how large, and whether it is damaged.
    Runs(RunsArguments),
    /// Show what a run's model says to a prompt or a sample, or how fast it decodes.
    Generate(GenerateArguments),
    /// Measure a training step: time by part, share of the machine's matmul peak, memory.
    Bench(BenchArguments),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Arguments of `train`.
#[derive(Args, Clone, Debug)]
pub struct TrainArguments {
    /// The config file, such as configs/h8.toml.
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// Override a key of the config, such as model.heads=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Seed of the initial weights, the training order and dropout.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where to compute: flex or ndarray (CPU), wgpu (any GPU), cuda, metal, rocm, vulkan.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// CPU threads; all cores unless set. On flex the results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Folder that the run directory is made in.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub out: PathBuf,
    /// Show the resolved config, parameters, FLOPs, memory, time and the output folder; train nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Train again although the run directory holds a run.
    #[arg(long)]
    pub force: bool,
    /// Show burn-train's live dashboard instead of a progress line (needs a terminal).
    #[arg(long, conflicts_with = "quiet")]
    pub tui: bool,
    /// Show no progress, only the result.
    #[arg(long)]
    pub quiet: bool,
    /// Report to the process that started this one (used by `compare`).
    #[arg(long, hide = true, conflicts_with_all = ["tui", "quiet"])]
    pub worker: bool,
}

impl TrainArguments {
    /// The overrides in the order in which they act: `--set` first, then the flags that stand for a key.
    pub fn all_overrides(&self) -> Vec<String> {
        let mut overrides = self.overrides.clone();
        overrides.extend(self.seed.map(|seed| format!("seed={seed}")));
        overrides.extend(self.backend.map(|backend| format!("backend={backend}")));
        overrides
    }
}

/// Arguments of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The experiment file, such as experiments/h1-vs-h8.toml.
    pub experiment: PathBuf,
    /// Folder that the experiment's folder is made in.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub out: PathBuf,
    /// Runs at once; as many as cores allow unless set. The results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// CPU threads of each run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Where to compute, for every arm.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// Take runs of other versions of this program or of other backends too, and say so in the result.
    #[arg(long)]
    pub mixed: bool,
    /// Show the arms, how they match and what they cost; train nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// The folder of an experiment, such as runs/h1-vs-h8, or of a single run, whose heads are analysed.
    pub folder: PathBuf,
    /// Show report.html in the browser.
    #[arg(long)]
    pub open: bool,
    /// Take runs of other versions of this program or of other backends too, and say so in the result.
    #[arg(long)]
    pub mixed: bool,
}

/// Arguments of `heads`.
#[derive(Args, Clone, Debug)]
pub struct HeadsArguments {
    /// The run directory.
    pub run: PathBuf,
    /// Print everything as JSON, each snapshot and the maps included: the content of heads.json in the run directory.
    #[arg(long)]
    pub json: bool,
    /// Analyse again although the run directory holds an analysis of these weights.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `tasks`.
#[derive(Args, Debug)]
pub struct TasksArguments {
    /// The task to explain; all are listed without it.
    pub task: Option<String>,
    /// Print this many samples.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub show: u64,
    /// A parameter of the task, such as seq_len=16; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The split that the samples are taken from.
    #[arg(long, default_value = "train", value_parser = ["train", "validation", "test"])]
    pub split: String,
    /// Seed of the run whose training samples are shown.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The run directory.
    pub run: PathBuf,
    /// The file to write; step-N.safetensors in the run directory unless set.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which checkpoint.
    #[arg(long, value_enum, default_value_t = Which::Last)]
    pub which: Which,
    /// The file's format.
    #[arg(long, default_value = "safetensors", value_parser = ["safetensors"])]
    pub format: String,
}

/// Arguments of `doctor`.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["run", "config"]))]
pub struct DoctorArguments {
    /// The run directory: its weights are looked at too.
    pub run: Option<PathBuf>,
    /// The config file, such as configs/h8.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Override a key of the config, such as model.heads=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "run")]
    pub overrides: Vec<String>,
    /// Seed of the initial weights and the data.
    #[arg(long, value_name = "N", conflicts_with = "run")]
    pub seed: Option<u64>,
    /// Where to compute, instead of where the config says.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// CPU threads; all cores unless set.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `runs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "States:\n  \
        done     all steps were done\n  \
        partial  begun and stopped; the same command goes on with it\n  \
        running  a process writes to it at this moment\n  \
        failed   it diverged\n  \
        damaged  a file of it is missing, can't be read, or is not what was written\n\n\
        Exit code 3 where one is damaged.")]
pub struct RunsArguments {
    /// Folders with run directories, at any depth, or run directories themselves.
    #[arg(value_name = "DIR", default_value = "runs")]
    pub folders: Vec<PathBuf>,
    /// Compare every checksum: of checkpoints, snapshots, manifests, configs and metrics.
    #[arg(long)]
    pub verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

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

/// Tokens of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids(pub Vec<u32>);

/// Numbers between spaces or commas; the error names the word that is none.
fn parse_ids(text: &str) -> Result<Ids, String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let ids = words.map(|word| {
        word.parse().map_err(|_| format!("`{word}` is no token: tokens are numbers from 0, between spaces or commas"))
    });
    ids.collect::<Result<Vec<u32>, String>>().map(Ids)
}

fn parse_temperature(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(temperature) if temperature >= 0.0 && temperature.is_finite() => Ok(temperature),
        _ => Err("a temperature is a finite number, at least 0".to_string()),
    }
}

/// A checkpoint that a run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// The final step, or where the run stopped.
    Last,
    /// The smallest validation loss.
    Best,
}

fn parse_backend(name: &str) -> Result<Backend, String> {
    name.parse()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn config_alone_means_train() {
        let cli =
            Cli::try_parse_from(["trainer", "--config", "a.toml", "--seed", "3", "--backend", "ndarray"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.train.config, Some("a.toml".into()));
        assert_eq!(cli.train.all_overrides(), ["seed=3", "backend=ndarray"]);
        let cli = Cli::try_parse_from(["trainer", "train", "--config", "a.toml"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Train(_))));
    }

    #[test]
    fn token_ids_stand_between_spaces_or_commas() {
        assert_eq!(parse_ids(" 3,1, 4\t1 "), Ok(Ids(vec![3, 1, 4, 1])));
        assert_eq!(parse_ids(""), Ok(Ids(vec![])));
        for (text, word) in [("1 x", "`x`"), ("-1", "`-1`"), ("1.5", "`1.5`"), ("4294967296", "`4294967296`")] {
            assert!(parse_ids(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn unknown_backend_names_the_known() {
        let error = Cli::try_parse_from(["trainer", "--config", "a.toml", "--backend", "wpgu"]).unwrap_err();
        assert!(error.to_string().contains("did you mean `wgpu`?"), "{error}");
    }
}
