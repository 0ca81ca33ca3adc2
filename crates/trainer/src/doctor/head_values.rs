//! Values within the heads: split, scores, contexts, merge.
//!
//! B batch, L length, H query heads, G key/value heads, K d_head. Query head h reads key/value head h / (H/G), rounded down.

use architecture::{HostTensor, Merge, Positions, ScoreScale};

use super::deviation::{row, unravel};
use super::examination::{Examination, Reads};
use super::finding::Checked;
use super::nodes::{compared, each_attention};
use super::subject::SubjectError;

/// Columns of a projection `[B, L, n·K]` by head, `[B, n, L, K]`.
fn split_heads(z: &[f32], b: usize, n: usize, l: usize, k: usize) -> Vec<f64> {
    let entry = |at: usize| {
        let [sample, head, t, column] = [at / (n * l * k), at / (l * k) % n, at / k % l, at % k];
        f64::from(z[(sample * l + t) * n * k + head * k + column])
    };
    (0..b * n * l * k).map(entry).collect()
}

/// Rows of `x` `[.., L, K]` rotated by the angle of their position, column i paired with i + K/2.
fn rotated(x: Vec<f64>, positions: Positions, l: usize, k: usize) -> Vec<f64> {
    let Some(angle) = positions.kind().angle else { return x };
    let half = k / 2;
    let one = |(index, row): (usize, &[f64])| {
        let t = index % l;
        let pair = |i: usize| angle(t, i, k).sin_cos();
        let left = (0..half).map(|i| row[i] * pair(i).1 - row[i + half] * pair(i).0);
        let right = (0..half).map(|i| row[i + half] * pair(i).1 + row[i] * pair(i).0);
        left.chain(right).collect::<Vec<f64>>()
    };
    x.chunks(k).enumerate().flat_map(one).collect()
}

pub fn split(examination: &Examination) -> Result<Checked, SubjectError> {
    let positions = examination.model().positions;
    each_attention(examination, "columns are dealt out head by head", |place, nodes| {
        for (name, n, l) in [("query", nodes.h, nodes.lq), ("key", nodes.g, nodes.lk), ("value", nodes.g, nodes.lk)] {
            let projected = nodes.get(name);
            let is_rotated = name != "value" && place.reads != Reads::Memory;
            let turn = |x: Vec<f64>| if is_rotated { rotated(x, positions, l, nodes.k) } else { x };
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

pub fn scores(examination: &Examination) -> Result<Checked, SubjectError> {
    let configured = examination.model().scale;
    let seen = match configured {
        ScoreScale::SqrtDHead => "query · key / sqrt(d_head)",
        ScoreScale::None => "query · key, not scaled, as configured,",
    };
    each_attention(examination, seen, |place, nodes| {
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
        let expected = products(|head, h, g| head / (h / g), configured.factor(nodes.k));
        let name = format!("{}.scores", place.path);
        if compared(&name, &found, &expected, &[]).is_none() {
            return Ok(None);
        }
        let mut mistakes = vec![];
        match configured {
            ScoreScale::SqrtDHead => mistakes.push((
                products(|head, h, g| head / (h / g), 1.0),
                "the scale 1/sqrt(d_head) is missing: the wider a head, the sooner its softmax saturates",
                "multiply the queries, or the scores, by 1/sqrt(d_head) once",
            )),
            ScoreScale::None => mistakes.push((
                products(|head, h, g| head / (h / g), scale),
                "scores are scaled by 1/sqrt(d_head), though the config has scale = \"none\"",
                "leave the products of queries and keys as they are, or set model.scale = \"sqrt_d_head\"",
            )),
        }
        mistakes.extend([
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
                products(|head, _, g| head % g, configured.factor(nodes.k)),
                "query head h reads key head h % kv_heads: the groups are dealt out in the wrong order",
                "query head h belongs to key/value head h / (heads / kv_heads), rounded down",
            ),
        ]);
        Ok(compared(&name, &found, &expected, &mistakes))
    })
}

pub fn context(examination: &Examination) -> Result<Checked, SubjectError> {
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

pub fn merge(examination: &Examination) -> Result<Checked, SubjectError> {
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
