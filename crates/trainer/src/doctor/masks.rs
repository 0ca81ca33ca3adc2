//! What a mask means, where it is applied, and what becomes of a row with nothing to read.

use model::parameters;

use super::deviation::{is_finite, largest, row};
use super::examination::{AttentionPlace, Examination, Reads, forbids};
use super::finding::Checked;
use super::nodes::{Nodes, each_attention};
use super::subject::{Inputs, SubjectError};

/// A weight below this may have vanished in f32; its score is this far below the row's largest.
const VANISHED: f32 = 60.0;
/// Greatest deviation of a row's sum from 1.
const TOLERANCE: f64 = 1e-4;
/// How large the largest score is made for the second look: beyond −1e4, a common stand-in for minus infinity.
const LARGE_SCORE: f64 = 4e4;

/// Entries of the maps of one attention that are not as the mask says.
#[derive(Default)]
struct Counts {
    forbidden: usize,
    allowed: usize,
    /// Forbidden entries with a weight, by what forbids them.
    future_read: usize,
    padding_read: usize,
    /// Allowed entries without a weight.
    unread: usize,
    /// Of these, a query's own position.
    own_unread: usize,
    example: Option<String>,
}

fn count(examination: &Examination, inputs: &Inputs, place: &AttentionPlace, nodes: &Nodes) -> Counts {
    let causal = examination.model().causal;
    let (maps, scores) = (nodes.get("maps"), nodes.get("scores"));
    let mut counts = Counts::default();
    for at in 0..nodes.b * nodes.h * nodes.lq {
        let (b, head, i) = (at / (nodes.h * nodes.lq), at / nodes.lq % nodes.h, at % nodes.lq);
        let (weights, scores) = (row(&maps, at), row(&scores, at));
        let is_forbidden = |j: usize| forbids(inputs, causal, place.reads, b, i, j);
        let open = (0..nodes.lk).filter(|&j| !is_forbidden(j));
        let most = open.map(|j| scores[j]).fold(f32::NEG_INFINITY, f32::max);
        for j in 0..nodes.lk {
            let mut wrong = false;
            if is_forbidden(j) {
                counts.forbidden += 1;
                wrong = weights[j] != 0.0;
                let is_future = place.reads == Reads::Itself && causal && j > i;
                counts.future_read += usize::from(wrong && is_future);
                counts.padding_read += usize::from(wrong && !is_future);
            } else {
                counts.allowed += 1;
                if scores[j] > most - VANISHED {
                    wrong = weights[j].is_nan() || weights[j] <= 0.0;
                    counts.unread += usize::from(wrong);
                    counts.own_unread += usize::from(wrong && i == j);
                }
            }
            if wrong && counts.example.is_none() {
                let path = &place.path;
                counts.example = Some(format!("{path}.maps[{b}, {head}, {i}, {j}] = {:e}", weights[j]));
            }
        }
    }
    counts
}

pub fn mask(examination: &Examination) -> Result<Checked, SubjectError> {
    let probe = examination.probe()?;
    let (mut forbidden, mut allowed, mut most) = (0, 0, 0.0f64);
    let first = each_attention(examination, "", |place, nodes| {
        let counts = count(examination, &probe.inputs, place, nodes);
        (forbidden, allowed) = (forbidden + counts.forbidden, allowed + counts.allowed);
        most = most.max(largest(&nodes.get("scores").values));
        Ok(wrong_mask(&counts))
    })?;
    if !matches!(first, Checked::Ok { .. }) {
        return Ok(first);
    }
    // A large negative number in the place of minus infinity holds until scores are as large: so they are made large.
    let factor = (LARGE_SCORE / most.max(1e-3)) as f32;
    let mut weights = examination.weights().clone();
    for (path, tensor) in &mut weights {
        if path.contains("attention.query.") {
            tensor.values.iter_mut().for_each(|value| *value *= factor);
        }
    }
    let pass = examination.subject.with_weights(&weights)?.trace(&probe.inputs)?;
    let causal = examination.model().causal;
    for place in examination.attentions() {
        let name = format!("{}.maps", place.path);
        let Some(maps) = pass.nodes.iter().find(|node| node.name == name).map(|node| node.to_host()) else { continue };
        let [_, heads, lq, lk] = maps.shape[..] else { continue };
        for (at, &weight) in maps.values.iter().enumerate() {
            let (b, i, j) = (at / (heads * lq * lk), at / lk % lq, at % lk);
            if probe.forbids(causal, place.reads, b, i, j) && weight != 0.0 {
                return Ok(Checked::failed(
                    format!(
                        "with scores up to {LARGE_SCORE:e}, {name}{:?} = {weight:e} is forbidden",
                        [b, at / (lq * lk) % heads, i, j]
                    ),
                    "forbidden scores are set to a large negative number such as -1e4, which allowed scores can undercut",
                    "fill with minus infinity, and clear rows with nothing to read by themselves",
                ));
            }
        }
    }
    Ok(Checked::ok(format!(
        "{forbidden} forbidden connections weigh exactly 0, also with scores up to {LARGE_SCORE:e}; {allowed} allowed ones weigh more"
    )))
}

fn wrong_mask(counts: &Counts) -> Option<Checked> {
    let Counts { forbidden, allowed, future_read, padding_read, unread, own_unread, .. } = *counts;
    let example = counts.example.as_ref()?;
    let seen = format!(
        "{} of {forbidden} forbidden connections have a weight, {unread} of {allowed} allowed ones have none, such as {example}",
        future_read + padding_read
    );
    let (cause, fix) = if future_read + padding_read > forbidden / 2 && unread > allowed / 2 {
        (
            "the mask is inverted: true means forbidden here, but in some libraries it means allowed",
            "negate it once, where it is made",
        )
    } else if own_unread > 0 && own_unread == unread {
        (
            "the causal mask is one place off: a position may not read itself",
            "forbid j > i only; with a cache, align query and key positions at the end",
        )
    } else if future_read > 0 && padding_read > 0 {
        ("no mask reaches the scores", "fill the scores with minus infinity where the mask is true, before the softmax")
    } else if future_read > 0 {
        (
            "the causal mask is missing or one place off",
            "forbid j > i: the upper triangle without the diagonal; with a cache, align query and key positions at the end",
        )
    } else if padding_read > 0 {
        (
            "padding is not in the mask, or is broadcast over the wrong axis",
            "padding is [B, 1, 1, Lk]: it differs by sample and key, and is the same for every head and query",
        )
    } else {
        (
            "the mask forbids more than it should, or is broadcast over the wrong axis",
            "causal is [1, 1, Lq, Lk], padding [B, 1, 1, Lk]; combine them by or",
        )
    };
    Some(Checked::failed(seen, cause, fix))
}

pub fn rows(examination: &Examination) -> Result<Checked, SubjectError> {
    let probe = examination.probe()?;
    let causal = examination.model().causal;
    let mut farthest = 0.0f64;
    let evaluated = each_attention(examination, "", |place, nodes| {
        let maps = nodes.get("maps");
        for at in 0..nodes.b * nodes.h * nodes.lq {
            let (b, i) = (at / (nodes.h * nodes.lq), at % nodes.lq);
            if (0..nodes.lk).all(|j| probe.forbids(causal, place.reads, b, i, j)) {
                continue; // see the check of empty rows
            }
            let sum: f64 = row(&maps, at).iter().map(|&weight| f64::from(weight)).sum();
            let off = (sum - 1.0).abs();
            farthest = farthest.max(off);
            if off.is_nan() || off > TOLERANCE {
                let index = [b, at / nodes.lq % nodes.h, i];
                return Ok(Some(wrong_rows(nodes, format!("{}.maps{index:?} sums to {sum:.4}", place.path))));
            }
        }
        Ok(None)
    })?;
    if !matches!(evaluated, Checked::Ok { .. }) {
        return Ok(evaluated);
    }
    // Dropout acts after the maps are taken (pytorch#42929).
    let pass = examination.dropped()?.train(&probe.inputs, model::Dropout { seed: 0, step: 0, micro_batch: 0 })?;
    for place in examination.attentions() {
        let name = format!("{}.maps", place.path);
        let Some(maps) = pass.nodes.iter().find(|node| node.name == name).map(|node| node.to_host()) else { continue };
        for at in 0..maps.values.len() / maps.shape[3].max(1) {
            let sum: f64 = row(&maps, at).iter().map(|&weight| f64::from(weight)).sum();
            if !((sum - 1.0).abs() <= TOLERANCE || sum == 0.0) {
                return Ok(Checked::failed(
                    format!("with dropout, row {at} of {name} sums to {sum:.4}"),
                    "maps are taken after dropout",
                    "return the maps before dropout; apply it to a copy",
                ));
            }
        }
    }
    Ok(Checked::ok(format!("farthest sum from 1: {farthest:.0e}; with dropout too, which acts later")))
}

/// Says why rows do not sum to 1, by what else does.
fn wrong_rows(nodes: &Nodes, seen: String) -> Checked {
    let (maps, scores) = (nodes.get("maps"), nodes.get("scores"));
    let column_sums = |b: usize, head: usize| {
        (0..nodes.lk).map(move |j| (b, head, j)).map(|(b, head, j)| {
            let entry = |i: usize| maps.values[((b * nodes.h + head) * nodes.lq + i) * nodes.lk + j];
            (0..nodes.lq).map(|i| f64::from(entry(i))).sum::<f64>()
        })
    };
    let near = |sum: f64, to: f64| (sum - to).abs() <= TOLERANCE;
    let columns: Vec<f64> = (0..nodes.b)
        .flat_map(|b| (0..nodes.h).map(move |head| (b, head)))
        .flat_map(|(b, head)| column_sums(b, head))
        .collect();
    let full = columns.iter().filter(|&&sum| near(sum, 1.0)).count();
    let is_column = full > 0 && columns.iter().all(|&sum| near(sum, 1.0) || near(sum, 0.0));
    // Weights that the mask left are those of a softmax over all keys.
    let unmasked = |at: usize| {
        let scores = row(&scores, at);
        let total = super::subject::log_sum_exp(scores);
        row(&maps, at)
            .iter()
            .zip(scores)
            .all(|(&w, &s)| w == 0.0 || (f64::from(w) - (f64::from(s) - total).exp()).abs() < 1e-5)
    };
    let (cause, fix) = if is_column {
        (
            "the softmax runs over the queries, not over the keys: columns sum to 1",
            "take the softmax over the last axis of [B, H, Lq, Lk]",
        )
    } else if (0..nodes.b * nodes.h * nodes.lq).all(unmasked) {
        (
            "the mask is applied after the softmax: zeroed weights are missing from the sum",
            "fill the scores with minus infinity before the softmax",
        )
    } else {
        ("weights are changed after the softmax", "leave the maps as the softmax gives them")
    };
    Checked::failed(seen, cause, fix)
}

pub fn empty_row(examination: &Examination) -> Result<Checked, SubjectError> {
    // The second of two samples is padding from end to end, and so is what its encoder reads.
    let mut batch = examination.scored_batch(2);
    if batch.batch < 2 {
        return Ok(Checked::skipped("the task scores too little for two samples"));
    }
    let padding = (0..2 * batch.len).map(|at| at >= batch.len).collect();
    if let Some(source) = &mut batch.source {
        let len = source.len;
        source.padding[len..].fill(true);
    }
    let inputs = Inputs { batch, padding: Some(padding) };
    let pass = examination.subject.trace(&inputs)?;
    let failed = |seen: String| {
        Checked::failed(
            seen,
            "a softmax over nothing but minus infinities is 0/0",
            "open such rows for the softmax and set them to zero after it, so that their gradient is zero too",
        )
    };
    if !is_finite(&pass.logits.values) {
        return Ok(failed("a sample of nothing but padding makes logits that are not numbers".into()));
    }
    for node in &pass.nodes {
        if !(node.name.ends_with(".maps") || node.name.ends_with(".context")) {
            continue;
        }
        let host = node.to_host();
        let second = &host.values[host.values.len() / 2..];
        let most = largest(second);
        if most != 0.0 || !is_finite(second) {
            return Ok(failed(format!("{} of a sample of nothing but padding reaches {most:.3}, not 0", node.name)));
        }
    }
    let gradients = examination.subject.gradient(&inputs)?;
    for (place, gradient) in parameters::of(examination.subject.model()).iter().zip(&gradients) {
        if !is_finite(gradient) {
            return Ok(failed(format!("the gradient of {} is not finite", place.path)));
        }
    }
    Ok(Checked::ok(format!("zero maps and contexts, finite logits, {} finite gradients", gradients.len())))
}
