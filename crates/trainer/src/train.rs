//! The training loop: one arm, from a config to a finished run directory.
//!
//! The loop is our own rather than burn-train's, whose driver counts epochs: it has no step budget, no evaluation every so
//! many steps, and a run that it resumes does not end with the same bytes. What burn-train is good at is used: its
//! interrupter here, its metrics and live terminal renderer in [`crate::dashboard`].

use std::path::PathBuf;
use std::time::Instant;

use architecture::ModelError;
use burn::module::Module;
use burn::tensor::Device;
use burn::train::Interrupter;
use data::{Generator, Split, TrainingOrder};
use model::parameters::{self, LoadError};
use model::{Call, CallError, Decoder, Dropout};
use runs::{
    Best, Checkpoint, Config, MetricLine, MetricsLog, Origin, RunDirectory, RunError, Score, Snapshot, Status, Summary,
    TimingLine, TimingLog, TrainConfig,
};
use thiserror::Error;

use crate::arm::Arm;
use crate::batch::{DeviceBatch, Tally, losses};
use crate::evaluate::FixedSet;
use crate::observer::{Observer, Plan, Stepped};
use crate::optimiser::{AdamW, FlatGradient};
use crate::parts::Part;
use crate::schedule::learning_rate;

/// Why a run could not go on. A run that diverges is not an error: it ends with [`Status::Diverged`].
#[derive(Debug, Error)]
pub enum TrainError {
    /// The model can't be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A batch that the model can't take.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A checkpoint of another model.
    #[error("the checkpoint of step {step} doesn't fit the model: {error}; train again with --force")]
    Checkpoint { step: u64, error: LoadError },
    /// The run directory can't be read or written.
    #[error(transparent)]
    Files(#[from] RunError),
    /// Something of the log is lost, or was edited.
    #[error(
        "{} no longer holds what was logged up to step {step}, where the run would go on: it was edited or damaged; train again with --force",
        path.display()
    )]
    MetricsChanged { path: PathBuf, step: u64 },
    /// A set in which no position is scored says nothing about a model.
    #[error("no position of the {split} set is scored: with these task parameters there is nothing to measure")]
    NothingScored { split: Split },
}

/// How a call of [`train`] ended.
#[derive(Debug)]
pub enum Ending {
    /// The run is done, well or not: see the summary's status.
    Done(Summary),
    /// Stopped on request after this step and saved; the same call goes on.
    Interrupted {
        /// Optimiser steps done.
        step: u64,
    },
}

/// Trains the arm of `config` in `directory`, from the start or from the last complete checkpoint found there.
///
/// The directory must hold the config and be locked. On flex and ndarray the files are the same bytes (timing apart)
/// whatever was interrupted and resumed on the way.
///
/// # Errors
/// See [`TrainError`].
pub fn train(
    config: &Config,
    directory: &RunDirectory,
    device: &Device,
    observer: &mut dyn Observer,
    interrupter: &Interrupter,
) -> Result<Ending, TrainError> {
    kernels::in_pool(|| run(config, directory, device, observer, interrupter))
}

fn run(
    config: &Config,
    directory: &RunDirectory,
    device: &Device,
    observer: &mut dyn Observer,
    interrupter: &Interrupter,
) -> Result<Ending, TrainError> {
    let arm = Arm::new(config);
    let (task, sets, settings) = (&config.task.task, &config.task.sets, &config.train);

    // ---- Model and optimiser, and how far an earlier call came --------------------------------------------------------
    let training_device = device.clone().autodiff();
    let mut model = arm.model(&training_device)?;
    let initial = parameters::to_host(&model).into_iter().map(|(path, tensor)| (path, tensor.shape, tensor.values));
    let origin = Origin::new(config, arm.data_fingerprint(), runs::weights_fingerprint(initial).all);
    let (latest, damaged) = match directory.checkpoints().latest_of(&origin)? {
        Some(latest) => (Some(latest.checkpoint), latest.damaged),
        None => (None, vec![]),
    };
    let mut optimiser = match &latest {
        Some(checkpoint) => {
            let misfit = |error| TrainError::Checkpoint { step: checkpoint.step, error };
            model = parameters::from_host(model, &checkpoint.model).map_err(misfit)?;
            AdamW::from_host(settings, &model, &checkpoint.optimiser).map_err(misfit)?
        }
        None => AdamW::new(settings, &model),
    };
    let is_new = latest.is_none(); // a run stopped before its first step has a checkpoint of step 0
    let first_step = latest.as_ref().map_or(0, |checkpoint| checkpoint.step);
    let mut score = latest.as_ref().and_then(|checkpoint| checkpoint.validation);
    let mut best = latest.as_ref().and_then(|checkpoint| checkpoint.best);
    let metrics_then = latest.as_ref().map(|checkpoint| checkpoint.metrics.clone());
    let mut log =
        Logs::open(directory, &origin, latest.map(|checkpoint| checkpoint.step), arm.tokens_after(first_step))?;
    if metrics_then.is_some_and(|then| directory.metrics_hash().is_ok_and(|now| now != then)) {
        return Err(TrainError::MetricsChanged { path: directory.metrics_path(), step: first_step });
    }

    // ---- Data ---------------------------------------------------------------------------------------------------------
    let generator = Generator::new(task, Split::Train, Split::Train.data_seed(config.seed));
    let mut order = TrainingOrder::new(sets, config.seed);
    let validation = FixedSet::new(task, Split::Validation, sets.validation_examples, settings.eval_batch as u64);
    let test = FixedSet::new(task, Split::Test, sets.test_examples, settings.eval_batch as u64);

    let passed_over = damaged.iter().map(|(step, error)| format!("checkpoint of step {step} passed over: {error}"));
    let mut notes: Vec<String> = passed_over.collect();
    if settings.warmup > settings.steps && settings.steps > 0 {
        let (warmup, steps) = (settings.warmup, settings.steps);
        notes.push(format!("the warmup of {warmup} steps is longer than the run of {steps}: lr is never reached"));
    }
    observer.start(&Plan { title: arm.title(), steps: settings.steps, first_step, notes });
    if is_new {
        let tally = validation.score(&model.valid(), device)?;
        if tally.scored == 0 {
            return Err(TrainError::NothingScored { split: Split::Validation });
        }
        observer.validated(0, &tally);
        log.metric(&metric(0, Split::Validation, &tally, 0))?;
        score = Some(score_of(&tally));
    }

    // ---- Steps --------------------------------------------------------------------------------------------------------
    let (micro_batches, batch_size) = (settings.accumulate as u64, settings.batch_size as u64);
    let snapshot_steps = settings.snapshot_steps();
    let saver = Saver { directory, settings, origin };
    let mut step = first_step;
    let mut diverged = false;
    while step < settings.steps && !diverged && !interrupter.should_stop() {
        let batches: Vec<data::Batch> = (0..micro_batches)
            .map(|micro| generator.batch(&order.indices(step, micro, micro_batches, batch_size)))
            .collect();
        let (tally, gradient) = accumulate(&model, &batches, config.seed, step, &training_device)?;

        // One update, unless no position is scored or the numbers are gone.
        let lr = learning_rate(settings, arm.steps_per_pass(), step + 1);
        let norm = gradient.as_ref().map_or(0.0, FlatGradient::norm);
        diverged = !(norm.is_finite() && (tally.scored == 0 || tally.mean_loss().is_finite()));
        if let (Some(gradient), false) = (gradient, diverged) {
            model = optimiser.step(model, gradient, norm, lr, step + 1);
        }
        step += 1;

        // Logs.
        let is_logged = step.is_multiple_of(settings.log_every) || step == settings.steps || diverged;
        observer.stepped(&Stepped {
            step,
            loss: tally.mean_loss(),
            accuracy: tally.accuracy(),
            tokens: batches.iter().map(|batch| batch.token_count() as u64).sum(),
        });
        if is_logged && tally.scored > 0 {
            let line = metric(step, Split::Train, &tally, arm.tokens_after(step));
            log.metric(&MetricLine { lr: Some(lr), grad_norm: Some(norm), ..line })?;
        }

        // Evaluation, snapshot and checkpoint.
        let mut is_best = false;
        if !diverged && (step.is_multiple_of(settings.eval_every) || step == settings.steps) {
            let tally = validation.score(&model.valid(), device)?;
            observer.validated(step, &tally);
            log.metric(&metric(step, Split::Validation, &tally, arm.tokens_after(step)))?;
            log.timing(step, arm.tokens_after(step))?;
            // What an update broke shows in the next step's loss, but after the last one only here.
            diverged = !tally.mean_loss().is_finite();
            if !diverged {
                score = Some(score_of(&tally));
                best = Best::of(best, step, score_of(&tally));
                is_best = best.is_some_and(|best| best.step == step);
                // Before the checkpoint: a run that goes on from there has it.
                if snapshot_steps.contains(&step) {
                    let (origin, model) = (saver.origin.clone(), parameters::to_host(&model));
                    directory.snapshots().save(&Snapshot { step, origin, model })?;
                }
            }
        }
        if !diverged && (is_best || settings.is_checkpoint(step)) {
            log.timing(step, arm.tokens_after(step))?;
            saver.save(&mut log, &model, &optimiser, step, score, best)?;
        }
    }
    observer.end();

    // ---- The end ------------------------------------------------------------------------------------------------------
    if step < settings.steps && !diverged {
        log.timing(step, arm.tokens_after(step))?;
        saver.save(&mut log, &model, &optimiser, step, score, best)?;
        return Ok(Ending::Interrupted { step });
    }
    let (status, test) = match diverged {
        true => (Status::Diverged { step }, None),
        false => (Status::Finished, Some(score_of(&test.score(&model.valid(), device)?))),
    };
    log.sync()?;
    if !diverged {
        saver.tidy(step, best)?; // a kill may have come before that of the last checkpoint
    }
    let validation = score.filter(|_| !diverged);
    let (tokens, metrics) = (arm.tokens_after(step), directory.metrics_hash()?);
    let summary = Summary { status, steps: step, tokens, validation, test, best, metrics, origin: saver.origin };
    summary.write(&directory.summary_path())?;
    Ok(Ending::Done(summary))
}

/// Forward and backward of optimiser step `step` (from 0) over its micro-batches, each weighted by its scored positions:
/// loss and gradient are those of one large batch, whichever way it is cut. No gradient where no position is scored.
///
/// # Errors
/// A batch that the model can't take.
pub fn accumulate(
    model: &Decoder,
    batches: &[data::Batch],
    seed: u64,
    step: u64,
    device: &Device,
) -> Result<(Tally, Option<FlatGradient>), CallError> {
    accumulate_watched(model, batches, seed, step, device, &mut |_| ())
}

/// [`accumulate`], telling `watch` of each part that is over.
///
/// # Errors
/// As [`accumulate`].
pub fn accumulate_watched(
    model: &Decoder,
    batches: &[data::Batch],
    seed: u64,
    step: u64,
    device: &Device,
    watch: &mut dyn FnMut(Part),
) -> Result<(Tally, Option<FlatGradient>), CallError> {
    let scored: usize = batches.iter().map(data::Batch::scored).sum();
    let mut sum: Option<FlatGradient> = None;
    let mut tally = Tally::default();
    for (micro_batch, batch) in (0..).zip(batches) {
        let Some(batch) = DeviceBatch::new(batch, device) else { continue };
        watch(Part::Data);
        let dropout = Dropout { seed, step, micro_batch };
        let call = Call { dropout: Some(&dropout), ..batch.call() };
        let logits = model.forward(batch.tokens.clone(), call)?.logits;
        let losses = losses(logits.clone(), &batch);
        watch(Part::Forward);
        let mut gradients = (losses.clone().sum() / scored as f64).backward();
        let gradient = FlatGradient::take(model, &mut gradients);
        sum = Some(match sum {
            Some(sum) => sum.plus(gradient),
            None => gradient,
        });
        watch(Part::Backward);
        tally.add(Tally::of(losses.inner(), logits.inner(), &batch.host_targets));
        watch(Part::Reading);
    }
    Ok((tally, sum))
}

/// Who writes checkpoints.
struct Saver<'a> {
    directory: &'a RunDirectory,
    settings: &'a TrainConfig,
    origin: Origin,
}

impl Saver<'_> {
    /// A complete checkpoint of `step`, after everything that led to it is on disk; then [`Saver::tidy`].
    fn save(
        &self,
        log: &mut Logs,
        model: &Decoder,
        optimiser: &AdamW,
        step: u64,
        validation: Option<Score>,
        best: Option<Best>,
    ) -> Result<(), TrainError> {
        log.sync()?;
        let (model, optimiser) = (parameters::to_host(model), optimiser.to_host());
        let (metrics, origin) = (self.directory.metrics_hash()?, self.origin.clone());
        let checkpoint = Checkpoint { step, validation, best, metrics, origin, model, optimiser };
        self.directory.checkpoints().save(&checkpoint)?;
        Ok(self.tidy(step, best)?)
    }

    /// Keeps the checkpoint of `step`, the best one, and the last that belong to the run however it comes about; where an
    /// interruption left one, it goes with the next.
    fn tidy(&self, step: u64, best: Option<Best>) -> Result<(), RunError> {
        let checkpoints = self.directory.checkpoints();
        let planned = |then: &u64| *then <= step && self.settings.is_checkpoint(*then);
        let last =
            checkpoints.steps()?.into_iter().rev().filter(planned).take(self.settings.keep_checkpoints() as usize);
        let kept: Vec<u64> = last.chain(best.map(|best| best.step)).chain([step]).collect();
        checkpoints.keep_only(&kept)
    }
}

fn metric(step: u64, split: Split, tally: &Tally, tokens: u64) -> MetricLine {
    MetricLine { step, split, loss: tally.mean_loss(), accuracy: tally.accuracy(), lr: None, grad_norm: None, tokens }
}

fn score_of(tally: &Tally) -> Score {
    Score { loss: tally.mean_loss(), accuracy: tally.accuracy() }
}

/// The two logs of a run, and the clock of the second.
struct Logs {
    metrics: MetricsLog,
    timing: TimingLog,
    /// [`Origin::id`].
    run: String,
    /// Seconds that earlier calls took.
    seconds_before: f64,
    started: Instant,
    /// Seconds and tokens at the last line.
    last: (f64, u64),
}

impl Logs {
    /// Opens both so that they go on after `step`, by which `tokens` had been read, or anew.
    fn open(directory: &RunDirectory, origin: &Origin, step: Option<u64>, tokens: u64) -> Result<Self, RunError> {
        let (metrics, timing) = directory.logs_after(step)?;
        let seconds_before = match step {
            Some(_) => {
                let lines = runs::read_timings_of(&directory.timing_path(), origin)?;
                lines.last().map_or(0.0, |line| line.seconds)
            }
            None => 0.0,
        };
        let run = origin.id();
        Ok(Self { metrics, timing, run, seconds_before, started: Instant::now(), last: (seconds_before, tokens) })
    }

    fn metric(&mut self, metric: &MetricLine) -> Result<(), RunError> {
        self.metrics.append(metric)
    }

    /// The clock at `step`, unless that is there already.
    fn timing(&mut self, step: u64, tokens: u64) -> Result<(), RunError> {
        if self.timing.last_step() == Some(step) {
            return Ok(());
        }
        let seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        let (last_seconds, last_tokens) = std::mem::replace(&mut self.last, (seconds, tokens));
        let tokens_per_second = (tokens - last_tokens) as f64 / (seconds - last_seconds).max(1e-9);
        self.timing.append(&TimingLine { step, seconds, tokens_per_second, run: self.run.clone() })
    }

    fn sync(&mut self) -> Result<(), RunError> {
        self.metrics.sync()?;
        self.timing.sync()
    }
}
