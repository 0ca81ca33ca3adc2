//! `trainer train --dry-run`: what a run would be and cost.

use std::time::{Duration, Instant};

use architecture::Parts;
use burn::module::Module;
use burn::tensor::Device;
use burn::train::Interrupter;
use data::{Split, metrics::Scores};
use runs::{Backend, Config, RunDirectory};

use crate::machine::exit::{Failure, Success};
use crate::machine::{backend, facts};
use crate::screen::output::{print, tell, warn};
use crate::screen::text::{count, duration, thousands};
use crate::training::arm::Arm;
use crate::training::evaluate::FixedSet;
use crate::training::observer::{Observer, Plan, Stepped};
use crate::training::train::train;

/// What a run would cost: parameters and FLOPs are counted, time and memory are measured on a few steps.
pub fn run(config: &Config, directory: &RunDirectory, device: &Device, threads: usize) -> Result<Success, Failure> {
    let arm = Arm::new(config);
    print(format!("# {}\n", headline(config, directory, device, threads).replace('\n', "\n# ")));
    backend::warning(config.backend, device).into_iter().for_each(tell);
    print(config.to_toml());
    print(parts("Parameters", &arm.parameters()));
    print(parts("FLOPs a step (forward and backward)", &arm.flops_per_step()));

    let times = Times::measure(config, device)?;
    print(format!(
        "Time, measured here: {:.1} ms a step, {} in all (evaluation included)",
        times.step * 1e3,
        duration(Some(Duration::from_secs_f64(times.of_run(config)))),
    ));
    match facts::peak_memory() {
        Some(bytes) => print(format!("Memory, measured here: {} MiB", bytes >> 20)),
        None => print("Memory: this system doesn't tell"),
    }
    if let Some(seen) = runs::seen_in_training(config) {
        warn(runs::seen::told(&seen));
    }
    print(format!("Output: {}", directory.path().display()));
    Ok(Success::Done)
}

/// Seconds that a config's parts take, measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// An optimiser step.
    pub step: f64,
    /// To evaluate a sample.
    example: f64,
}

impl Times {
    /// Takes a few steps, and evaluates one batch.
    pub fn measure(config: &Config, device: &Device) -> Result<Self, Failure> {
        const STEPS: u64 = 3;
        let mut trial = config.clone();
        trial.train.steps = STEPS + 1;
        trial.train.accumulate = 1; // a step of many micro-batches could take hours
        trial.train.eval_every = trial.train.steps;
        trial.train.checkpoint_every = None;
        trial.train.snapshots = 0;
        let batch = config.train.eval_batch as u64;
        let examples = config.task.sets.validation_examples.min(batch);
        trial.task.sets.validation_examples = examples;
        trial.task.sets.test_examples = 1;
        let step = time_a_step(&trial, device)? * config.train.accumulate as f64;
        let model = Arm::new(config).model(device).map_err(Failure::usage)?.valid();
        let set = FixedSet::new(&config.task.task, Split::Validation, config.seed, examples, batch);
        let started = Instant::now();
        set.score(&model, device).map_err(Failure::failed)?;
        Ok(Self { step, example: started.elapsed().as_secs_f64() / examples as f64 })
    }

    /// A whole run of this config, which may differ from the measured one in its number of steps.
    pub fn of_run(self, config: &Config) -> f64 {
        let evaluations = 1 + config.train.steps / config.train.eval_every;
        // The test set at the end, and at the best step where that is another.
        let evaluated = evaluations * config.task.sets.validation_examples + 2 * config.task.sets.test_examples;
        self.step * config.train.steps as f64 + self.example * evaluated as f64
    }
}

/// What is trained, on what, and where its files go, in two lines.
pub(super) fn headline(config: &Config, directory: &RunDirectory, device: &Device, threads: usize) -> String {
    let arm = Arm::new(config);
    let on = match config.backend {
        Backend::Flex | Backend::Ndarray => count(threads, "thread"),
        other => backend::describe(other, device),
    };
    format!(
        "{}: {}, {}, {} parameters, {} on {on}\n{}",
        arm.title(),
        config.task.task.kind(),
        count(config.model.heads, "head"),
        thousands(arm.parameters().total()),
        config.backend,
        directory.path().display(),
    )
}

/// Seconds of an optimiser step, the median of a few after one that warms up.
fn time_a_step(config: &Config, device: &Device) -> Result<f64, Failure> {
    struct Clock(Vec<Instant>);
    impl Observer for Clock {
        fn start(&mut self, _plan: &Plan) {}
        fn stepped(&mut self, _stepped: &Stepped) {
            self.0.push(Instant::now());
        }
        fn validated(&mut self, _step: u64, _scores: &Scores) {}
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

fn parts(title: &str, parts: &Parts) -> String {
    let rows = parts.iter().filter(|(_, number)| *number > 0).chain([("total", parts.total())]);
    let rows: Vec<String> = rows.map(|(part, number)| format!("  {part:22} {:>16}", thousands(number))).collect();
    format!("{title}\n{}\n", rows.join("\n"))
}
