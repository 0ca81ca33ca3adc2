//! What may not reach an output: later tokens, other samples, padding.

use architecture::HostTensor;
use model::Dropout;

use super::deviation::{largest, largest_difference};
use super::examination::{Examination, change_read};
use super::finding::Checked;
use super::learning::{FADED, FADED_FIX};
use super::subject::{Inputs, Subject, SubjectError};

/// How far an output may move that should not move at all, in units of the largest logit. On CPUs it does not; a GPU may
/// round otherwise.
const TOLERANCE: f64 = 1e-6;

/// Rows of logits `[B·L, outputs]` from position `from` to `to` of sample `b`.
fn rows(logits: &HostTensor, len: usize, b: usize, from: usize, to: usize) -> &[f32] {
    let classes = logits.shape[1];
    &logits.values[(b * len + from) * classes..(b * len + to) * classes]
}

/// Another token of a source.
fn changed(token: i32, vocab: usize) -> i32 {
    (token + 1) % vocab as i32
}

pub fn future(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.subject;
    if !examination.model().causal {
        return Ok(Checked::skipped("the model is not causal: every position may read the future"));
    }
    let batch = examination.two_samples();
    let (len, vocab) = (batch.len, subject.config.dims().vocab);
    if len < 2 {
        return Ok(Checked::skipped("samples have a single token"));
    }
    // In evaluation, and in training with the same dropout (keras#23038).
    let dropped = examination.dropped()?;
    let dropout = Dropout { seed: 0, step: 0, micro_batch: 0 };
    let logits = |inputs: &Inputs, trains: bool| {
        let pass = if trains { dropped.train(inputs, dropout) } else { subject.evaluate(inputs) };
        pass.map(|pass| pass.logits)
    };
    let mut places = vec![1, len / 2, len - 1];
    places.dedup();
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for trains in [false, true] {
        let inputs = Inputs::new(batch.clone());
        let before = logits(&inputs, trains)?;
        let scale = largest(&before.values).max(1.0);
        for &t in &places {
            let mut inputs = inputs.clone();
            change_read(&mut inputs.batch, vocab, std::iter::once(t));
            let after = logits(&inputs, trains)?;
            let earlier = largest_difference(rows(&after, len, 0, 0, t), rows(&before, len, 0, 0, t));
            if earlier > TOLERANCE * scale {
                let mode = if trains { "in training" } else { "in evaluation" };
                return Ok(Checked::failed(
                    format!("changing the token at {t} moves outputs before it by {earlier:.2e}, {mode}"),
                    "the causal mask is missing, one place off or applied after the softmax; or something else mixes positions: \
                     a convolution that looks ahead, a statistic over the sequence or the batch, a shift in the wrong direction",
                    "if the check of the mask is ok, look for what mixes positions outside the attention",
                ));
            }
            let later = largest_difference(rows(&after, len, 0, t, len), rows(&before, len, 0, t, len));
            (least, most) = (least.min(later), most.max(later));
        }
    }
    if most == 0.0 {
        if let Some(why) = examination.blindness() {
            return Ok(Checked::skipped(why));
        }
        if !examination.model().residual {
            return Ok(Checked::failed("changing a token moves no output at all", FADED, FADED_FIX));
        }
        return Ok(Checked::failed(
            "changing a token moves no output at all",
            "the model does not read its tokens",
            "follow one token from the embedding to the logits",
        ));
    }
    let places: Vec<String> = places.iter().map(usize::to_string).collect();
    Ok(Checked::ok(format!(
        "changed token {}: earlier outputs stay, later ones move by {least:.2} or more, dropout off and on",
        places.join(", ")
    )))
}

pub fn samples(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.subject;
    let batch = examination.two_samples();
    let (len, dims) = (batch.len, subject.config.dims());
    let before = subject.evaluate(&Inputs::new(batch.clone()))?.logits;
    let mut other = batch;
    change_read(&mut other, dims.vocab, 0..len);
    if let (Some(source), Some(sizes)) = (&mut other.source, dims.source) {
        let len = source.len;
        for token in &mut source.tokens[..len] {
            *token = changed(*token, sizes.vocab);
        }
    }
    let after = subject.evaluate(&Inputs::new(other))?.logits;
    let moved = largest_difference(rows(&after, len, 1, 0, len), rows(&before, len, 1, 0, len));
    let own = largest_difference(rows(&after, len, 0, 0, len), rows(&before, len, 0, 0, len));
    if moved > TOLERANCE * largest(&before.values).max(1.0) {
        return Ok(Checked::failed(
            format!("changing the first sample moves the second by {moved:.2e}"),
            "a statistic over the batch (batch norm), or axes of batch and sequence mixed up",
            "normalise each position by itself (layer norm); keep B the first axis in every reshape",
        ));
    }
    Ok(Checked::ok(format!("changing the first sample moves it by {own:.2} and the second not at all")))
}

/// The largest movement of outputs at positions that are not padding when what stands in padding is changed.
fn moved_by_padding(subject: &Subject, inputs: &Inputs) -> Result<f64, SubjectError> {
    let dims = subject.config.dims();
    let before = subject.evaluate(inputs)?.logits;
    let mut other = inputs.clone();
    let is_padding = inputs.padding.clone().unwrap_or_else(|| vec![false; inputs.batch.batch * inputs.batch.len]);
    let padded = is_padding.iter().enumerate().filter(|(_, is_padding)| **is_padding).map(|(at, _)| at);
    change_read(&mut other.batch, dims.vocab, padded);
    if let (Some(source), Some(sizes)) = (&mut other.batch.source, dims.source) {
        for (token, _) in source.tokens.iter_mut().zip(&source.padding).filter(|(_, is_padding)| **is_padding) {
            *token = changed(*token, sizes.vocab);
        }
    }
    let after = subject.evaluate(&other)?.logits;
    let classes = before.shape[1];
    let rows = before.values.chunks(classes).zip(after.values.chunks(classes)).zip(&is_padding);
    let moved =
        rows.filter(|(_, is_padding)| !**is_padding).map(|((before, after), _)| largest_difference(after, before));
    Ok(moved.fold(0.0, f64::max) / largest(&before.values).max(1.0))
}

pub fn padding(examination: &Examination) -> Result<Checked, SubjectError> {
    let subject = &examination.subject;
    let mut seen = vec![];
    let failed = |what: &str, moved: f64| {
        Checked::failed(
            format!(
                "changing tokens at padded positions of {what} moves other outputs by {moved:.2e} of the largest logit"
            ),
            "padding is attended to, or something else mixes positions: a convolution, a mean over the sequence",
            "mask padded keys; leave padded positions out of every sum and mean over positions",
        )
    };
    let mut batch = examination.two_samples();
    if let Some(source) = &mut batch.source {
        // Whatever the task drew: some padding, and something to read.
        let (first, len) = (source.len.div_ceil(2), source.len);
        for row in source.padding.chunks_mut(len) {
            row[first..].fill(true);
        }
        if first < len {
            let moved = moved_by_padding(subject, &Inputs::new(batch.clone()))?;
            if moved > TOLERANCE {
                return Ok(failed("the source", moved));
            }
            seen.push("the source");
        }
    }
    let probe = examination.probe()?;
    if probe.inputs.padding.as_ref().is_some_and(|padding| padding.contains(&true)) {
        let moved = moved_by_padding(subject, &Inputs { padding: probe.inputs.padding.clone(), batch })?;
        if moved > TOLERANCE {
            return Ok(failed("the input", moved));
        }
        seen.push(match subject.config.dims().source {
            Some(_) => "the decoder's input (made up)",
            None => "the input (made up: this task has none)",
        });
    }
    Ok(match seen[..] {
        [] => Checked::skipped("samples are too short to hold padding"),
        _ => Checked::ok(format!("what stands in padding of {} moves nothing", seen.join(" and of "))),
    })
}
