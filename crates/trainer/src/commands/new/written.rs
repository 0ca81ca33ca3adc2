//! The two files that are written, and how large a model and how many steps they propose.

use std::fmt::Write as _;

use data::metrics::{BITS_PER_BYTE, NMSE, deciding};
use runs::Config;

use super::guess::{Details, Kind};
use crate::commands::dry_run::Times;

/// Least and most steps of a proposed run.
const CONFIG_STEPS: (u64, u64) = (200, 10_000);
/// Head counts that are compared, as far as they divide the width.
const HEADS: [usize; 4] = [1, 2, 4, 8];
/// Pairs of the sweep.
const PAIRS: u64 = 10;
/// Most passes over a fixed training set: what more show is what is learnt by heart.
const PASSES: u64 = 60;

/// What is proposed for some data.
#[derive(Clone, Debug)]
pub struct Proposal {
    source: Source,
    /// Lines of `[task]` besides those of the source.
    task: Vec<&'static str>,
    /// Lines of `[model]`, each with why.
    model: Vec<(String, &'static str)>,
    /// The deciding metric, and the smallest difference in it that matters.
    metric: (&'static str, f64),
    /// Optimiser steps of a run.
    pub steps: u64,
    /// Minutes that the whole sweep takes here.
    pub minutes: f64,
    /// Runs of it.
    pub runs: u64,
}

/// What a config says of the data.
#[derive(Clone, Debug)]
pub struct Source {
    pub kind: Kind,
    /// The path as the config has it.
    pub files: String,
    /// The file of the tokens' names, beside the config.
    pub vocab_file: Option<String>,
    pub details: Details,
}

impl Source {
    /// Lines of `[task]` that say where the data are.
    fn task(&self) -> String {
        let mut text = format!("[task]\nkind = \"{}\"\nfiles = {:?}\n", self.kind.name(), self.files);
        if let Some(vocab_file) = &self.vocab_file {
            let _ = writeln!(text, "vocab_file = {vocab_file:?}");
        }
        if !self.details.columns.is_empty() {
            let _ = writeln!(text, "columns = {:?}", self.details.columns);
        }
        let length = self.details.length;
        match self.kind {
            Kind::Text => text += &format!("{:27} # bytes that are read\n", format!("seq_len = {length}")),
            Kind::Series => text += &format!("{:27} # rows that are read\n", format!("window = {length}")),
            Kind::Records | Kind::Vectors => {}
        }
        text
    }

    /// A config that is only read, to see what the files hold.
    pub fn to_look(&self) -> String {
        let model = if self.details.has_source { "[model]\narchitecture = \"encoder_decoder\"\n" } else { "" };
        format!("{}{model}", self.task())
    }
}

impl Proposal {
    /// By what is in the files, before anything is timed.
    pub fn first(source: &Source, seen: &Config) -> Self {
        let kind = source.kind;
        let task = &seen.task.task;
        let training = task.stored().map_or(0, |stored| stored.available(data::Split::Train));
        let tokens =
            training.saturating_mul(if kind == Kind::Text || kind == Kind::Series { 1 } else { task.seq_len() as u64 });
        let d_model = match tokens {
            0..30_000 => 32,
            30_000..3_000_000 => 64,
            _ => 128,
        };
        let mut model = vec![
            (format!("d_model = {d_model}"), "by the size of the data"),
            match kind {
                Kind::Text => ("layers = 2".into(), "a text needs what one layer finds, and what follows from it"),
                _ => ("layers = 1".into(), "one layer, so that its heads are all that looks around"),
            },
            ("heads = 4".into(), "what the sweep varies: 1, 2, 4, 8"),
        ];
        if task.source().is_some() {
            model.push(("architecture = \"encoder_decoder\"".into(), "an encoder reads the source"));
        } else if task.one_answer() && kind != Kind::Series {
            model.push(("causal = false".into(), "there is one answer for the whole sample, so all of it is read"));
            model.push(("readout = true".into(), "the answer is said at a position of its own, before the sample"));
        } else if kind == Kind::Records || kind == Kind::Vectors {
            model.push(("causal = false".into(), "true, if an answer may depend only on what stands before it"));
        }
        let deciding = deciding(task);
        let margin = if deciding == &BITS_PER_BYTE { 0.03 } else { 0.02 };
        let task = match kind {
            Kind::Text => vec!["# unit = \"characters\"       # for a text that is not ASCII"],
            Kind::Series => vec!["horizon = 1                 # rows that are said"],
            Kind::Records | Kind::Vectors => vec![],
        };
        let runs = HEADS.iter().filter(|heads| d_model % **heads == 0).count() as u64 * PAIRS;
        Self { source: source.clone(), task, model, metric: (deciding.key, margin), steps: 1000, minutes: 0.0, runs }
    }

    /// With as many steps as `minutes` allow for the sweep, where a run of `config` takes `times` and `at_once` of them run beside one
    /// another.
    pub fn within(source: &Source, config: &Config, times: Times, at_once: usize, minutes: f64) -> Self {
        let proposal = Self::first(source, config);
        let of_run = |steps: u64| {
            let mut config = config.clone();
            (config.train.steps, config.train.eval_every) = (steps, every(steps));
            times.of_run(&config)
        };
        let rounds = (proposal.runs as f64 / at_once.max(1) as f64).ceil();
        let seconds = minutes * 60.0 / rounds;
        // Evaluations aside, time goes with steps; what they take is in it twice, of which the mean is right.
        let most = config.task.sets.train_examples.map_or(CONFIG_STEPS.1, |examples| {
            (PASSES * examples / config.train.batch_size as u64).clamp(CONFIG_STEPS.0, CONFIG_STEPS.1)
        });
        let per_step = of_run(1000) / 1000.0;
        let steps = (seconds / per_step.max(1e-9)) as u64;
        let steps = (steps / 100 * 100).clamp(CONFIG_STEPS.0, most.max(CONFIG_STEPS.0) / 100 * 100);
        Self { steps, minutes: of_run(steps) * rounds / 60.0, ..proposal }
    }

    /// The config file.
    pub fn config(&self) -> String {
        let what = match self.source.kind {
            Kind::Text => "The next byte of a text",
            Kind::Records => "Sequences",
            Kind::Series => "A time series",
            Kind::Vectors => "Vectors",
        };
        let mut text = format!(
            "# {what} from {}, written by `trainer new`. What is not here has its default: --dry-run shows it all.\n\n{}",
            self.source.files.rsplit('/').next().unwrap_or_default(),
            self.source.task(),
        );
        for line in &self.task {
            let _ = writeln!(text, "{line}");
        }
        text += "\n[model]\n";
        for (line, why) in &self.model {
            let _ = writeln!(text, "{line:27} # {why}");
        }
        let _ = write!(
            text,
            "\n[train]\nsteps = {:<19} # by this machine's speed and the passes over the data\neval_every = {}\n",
            self.steps,
            every(self.steps)
        );
        text
    }

    /// The experiment file: the sweep over heads.
    pub fn sweep(&self, name: &str) -> String {
        let (metric, margin) = self.metric;
        let heads: Vec<String> = HEADS.iter().map(usize::to_string).collect();
        let threshold = if metric == NMSE.key {
            ""
        } else {
            "# threshold = 0.95          # a run at this value counts as having solved it\n"
        };
        format!(
            "# How many heads does {name} need?\n#\n# trainer compare {name}-heads.toml\n\nbase = \"{name}.toml\"\nbaseline = \"h1\"\n\
             regime = \"split\"             # equal parameters and FLOPs: the width is shared among the heads\nseeds = {PAIRS}\n\n\
             [about]\nquestion = \"How many heads does {name} need?\"\nminutes = {:.0}\n\n[metric]\nname = \"test_{metric}\"\n\
             margin = {margin}              # the smallest difference that matters to you: set it before the runs\n\
             at = \"best_validation\"       # fixed data: the last step would reward whoever overfits later\n{threshold}\n\
             # What do you expect? Said before the runs, it is held against them.\n# [predict]\n# sufficient = 2\n\n[grid]\n\
             \"model.heads\" = [{}]\n",
            self.minutes.max(1.0),
            heads.join(", ")
        )
    }

    /// Such as "test_accuracy".
    pub fn metric(&self) -> String {
        format!("test_{}", self.metric.0)
    }
}

/// Steps between evaluations: 20 of them in a run.
fn every(steps: u64) -> u64 {
    (steps / 20).max(1)
}
