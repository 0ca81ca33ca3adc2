//! One forward pass in a terminal, for one query: shapes and numbers, from its input to the answer.

use base64::{Engine, prelude::BASE64_STANDARD};
use runs::{
    forward::{ForwardPass, MaskKind, MaskedPass, Numbers, TracedAttention},
    heads::{AttentionSite, ShownToken},
};

use crate::text::counted;

/// Numbers of a vector that are shown.
const SHOWN: usize = 6;
/// Keys that are shown of each head.
const KEYS: usize = 4;

/// What stands in a tensor; empty where the text is none of ours.
pub fn values(numbers: &Numbers) -> Vec<f32> {
    let bytes = BASE64_STANDARD.decode(&numbers.values).unwrap_or_default();
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
}

/// A pass without some masks for one query of one layer's attention; `None` where it has no such query or layer. No line end at
/// the end.
pub fn trace(pass: &ForwardPass, without: &[MaskKind], layer: usize, query: usize) -> Option<String> {
    let masked = pass.passes.iter().find(|masked| masked.without == without)?;
    let base = pass.passes.first()?;
    let is_it = |attention: &&TracedAttention| attention.site == AttentionSite::Decoder && attention.layer == layer;
    let attention = masked.attentions.iter().find(is_it)?;
    let usual = base.attentions.iter().find(is_it)?;
    let token = pass.tokens.get(query)?;
    let (l, d, h, g, k) = (pass.tokens.len(), pass.d_model, pass.heads, pass.kv_heads, pass.d_head);
    let name = |position: usize, token: &ShownToken| format!("{position} ({})", token.label);
    let off = match without {
        [] => String::new(),
        masks => {
            format!(", without the {} mask", masks.iter().map(|mask| mask.name()).collect::<Vec<_>>().join(" and "))
        }
    };
    let mut lines = vec![
        format!(
            "{}, step {}: validation sample {} of {}, layer {layer}, the query at position {}{off}",
            pass.name,
            pass.step,
            pass.sample,
            pass.task,
            name(query, token)
        ),
        String::new(),
    ];
    let row = |numbers: &Numbers, at: usize, width: usize| {
        let all = values(numbers);
        all.get(at * width..(at + 1) * width).unwrap_or_default().to_vec()
    };
    let shapes = [
        ("input".to_string(), format!("[1, {l}, {d}]"), vector(&row(&attention.input, query, d))),
        (
            "Q = input · W_Q".into(),
            format!("[1, {l}, {d}] → [1, {h}, {l}, {k}]"),
            "a row of K numbers for each head, below".into(),
        ),
        ("K, V".into(), format!("[1, {l}, {}] → [1, {g}, {l}, {k}]", g * k), String::new()),
        ("scores = Q · Kᵀ".into(), format!("[1, {h}, {l}, {l}]"), format!("times the scale {:.4}", pass.scale)),
        ("mask".into(), format!("[{l}, {l}]"), mask_words(pass, without, query, l)),
        ("softmax".into(), format!("[1, {h}, {l}, {l}]"), "each row sums to 1".into()),
        ("context = weights · V".into(), format!("[1, {h}, {l}, {k}]"), String::new()),
        (
            "concat · W_O".into(),
            format!("[1, {l}, {}] → [1, {l}, {d}]", h * k),
            vector(&row(&attention.output, query, d)),
        ),
    ];
    lines.push(aligned_left(&shapes));
    lines.push(String::new());

    let mut rows = vec![
        ["head", "query", "score → weight of the keys that it reads most", "sum", "context"].map(String::from).to_vec(),
    ];
    for head in 0..h {
        let scores = row(&attention.scores, head * l + query, l);
        let weights = row(&attention.maps, head * l + query, l);
        let mut order: Vec<usize> = (0..weights.len()).collect();
        order.sort_by(|&a, &b| weights[b].total_cmp(&weights[a]));
        let read = order.iter().take(KEYS).filter(|&&key| weights[key] > 0.0);
        let read = read.map(|&key| {
            let leak = if is_forbidden(pass, query, key) { " leak" } else { "" };
            format!("{}: {:.2} → {:.3}{leak}", name(key, &pass.tokens[key]), scores[key], weights[key])
        });
        rows.push(vec![
            head.to_string(),
            vector(&row(&attention.query, head * l + query, k)),
            read.collect::<Vec<_>>().join(", "),
            format!("{:.4}", weights.iter().sum::<f32>()),
            vector(&row(&attention.context, head * l + query, k)),
        ]);
    }
    lines.push(left(&rows));
    lines.push(String::new());
    lines.push(answer(pass, masked, query));
    if !without.is_empty() {
        lines.push(leaks(pass, base, masked, usual, attention, query));
    }
    Some(lines.join("\n"))
}

/// What the mask of the model, which may be left out, keeps this query from.
fn mask_words(pass: &ForwardPass, without: &[MaskKind], query: usize, length: usize) -> String {
    if !pass.masks.contains(&MaskKind::Causal) {
        return "none: every position may be read".into();
    }
    let forbidden = counted(length - 1 - query, "later key");
    let off = if without.contains(&MaskKind::Causal) { "left out: " } else { "" };
    format!("{off}causal forbids {forbidden}, before the softmax")
}

fn is_forbidden(pass: &ForwardPass, query: usize, key: usize) -> bool {
    pass.masks.contains(&MaskKind::Causal) && key > query
}

/// What the model says at a query, beside what is right.
fn answer(pass: &ForwardPass, masked: &MaskedPass, query: usize) -> String {
    let Some(target) = pass.tokens[query].target else { return "Nothing is asked at this position.".into() };
    let place = pass.tokens[..query].iter().filter(|token| token.target.is_some()).count();
    let Some(told) = masked.answers.get(place) else { return String::new() };
    let told: Vec<String> = told.iter().map(|(class, probability)| format!("{class} with {probability:.3}")).collect();
    let said = masked.answers[place].first().map(|(class, _)| *class);
    let judged = if said == Some(target) { "right" } else { "wrong" };
    format!("The model says {}. The answer is {target}: {judged}.", told.join(", "))
}

/// What came through where masks were left out.
fn leaks(
    pass: &ForwardPass,
    base: &MaskedPass,
    masked: &MaskedPass,
    usual: &TracedAttention,
    attention: &TracedAttention,
    query: usize,
) -> String {
    let l = pass.tokens.len();
    let weights = values(&attention.maps);
    let of_head = |head: usize| {
        let row = weights.get((head * l + query) * l..(head * l + query + 1) * l).unwrap_or_default();
        row.iter().enumerate().filter(|(key, _)| is_forbidden(pass, query, *key)).map(|(_, weight)| weight).sum::<f32>()
    };
    let leaked: Vec<f32> = (0..pass.heads).map(of_head).collect();
    let mean = leaked.iter().sum::<f32>() / leaked.len().max(1) as f32;
    let right = |pass_: &MaskedPass| {
        let targets = pass.tokens.iter().filter_map(|token| token.target);
        targets
            .zip(&pass_.answers)
            .filter(|(target, told)| told.first().is_some_and(|(class, _)| class == target))
            .count()
    };
    let (before, after) = (values(&usual.output), values(&attention.output));
    let moved = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    format!(
        "Leak: its heads put {mean:.3} of their weight on keys that the mask forbids; some output of this attention moves by {moved:.3}; \
         right answers in this sample: {} of {}, {} with the mask.",
        right(masked),
        counted(masked.answers.len(), "position"),
        right(base)
    )
}

/// The first numbers of a vector.
fn vector(numbers: &[f32]) -> String {
    let more = if numbers.len() > SHOWN { " …" } else { "" };
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(|number| format!("{number:.2}")).collect();
    format!("{}{more}", shown.join(" "))
}

fn aligned_left(rows: &[(String, String, String)]) -> String {
    left(&rows.iter().map(|(a, b, c)| vec![a.clone(), b.clone(), c.clone()]).collect::<Vec<_>>())
}

/// Columns that begin at one place.
fn left(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
