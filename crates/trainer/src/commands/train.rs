//! `trainer train`: from a config file to a run directory.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::tensor::Device;
use burn::train::Interrupter;
use data::Split;
use model::{cost, tensors};
use runs::{Config, Fingerprints, Lock, Manifest, Parts, Program, RunDirectory, State, Status, Summary};

use super::{Failure, Success, print, tell};
use crate::arm::Arm;
use crate::cli::TrainArguments;
use crate::dashboard::Dashboard;
use crate::evaluate::FixedSet;
use crate::observer::{Observer, Silent};
use crate::progress::{ProgressLine, duration};
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
        return dry_run(&config, &directory, &device, threads);
    }

    let state = directory.state().map_err(Failure::failed)?;
    if let (State::Finished(summary), false) = (&state, arguments.force) {
        print(format!("{} is done already (--force trains it again).", directory.path().display()));
        return done(&config, &directory, summary);
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
    let arm = Arm::new(config);
    let model = arm.model(device).map_err(Failure::usage)?;
    let weights = runs::weights_fingerprint(
        tensors::to_host(&model).into_iter().map(|(path, tensor)| (path, tensor.shape, tensor.values)),
    );
    let manifest = Manifest {
        program: program(),
        backend: config.backend.to_string(),
        device: backend::describe(config.backend, device),
        threads,
        parameters: Parts::from_iter(arm.parameters()),
        flops_per_step: Parts::from_iter(arm.flops_per_step()),
        tokens_per_step: arm.tokens_after(1),
        fingerprints: Fingerprints { data: arm.data_fingerprint(), weights: weights.all, tensors: weights.tensors },
    };
    let path = directory.manifest_path();
    if directory.checkpoints().steps().map_err(Failure::failed)?.is_empty() {
        return manifest.write(&path).map_err(Failure::failed);
    }
    let earlier = Manifest::read(&path).map_err(Failure::failed)?;
    if earlier.fingerprints != manifest.fingerprints {
        return Err(Failure::failed(format!(
            "{} was begun by a version of this program that makes other data or other initial weights: begin anew with --force",
            directory.path().display()
        )));
    }
    Ok(())
}

/// What this program is: its version, and the commit that it was built from where that is known.
pub fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: option_env!("HEADCOUNT_COMMIT").map(str::to_string),
        dirty: option_env!("HEADCOUNT_DIRTY").map(|dirty| dirty == "true"),
    }
}

fn headline(config: &Config, directory: &RunDirectory, threads: usize) -> String {
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

/// What a run would cost: parameters and FLOPs are counted, time and memory are measured on a few steps.
fn dry_run(config: &Config, directory: &RunDirectory, device: &Device, threads: usize) -> Result<Success, Failure> {
    let arm = Arm::new(config);
    print(format!("# {}\n", headline(config, directory, threads).replace('\n', "\n# ")));
    print(config.to_toml());
    print(parts("Parameters", &arm.parameters()));
    print(parts("FLOPs a step (forward and backward)", &arm.flops_per_step()));

    const STEPS: u64 = 3;
    let mut trial = config.clone();
    trial.train.steps = STEPS + 1;
    trial.train.eval_every = trial.train.steps;
    trial.task.sets.validation_examples = config.task.sets.validation_examples.min(config.train.eval_batch as u64);
    trial.task.sets.test_examples = 1;
    let step_seconds = time_a_step(&trial, device)?;
    let model = arm.model(device).map_err(Failure::usage)?.valid();
    let examples = config.task.sets.validation_examples.min(config.train.eval_batch as u64);
    let set = FixedSet::new(&config.task.task, Split::Validation, examples, config.train.eval_batch as u64);
    let started = Instant::now();
    set.score(&model, device).map_err(Failure::failed)?;
    let example_seconds = started.elapsed().as_secs_f64() / examples as f64;
    let evaluations = 1 + config.train.steps / config.train.eval_every;
    let evaluated = evaluations * config.task.sets.validation_examples + config.task.sets.test_examples;
    let seconds = step_seconds * config.train.steps as f64 + example_seconds * evaluated as f64;
    print(format!(
        "Time, measured here: {:.1} ms a step, {} in all (evaluation included)",
        step_seconds * 1e3,
        duration(Some(Duration::from_secs_f64(seconds))),
    ));
    match peak_memory() {
        Some(bytes) => print(format!("Memory, measured here: {} MiB", bytes >> 20)),
        None => print("Memory: this system doesn't tell"),
    }
    print(format!("Output: {}", directory.path().display()));
    Ok(Success::Done)
}

/// Seconds of an optimiser step, the median of a few after one that warms up.
fn time_a_step(config: &Config, device: &Device) -> Result<f64, Failure> {
    struct Clock(Vec<Instant>);
    impl Observer for Clock {
        fn start(&mut self, _plan: &crate::observer::Plan) {}
        fn stepped(&mut self, _stepped: &crate::observer::Stepped) {
            self.0.push(Instant::now());
        }
        fn validated(&mut self, _step: u64, _tally: &crate::batch::Tally) {}
        fn end(&mut self) {}
    }
    let folder = std::env::temp_dir().join(format!("headcount-dry-run-{}", std::process::id()));
    let directory = RunDirectory::of(&folder, config);
    let mut clock = Clock(vec![]);
    let ended = directory
        .create(config)
        .map_err(Failure::failed)
        .and_then(|_lock| train(config, &directory, device, &mut clock, &Interrupter::new()).map_err(Failure::failed));
    // The folder is this function's own; what can't be removed is left to the system.
    drop(std::fs::remove_dir_all(&folder));
    ended?;
    let mut seconds: Vec<f64> = clock.0.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    Ok(seconds.get(seconds.len() / 2).copied().unwrap_or(0.0))
}

fn parts(title: &str, parts: &cost::Parts) -> String {
    let rows = parts.iter().copied().filter(|(_, number)| *number > 0).chain([("total", cost::total(parts))]);
    let rows: Vec<String> = rows.map(|(part, number)| format!("  {part:22} {:>16}", thousands(number))).collect();
    format!("{title}\n{}\n", rows.join("\n"))
}

/// Such as `54,856`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Largest memory that this process has held, in bytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}
