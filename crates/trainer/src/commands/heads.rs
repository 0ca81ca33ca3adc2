//! `trainer heads`: what each attention head of a run does.

use std::io::IsTerminal;
use std::path::Path;

use analysis::heads::{self, ExperimentHeads, HeadAnalysis, Steps};
use burn::tensor::Device;
use indicatif::{ProgressBar, ProgressStyle};
use runs::Backend;

use super::{Failure, Success, open_run, print};
use crate::backend;
use crate::cli::HeadsArguments;

pub fn run(arguments: &HeadsArguments) -> Result<Success, Failure> {
    let analysis = of_run(&arguments.run, arguments.force)?;
    if arguments.json {
        // Numbers, text and lists alone: nothing that JSON lacks.
        print(serde_json::to_string(&analysis).unwrap_or_default());
    } else {
        print(heads::table(&analysis));
    }
    Ok(Success::Done)
}

/// The analysis of the run in `folder`, kept there as heads.json; `anew` makes it again.
pub fn of_run(folder: &Path, anew: bool) -> Result<HeadAnalysis, Failure> {
    let run = open_run(folder)?;
    let config = run.config();
    let device = device(config.backend)?;
    heads::analyse_or_read(config, run.directory(), Steps::All, &device, anew).map_err(Failure::failed)
}

/// Writes heads.json of the experiment in `folder` and of its runs, and returns the experiment's.
pub fn of_experiment(folder: &Path) -> Result<ExperimentHeads, Failure> {
    let device = device(Backend::default())?;
    let line = if std::io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    line.set_style(ProgressStyle::with_template("heads of run {pos} of {len}").unwrap_or(ProgressStyle::default_bar()));
    let progress = |done: usize, all: usize| {
        line.set_length(all as u64);
        line.set_position((done + 1).min(all) as u64);
    };
    let result = heads::of_experiment(folder, &device, false, progress);
    line.finish_and_clear();
    result.map_err(Failure::failed)
}

/// Where heads are analysed: the same backend for every run, so that numbers compare, but for builds without it.
fn device(of_run: Backend) -> Result<Device, Failure> {
    let built = backend::built();
    let backend = if built.contains(&Backend::Flex) { Backend::Flex } else { of_run };
    let backend = if built.contains(&backend) { backend } else { built.first().copied().unwrap_or(backend) };
    backend::open(backend).map_err(Failure::failed)
}
