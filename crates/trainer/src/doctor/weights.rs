//! The weights of a run: whether they are numbers, and whether all of them were trained.

use burn::tensor::Device;
use data::steps_per_pass;
use runs::Config;

use super::examination::Weights;
use super::finding::Checked;
use crate::training::schedule::learning_rate;

/// A weight that moved by less than this share of itself, beyond its decay, was not trained.
const STILL: f64 = 1e-3;

/// Entries that all stay still only where nothing trains them.
const MANY: usize = 8;

/// A run's weights after `step`, beside the initial ones, both by parameter path.
pub struct Trained<'a> {
    /// What was trained.
    pub config: &'a Config,
    /// The weights before the first step.
    pub initial: &'a Weights,
    /// Those of the checkpoint.
    pub trained: &'a Weights,
    /// Its step.
    pub step: u64,
    /// Where it is computed on.
    pub device: &'a Device,
}

/// Heads that read alike do the work of one. Before training they all do.
pub fn heads(&Trained { config, trained, step, device, .. }: &Trained) -> Checked {
    if step == 0 {
        return Checked::skipped("the checkpoint is that of step 0: nothing is trained yet");
    }
    if config.model.heads < 2 || config.model.layers == 0 {
        return Checked::skipped("there is one head in a layer, or none");
    }
    match analysis::heads_alike(config, trained, device) {
        Ok(alike) if alike.is_empty() => Checked::ok(format!(
            "step {step}: the heads of every attention read differently, by more than before training"
        )),
        Ok(alike) => {
            let words: Vec<String> = alike.into_iter().map(|alike| alike.words).collect();
            Checked::warned(
                words.join(". "),
                "the heads do the work of one: what is said of their number is not about heads that differ",
                "train longer, or check the initialisation",
            )
        }
        Err(error) => Checked::skipped(error.to_string()),
    }
}

pub fn finite(&Trained { trained, step, .. }: &Trained) -> Checked {
    let mut largest = (0.0f32, "");
    for (path, tensor) in trained {
        let broken = tensor.values.iter().filter(|value| !value.is_finite()).count();
        if broken > 0 {
            return Checked::failed(
                format!("{broken} of {} entries of {path} at step {step} are not finite", tensor.values.len()),
                "the run diverged: the learning rate is too high, or a gradient was not finite",
                "a smaller train.lr, a longer train.warmup, train.clip_norm = 1.0",
            );
        }
        for value in &tensor.values {
            if value.abs() > largest.0 {
                largest = (value.abs(), path);
            }
        }
    }
    Checked::ok(format!("step {step}: {} tensors, the largest entry {:.2} in {}", trained.len(), largest.0, largest.1))
}

/// Without a gradient, AdamW only shrinks a weight, by a factor that follows from the schedule.
pub fn dead(&Trained { config, initial, trained, step, .. }: &Trained) -> Checked {
    if step == 0 {
        return Checked::skipped("the checkpoint is that of step 0: nothing is trained yet");
    }
    let settings = &config.train;
    let per_step = settings.batch_size as u64 * settings.accumulate as u64;
    let pass = steps_per_pass(&config.task.sets, per_step);
    let shrunk: f64 =
        (1..=step).map(|step| 1.0 - learning_rate(settings, pass, step) * settings.weight_decay).product();
    let mut columns_seen = 0;
    for (path, tensor) in trained {
        // Rows of tokens and positions that never came are not trained, rightly so; nor is a key bias.
        let is_exempt = path.ends_with("token.weight") || path.ends_with("position.weight");
        let is_cancelled =
            path.ends_with("key.bias") && (!config.model.positions.rotates() || path.contains("cross_attention"));
        let Some(before) = initial.get(path).filter(|before| before.shape == tensor.shape) else { continue };
        if is_exempt || is_cancelled {
            continue;
        }
        // A single number can stay where it was by chance, many together cannot.
        let columns = match tensor.shape[..] {
            [rows, columns] if rows >= MANY => columns,
            _ => 1,
        };
        let is_still = |column: usize| {
            let pairs = tensor.values.iter().zip(&before.values).skip(column).step_by(columns);
            let mut pairs = pairs.map(|(&now, &then)| (f64::from(now), f64::from(then) * shrunk));
            pairs.all(|(now, expected)| (now - expected).abs() <= STILL * expected.abs())
        };
        let still: Vec<usize> = (0..columns).filter(|&column| is_still(column)).collect();
        columns_seen += columns;
        if let Some(first) = still.first() {
            return Checked::failed(
                format!(
                    "{} of {columns} columns of {path} only decayed in {step} steps, the first of them {first}",
                    still.len()
                ),
                "no gradient ever reached them: they are not used, detached, or multiplied by zero",
                "see the check of reach; a head or a unit that is never used can be left out of the config",
            );
        }
    }
    Checked::ok(format!("all {columns_seen} columns moved beyond weight decay in {step} steps"))
}
