//! Loss, gradients, accumulation, and whether anything is learnt.

use architecture::{MlpActivation, ModelConfig, Positions};
use model::parameters::{self, ParameterShape};

use super::deviation::{largest, largest_difference};
use super::examination::{Examination, is_scored_at, leave_unscored};
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
        let (len, positions) = (one.len, one.batch * one.len);
        leave_unscored(&mut one, (0..positions).filter(|at| at / len != b));
        let losses = losses(&pass.logits, &one);
        means.push(losses.iter().sum::<f64>() / losses.len() as f64);
        all.extend(losses);
    }
    let loss = all.iter().sum::<f64>() / all.len() as f64;
    let n = means.len() as f64;
    let spread = (means.iter().map(|mean| (mean - loss).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    let error = 4.0 * spread / n.sqrt();
    let classes = examination.subject.config.dims().outputs;
    let (chance, above, seen) = match Asked::of(&inputs.batch) {
        // Who says their mean is off by their variance, and who says 0 by their mean square.
        Some(Asked { variance, mean_square }) => {
            let seen = format!("mean squared error {loss:.4}; variance of the answers {variance:.4}");
            (variance / 2.0, 4.0 * mean_square - variance / 2.0, seen)
        }
        None => {
            let chance = (classes as f64).ln();
            (chance, 0.0, format!("{loss:.4} nats; ln({classes}) = {chance:.4}"))
        }
    };
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
    } else if loss > chance + above.max(0.0) + ABOVE + error {
        Checked::failed(
            seen,
            "logits are too large at the start: a norm or a scale is missing, or the initial weights are too wide",
            "norm the stream before the output layer; draw its weights within ±1/sqrt(d_model)",
        )
    } else {
        Checked::ok(seen)
    })
}

/// The numbers that a batch asks for.
struct Asked {
    /// Mean squared distance from the mean of each of the O numbers.
    variance: f64,
    /// Mean square.
    mean_square: f64,
}

impl Asked {
    /// `None` where classes are asked for.
    fn of(batch: &data::Batch) -> Option<Self> {
        let numbers = batch.numbers_asked()?;
        let width = numbers.targets.len() / numbers.scored.len().max(1);
        let rows = || numbers.targets.chunks(width).zip(&numbers.scored).filter(|(_, scored)| **scored);
        let count = rows().count().max(1) as f64;
        let mean = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            let column = |c: usize| rows().map(|(row, _)| of(c, f64::from(row[c]))).sum::<f64>() / count;
            (0..width).map(column).collect()
        };
        let means = mean(&|_, number| number);
        let over = |values: Vec<f64>| values.iter().sum::<f64>() / width as f64;
        Some(Self {
            variance: over(mean(&|c, number| (number - means[c]).powi(2))),
            mean_square: over(mean(&|_, number| number * number)),
        })
    }
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

/// Whether ReLU comes right after `path`: a column that is below 0 for all that a batch holds gets nothing.
fn is_rectified(path: &str, config: &ModelConfig) -> bool {
    let is_mlp = path.contains("mlp.up.") && config.activation == MlpActivation::Relu;
    is_mlp || path.starts_with("input.up.")
}

/// Why little arrives where blocks do not add to their input.
pub(super) const FADED: &str = "without residual connections a block passes on only what it makes of its input: with small weights differences \
     between positions fade from block to block, and so do gradients, until f32 rounds them to nothing. This is the config's doing, \
     not the program's";
pub(super) const FADED_FIX: &str =
    "model.residual = true; or fewer layers, model.norm = \"pre\", model.init = \"torch\"";

/// Whether the gradient of `path`, a query's or key's, is zero because differences between values are: where the values of the
/// same attention get a gradient, so that the loss does depend on it, and a small one.
fn has_faded(path: &str, places: &[ParameterShape], gradients: &[Vec<f32>]) -> bool {
    let Some(attention) = path.split_once(".query.").or_else(|| path.split_once(".key.")).map(|(start, _)| start)
    else {
        return false;
    };
    let of = |path: &str| {
        let index = places.iter().position(|place| place.path == path)?;
        Some(largest(&gradients[index]))
    };
    let most = gradients.iter().map(|gradient| largest(gradient)).fold(0.0, f64::max);
    of(&format!("{attention}.value.weight")).is_some_and(|value| value > 0.0 && value <= 1e-3 * most)
}

pub fn reach(examination: &Examination) -> Result<Checked, SubjectError> {
    if let Some(why) = examination.blindness() {
        return Ok(Checked::skipped(why));
    }
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
        let (cause, fix) = if !config.residual && has_faded(path, &places, &gradients) {
            (FADED, FADED_FIX)
        } else {
            (
                "the loss does not depend on it: it is not used, used behind a detach or a multiplication by zero",
                "find where it should enter the forward pass; what no loss reaches is not trained",
            )
        };
        if dead.len() == columns {
            return Ok(Checked::failed(format!("{path} gets no gradient at all"), cause, fix));
        }
        if !dead.is_empty() && !is_looked_up(path) && !is_rectified(path, config) {
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
    let mut curved = 0;
    for chosen in 0..count {
        let index = chosen * places.len() / count;
        let parameter = parameters::host_values(weights[index].clone());
        let direction = direction(&gradients[index]);
        let expected: f64 = gradients[index].iter().zip(&direction).map(|(&g, &d)| f64::from(g) * d).sum();
        let norm = length(gradients[index].iter().map(|&g| f64::from(g)));
        let step = (3e-3 * length(parameter.iter().map(|&x| f64::from(x)))).max(1e-2);
        let slope = slope(expected, norm, step, |step| difference(subject, &inputs, index, &direction, step))?;
        let found = match slope {
            Slope::Agrees(found) => found,
            Slope::Curved => {
                curved += 1;
                continue;
            }
            Slope::Differs(found) => {
                return Ok(Checked::failed(
                    format!(
                        "moving {} along one direction changes the loss by {found:.5} a unit, but its gradient says {expected:.5}",
                        places[index].path
                    ),
                    "something between it and the loss is detached, clipped, rounded or has a wrong derivative",
                    "go from the loss back: the first parameter whose gradient is wrong has the culprit just after it",
                ));
            }
        };
        worst = worst.max((found - expected).abs() / norm.max(1e-3));
    }
    if curved == count {
        return Ok(Checked::skipped(
            "the loss is too curved to measure how it changes: its steps are lost in rounding",
        ));
    }
    let measured = count - curved;
    let curved = match curved {
        0 => String::new(),
        n => format!("; {n} more along which the loss is too curved to measure"),
    };
    Ok(Checked::ok(format!(
        "{measured} of {} parameters, each along one direction; worst by {:.1} %{curved}",
        places.len(),
        100.0 * worst
    )))
}

/// What measuring a slope came to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slope {
    /// It is as expected, within what can be told.
    Agrees(f64),
    /// It is another.
    Differs(f64),
    /// Its curve bends within steps so short that rounding hides what they change.
    Curved,
}

/// Steps that are tried, each a quarter as long as the one before.
const STEPS: usize = 5;
/// A loss in f32 is off by about this.
const LOSS_ERROR: f64 = 4e-6;

/// Compares the slope that `measure` finds by central difference over a step with the `expected` one of a gradient of length
/// `norm`, beginning with the step `first`.
///
/// A long step meets curvature, and a short one rounding. So a difference counts only where the step is short enough: where a
/// step four times as long found nearly the same (where the curve jumps within both, the shorter finds four times as much). What
/// curvature then still adds to a central difference is less than twice what the two steps differ by. A layer norm of a stream
/// that is nearly constant, as without residual connections and with small initial weights, bends within a hundredth of the first
/// step.
fn slope<E>(expected: f64, norm: f64, first: f64, mut measure: impl FnMut(f64) -> Result<f64, E>) -> Result<Slope, E> {
    let mut longer = None::<f64>;
    let mut step = first;
    for _ in 0..STEPS {
        let found = measure(step)?;
        let error = 0.005 * norm + LOSS_ERROR / step;
        let off = (found - expected).abs();
        // Where rounding is as large as what is measured, agreement says nothing either.
        let is_telling = longer.is_none() || LOSS_ERROR / step <= 0.1 * norm;
        if off <= error && is_telling {
            return Ok(Slope::Agrees(found));
        }
        if let Some(longer) = longer {
            let (bend, rounding) = ((found - longer).abs(), 1.25 * LOSS_ERROR / step);
            let is_short_enough = bend <= 0.25 * found.abs() + rounding;
            let is_no_number = found.is_nan() && longer.is_nan();
            if is_no_number || is_short_enough && off > error + 2.0 * bend + rounding {
                return Ok(Slope::Differs(found));
            }
        }
        longer = Some(found);
        step /= 4.0;
    }
    Ok(Slope::Curved)
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
    let len = whole.len;
    let first = (0..len).find(|&at| is_scored_at(&whole, at)).unwrap_or(0);
    leave_unscored(&mut whole, (0..len).filter(|&t| t != first));
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
    if config.positions == Positions::None && !config.causal && examination.subject.config.dims().inputs == 0 {
        return Ok(Checked::skipped("neither positions nor a causal mask: equal tokens get equal outputs"));
    }
    let batch = examination.scored_batch(examination.effort.samples.min(4));
    let lr = 3e-3 * (64.0 / config.d_model as f64).min(1.0);
    let steps = examination.effort.steps;
    let classes = examination.subject.config.dims().outputs;
    // Within few updates a large model cannot learn by heart, but it must get on.
    let (enough, most) = if examination.effort.is_short() { (0.8, 0.95) } else { (0.1, 0.5) };
    let asked = Asked::of(&batch);
    let enough = enough * asked.as_ref().map_or((classes as f64).ln(), |asked| asked.variance);
    let losses = examination.untrained.overfit(&batch, steps, lr, enough)?;
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    let seen = format!(
        "{} samples, {} scored positions: loss {first:.3} → {last:.3} in {} updates",
        batch.batch,
        batch.scored(),
        losses.len() - 1
    );
    if last <= (most * first).max(enough) {
        return Ok(Checked::ok(seen));
    }
    // Whoever learns no more than how often each class comes, or the mean of the numbers, ends here.
    let blind = asked.as_ref().map_or_else(|| class_entropy(&batch.scored_positions().1), |asked| asked.variance);
    let knowing = if asked.is_some() { "the mean of the numbers" } else { "how often each class comes" };
    let is_lower = first - last > (0.25 * (first - blind)).max(1e-3 * first);
    let parameters: usize = parameters::of(examination.untrained.model()).iter().map(ParameterShape::count).sum();
    if is_lower && parameters < NEEDED * batch.scored() {
        return Ok(Checked::skipped(format!(
            "{seen}; {parameters} parameters are too few to demand that this is learnt by heart"
        )));
    }
    let seen = format!("{seen}, more than {:.0} % of the first; knowing only {knowing} costs {blind:.3}", 100.0 * most);
    let look = "see the checks of reach and gradients; then train on one sample and print the loss of each step";
    Ok(if !is_lower {
        Checked::failed(
            seen,
            "updates do not lower the loss: the optimiser steps the wrong way, not at all, or on other tensors than the model's",
            look,
        )
    } else if !config.residual {
        Checked::failed(seen, FADED, FADED_FIX)
    } else {
        Checked::failed(
            seen,
            "the gradient or the update is partly wrong, or the model cannot tell the positions apart",
            look,
        )
    })
}

/// Parameters for each scored position from which on it is demanded that they are learnt by heart.
const NEEDED: usize = 10;

/// Entropy of the classes' shares, in nats: the least loss of whoever sees no input.
fn class_entropy(targets: &[i32]) -> f64 {
    let mut counts = std::collections::BTreeMap::<i32, f64>::new();
    for &target in targets {
        *counts.entry(target).or_default() += 1.0;
    }
    let total = targets.len() as f64;
    counts.values().map(|count| -count / total * (count / total).ln()).sum()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn measured(expected: f64, norm: f64, loss: impl Fn(f64) -> f64) -> Slope {
        let difference = |step: f64| Ok::<f64, Infallible>((loss(step) - loss(-step)) / (2.0 * step));
        slope(expected, norm, 1e-2, difference).unwrap()
    }

    /// What the doctor called a wrong gradient: a curve that bends within its steps.
    #[test]
    fn a_bend_is_no_wrong_gradient() {
        for width in [1.0, 1e-2, 3e-3, 1e-3, 3e-4] {
            // As a layer norm of a stream of that size.
            let bend = |x: f64| x / (x * x + width * width).sqrt() * 0.1;
            let right = 0.1 / width;
            assert!(!matches!(measured(right, right, bend), Slope::Differs(_)), "{width}");
        }
        assert!(!matches!(measured(0.0, 0.0, |x| if x > 0.0 { 1.0 } else { 0.0 }), Slope::Differs(_)), "a jump");
    }

    #[test]
    fn a_wrong_gradient_is_found_though_the_curve_bends() {
        assert_eq!(measured(0.5, 0.5, |x| 0.5 * x + x * x), Slope::Agrees(0.5));
        for width in [1.0, 0.1, 0.03] {
            let bend = |x: f64| x / (x * x + width * width).sqrt() * 0.1;
            let right = 0.1 / width;
            for factor in [0.0, 0.5, 0.9, 1.2, -1.0] {
                let found = measured(factor * right, factor.abs() * right, bend);
                assert!(matches!(found, Slope::Differs(_)), "{width} {factor} {found:?}");
            }
        }
        assert!(matches!(measured(0.1, 0.1, |_| f64::NAN), Slope::Differs(_)));
    }

    #[test]
    fn entropy_of_classes() {
        assert_eq!(class_entropy(&[3, 3, 3]), 0.0);
        assert!((class_entropy(&[0, 1, 0, 1]) - 2f64.ln()).abs() < 1e-12);
    }
}
