//! `trainer train`: from a config file to a run directory.

use std::path::PathBuf;

use burn::tensor::Device;
use burn::train::Interrupter;
use clap::Args;
use data::{Split, TrainingOrder};
use runs::{Backend, Config, Lock, RunDirectory, RunError, State, Status, Summary, differences};

use super::dry_run::{self, headline};
use crate::cli::names::{self, Kind};
use crate::cli::values::{overrides, parse_backend};
use crate::machine::exit::{Failure, Success};
use crate::machine::stop::Stop;
use crate::machine::{backend, facts, memory};
use crate::screen::dashboard::Dashboard;
use crate::screen::output::{is_on_terminal, next, print, tell};
use crate::screen::progress::ProgressLine;
use crate::training::arm::Arm;
use crate::training::manifest::{BUILD, manifest};
use crate::training::observer::{Observer, Silent};
use crate::training::train::{Ending, train};
use crate::workers::reporter::Reporter;

/// Arguments of `train`.
#[derive(Args, Clone, Debug)]
pub struct TrainArguments {
    /// The config file, such as configs/h8.toml.
    #[arg(long, value_name = "FILE", required = true)]
    pub config: Option<PathBuf>,
    /// Override a key of the config, such as model.heads=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Seed of the initial weights, the data, their order and dropout.
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
    /// Keep an event file for TensorBoard in the run directory (the same as --set train.tensorboard=true).
    #[arg(long)]
    pub tensorboard: bool,
    /// Show no progress, only the result.
    #[arg(long)]
    pub quiet: bool,
    /// Report to the process that started this one (used by `compare`).
    #[arg(long, hide = true, conflicts_with_all = ["tui", "quiet"])]
    pub worker: bool,
    /// The build that the process which started this one is of (used by `compare`).
    #[arg(long, hide = true, requires = "worker")]
    pub build: Option<String>,
}

pub fn run(arguments: &TrainArguments) -> Result<Success, Failure> {
    let Some(path) = &arguments.config else { return Err(Failure::usage("--config FILE is missing")) };
    if arguments.build.as_ref().is_some_and(|build| build != BUILD) {
        return Err(Failure::failed(
            "the program's file was replaced by another build while the comparison ran: start it again, and it goes on",
        ));
    }
    if arguments.worker {
        facts::name_process();
    }
    let mut overrides = overrides(&arguments.overrides, arguments.seed, arguments.backend);
    overrides.extend(arguments.tensorboard.then(|| "train.tensorboard=true".to_string()));
    let path = &names::file(Kind::Config, path)?;
    let config = Config::load(path, &overrides).map_err(Failure::usage)?;
    let threads = arguments.threads.map_or_else(facts::cores, usize::from);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };
    let directory = RunDirectory::of(&arguments.out, &config);
    if arguments.tui && !is_on_terminal() {
        return Err(Failure::usage("--tui needs a terminal; leave it out for a progress line"));
    }
    memory::check(&config).map_err(Failure::failed)?;
    if arguments.dry_run {
        let device = backend::open(config.backend).map_err(Failure::usage)?;
        return dry_run::run(&config, &directory, &device, threads);
    }

    let damaged = |error: RunError| Failure::failed(format!("{error}; --force trains the run again"));
    if !arguments.force
        && let State::Finished(summary) = directory.state().map_err(damaged)?
    {
        directory.open_as(&config).map_err(damaged)?;
        print(format!("{} is done already (--force trains it again).", directory.path().display()));
        return done(arguments, &config, &directory, &summary);
    }
    let device = backend::open(config.backend).map_err(Failure::usage)?;
    let lock = directory.create(&config).map_err(Failure::failed)?;
    if let Some(sentence) = lock.unprotected()
        && !arguments.worker
    {
        tell(sentence);
    }
    if arguments.force {
        directory.clean(&lock).map_err(Failure::failed)?;
    }
    prepare(&config, &directory, &lock, &device, threads)?;

    // Not before: until now a signal that ends the program loses nothing.
    backend::warning(config.backend, &device).into_iter().for_each(tell);
    let stop = Stop::listen().map_err(Failure::failed)?;
    let ending = {
        let mut observer = observer(arguments, stop.interrupter())?;
        if !(arguments.quiet || arguments.tui || arguments.worker) {
            tell(headline(&config, &directory, &device, threads));
            beside(&config, &directory).into_iter().for_each(tell);
        }
        train(&config, &directory, &device, observer.as_mut(), stop.interrupter()).map_err(Failure::failed)?
    };
    match ending {
        Ending::Done(summary) => done(arguments, &config, &directory, &summary),
        Ending::Interrupted { step } => {
            let how = if arguments.force { "The same command without --force" } else { "The same command" };
            // What is said to be saved is looked at first.
            let latest = directory.checkpoints().latest().map_err(Failure::failed)?;
            if latest.is_none_or(|latest| latest.checkpoint.step != step) {
                return Err(Failure::failed(format!(
                    "stopped after step {step}, but its checkpoint is not in {}",
                    directory.path().display()
                )));
            }
            print(format!("Stopped after step {step} and saved. {how} goes on from there."));
            Ok(Success::Interrupted)
        }
    }
}

/// Shows what came out; a run that diverged counts as a failure, also when it is only shown again.
fn done(
    arguments: &TrainArguments,
    config: &Config,
    directory: &RunDirectory,
    summary: &Summary,
) -> Result<Success, Failure> {
    print(result(config, directory, summary));
    if !(arguments.quiet || arguments.worker) {
        next(format!("trainer report {} --open", directory.path().display()));
    }
    match summary.status {
        Status::Finished => Ok(Success::Done),
        Status::Diverged { step } => Err(Failure::diverged(diverged(config, directory, step))),
    }
}

/// At which step, on which samples, and what is left.
fn diverged(config: &Config, directory: &RunDirectory, step: u64) -> String {
    let settings = &config.train;
    let mut order = TrainingOrder::new(&config.task.sets, config.seed);
    let (micro_batches, batch_size) = (settings.accumulate as u64, settings.batch_size as u64);
    let samples: Vec<u64> = (0..micro_batches)
        .flat_map(|micro| order.indices(step.saturating_sub(1), micro, micro_batches, batch_size))
        .collect();
    // What can't be read is no checkpoint to go back to.
    let good = directory.checkpoints().latest().ok().flatten().map(|latest| latest.checkpoint.step);
    let good = good.map_or("there is no checkpoint before it".to_string(), |step| {
        format!("the last good checkpoint is {}", directory.checkpoints().path(step).display())
    });
    format!(
        "the run diverged at step {step}: its loss or gradient is no longer finite\n  \
         training samples of the step: {}\n  {good}\n  try a smaller train.lr or a longer train.warmup",
        ranges(&samples)
    )
}

/// Such as "7, 64 to 127, 3", the first 64 of them.
fn ranges(numbers: &[u64]) -> String {
    let parts: Vec<String> = numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [first, .., last] => format!("{first} to {last}"),
            run => run.iter().map(u64::to_string).collect(),
        })
        .collect();
    let more = if parts.len() > 64 { ", and more" } else { "" };
    parts[..parts.len().min(64)].join(", ") + more
}

/// Where a new run begins although there is one that differs little: that it does, and in what.
fn beside(config: &Config, directory: &RunDirectory) -> Option<String> {
    if !directory.checkpoints().steps().is_ok_and(|steps| steps.is_empty()) {
        return None;
    }
    let others = directory.beside(config, 100).into_iter();
    let (path, differences) = others
        .map(|(path, other)| (path, differences::between(&other, config)))
        .min_by_key(|(_, found)| found.len())?;
    let differences = differences::render(&differences, "there", "here");
    Some(format!("beside {}, which is of another config ({differences})", path.display()))
}

fn observer(arguments: &TrainArguments, interrupter: &Interrupter) -> Result<Box<dyn Observer>, Failure> {
    if arguments.quiet {
        return Ok(Box::new(Silent));
    }
    if arguments.worker {
        return Ok(Box::new(Reporter::new(interrupter.clone())));
    }
    if !arguments.tui {
        return Ok(Box::new(ProgressLine::new()));
    }
    Ok(Box::new(Dashboard::new(interrupter.clone())))
}

/// Writes the manifest, or checks that what stands there is this run's.
fn prepare(
    config: &Config,
    directory: &RunDirectory,
    _lock: &Lock,
    device: &Device,
    threads: usize,
) -> Result<(), Failure> {
    let manifest = manifest(config, device, threads).map_err(Failure::usage)?;
    let path = directory.manifest_path();
    let Some(&step) = directory.checkpoints().steps().map_err(Failure::failed)?.last() else {
        return manifest.write(&path).map_err(Failure::failed);
    };
    let begin_anew = |error: RunError| Failure::failed(format!("{error}; begin anew with --force"));
    let earlier = directory.open_as(config).map_err(begin_anew)?;
    let earlier = earlier.manifest();
    if earlier.fingerprints != manifest.fingerprints {
        return Err(Failure::failed(format!(
            "{} was begun by a version of this program that makes other data or other initial weights: begin anew with --force",
            directory.path().display()
        )));
    }
    let mut kept = earlier.clone();
    let changes = kept.go_on(step, &manifest);
    if !changes.is_empty() {
        kept.write(&path).map_err(Failure::failed)?;
    }
    for change in changes {
        tell(format!(
            "going on with another: {change}; its numbers may differ from an uninterrupted run's in last digits"
        ));
    }
    Ok(())
}

fn result(config: &Config, directory: &RunDirectory, summary: &Summary) -> String {
    let mut lines = vec![];
    for (split, scores) in [(Split::Validation, summary.validation), (Split::Test, summary.test)] {
        if let Some(scores) = scores {
            let after = format!("{}, {split} after {} steps:", Arm::new(config).title(), summary.steps);
            let told: Vec<String> = scores.iter().rev().map(|(kind, value)| kind.told(value)).collect();
            lines.push(format!("{after} {}", told.join(", ")));
        }
    }
    if let Status::Diverged { step } = summary.status {
        lines.push(format!("{} diverged at step {step}", Arm::new(config).title()));
    }
    let files = [
        ("resolved config", directory.config_path()),
        ("curves", directory.metrics_path()),
        ("checkpoints", directory.path().join("checkpoints")),
        ("result", directory.summary_path()),
    ];
    for (what, path) in files {
        lines.push(format!("  {what:15} {}", path.display()));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn samples_in_a_row_are_a_range() {
        assert_eq!(ranges(&[7, 64, 65, 66, 3, 9, 10]), "7, 64 to 66, 3, 9 to 10");
        assert_eq!(ranges(&[]), "");
        let many: Vec<u64> = (0..200).map(|i| i * 2).collect();
        assert!(ranges(&many).ends_with("124, 126, and more"));
    }
}
