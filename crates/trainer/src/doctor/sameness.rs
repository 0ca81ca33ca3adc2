//! What must make no difference: dropout in evaluation, the numbering of the heads, the backend.

use architecture::HostTensor;
use model::Dropout;
use model::parameters;

use super::deviation::{largest, largest_difference, worst};
use super::examination::Examination;
use super::finding::Checked;
use super::subject::{Inputs, SubjectError};

/// How far outputs may differ that are computed in another order, in units of the largest.
const TOLERANCE: f64 = 1e-4;
/// The same between backends.
const BACKEND_TOLERANCE: f64 = 1e-3;

pub fn dropout(examination: &Examination) -> Result<Checked, SubjectError> {
    let inputs = Inputs::new(examination.two_samples());
    let dropped = examination.dropped()?;
    let without = examination.subject.evaluate(&inputs)?.logits.values;
    let [one, two] = [dropped.evaluate(&inputs)?, dropped.evaluate(&inputs)?].map(|pass| pass.logits.values);
    let off = largest_difference(&one, &without).max(largest_difference(&two, &one));
    if off > 1e-6 * largest(&without).max(1.0) {
        return Ok(Checked::failed(
            format!("in evaluation, dropout 0.5 moves logits by {off:.3}"),
            "dropout stays on in evaluation",
            "evaluate with the model in evaluation mode, or pass no dropout",
        ));
    }
    let pass = |step: u64| dropped.train(&inputs, Dropout { seed: 0, step, micro_batch: 0 });
    let [first, again, next] = [pass(0)?, pass(0)?, pass(1)?].map(|pass| pass.logits.values);
    let acts = largest_difference(&first, &without).min(largest_difference(&first, &next));
    if acts == 0.0 {
        if let Some(why) = examination.blindness() {
            return Ok(Checked::skipped(why));
        }
        return Ok(Checked::failed(
            "in training, dropout 0.5 moves no logit",
            "dropout is never applied, or drops the same entries at every step",
            "apply it in training, with random numbers that depend on the step",
        ));
    }
    let repeats = largest_difference(&first, &again);
    if repeats > 1e-6 * largest(&first).max(1.0) {
        return Ok(Checked::failed(
            format!("two passes of the same step differ by {repeats:.3}"),
            "dropout draws from a state that every pass moves on: a resumed run cannot repeat it",
            "draw masks from (seed, step, micro-batch, layer, place)",
        ));
    }
    Ok(Checked::ok(format!(
        "tried at 0.5: evaluation is the same to the last bit or two, training moves logits by {acts:.1}"
    )))
}

pub fn head_order(examination: &Examination) -> Result<Checked, SubjectError> {
    let config = examination.model();
    let (h, g, k) = (config.heads, config.kv_heads(), config.d_head());
    if h < 2 {
        return Ok(Checked::skipped("there is one head"));
    }
    // Groups change places, and heads within each group, differently in each, so that no other order undoes it.
    let group = |new: usize| (new + 1) % g;
    let per_group = h / g;
    let within = |new: usize| (new + new / per_group) % per_group;
    let query_heads: Vec<usize> = (0..h).map(|new| group(new / per_group) * per_group + within(new)).collect();
    let key_heads: Vec<usize> = (0..g).map(group).collect();
    let mut weights = examination.weights().clone();
    for (path, tensor) in &mut weights {
        let Some((module, part)) = path.rsplit_once('.') else { continue };
        match module.rsplit_once('.') {
            Some((attention, "query")) if attention.ends_with("attention") => {
                *tensor = columns(tensor, &query_heads, k)
            }
            Some((attention, "key" | "value")) if attention.ends_with("attention") => {
                *tensor = columns(tensor, &key_heads, k);
            }
            // Averaged heads share their rows.
            Some((attention, "output"))
                if attention.ends_with("attention") && part == "weight" && tensor.shape[0] == h * k =>
            {
                *tensor = rows(tensor, &query_heads, k);
            }
            _ => {}
        }
    }
    let inputs = Inputs::new(examination.two_samples());
    let before = examination.subject.evaluate(&inputs)?.logits.values;
    let after = examination.subject.with_weights(&weights)?.evaluate(&inputs)?.logits.values;
    let off = largest_difference(&after, &before);
    Ok(if off > TOLERANCE * largest(&before).max(1.0) {
        Checked::failed(
            format!("renumbering the heads moves logits by {off:.3}"),
            "heads are not treated alike: split, grouped or merged in different orders, or something depends on a head's number",
            "see the checks of split, scores and merge: each must deal out columns h·K to (h+1)·K to head h",
        )
    } else {
        Checked::ok(format!("{h} heads renumbered: logits move by {off:.0e}"))
    })
}

/// Blocks of `k` columns in another order.
fn columns(tensor: &HostTensor, order: &[usize], k: usize) -> HostTensor {
    let width = order.len() * k;
    let from = |at: usize| at / width * width + order[at % width / k] * k + at % k;
    HostTensor {
        shape: tensor.shape.clone(),
        values: (0..tensor.values.len()).map(|at| tensor.values[from(at)]).collect(),
    }
}

/// Blocks of `k` rows in another order.
fn rows(tensor: &HostTensor, order: &[usize], k: usize) -> HostTensor {
    let width = tensor.shape[1];
    let block = |&head: &usize| tensor.values[head * k * width..(head + 1) * k * width].to_vec();
    HostTensor { shape: tensor.shape.clone(), values: order.iter().flat_map(block).collect() }
}

pub fn decoding(examination: &Examination) -> Result<Checked, SubjectError> {
    /// Positions that are read one by one.
    const ALONE: usize = 8;
    if !examination.model().causal {
        return Ok(Checked::skipped("the model is not causal: it reads both ways, so nothing can be kept"));
    }
    let batch = examination.two_samples();
    let first = batch.len.div_ceil(2);
    let alone = ALONE.min(batch.len - first);
    let mut pieces = vec![first];
    pieces.extend(vec![1; alone]);
    pieces.push(batch.len - first - alone);
    pieces.retain(|&length| length > 0);
    let whole = examination.subject.evaluate(&Inputs::new(batch.clone()))?.logits;
    let decoded = examination.subject.decode(&batch, &pieces)?;
    let expected: Vec<f64> = whole.values.iter().map(|&x| f64::from(x)).collect();
    let off = worst(&decoded, &expected);
    Ok(if off.deviation > TOLERANCE {
        let position = off.index / whole.shape[1] % batch.len;
        Checked::failed(
            format!(
                "at position {position} a logit is {:.4} with the cache and {:.4} without",
                off.found, off.expected
            ),
            "positions start anew with each piece, the mask is aligned at the first key instead of the last, or old keys \
             and values are lost",
            "count positions on from what the cache holds; forbid key j to query i of Lq where j > i + Lk - Lq",
        )
    } else {
        Checked::ok(format!("{first} positions at once, then {alone} one by one: off by {:.0e}", off.deviation))
    })
}

pub fn backend(examination: &Examination) -> Result<Checked, SubjectError> {
    let flex = match &examination.flex {
        Ok(flex) => flex,
        Err(why) => return Ok(Checked::skipped(*why)),
    };
    let subject = &examination.subject;
    let other = subject.on(flex)?;
    let inputs = Inputs::new(examination.scored_batch(2));
    let [ours, theirs] = [subject.evaluate(&inputs)?, other.evaluate(&inputs)?].map(|pass| pass.logits.values);
    let logits = largest_difference(&ours, &theirs) / largest(&theirs).max(1.0);
    let (found, expected) = (subject.gradient(&inputs)?, other.gradient(&inputs)?);
    let mut worst = (0.0f64, String::new());
    let whole = largest(&expected.concat()).max(1e-6);
    for ((place, found), expected) in parameters::of(subject.model()).iter().zip(&found).zip(&expected) {
        let off = largest_difference(found, expected) / whole;
        if off > worst.0 {
            worst = (off, place.path.clone());
        }
    }
    Ok(if logits > BACKEND_TOLERANCE || worst.0 > BACKEND_TOLERANCE {
        Checked::failed(
            format!(
                "logits differ from flex by {logits:.1e}, gradients by {:.1e} (in {}) of their largest entry",
                worst.0, worst.1
            ),
            "the backend, its driver or a fused kernel computes something else",
            "try --backend flex; for wgpu another driver, and report it to Burn with the smallest such config",
        )
    } else {
        Checked::ok(format!("logits differ by {logits:.0e}, gradients by {:.0e} of their largest entry", worst.0))
    })
}
