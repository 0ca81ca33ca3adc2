//! Whether a batch is what its task says: tokens, padding, targets.

use std::collections::HashMap;

use data::{Batch, IGNORE, Mqar, Numbers, Registers, Reverse, Sample, Sort, Split, Task};

use super::examination::Examination;
use super::finding::Checked;
use super::subject::SubjectError;

/// Samples that are compared.
const SAMPLES: u64 = 64;

pub fn inputs(examination: &Examination) -> Result<Checked, SubjectError> {
    let config = &examination.subject.config;
    let dims = config.dims();
    let indices: Vec<u64> = (0..SAMPLES).collect();
    let batch = examination.subject.batch(&indices);
    let samples = own_samples(examination, &indices);
    let failed = |seen: String| {
        Checked::failed(
            seen,
            "rows are assembled from the wrong samples, shifted, cut or clipped on their way into the batch",
            "print one row of the batch beside `trainer tasks` --show 1, and follow it through the loader",
        )
    };
    for (b, sample) in samples.iter().enumerate() {
        if dims.inputs > 0 {
            if let Some(seen) = other_numbers(&batch, sample, b, |numbers| &numbers.inputs) {
                return Ok(failed(format!("the numbers read {seen}")));
            }
            continue;
        }
        // A read-out is a vector of its own: what stands there is not looked up.
        let first = usize::from(dims.readout);
        let row = &batch.tokens[b * batch.len..][..batch.len];
        if let Some(t) = (0..batch.len).find(|&t| sample.tokens.get(t).map(|&token| token as i32) != Some(row[t])) {
            return Ok(failed(format!(
                "token {t} of sample {b} is {} in the batch and {:?} in the sample",
                row[t],
                sample.tokens.get(t)
            )));
        }
        if let Some(token) = row.iter().skip(first).find(|&&token| token < 0 || token as usize >= dims.vocab) {
            return Ok(failed(format!("token {token} of sample {b} is outside the vocabulary 0..{}", dims.vocab)));
        }
        if let (Some(source), Some(own)) = (&batch.source, &sample.source) {
            let tokens = &source.tokens[b * source.len..][..source.len];
            let padding = &source.padding[b * source.len..][..source.len];
            if !tokens.iter().zip(&own.tokens).all(|(&batch, &own)| batch == own as i32) {
                return Ok(failed(format!("the source of sample {b} holds other tokens in the batch")));
            }
            if (0..source.len).any(|t| padding[t] != (t >= own.real)) {
                return Ok(failed(format!(
                    "sample {b} has {} real source tokens, but its padding says otherwise",
                    own.real
                )));
            }
        }
    }
    Ok(Checked::ok(match dims.inputs {
        0 => format!("{SAMPLES} samples of {} tokens below {}", batch.len, dims.vocab),
        inputs => format!("{SAMPLES} samples of {} positions, {inputs} finite numbers each", batch.len),
    }))
}

/// Where numbers of sample `b` are other ones in the batch than in the sample, or not finite.
fn other_numbers(batch: &Batch, sample: &Sample, b: usize, of: impl Fn(&Numbers) -> &Vec<f32>) -> Option<String> {
    let (all, own) = (batch.numbers.as_ref().map(&of)?, sample.numbers.as_ref().map(&of)?);
    let width = all.len() / batch.batch.max(1);
    let row = all.get(b * width..(b + 1) * width)?;
    if width != own.len() {
        return Some(format!("of sample {b} are {width} in the batch and {} in the sample", own.len()));
    }
    let differs = |at: &usize| row[*at].to_bits() != own[*at].to_bits() || !row[*at].is_finite();
    let at = (0..width).find(differs)?;
    Some(format!("of sample {b} are {} in the batch and {} in the sample, the first of them at {at}", row[at], own[at]))
}

pub fn targets(examination: &Examination) -> Result<Checked, SubjectError> {
    let config = &examination.subject.config;
    let indices: Vec<u64> = (0..SAMPLES).collect();
    let batch = examination.subject.batch(&indices);
    let classes = config.dims().outputs;
    let mut scored = 0;
    if config.task.task.numbers().is_some_and(|numbers| numbers.outputs > 0) {
        let samples = own_samples(examination, &indices);
        let other = samples.iter().enumerate().find_map(|(b, sample)| {
            let flags = batch.numbers.as_ref().map(|numbers| &numbers.scored[b * batch.len..(b + 1) * batch.len]);
            if flags != sample.numbers.as_ref().map(|numbers| &*numbers.scored) {
                return Some(format!("of sample {b} are asked for at other positions in the batch"));
            }
            other_numbers(&batch, sample, b, |numbers| &numbers.targets)
        });
        return Ok(match (other, batch.scored()) {
            (Some(seen), _) => Checked::failed(
                format!("the numbers that should be said {seen}"),
                "targets are taken from another row or another place",
                "the target of a position is what the model should say there; take it from the same sample",
            ),
            (None, 0) => nothing_scored(),
            (None, scored) => {
                Checked::ok(format!("{scored} positions of {SAMPLES} samples, of the numbers that their task gives"))
            }
        });
    }
    for (b, sample) in own_samples(examination, &indices).iter().enumerate() {
        let row = &batch.targets[b * batch.len..][..batch.len];
        if let Some(t) = (0..batch.len).find(|&t| sample.targets.get(t) != Some(&row[t])) {
            let is_shifted = |by: usize| {
                row[by..] == sample.targets[..batch.len - by] || row[..batch.len - by] == sample.targets[by..]
            };
            let cause = if is_shifted(1) {
                "targets are one place off their inputs: shifted twice, or in the wrong direction"
            } else {
                "targets are taken from another row or another place"
            };
            return Ok(Checked::failed(
                format!(
                    "target {t} of sample {b} is {} in the batch and {} in the sample",
                    name(row[t]),
                    name(sample.targets[t])
                ),
                cause,
                "the target of position t is what the model should say having read tokens up to t; shift once, in one place",
            ));
        }
        let out = row.iter().find(|&&target| target != IGNORE && (target < 0 || target as usize >= classes));
        if let Some(target) = out {
            return Ok(Checked::failed(
                format!("target {target} of sample {b} is outside the classes 0..{classes}"),
                "an ignored position is not marked, or the number of classes is wrong",
                "mark positions that are not scored; give the output layer a column for each class",
            ));
        }
        scored += row.iter().filter(|&&target| target != IGNORE).count();
    }
    if scored == 0 {
        return Ok(nothing_scored());
    }
    let rows: Vec<Sample> = (0..batch.batch)
        .map(|b| Sample {
            source: batch.source.as_ref().map(|source| data::Source {
                tokens: source.tokens[b * source.len..][..source.len].iter().map(|&token| token as u32).collect(),
                real: source.padding[b * source.len..][..source.len].iter().filter(|&&padded| !padded).count(),
            }),
            ..Sample::new(
                batch.tokens[b * batch.len..][..batch.len].iter().map(|&token| token as u32).collect(),
                batch.targets[b * batch.len..][..batch.len].to_vec(),
            )
        })
        .collect();
    Ok(match defined(&config.task.task, &rows) {
        Err(seen) => Checked::failed(
            seen,
            "the task makes other targets than it defines",
            "work one sample out by hand with `trainer tasks NAME --show 1`",
        ),
        Ok(how) => Checked::ok(format!("{scored} targets of {SAMPLES} samples {how}")),
    })
}

fn nothing_scored() -> Checked {
    Checked::failed(
        format!("no position of {SAMPLES} samples is scored"),
        "every target is ignored: there is nothing to learn",
        "look at samples with `trainer tasks NAME --show 3`, and change the task's sizes",
    )
}

fn name(target: i32) -> String {
    if target == IGNORE { "ignored".into() } else { target.to_string() }
}

fn own_samples(examination: &Examination, indices: &[u64]) -> Vec<Sample> {
    let config = &examination.subject.config;
    let seed = Split::Train.data_seed(config.seed);
    let generator = data::Generator::new(&config.task.task, Split::Train, seed);
    indices.iter().map(|&index| generator.sample(index)).collect()
}

/// Works the targets out from the tokens by the task's definition, in other words than the generator's. Says how they were
/// compared, or the first that differs.
fn defined(task: &Task, samples: &[Sample]) -> Result<String, String> {
    let wrong = |sample: usize, t: usize, found: i32, expected: String| {
        Err(format!("target {t} of sample {sample} is {}, but the tokens up to there make it {expected}", name(found)))
    };
    if let Some(task) = task.downcast::<Registers>() {
        // The same latest writes always mean the same class, and before all are written nothing is scored.
        let mut classes: HashMap<Vec<u32>, i32> = HashMap::new();
        for (b, sample) in samples.iter().enumerate() {
            for (t, &target) in sample.targets.iter().enumerate() {
                let latest = |register: usize| {
                    let is_write = |token: &&u32| **token as usize / task.values == register;
                    sample.tokens[..=t].iter().rev().find(is_write).copied()
                };
                let state: Option<Vec<u32>> = (0..task.registers).map(latest).collect();
                let expected = match state {
                    None => IGNORE,
                    Some(state) => *classes.entry(state).or_insert(target),
                };
                if target != expected || (expected == IGNORE && target != IGNORE) {
                    return wrong(b, t, target, name(expected));
                }
            }
        }
        return Ok(format!("follow from the latest writes: {} states, one class each", classes.len()));
    }
    if let Some(task) = task.downcast::<Mqar>() {
        for (b, sample) in samples.iter().enumerate() {
            let pairs: HashMap<u32, u32> =
                sample.tokens[..2 * task.pairs].chunks(2).map(|pair| (pair[0], pair[1])).collect();
            let mut asked = 0;
            for (t, &target) in sample.targets.iter().enumerate().filter(|(_, target)| **target != IGNORE) {
                let expected = pairs.get(&sample.tokens[t]).map(|&value| value as i32);
                if t < 2 * task.pairs || expected != Some(target) {
                    return wrong(b, t, target, expected.map_or("nothing: no such key".into(), name));
                }
                asked += 1;
            }
            if asked != task.pairs {
                return Err(format!("sample {b} asks for {asked} of its {} keys", task.pairs));
            }
        }
        return Ok("are the values that their keys came with".into());
    }
    let sorts = task.downcast::<Sort>().is_some();
    if sorts || task.downcast::<Reverse>().is_some() {
        for (b, sample) in samples.iter().enumerate() {
            let source = sample.source.as_ref().map_or(&[][..], |source| &source.tokens[..source.real]);
            let mut expected: Vec<u32> = source.to_vec();
            if sorts {
                expected.sort_unstable()
            } else {
                expected.reverse()
            }
            let boundary = task.vocab() as u32 - 1;
            let read = std::iter::once(&boundary).chain(&expected);
            if let Some((t, _)) = read.enumerate().find(|&(t, &token)| sample.tokens.get(t) != Some(&token)) {
                return Err(format!("token {t} of sample {b} is not the target of position {t} - 1"));
            }
            let said = expected.iter().map(|&token| token as i32).chain([boundary as i32]);
            let said = said.chain(std::iter::repeat(IGNORE)).take(sample.targets.len());
            if let Some((t, expected)) = said.enumerate().find(|&(t, expected)| sample.targets[t] != expected) {
                return wrong(b, t, sample.targets[t], name(expected));
            }
        }
        return Ok("are their sources rewritten, and are read one place later".into());
    }
    Ok("are those of the task's generator".into())
}
