//! Loss, gradients, accumulation, and whether anything is learnt.

use architecture::{ModelConfig, Positions};
use data::IGNORE;
use model::parameters::{self, ParameterShape};

use super::deviation::{largest, largest_difference};
use super::examination::Examination;
use super::finding::Checked;
use super::subject::{Inputs, Subject, SubjectError, losses};

/// How far the untrained loss may lie above ln(classes): logits of variance v cost about v/2.
const ABOVE: f64 = 1.0;
/// How far below, beyond four standard errors.
const BELOW: f64 = 0.05;

pub fn untrained_loss(examination: &Examination) -> Result<Checked, SubjectError> {
    let inputs = Inputs::new(examination.scored_batch(4 * examination.effort.samples));
    let pass = examination.untrained.evaluate(&inputs)?;
    // Positions of one sample are alike, so the standard error is that of the samples' means.
    let mut means = vec![];
    let mut all = vec![];
    for b in 0..inputs.batch.batch {
        let mut one = inputs.batch.clone();
        for (at, target) in one.targets.iter_mut().enumerate() {
            if at / one.len != b {
                *target = IGNORE;
            }
        }
        let losses = losses(&pass.logits, &one);
        means.push(losses.iter().sum::<f64>() / losses.len() as f64);
        all.extend(losses);
    }
    let loss = all.iter().sum::<f64>() / all.len() as f64;
    let n = means.len() as f64;
    let spread = (means.iter().map(|mean| (mean - loss).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    let error = 4.0 * spread / n.sqrt();
    let classes = examination.subject.config.dims().outputs;
    let chance = (classes as f64).ln();
    let seen = format!("{loss:.4} nats; ln({classes}) = {chance:.4}");
    if !loss.is_finite() {
        return Ok(Checked::failed(
            format!("the loss is {loss}"),
            "a logarithm or division of zero in the forward pass",
            "look for the first node that is not finite",
        ));
    }
    Ok(if loss < chance - BELOW - error {
        Checked::failed(
            seen,
            "the model knows the answer before it has learnt: the target leaks into the input, or the weights are not new",
            "see the checks of the future and of the targets",
        )
    } else if loss > chance + ABOVE + error {
        Checked::failed(
            seen,
            "logits are too large at the start: a norm or a scale is missing, or the initial weights are too wide",
            "norm the stream before the output layer; draw its weights within ±1/sqrt(d_model)",
        )
    } else {
        Checked::ok(seen)
    })
}

/// Whether the true gradient of `path` is zero: a bias on the keys adds the same to every score of a row, which the
/// softmax cancels, unless rotation makes it depend on the position.
fn is_cancelled(path: &str, config: &ModelConfig) -> bool {
    let rotates = config.positions.rotates() && !path.contains("cross_attention");
    path.ends_with("key.bias") && !rotates
}

/// Whether `path` is looked up by token or position, so that what a batch does not hold gets nothing.
fn is_looked_up(path: &str) -> bool {
    path.ends_with("token.weight") || path.ends_with("position.weight")
}

pub fn reach(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.untrained;
    let inputs = Inputs::new(examination.scored_batch(examination.effort.samples));
    let gradients = subject.gradient(&inputs)?;
    let places = parameters::of(subject.model());
    let config = &subject.config.model;
    let source = inputs.batch.source.as_ref().map_or(2, |source| source.len);
    let mut cancelled = 0;
    for (ParameterShape { path, shape }, gradient) in places.iter().zip(&gradients) {
        if is_cancelled(path, config) {
            cancelled += 1;
            continue;
        }
        // A softmax over a single key is 1 whatever the score.
        let keys =
            if path.contains("cross_attention") || path.starts_with("encoder") { source } else { inputs.batch.len };
        if keys < 2 && (path.contains("query") || path.contains("key")) {
            continue;
        }
        // A single number can vanish by chance, a column cannot.
        let columns = match shape[..] {
            [_, columns] => columns,
            _ => 1,
        };
        let is_dead = |column: usize| gradient.iter().skip(column).step_by(columns).all(|&x| x == 0.0);
        let dead: Vec<usize> = (0..columns).filter(|&column| is_dead(column)).collect();
        let cause = "the loss does not depend on it: it is not used, used behind a detach or a multiplication by zero";
        let fix = "find where it should enter the forward pass; what no loss reaches is not trained";
        if dead.len() == columns {
            return Ok(Checked::failed(format!("{path} gets no gradient at all"), cause, fix));
        }
        if !dead.is_empty() && !is_looked_up(path) {
            let seen =
                format!("{} of {columns} columns of {path} get no gradient, the first of them {}", dead.len(), dead[0]);
            return Ok(Checked::failed(seen, cause, fix));
        }
    }
    let exempt = match cancelled {
        0 => String::new(),
        n => {
            format!("; {n} key biases are exempt: they add the same to every score of a row, which the softmax cancels")
        }
    };
    Ok(Checked::ok(format!("{} parameters, every column of their weights{exempt}", places.len() - cancelled)))
}

pub fn gradients(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.untrained;
    let inputs = Inputs::new(examination.scored_batch(examination.effort.samples));
    let gradients = subject.gradient(&inputs)?;
    let places = parameters::of(subject.model());
    let weights = parameters::flat_parameters(subject.model());
    let count = examination.effort.tensors.min(places.len());
    let mut worst = 0.0f64;
    for chosen in 0..count {
        let index = chosen * places.len() / count;
        let parameter = parameters::host_values(weights[index].clone());
        let direction = direction(&gradients[index]);
        let expected: f64 = gradients[index].iter().zip(&direction).map(|(&g, &d)| f64::from(g) * d).sum();
        let norm = length(gradients[index].iter().map(|&g| f64::from(g)));
        let step = (3e-3 * length(parameter.iter().map(|&x| f64::from(x)))).max(1e-2);
        let mut found = difference(subject, &inputs, index, &direction, step)?;
        // A loss in f32 is off by some 1e-6, and a long step meets curvature: the shorter one decides where they differ.
        let allowed = |step: f64| 0.005 * norm + 4e-6 / step;
        let mut off = (found - expected).abs() / allowed(step);
        if off.is_nan() || off > 1.0 {
            let short = step / 4.0;
            found = difference(subject, &inputs, index, &direction, short)?;
            off = (found - expected).abs() / allowed(short);
        }
        if off.is_nan() || off > 1.0 {
            return Ok(Checked::failed(
                format!(
                    "moving {} along one direction changes the loss by {found:.5} a unit, but its gradient says {expected:.5}",
                    places[index].path
                ),
                "something between it and the loss is detached, clipped, rounded or has a wrong derivative",
                "go from the loss back: the first parameter whose gradient is wrong has the culprit just after it",
            ));
        }
        worst = worst.max((found - expected).abs() / norm.max(1e-3));
    }
    Ok(Checked::ok(format!(
        "{count} of {} parameters, each along one direction; worst by {:.1} %",
        places.len(),
        100.0 * worst
    )))
}

/// Half along the gradient, so that there is something to measure, half along signs that no structure follows, so that
/// what the gradient misses counts too. Of length 1.
fn direction(gradient: &[f32]) -> Vec<f64> {
    let norm = length(gradient.iter().map(|&g| f64::from(g)));
    let side = 1.0 / (gradient.len() as f64).sqrt();
    let sign = |index: usize| {
        let mut bits = (index as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        if bits >> 63 == 0 { side } else { -side }
    };
    let along = |g: f32| if norm > 0.0 { f64::from(g) / norm } else { 0.0 };
    let sum: Vec<f64> = gradient.iter().enumerate().map(|(index, &g)| along(g) + sign(index)).collect();
    let size = length(sum.iter().copied()).max(f64::MIN_POSITIVE);
    sum.into_iter().map(|x| x / size).collect()
}

fn length(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|x| x * x).sum::<f64>().sqrt()
}

/// The loss's change a unit along `direction`, by central difference.
fn difference(
    subject: &Subject,
    inputs: &Inputs,
    index: usize,
    direction: &[f64],
    step: f64,
) -> Result<f64, SubjectError> {
    let at = |sign: f64| {
        let change: Vec<f64> = direction.iter().map(|d| sign * step * d).collect();
        subject.moved(index, &change).loss(inputs)
    };
    Ok((at(1.0)? - at(-1.0)?) / (2.0 * step))
}

pub fn accumulation(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.untrained;
    let mut whole = examination.scored_batch(examination.effort.samples);
    if whole.batch < 2 {
        return Ok(Checked::skipped("the task scores too little for two micro-batches"));
    }
    // The first sample is scored once, the others as often as the task says: so a mean of means differs.
    let first = whole.targets.iter().position(|&target| target != IGNORE).unwrap_or(0);
    let len = whole.len;
    whole.targets[..len].iter_mut().enumerate().filter(|(t, _)| *t != first).for_each(|(_, target)| *target = IGNORE);
    let parts = [whole.rows(0..1), whole.rows(1..whole.batch)];
    let expected: Vec<f32> = subject.gradient(&Inputs::new(whole.clone()))?.concat();
    let loss = subject.loss(&Inputs::new(whole.clone()))?;
    let scored = whole.scored();
    let (tally, accumulated) = subject.accumulate(&parts)?;
    let norm = |gradient: &[f32]| length(gradient.iter().map(|&g| f64::from(g)));
    let scale = largest(&expected).max(1e-6);
    let off = largest_difference(&accumulated, &expected) / scale;
    let ratio = norm(&accumulated) / norm(&expected);
    let loss_off = (tally.mean_loss() - loss).abs();
    if !(off <= 1e-3 && loss_off <= 1e-4 * loss.max(1.0)) || tally.scored as usize != scored {
        let sums = |times: f64| {
            let scaled: Vec<f32> = expected.iter().map(|&g| (f64::from(g) * times) as f32).collect();
            largest_difference(&accumulated, &scaled) <= 1e-3 * scale * times
        };
        let cause = if sums(scored as f64) || sums(parts.len() as f64) {
            "gradients are summed and not divided: the learning rate grows with the number of micro-batches"
        } else {
            "each micro-batch is averaged by itself: one with few scored positions weighs as much as one with many"
        };
        return Ok(Checked::failed(
            format!(
                "micro-batches of {} and {} scored positions: the gradient is {ratio:.3} times as long as the whole batch's and \
                 off by {:.1} % of its largest entry; loss {:.5} instead of {loss:.5}",
                parts[0].scored(),
                parts[1].scored(),
                100.0 * off,
                tally.mean_loss()
            ),
            cause,
            "divide every micro-batch's summed loss by the scored positions of the whole step",
        ));
    }
    Ok(Checked::ok(format!(
        "micro-batches of {} and {} scored positions; off by {off:.0e} of the largest entry",
        parts[0].scored(),
        parts[1].scored()
    )))
}

pub fn overfit(examination: &Examination) -> Result<Checked, SubjectError> {
    let config = examination.model();
    if config.positions == Positions::None && !config.causal {
        return Ok(Checked::skipped("neither positions nor a causal mask: equal tokens get equal outputs"));
    }
    let batch = examination.scored_batch(examination.effort.samples.min(4));
    let lr = 3e-3 * (64.0 / config.d_model as f64).min(1.0);
    let steps = examination.effort.steps;
    let classes = examination.subject.config.dims().outputs;
    // Within few updates a large model cannot learn by heart, but it must get on.
    let (enough, most) = if examination.effort.is_short() { (0.8, 0.95) } else { (0.1, 0.5) };
    let enough = enough * (classes as f64).ln();
    let losses = examination.untrained.overfit(&batch, steps, lr, enough)?;
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    let seen = format!(
        "{} samples, {} scored positions: loss {first:.3} → {last:.3} in {} updates",
        batch.batch,
        batch.scored(),
        losses.len() - 1
    );
    Ok(if last <= (most * first).max(enough) {
        Checked::ok(seen)
    } else {
        let cause = if last >= 0.99 * first {
            "updates do not lower the loss: the optimiser steps the wrong way, not at all, or on other tensors than the model's"
        } else {
            "the gradient or the update is partly wrong, or the model cannot tell the positions apart"
        };
        Checked::failed(
            format!("{seen}, more than {:.0} % of the first", 100.0 * most),
            cause,
            "see the checks of reach and gradients; then train on one sample and print the loss of each step",
        )
    })
}
