//! `trainer train`: from a config file to a run directory.

use std::io::IsTerminal;
use std::path::Path;

use burn::tensor::Device;
use burn::train::Interrupter;
use data::Split;
use model::cost;
use runs::ledger::thousands;
use runs::{Config, Lock, Manifest, RunDirectory, RunError, State, Status, Summary};

use super::{Failure, Success, dry_run, print, tell};
use crate::arm::Arm;
use crate::cli::TrainArguments;
use crate::dashboard::Dashboard;
use crate::manifest::manifest;
use crate::observer::{Observer, Silent};
use crate::progress::ProgressLine;
use crate::train::{Ending, train};
use crate::workers::Reporter;
use crate::{backend, interrupt};

pub fn run(arguments: &TrainArguments) -> Result<Success, Failure> {
    let Some(path) = &arguments.config else { return Err(Failure::usage("--config FILE is missing")) };
    let config = Config::load(path, &arguments.all_overrides()).map_err(Failure::usage)?;
    let threads = threads(arguments);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };
    let directory = RunDirectory::of(&arguments.out, &config);
    if arguments.tui && !std::io::stdout().is_terminal() {
        return Err(Failure::usage("--tui needs a terminal; leave it out for a progress line"));
    }
    if arguments.dry_run {
        let device = backend::open(config.backend).map_err(Failure::usage)?;
        return dry_run::run(&config, &directory, &device, threads);
    }

    let damaged = |error: RunError| Failure::failed(format!("{error}; --force trains the run again"));
    if !arguments.force
        && let State::Finished(summary) = directory.state().map_err(damaged)?
    {
        directory.check_finished(&config, &summary).map_err(damaged)?;
        print(format!("{} is done already (--force trains it again).", directory.path().display()));
        return done(&config, &directory, &summary);
    }
    let device = backend::open(config.backend).map_err(Failure::usage)?;
    let lock = directory.create(&config).map_err(Failure::failed)?;
    if arguments.force {
        directory.clean(&lock).map_err(Failure::failed)?;
    }
    prepare(&config, &directory, &lock, &device, threads)?;

    let interrupter = interrupt::on_signal().map_err(Failure::failed)?;
    let ending = {
        let mut observer = observer(arguments, &interrupter)?;
        if !(arguments.quiet || arguments.tui || arguments.worker) {
            tell(headline(&config, &directory, threads));
        }
        train(&config, &directory, &device, observer.as_mut(), &interrupter).map_err(Failure::failed)?
    };
    match ending {
        Ending::Done(summary) => done(&config, &directory, &summary),
        Ending::Interrupted { step } => {
            let how = if arguments.force { "The same command without --force" } else { "The same command" };
            print(format!("Stopped after step {step} and saved. {how} goes on from there."));
            Ok(Success::Interrupted)
        }
    }
}

/// Shows what came out; a run that diverged counts as a failure, also when it is only shown again.
fn done(config: &Config, directory: &RunDirectory, summary: &Summary) -> Result<Success, Failure> {
    print(result(config, directory, summary));
    match summary.status {
        Status::Finished => Ok(Success::Done),
        Status::Diverged { step } => Err(Failure::failed(format!(
            "the run diverged at step {step}: its loss or gradient is no longer finite. Try a smaller train.lr or a longer train.warmup"
        ))),
    }
}

fn threads(arguments: &TrainArguments) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    arguments.threads.map_or_else(cores, usize::from)
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
    if directory.checkpoints().steps().map_err(Failure::failed)?.is_empty() {
        return manifest.write(&path).map_err(Failure::failed);
    }
    let begin_anew = |error: RunError| Failure::failed(format!("{error}; begin anew with --force"));
    let earlier = Manifest::read(&path).map_err(begin_anew)?;
    if earlier.fingerprints != manifest.fingerprints {
        return Err(Failure::failed(format!(
            "{} was begun by a version of this program that makes other data or other initial weights: begin anew with --force",
            directory.path().display()
        )));
    }
    Ok(())
}

pub(super) fn headline(config: &Config, directory: &RunDirectory, threads: usize) -> String {
    let arm = Arm::new(config);
    let heads = match config.model.heads {
        1 => "1 head".to_string(),
        heads => format!("{heads} heads"),
    };
    format!(
        "{}: {}, {heads}, {} parameters, {} on {threads} thread{}\n{}",
        arm.title(),
        config.task.task.kind(),
        thousands(cost::total(&arm.parameters())),
        config.backend,
        if threads == 1 { "" } else { "s" },
        directory.path().display(),
    )
}

fn result(config: &Config, directory: &RunDirectory, summary: &Summary) -> String {
    let mut lines = vec![];
    for (split, score) in [(Split::Validation, summary.validation), (Split::Test, summary.test)] {
        if let Some(score) = score {
            let after = format!("{}, {split} after {} steps:", Arm::new(config).title(), summary.steps);
            lines.push(format!("{after} accuracy {:.4}, loss {:.4} nats", score.accuracy, score.loss));
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
        lines.push(format!("  {what:15} {}", relative(&path)));
    }
    lines.join("\n")
}

fn relative(path: &Path) -> String {
    path.display().to_string()
}
