//! `trainer heads`: what each attention head of a run does.

use std::path::{Path, PathBuf};

use analysis::Steps;
use burn::tensor::Device;
use clap::Args;
use report::{ExperimentRuns, terminal};
use runs::heads::{ExperimentHeads, HeadAnalysis};
use runs::{Backend, RunError};

use super::files::{open_run, refuse_linked};
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::screen::busy::Busy;
use crate::screen::output::{print, print_json, tell};

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

pub fn run(arguments: &HeadsArguments) -> Result<Success, Failure> {
    let analysis = of_run(&arguments.run, arguments.force)?;
    if arguments.json {
        print_json(&analysis);
    } else {
        print(terminal::heads_table(&analysis));
    }
    Ok(Success::Done)
}

/// The analysis of the run in `folder`, kept there as heads.json; `anew` makes it again.
pub fn of_run(folder: &Path, anew: bool) -> Result<HeadAnalysis, Failure> {
    let run = open_run(folder)?;
    refuse_linked(folder)?;
    let device = device(run.config().backend)?;
    let busy = Busy::new("heads");
    let analysed = analysis::analyse_or_read(&run, Steps::All, &device, anew).map_err(Failure::failed)?;
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

/// Analyses the heads of every run of an experiment, each of which keeps its own heads.json, and returns the experiment's.
pub fn of_experiment(runs: &ExperimentRuns) -> Result<ExperimentHeads, Failure> {
    let device = device(Backend::default())?;
    let busy = Busy::new("heads");
    let progress = |done: usize, all: usize| busy.now(&format!("heads of run {} of {all}", (done + 1).min(all)));
    let (analysed, not_kept) = analysis::of_runs(&runs.records, &device, false, progress);
    drop(busy);
    tell_unkept(not_kept.as_ref());
    Ok(report::heads::of_experiment(runs, analysed))
}

/// Where heads are analysed: the same backend for every run, so that numbers compare, but for builds without it.
fn device(of_run: Backend) -> Result<Device, Failure> {
    let built = backend::built();
    let backend = if built.contains(&Backend::Flex) { Backend::Flex } else { of_run };
    let backend = if built.contains(&backend) { backend } else { built.first().copied().unwrap_or(backend) };
    backend::open(backend).map_err(Failure::failed)
}
