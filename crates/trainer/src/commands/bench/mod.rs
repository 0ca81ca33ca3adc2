//! `trainer bench`: what a training step takes, of [`crate::bench`].

pub mod arguments;
mod growth;
mod told;

use burn::tensor::Device;
use runs::{Backend, Config};

use crate::bench::{Budget, Workload, measure};
use crate::cli::values::overrides;
use crate::machine::exit::{Failure, Success};
use crate::machine::{backend, facts};
use crate::screen::output::{print, print_json};

pub use arguments::BenchArguments;

/// What is measured unless something else is asked for.
const DEFAULT: (&str, &str) = ("configs/h8.toml", include_str!("../../../../../configs/h8.toml"));

pub fn run(arguments: &BenchArguments) -> Result<Success, Failure> {
    let threads = arguments.threads.map_or_else(facts::cores, usize::from);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };
    if let Some(folder) = &arguments.growth {
        return growth::run(arguments, folder, threads);
    }
    let (workload, backend) = workload(arguments)?;
    let device: Device = backend::open(backend).map_err(Failure::usage)?;
    let budget = Budget { steps: arguments.steps as usize, seconds: arguments.seconds };
    let measured = measure(workload, backend, &device, threads, budget).map_err(Failure::failed)?;
    match arguments.json {
        true => print_json(&measured),
        false => print(told::text(&measured)),
    }
    Ok(Success::Done)
}

fn workload(arguments: &BenchArguments) -> Result<(Workload, Backend), Failure> {
    if let Some(sizes) = arguments.sizes.given() {
        let workload = Workload::of_sizes(sizes).map_err(Failure::usage)?;
        return Ok((workload, arguments.backend.unwrap_or_default()));
    }
    let overrides = overrides(&arguments.overrides, None, arguments.backend);
    let config = match &arguments.config {
        Some(path) => Config::load(path, &overrides),
        None => Config::parse_with(DEFAULT.1, DEFAULT.0, &overrides),
    };
    let config = config.map_err(Failure::usage)?;
    Ok((Workload::of_config(&config), config.backend))
}
