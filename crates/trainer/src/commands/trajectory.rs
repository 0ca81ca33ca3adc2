//! What another program needs to go on training from a checkpoint as this one did: moments, samples in their order, learning rates,
//! and what came of it.

use data::{Generator, Split, TrainingOrder};
use runs::{Checkpoint, MetricLine, OpenRun, Tensors};
use serde::Serialize;

use super::batch_tensors;
use crate::machine::exit::Failure;
use crate::training::arm::Arm;
use crate::training::schedule::learning_rate;

/// A step of the run after the checkpoint.
#[derive(Debug, Serialize)]
struct Step {
    step: u64,
    lr: f64,
    /// Of the training batch, before the update.
    loss: f64,
    /// Before clipping.
    grad_norm: f64,
}

/// Tensors and metadata of the `steps` steps after `checkpoint`.
///
/// | tensor | shape |
/// |---|---|
/// | `optimiser.<parameter>.first_moment`, `.second_moment` | the parameter's |
/// | `training.<n>.<name>`, n from 0 | [`batch_tensors::read`], [`batch_tensors::asked`] |
///
/// The metadata `steps` is a JSON list: step, learning rate, loss and gradient norm of each, as the run logged them.
///
/// # Errors
/// Steps that the run has not logged, dropout, of which another program has other random numbers, and micro-batches.
pub fn after(run: &OpenRun, checkpoint: &Checkpoint, steps: u64) -> Result<(Tensors, String), Failure> {
    let config = run.config();
    let (model, settings) = (&config.model, &config.train);
    if [model.embedding_dropout, model.attention_dropout, model.residual_dropout] != [0.0; 3] {
        return Err(Failure::usage("the run has dropout, and another program drops other numbers: train it without"));
    }
    if settings.accumulate > 1 {
        return Err(Failure::usage("the run has several micro-batches a step: train it with train.accumulate = 1"));
    }
    let mut tensors: Tensors =
        checkpoint.optimiser.iter().map(|(path, moment)| (format!("optimiser.{path}"), moment.clone())).collect();
    let metrics = run.metrics().map_err(Failure::failed)?;
    let logged = |step: u64| -> Option<&MetricLine> {
        metrics.iter().find(|line| line.split == Split::Train && line.step == step)
    };
    let arm = Arm::new(config);
    let generator = Generator::new(&config.task.task, Split::Train, Split::Train.data_seed(config.seed));
    let mut order = TrainingOrder::new(&config.task.sets, config.seed);
    let mut told = vec![];
    for n in 0..steps {
        let step = checkpoint.step + n + 1;
        let Some(line) = logged(step) else {
            return Err(Failure::usage(format!(
                "the run has no training line of step {step}: it must have gone on for {steps} steps after step {}, with \
                 train.log_every = 1",
                checkpoint.step
            )));
        };
        let batch = generator.batch(&order.indices(step - 1, 0, 1, settings.batch_size as u64));
        let all = [batch_tensors::read(&batch), batch_tensors::asked(&batch)].concat();
        tensors.extend(all.into_iter().map(|(name, tensor)| (format!("training.{n}.{name}"), tensor)));
        let lr = learning_rate(settings, arm.steps_per_pass(), step);
        told.push(Step { step, lr, loss: line.scores.goal(), grad_norm: line.grad_norm.unwrap_or(f64::NAN) });
    }
    // Numbers alone: nothing that JSON lacks but NaN, which becomes null.
    Ok((tensors, serde_json::to_string(&told).unwrap_or_default()))
}
