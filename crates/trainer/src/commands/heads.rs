//! `trainer heads`: what each attention head of a run does.

use std::path::{Path, PathBuf};

use analysis::Steps;
use burn::tensor::Device;
use clap::Args;
use data::metrics::deciding;
use report::{ExperimentRuns, terminal};
use runs::heads::{ExperimentHeads, HeadAnalysis, Tolerance};
use runs::{Backend, Config, RunError};

use super::files::{open_run, refuse_linked};
use crate::cli::values::parse_margin;
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::screen::busy::Busy;
use crate::screen::output::{next, print, print_json, tell};

/// Arguments of `heads`.
#[derive(Args, Clone, Debug)]
pub struct HeadsArguments {
    /// The run directory.
    pub run: PathBuf,
    /// Remove one head after the other, too, the one that is missed least first, and say how many the trained model uses: a few
    /// seconds more.
    #[arg(long)]
    pub prune: bool,
    /// With --prune: how much worse the model may be without the heads that it doesn't use; 0.02 unless set, of the test accuracy.
    #[arg(long, value_name = "MARGIN", requires = "prune", value_parser = parse_margin)]
    pub margin: Option<f64>,
    /// Print everything as JSON, each snapshot and the maps included: the content of heads.json in the run directory.
    #[arg(long)]
    pub json: bool,
    /// Analyse again although the run directory holds an analysis of these weights.
    #[arg(long)]
    pub force: bool,
}

pub fn run(arguments: &HeadsArguments) -> Result<Success, Failure> {
    let prune = arguments.prune.then(|| arguments.margin.unwrap_or(MARGIN));
    let analysis = of_run(&arguments.run, prune, arguments.force)?;
    if arguments.json {
        print_json(&analysis);
    } else {
        print(terminal::heads_table(&analysis));
        next(format!("trainer trace {}", arguments.run.display()));
    }
    Ok(Success::Done)
}

/// How much worse a run may be without heads that it doesn't use, where nobody says: what the experiments in the repository hold
/// for a difference that matters.
const MARGIN: f64 = 0.02;

/// By what a single run is judged.
fn tolerance(config: &Config, margin: f64) -> Tolerance {
    Tolerance { metric: deciding(&config.task.task), margin }
}

/// The analysis of the run in `folder`, kept there as heads.json; with a margin it is pruned, and `anew` makes it again.
pub fn of_run(folder: &Path, prune: Option<f64>, anew: bool) -> Result<HeadAnalysis, Failure> {
    let run = open_run(folder)?;
    refuse_linked(run.directory().path())?;
    let device = device(run.config().backend)?;
    let pruned = prune.map(|margin| tolerance(run.config(), margin));
    let busy = Busy::new("heads");
    let analysed = analysis::analyse_or_read(&run, Steps::All, pruned, &device, anew).map_err(Failure::failed)?;
    drop(busy);
    tell_unkept(analysed.not_kept.as_ref());
    Ok(analysed.analysis)
}

/// Says that what is shown could not be kept.
fn tell_unkept(not_kept: Option<&RunError>) {
    if let Some(error) = not_kept {
        tell(format!("the analysis is shown but not kept: {error}"));
    }
}

/// Analyses the heads of every run of an experiment, each of which keeps its own heads.json, and returns the experiment's. One run
/// an arm is pruned, within the margin of the experiment's metric.
pub fn of_experiment(runs: &ExperimentRuns) -> Result<ExperimentHeads, Failure> {
    let device = device(Backend::default())?;
    let metric = &runs.experiment.metric;
    let pruned = Some(Tolerance { metric: metric.name.kind, margin: metric.margin });
    let busy = Busy::new("heads");
    let progress = |done: usize, all: usize| busy.now(&format!("heads of run {} of {all}", (done + 1).min(all)));
    let (analysed, not_kept) = analysis::of_runs(&runs.records, pruned, &device, false, progress);
    drop(busy);
    tell_unkept(not_kept.as_ref());
    Ok(report::heads::of_experiment(runs, analysed))
}

/// Where heads are analysed: the same backend for every run, so that numbers compare, but for builds without it.
pub fn device(of_run: Backend) -> Result<Device, Failure> {
    let built = backend::built();
    let backend = if built.contains(&Backend::Flex) { Backend::Flex } else { of_run };
    let backend = if built.contains(&backend) { backend } else { built.first().copied().unwrap_or(backend) };
    backend::open(backend).map_err(Failure::failed)
}
