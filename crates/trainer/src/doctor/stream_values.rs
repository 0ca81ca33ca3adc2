//! Values outside the heads: embedding, norms, projections, logits.

use std::collections::BTreeSet;

use architecture::{HostTensor, Norm, NormKind};

use super::deviation::{row, worst};
use super::examination::{Examination, Reads};
use super::finding::Checked;
use super::nodes::{compared, each_attention};
use super::subject::SubjectError;

/// Epsilon of the layer norms, as in PyTorch.
const EPSILON: f64 = 1e-5;

/// The value of `tokens`' rows of `weight` with their positions, `[B, L, D]`.
fn embedded(tokens: &[i32], len: usize, prefix: &str, examination: &Examination) -> Vec<f64> {
    let weights = examination.weights();
    let position = weights.get(&format!("{prefix}position.weight"));
    let d = examination.model().d_model;
    let rows = match weights.get(&format!("{prefix}token.weight")) {
        Some(table) => {
            // A read-out's token has no row, and needs none.
            let has_row = |token: i32| (token as usize) < table.shape[0];
            let of = |&token: &i32| match has_row(token) {
                true => row(table, token as usize).iter().map(|&x| f64::from(x)).collect::<Vec<f64>>(),
                false => vec![0.0; d],
            };
            tokens.iter().map(of).collect()
        }
        None => numbers_read(examination),
    };
    let readout = weights.get("readout").filter(|_| prefix.is_empty());
    let trained = |t: usize, column: usize| position.map_or(0.0, |position| f64::from(row(position, t)[column]));
    let place = |t: usize, column: usize| examination.model().positions.added(t, column, d, || trained(t, column));
    let entry = |(index, read): (usize, Vec<f64>)| {
        let own = |column: usize| match readout {
            Some(readout) if index % len == 0 => f64::from(readout.values[column]),
            _ => read[column],
        };
        (0..d).map(|column| own(column) + place(index % len, column)).collect::<Vec<f64>>()
    };
    rows.into_iter().enumerate().flat_map(entry).collect()
}

/// What the input layers make of the probe's numbers, a row for each position.
fn numbers_read(examination: &Examination) -> Vec<Vec<f64>> {
    let weights = examination.weights();
    let Ok(probe) = examination.probe() else { return vec![] };
    let inputs = probe.inputs.batch.numbers.as_ref().map_or(&[][..], |numbers| &numbers.inputs);
    let inputs: Vec<f64> = inputs.iter().map(|&number| f64::from(number)).collect();
    let layer = |x: &[f64], name: &str| {
        let weight = weights.get(&format!("input.{name}.weight"))?;
        Some(linear(x, weight, weights.get(&format!("input.{name}.bias")), usize::MAX))
    };
    let hidden = layer(&inputs, "up").map(|hidden| hidden.into_iter().map(|x| x.max(0.0)).collect::<Vec<f64>>());
    let read = hidden.and_then(|hidden| layer(&hidden, "down")).or_else(|| layer(&inputs, "linear")).unwrap_or(inputs);
    read.chunks(examination.model().d_model).map(<[f64]>::to_vec).collect()
}

pub fn embedding(examination: &Examination) -> Result<Checked, SubjectError> {
    let probe = examination.probe()?;
    let batch = &probe.inputs.batch;
    let mut stacks = vec![("", &batch.tokens, batch.len)];
    stacks.extend(batch.source.as_ref().map(|source| ("encoder.", &source.tokens, source.len)));
    for (prefix, tokens, len) in stacks {
        let name = format!("{prefix}embedding");
        let Some(found) = probe.node(&name) else {
            return Ok(Checked::skipped("a node has the wrong shape: see shapes"));
        };
        let expected = embedded(tokens, len, prefix, examination);
        if let Some(Checked::Failed { seen, .. }) = compared(&name, &found, &expected, &[]) {
            let d = examination.model().d_model;
            let at = worst(&found.values, &expected).index / d;
            let read = tokens.get(at).map_or("the numbers".to_string(), |token| format!("token {token}"));
            return Ok(Checked::failed(
                format!("{seen}, at {read} of position {}", at % len),
                "token ids clipped or remapped on their way to the embedding, or positions shifted",
                "look the id up as it is; the vocabulary must have a row for each; position t takes row t",
            ));
        }
    }
    if batch.tokens.is_empty() {
        return Ok(Checked::ok(format!("numbers at {} positions, through the input layers", batch.len)));
    }
    let distinct = batch.tokens[..batch.len].iter().collect::<BTreeSet<_>>().len();
    Ok(Checked::ok(format!(
        "{distinct} different tokens, the last of the vocabulary among them, at {} positions",
        batch.len
    )))
}

/// Layer norm of rows of width `gamma.len()`.
fn normed(x: &[f32], gamma: &[f32], beta: &[f32]) -> Vec<f64> {
    let d = gamma.len();
    let one = |row: &[f32]| {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / d as f64;
        let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / d as f64;
        let scale = (variance + EPSILON).sqrt();
        (0..d)
            .map(|i| (f64::from(row[i]) - mean) / scale * f64::from(gamma[i]) + f64::from(beta[i]))
            .collect::<Vec<f64>>()
    };
    x.chunks(d).flat_map(one).collect()
}

/// Rows of width `d` of length 1, times the factor.
fn of_length(x: &[f32], d: usize, factor: &[f32]) -> Vec<f64> {
    let one = |row: &[f32]| {
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        row.iter().map(|&x| f64::from(x) / length * f64::from(factor[0])).collect::<Vec<f64>>()
    };
    x.chunks(d).flat_map(one).collect()
}

fn after_norm(x: &HostTensor, path: &str, examination: &Examination) -> Vec<f64> {
    let weights = examination.weights();
    let plain = || x.values.iter().map(|&x| f64::from(x)).collect();
    let of = |name: &str| weights.get(&format!("{path}.{name}"));
    let model = examination.model();
    match (model.norm, model.norm_kind, of("gamma"), of("beta"), of("factor")) {
        (Norm::Pre, NormKind::Layer, Some(gamma), Some(beta), _) => normed(&x.values, &gamma.values, &beta.values),
        (Norm::Pre, NormKind::Length, _, _, Some(factor)) => of_length(&x.values, model.d_model, &factor.values),
        // After the sublayers: what they read is the stream itself.
        _ => plain(),
    }
}

pub fn stream(examination: &Examination) -> Result<Checked, SubjectError> {
    let probe = examination.probe()?;
    let d = examination.model().d_model;
    let has_encoder = examination.model().has_encoder();
    let last = |stack: &str| match examination.model().layers {
        0 => format!("{stack}embedding"),
        layers => format!("{stack}blocks.{}.output", layers - 1),
    };
    let attentions = each_attention(examination, "", |place, nodes| {
        let (asking, read) = (nodes.get("query_input"), nodes.get("key_input"));
        if let Some(stream) = place.stream.as_ref().and_then(|stream| probe.node(stream)) {
            let expected = after_norm(&stream, &place.norm, examination);
            if let Some(problem) = compared(&format!("{}.query_input", place.path), &asking, &expected, &[]) {
                return Ok(Some(problem));
            }
        }
        // Where no query may read, what is read does not matter, and may be cleared.
        let source = match place.reads {
            Reads::Itself | Reads::Source => asking.values.iter().map(|&x| f64::from(x)).collect(),
            Reads::Memory if has_encoder => {
                probe.node(&last("encoder.")).map_or(vec![], |end| after_norm(&end, "encoder.norm", examination))
            }
            Reads::Memory => vec![],
        };
        let is_unread = |at: usize| probe.forbids(false, place.reads, at / nodes.lk, 0, at % nodes.lk);
        let expected: Vec<f64> = source
            .iter()
            .enumerate()
            .map(|(index, &x)| if is_unread(index / d) { f64::from(read.values[index]) } else { x })
            .collect();
        Ok(compared(&format!("{}.key_input", place.path), &read, &expected, &[]))
    })?;
    if attentions.is_failed() {
        return Ok(attentions);
    }
    let (Some(end), Some(logits)) = (probe.node(&last("")), probe.node("logits")) else {
        return Ok(Checked::skipped("a node has the wrong shape: see shapes"));
    };
    let weights = examination.weights();
    let end = after_norm(&end, "norm", examination);
    let tied = weights.get("token.weight").filter(|_| examination.model().tied);
    let expected = match (weights.get("logits.weight"), tied) {
        (Some(weight), _) => linear(&end, weight, weights.get("logits.bias"), examination.effort.rows),
        (None, Some(tied)) => linear(&end, &transposed(tied), None, examination.effort.rows),
        (None, None) => end,
    };
    Ok(match compared("logits", &logits, &expected, &[]) {
        Some(problem) => problem,
        None => Checked::ok(match examination.attentions().len() {
            1 => "the attention and the logits read what they should".to_string(),
            n => format!("{n} attentions and the logits read what they should"),
        }),
    })
}

fn transposed(weight: &HostTensor) -> HostTensor {
    let [rows, columns] = weight.shape[..] else { return HostTensor::default() };
    let values = (0..rows * columns).map(|at| weight.values[at % rows * columns + at / rows]).collect();
    HostTensor { shape: vec![columns, rows], values }
}

/// `x · W + b` for the first `rows` rows.
fn linear(x: &[f64], weight: &HostTensor, bias: Option<&HostTensor>, rows: usize) -> Vec<f64> {
    let [d_in, d_out] = weight.shape[..] else { return vec![] };
    let mut y = vec![];
    for x in x.chunks(d_in).take(rows) {
        let mut sums: Vec<f64> = (0..d_out).map(|j| bias.map_or(0.0, |bias| f64::from(bias.values[j]))).collect();
        for (&x, weights) in x.iter().zip(weight.values.chunks(d_out)) {
            for (sum, &weight) in sums.iter_mut().zip(weights) {
                *sum += x * f64::from(weight);
            }
        }
        y.extend(sums);
    }
    y
}

pub fn projections(examination: &Examination) -> Result<Checked, SubjectError> {
    let weights = examination.weights();
    let rows = examination.effort.rows;
    each_attention(examination, "queries, keys, values and outputs follow from their weights", |place, nodes| {
        let steps = [("query_input", "query"), ("key_input", "key"), ("key_input", "value"), ("merged", "output")];
        for (from, to) in steps {
            let Some(weight) = weights.get(&format!("{}.{to}.weight", place.path)) else { continue };
            let input: Vec<f64> = nodes.get(from).values.iter().map(|&x| f64::from(x)).collect();
            let expected = linear(&input, weight, weights.get(&format!("{}.{to}.bias", place.path)), rows);
            if let Some(problem) = compared(&format!("{}.{to}", place.path), &nodes.get(to), &expected, &[]) {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    })
}
