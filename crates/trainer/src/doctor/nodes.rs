//! The values at every node, recomputed on the host in f64 from the node before.
//!
//! B batch, L length, H query heads, G key/value heads, K d_head. Query head h reads key/value head h / (H/G).

use std::collections::BTreeMap;

use model::host::HostTensor;
use model::{Merge, Norm, Positions};

use super::compare::{row, unravel, worst};
use super::examination::{AttentionPlace, Examination, Probe, Reads};
use super::report::Outcome;
use super::shapes::table;
use super::subject::SubjectError;

/// Greatest deviation of a node in f32 from the same in f64, in units of its largest value.
const TOLERANCE: f64 = 1e-4;
/// Epsilon of the layer norms, as in PyTorch.
const EPSILON: f64 = 1e-5;

/// One attention's nodes, of the shapes that the config says.
pub(super) struct Nodes<'a> {
    probe: &'a Probe,
    path: String,
    pub b: usize,
    pub h: usize,
    pub g: usize,
    pub k: usize,
    pub lq: usize,
    pub lk: usize,
}

impl<'a> Nodes<'a> {
    /// None where a shape is wrong: then there is nothing to compare.
    pub fn of(
        examination: &Examination,
        probe: &'a Probe,
        place: &AttentionPlace,
    ) -> Result<Option<Self>, SubjectError> {
        let is_wrong = |row: &super::Row| row.found.as_ref() != Some(&row.expected);
        if table(examination)?.iter().any(is_wrong) {
            return Ok(None);
        }
        let config = examination.model();
        let source = probe.inputs.batch.source.as_ref().map_or(0, |source| source.len);
        let (lq, lk) = match place.reads {
            Reads::Itself => (probe.inputs.batch.len, probe.inputs.batch.len),
            Reads::Source => (source, source),
            Reads::Memory => (probe.inputs.batch.len, source),
        };
        let (h, g, k) = (config.heads, config.kv_heads(), config.d_head());
        Ok(Some(Self { probe, path: place.path.clone(), b: probe.inputs.batch.batch, h, g, k, lq, lk }))
    }

    /// A node by its last name, such as `scores`.
    pub fn get(&self, node: &str) -> HostTensor {
        // Every node was found when the shapes were compared.
        self.probe.node(&format!("{}.{node}", self.path)).unwrap_or_default()
    }
}

/// Carries out `check` on every attention until one is wrong.
pub(super) fn each_attention(
    examination: &Examination,
    seen: &str,
    mut check: impl FnMut(&AttentionPlace, &Nodes) -> Result<Option<Outcome>, SubjectError>,
) -> Result<Outcome, SubjectError> {
    let probe = examination.probe()?;
    let places = examination.attentions();
    for place in &places {
        let Some(nodes) = Nodes::of(examination, probe, place)? else {
            return Ok(Outcome::skipped("a node has the wrong shape: see shapes"));
        };
        if let Some(problem) = check(place, &nodes)? {
            return Ok(problem);
        }
    }
    Ok(match places.len() {
        0 => Outcome::skipped("the model has no attention: layers = 0"),
        1 => Outcome::ok(format!("{seen} in the only attention")),
        n => Outcome::ok(format!("{seen} in {n} attentions")),
    })
}

/// What else a node may be, its cause and the fix.
type Mistake = (Vec<f64>, &'static str, &'static str);

/// Compares a node with what it should be and, where it differs, with what usual mistakes would make of it.
fn compared(name: &str, found: &HostTensor, expected: &[f64], mistakes: &[Mistake]) -> Option<Outcome> {
    let found_values = &found.values[..expected.len().min(found.values.len())];
    let off = worst(found_values, expected);
    if off.deviation <= TOLERANCE {
        return None;
    }
    let seen =
        format!("{name}{:?} is {:.5}, expected {:.5}", unravel(&found.shape, off.index), off.found, off.expected);
    let known = mistakes.iter().find(|(values, ..)| worst(found_values, values).deviation <= TOLERANCE);
    Some(match known {
        Some((_, cause, fix)) => {
            Outcome::failed(format!("{seen}; it is exactly what this mistake gives"), *cause, *fix)
        }
        None => Outcome::failed(
            seen,
            "the step that makes this node does something else than its formula",
            "compute this entry by hand from the node before it, and step through the code until they part",
        ),
    })
}

/// The value of `tokens`' rows of `weight` with their positions, `[B, L, D]`.
fn embedded(tokens: &[i32], len: usize, prefix: &str, examination: &Examination) -> Vec<f64> {
    let weights = examination.subject.weights();
    let (Some(table), position) =
        (weights.get(&format!("{prefix}token.weight")), weights.get(&format!("{prefix}position.weight")))
    else {
        return vec![];
    };
    let d = examination.model().d_model;
    let place = |t: usize, column: usize| match (examination.model().positions, position) {
        (Positions::Learned, Some(position)) => f64::from(row(position, t)[column]),
        (Positions::Sinusoidal, _) => {
            // Vaswani 2017, section 3.5.
            let angle = t as f64 * 10_000f64.powf(-((column / 2 * 2) as f64) / d as f64);
            if column % 2 == 0 { angle.sin() } else { angle.cos() }
        }
        _ => 0.0,
    };
    let entry = |(index, &token): (usize, &i32)| {
        let token = row(table, token as usize);
        (0..d).map(|column| f64::from(token[column]) + place(index % len, column)).collect::<Vec<f64>>()
    };
    tokens.iter().enumerate().flat_map(entry).collect()
}

pub fn embedding(examination: &Examination) -> Result<Outcome, SubjectError> {
    let probe = examination.probe()?;
    let batch = &probe.inputs.batch;
    let mut stacks = vec![("", &batch.tokens, batch.len)];
    stacks.extend(batch.source.as_ref().map(|source| ("encoder.", &source.tokens, source.len)));
    for (prefix, tokens, len) in stacks {
        let name = format!("{prefix}embedding");
        let Some(found) = probe.node(&name) else {
            return Ok(Outcome::skipped("a node has the wrong shape: see shapes"));
        };
        let expected = embedded(tokens, len, prefix, examination);
        if let Some(Outcome::Failed { seen, .. }) = compared(&name, &found, &expected, &[]) {
            let d = examination.model().d_model;
            let at = worst(&found.values, &expected).index / d;
            return Ok(Outcome::failed(
                format!("{seen}, at token {} of position {}", tokens[at], at % len),
                "token ids clipped or remapped on their way to the embedding, or positions shifted",
                "look the id up as it is; the vocabulary must have a row for each; position t takes row t",
            ));
        }
    }
    let distinct = batch.tokens[..batch.len].iter().collect::<std::collections::BTreeSet<_>>().len();
    Ok(Outcome::ok(format!(
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

fn after_norm(x: &HostTensor, path: &str, examination: &Examination) -> Vec<f64> {
    let weights = examination.subject.weights();
    match (examination.model().norm, weights.get(&format!("{path}.gamma")), weights.get(&format!("{path}.beta"))) {
        (Norm::Pre, Some(gamma), Some(beta)) => normed(&x.values, &gamma.values, &beta.values),
        _ => x.values.iter().map(|&x| f64::from(x)).collect(),
    }
}

pub fn stream(examination: &Examination) -> Result<Outcome, SubjectError> {
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
        return Ok(Outcome::skipped("a node has the wrong shape: see shapes"));
    };
    let weights = examination.subject.weights();
    let end = after_norm(&end, "norm", examination);
    let expected = match (weights.get("logits.weight"), weights.get("token.weight")) {
        (Some(weight), _) => linear(&end, weight, weights.get("logits.bias"), examination.effort.rows),
        (None, Some(tied)) => linear(&end, &transposed(tied), None, examination.effort.rows),
        (None, None) => vec![],
    };
    Ok(match compared("logits", &logits, &expected, &[]) {
        Some(problem) => problem,
        None => Outcome::ok(match examination.attentions().len() {
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

pub fn projections(examination: &Examination) -> Result<Outcome, SubjectError> {
    let weights: BTreeMap<String, HostTensor> = examination.subject.weights();
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

/// Columns of a projection `[B, L, n·K]` by head, `[B, n, L, K]`.
fn split_heads(z: &[f32], b: usize, n: usize, l: usize, k: usize) -> Vec<f64> {
    let entry = |at: usize| {
        let [sample, head, t, column] = [at / (n * l * k), at / (l * k) % n, at / k % l, at % k];
        f64::from(z[(sample * l + t) * n * k + head * k + column])
    };
    (0..b * n * l * k).map(entry).collect()
}

/// Rotation by position (Su 2021, equation 34), column i paired with i + K/2. `x` `[.., L, K]`.
fn rotated(x: &[f64], l: usize, k: usize) -> Vec<f64> {
    let half = k / 2;
    let one = |(index, row): (usize, &[f64])| {
        let t = index % l;
        let pair = |i: usize| (t as f64 * 10_000f64.powf(-2.0 * (i as f64) / k as f64)).sin_cos();
        let left = (0..half).map(|i| row[i] * pair(i).1 - row[i + half] * pair(i).0);
        let right = (0..half).map(|i| row[i + half] * pair(i).1 + row[i] * pair(i).0);
        left.chain(right).collect::<Vec<f64>>()
    };
    x.chunks(k).enumerate().flat_map(one).collect()
}

pub fn split(examination: &Examination) -> Result<Outcome, SubjectError> {
    let rotates = examination.model().positions == Positions::Rope;
    each_attention(examination, "columns are dealt out head by head", |place, nodes| {
        for (name, n, l) in [("query", nodes.h, nodes.lq), ("key", nodes.g, nodes.lk), ("value", nodes.g, nodes.lk)] {
            let projected = nodes.get(name);
            let is_rotated = rotates && name != "value" && place.reads != Reads::Memory;
            let turn = |x: Vec<f64>| if is_rotated { rotated(&x, l, nodes.k) } else { x };
            let expected = turn(split_heads(&projected.values, nodes.b, n, l, nodes.k));
            let unswapped = turn(projected.values.iter().map(|&x| f64::from(x)).collect());
            let mistakes = [(
                unswapped,
                "reshaped straight to [B, H, L, K]: positions and heads are mixed up, and no shape tells",
                "reshape to [B, L, H, K], then swap axes 1 and 2",
            )];
            let found = nodes.get(&format!("{name}_heads"));
            if let Some(problem) = compared(&format!("{}.{name}_heads", place.path), &found, &expected, &mistakes) {
                return Ok(Some(problem));
            }
        }
        Ok(None)
    })
}

/// Row `at` of head `head` in a node `[B, heads, L, K]`.
fn head_row(tensor: &HostTensor, sample: usize, head: usize, at: usize) -> &[f32] {
    row(tensor, (sample * tensor.shape[1] + head) * tensor.shape[2] + at)
}

pub fn scores(examination: &Examination) -> Result<Outcome, SubjectError> {
    each_attention(examination, "query · key / sqrt(d_head)", |place, nodes| {
        let (queries, keys, found) = (nodes.get("query_heads"), nodes.get("key_heads"), nodes.get("scores"));
        let (h, g) = (nodes.h, nodes.g);
        let products = |key_head: fn(usize, usize, usize) -> usize, scale: f64| -> Vec<f64> {
            let entry = |at: usize| {
                let [sample, head, i, j] = unravel(&found.shape, at)[..] else { return f64::NAN };
                let query = head_row(&queries, sample, head, i);
                let key = head_row(&keys, sample, key_head(head, h, g), j);
                query.iter().zip(key).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum::<f64>() * scale
            };
            (0..found.values.len()).map(entry).collect()
        };
        let scale = 1.0 / (nodes.k as f64).sqrt();
        let expected = products(|head, h, g| head / (h / g), scale);
        let name = format!("{}.scores", place.path);
        if compared(&name, &found, &expected, &[]).is_none() {
            return Ok(None);
        }
        let mistakes = [
            (
                products(|head, h, g| head / (h / g), 1.0),
                "the scale 1/sqrt(d_head) is missing: the wider a head, the sooner its softmax saturates",
                "multiply the queries, or the scores, by 1/sqrt(d_head) once",
            ),
            (
                products(|head, h, g| head / (h / g), scale * scale),
                "the scale 1/sqrt(d_head) is applied twice",
                "scale the queries or the scores, not both",
            ),
            (
                products(|head, h, g| head / (h / g), 1.0 / ((nodes.k * h) as f64).sqrt()),
                "scaled by the width of all heads together instead of one head's",
                "the scale is 1/sqrt(d_head), where d_head = d_model / heads",
            ),
            (
                products(|head, _, g| head % g, scale),
                "query head h reads key head h % kv_heads: the groups are dealt out in the wrong order",
                "query head h belongs to key/value head h / (heads / kv_heads), rounded down",
            ),
        ];
        Ok(compared(&name, &found, &expected, &mistakes))
    })
}

pub fn context(examination: &Examination) -> Result<Outcome, SubjectError> {
    each_attention(examination, "maps times values", |place, nodes| {
        let (maps, values, found) = (nodes.get("maps"), nodes.get("value_heads"), nodes.get("context"));
        let (h, g, k) = (nodes.h, nodes.g, nodes.k);
        let averages = |value_head: fn(usize, usize, usize) -> usize| -> Vec<f64> {
            let mut contexts = Vec::with_capacity(found.values.len());
            for at in 0..nodes.b * h * nodes.lq {
                let (sample, head) = (at / (h * nodes.lq), at / nodes.lq % h);
                let mut sums = vec![0.0; k];
                for (j, &weight) in row(&maps, at).iter().enumerate() {
                    for (sum, &value) in sums.iter_mut().zip(head_row(&values, sample, value_head(head, h, g), j)) {
                        *sum += f64::from(weight) * f64::from(value);
                    }
                }
                contexts.extend(sums);
            }
            contexts
        };
        let mistakes = [(
            averages(|head, _, g| head % g),
            "query head h takes the values of head h % kv_heads: the groups are dealt out in the wrong order",
            "query head h belongs to key/value head h / (heads / kv_heads), rounded down",
        )];
        let expected = averages(|head, h, g| head / (h / g));
        Ok(compared(&format!("{}.context", place.path), &found, &expected, &mistakes))
    })
}

pub fn merge(examination: &Examination) -> Result<Outcome, SubjectError> {
    let is_mean = examination.model().merge == Merge::Mean;
    let seen = if is_mean { "heads are averaged, as configured," } else { "heads lie side by side in their order" };
    each_attention(examination, seen, |place, nodes| {
        let (contexts, found) = (nodes.get("context"), nodes.get("merged"));
        let (h, k) = (nodes.h, nodes.k);
        let merged = |take: &dyn Fn(usize, usize, usize) -> f64| -> Vec<f64> {
            (0..nodes.b * nodes.lq * h * k)
                .map(|at| take(at / (h * k) / nodes.lq, at / (h * k) % nodes.lq, at % (h * k)))
                .collect()
        };
        let of = |sample, t, head, column| f64::from(head_row(&contexts, sample, head, t)[column]);
        if is_mean {
            let mean = |at: usize| {
                let (sample, t, column) = (at / k / nodes.lq, at / k % nodes.lq, at % k);
                (0..h).map(|head| of(sample, t, head, column)).sum::<f64>() / h as f64
            };
            let expected: Vec<f64> = (0..nodes.b * nodes.lq * k).map(mean).collect();
            return Ok(compared(&format!("{}.merged", place.path), &found, &expected, &[]));
        }
        let expected = merged(&|sample, t, c| of(sample, t, c / k, c % k));
        let mistakes = [
            (
                contexts.values.iter().map(|&x| f64::from(x)).collect(),
                "reshaped straight from [B, H, L, K] to [B, L, H·K]: positions and heads are mixed up",
                "swap axes 1 and 2 back to [B, L, H, K] before the reshape",
            ),
            (
                merged(&|sample, t, c| of(sample, t, h - 1 - c / k, c % k)),
                "heads are laid side by side in reverse order",
                "columns h·K to (h+1)·K of the output projection's input belong to head h",
            ),
            (
                merged(&|sample, t, c| of(sample, t, c % h, c / h)),
                "columns of the heads are interleaved",
                "columns h·K to (h+1)·K of the output projection's input belong to head h: swap axes, then reshape",
            ),
        ];
        Ok(compared(&format!("{}.merged", place.path), &found, &expected, &mistakes))
    })
}
