//! The training loop: one arm, from a config to a finished run directory.
//!
//! The loop is our own rather than burn-train's, whose driver counts epochs: it has no step budget, no evaluation every so
//! many steps, and a run that it resumes does not end with the same bytes. What burn-train is good at is used: its
//! interrupter here, its metrics and live terminal renderer in [`crate::screen::dashboard`].

use std::path::PathBuf;

use architecture::ModelError;
use burn::module::Module;
use burn::tensor::Device;
use burn::train::Interrupter;
use data::metrics::Scores;
use data::{Generator, Split, TrainingOrder};
use model::parameters::{self, LoadError};
use model::{CallError, Decoder};
use runs::{
    Best, Config, MetricLine, Origin, RunDirectory, RunError, ScoresByUnit, Snapshot, Status, Summary, TestScores,
};
use thiserror::Error;

use super::arm::Arm;
use super::batch::Tally;
use super::evaluate::FixedSet;
use super::gradient::accumulate;
use super::observer::{Observer, Plan, Stepped};
use super::optimiser::{AdamW, FlatGradient};
use super::record::{Logs, Saver};
use super::schedule::learning_rate;

/// Why a run could not go on. A run that diverges is not an error: it ends with [`Status::Diverged`].
#[derive(Debug, Error)]
pub enum TrainingError {
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
    Done(Box<Summary>),
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
/// See [`TrainingError`].
pub fn train(
    config: &Config,
    directory: &RunDirectory,
    device: &Device,
    observer: &mut dyn Observer,
    interrupter: &Interrupter,
) -> Result<Ending, TrainingError> {
    kernels::in_pool(|| run(config, directory, device, observer, interrupter))
}

fn run(
    config: &Config,
    directory: &RunDirectory,
    device: &Device,
    observer: &mut dyn Observer,
    interrupter: &Interrupter,
) -> Result<Ending, TrainingError> {
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
            let misfit = |error| TrainingError::Checkpoint { step: checkpoint.step, error };
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
    let (done, tokens) = (latest.map(|checkpoint| checkpoint.step), arm.tokens_after(first_step));
    let mut log = Logs::open(directory, &origin, done, tokens, settings.tensorboard == Some(true))?;
    if metrics_then.is_some_and(|then| directory.metrics_hash().is_ok_and(|now| now != then)) {
        return Err(TrainingError::MetricsChanged { path: directory.metrics_path(), step: first_step });
    }

    // ---- Data ---------------------------------------------------------------------------------------------------------
    let generator = Generator::new(task, Split::Train, Split::Train.data_seed(config.seed));
    let mut order = TrainingOrder::new(sets, config.seed);
    let set = |split, examples| FixedSet::new(task, split, config.seed, examples, settings.eval_batch as u64);
    let validation = set(Split::Validation, sets.validation_examples);
    let test = set(Split::Test, sets.test_examples);
    let [of_training, of_validation, of_test] = Split::ALL.map(|split| arm.yardstick(split));

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
            return Err(TrainingError::NothingScored { split: Split::Validation });
        }
        let scores = tally.scores(&of_validation);
        observer.validated(0, &scores);
        log.metric(&metric(0, Split::Validation, scores, 0))?;
        score = Some(scores);
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
            scores: tally.scores(&of_training),
            tokens: batches.iter().map(|batch| batch.token_count() as u64).sum(),
        });
        if is_logged && tally.scored > 0 {
            let line = metric(step, Split::Train, tally.scores(&of_training), arm.tokens_after(step));
            log.metric(&MetricLine { lr: Some(lr), grad_norm: Some(norm), ..line })?;
        }

        // Evaluation, snapshot and checkpoint.
        let mut is_best = false;
        if !diverged && (step.is_multiple_of(settings.eval_every) || step == settings.steps) {
            let tally = validation.score(&model.valid(), device)?;
            let scores = tally.scores(&of_validation);
            observer.validated(step, &scores);
            log.metric(&metric(step, Split::Validation, scores, arm.tokens_after(step)))?;
            log.timing(step, arm.tokens_after(step))?;
            // What an update broke shows in the next step's loss, but after the last one only here.
            diverged = !tally.mean_loss().is_finite();
            if !diverged {
                score = Some(scores);
                best = Best::of(best, step, scores);
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
    let (status, tested, best_tested) = match diverged {
        true => (Status::Diverged { step }, None, None),
        false => {
            let tested = |model: &Decoder| -> Result<(Scores, Option<ScoresByUnit>), CallError> {
                let (whole, units) = test.score_by_unit(model, device)?;
                let one = |(unit, tally): (u64, Tally)| (unit, tally.scored, tally.scores(&of_test));
                let by_unit = (!units.is_empty()).then(|| ScoresByUnit::new(units.into_iter().map(one).collect()));
                Ok((whole.scores(&of_test), by_unit))
            };
            let (last, by_unit) = tested(&model.valid())?;
            let mut best_by_unit = None;
            let at_best = match best.map(|best| best.step).filter(|best| *best != step) {
                None => best.map(|_| last),
                Some(best) => match directory.checkpoints().load(best) {
                    Ok(checkpoint) if checkpoint.origin == saver.origin => {
                        let misfit = |error| TrainingError::Checkpoint { step: best, error };
                        let then = arm.model(&training_device)?;
                        let then = parameters::from_host(then, &checkpoint.model).map_err(misfit)?;
                        let (scores, by_unit) = tested(&then.valid())?;
                        best_by_unit = by_unit;
                        Some(scores)
                    }
                    // The result at the end is not lost for it; what is damaged is found when runs are verified.
                    _ => None,
                },
            };
            if let Some(last) = by_unit {
                directory.write_test_scores(&saver.origin, &TestScores { last, best: best_by_unit })?;
            }
            (Status::Finished, Some(last), at_best)
        }
    };
    log.sync()?;
    if !diverged {
        saver.tidy(step, best)?; // a kill may have come before that of the last checkpoint
    }
    let validation = score.filter(|_| !diverged);
    let (tokens, metrics) = (arm.tokens_after(step), directory.metrics_hash()?);
    let (test, best_test, origin) = (tested, best_tested, saver.origin);
    let summary = Summary { status, steps: step, tokens, validation, test, best, best_test, metrics, origin };
    summary.write(&directory.summary_path())?;
    Ok(Ending::Done(Box::new(summary)))
}

fn metric(step: u64, split: Split, scores: Scores, tokens: u64) -> MetricLine {
    MetricLine { step, split, scores, lr: None, grad_norm: None, tokens }
}
