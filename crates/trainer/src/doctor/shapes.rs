//! The shape at every node of one forward pass.

use architecture::{Merge, ModelConfig};
use serde::Serialize;

use super::examination::{AttentionPlace, Examination, Reads};
use super::finding::Checked;
use super::subject::SubjectError;

/// A node of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeShape {
    /// Such as `blocks.0.attention.scores`.
    pub node: String,
    /// Its axes in letters, such as `[B, H, Lq, Lk]`.
    pub axes: &'static str,
    /// The shape that follows from the config.
    pub expected: Vec<usize>,
    /// The shape found; none where the pass has no such node.
    pub found: Option<Vec<usize>>,
}

impl NodeShape {
    /// Whether the node is there, of its shape.
    pub fn is_right(&self) -> bool {
        self.found.as_ref() == Some(&self.expected)
    }

    /// The row as a line of the table.
    pub fn to_text(&self) -> String {
        let found = self.found.as_ref().map_or("missing".to_string(), |shape| format!("{shape:?}"));
        let mark = if self.is_right() { String::new() } else { format!("   WRONG: expected {:?}", self.expected) };
        format!("  {:36} {:16} {found}{mark}", self.node, self.axes)
    }
}

/// Every node that the config asks for, with the shape that the probe found.
///
/// # Errors
/// An input that the model can't take.
pub fn table(examination: &Examination) -> Result<Vec<NodeShape>, SubjectError> {
    let probe = examination.probe()?;
    let config = examination.model();
    let (b, l, d) = (probe.inputs.batch.batch, probe.inputs.batch.len, config.d_model);
    let ls = probe.inputs.batch.source.as_ref().map_or(0, |source| source.len);
    let mut rows = vec![];
    let mut row = |node: String, axes, expected: Vec<usize>| {
        let found = probe.pass.nodes.iter().find(|found| found.name == node).map(|found| found.shape.clone());
        rows.push(NodeShape { node, axes, expected, found });
    };
    if config.has_encoder() {
        row("encoder.embedding".into(), "[B, Ls, D]", vec![b, ls, d]);
    }
    let mut is_embedded = false;
    for place in examination.attentions() {
        if place.reads != Reads::Source && !is_embedded {
            row("embedding".into(), "[B, L, D]", vec![b, l, d]);
            is_embedded = true;
        }
        let (lq, lk) = match place.reads {
            Reads::Itself => (l, l),
            Reads::Source => (ls, ls),
            Reads::Memory => (l, ls),
        };
        for (node, axes, expected) in attention_nodes(config, b, lq, lk) {
            row(format!("{}.{node}", place.path), axes, expected);
        }
        if let Some(block) = last_of_block(&place, config) {
            row(format!("{block}.output"), "[B, L, D]", vec![b, lq, d]);
        }
    }
    if !is_embedded {
        row("embedding".into(), "[B, L, D]", vec![b, l, d]);
    }
    let outputs = examination.subject.config.dims().outputs;
    row("logits".into(), "[B·L, outputs]", vec![b * l, outputs]);
    Ok(rows)
}

/// The block that `place` is the last attention of.
fn last_of_block(place: &AttentionPlace, config: &ModelConfig) -> Option<String> {
    let is_last = place.reads != Reads::Itself || !config.has_encoder();
    let block = place.path.rsplit_once('.').map(|(block, _)| block.to_string());
    block.filter(|_| is_last)
}

type Expected = (&'static str, &'static str, Vec<usize>);

/// The nodes of one attention from `lq` queries to `lk` keys.
fn attention_nodes(config: &ModelConfig, b: usize, lq: usize, lk: usize) -> Vec<Expected> {
    let (d, h, g, k) = (config.d_model, config.heads, config.kv_heads(), config.d_head());
    let merged: (&str, usize) = match config.merge {
        Merge::Concat => ("[B, Lq, H·K]", h * k),
        Merge::Mean => ("[B, Lq, K]", k),
    };
    vec![
        ("query_input", "[B, Lq, D]", vec![b, lq, d]),
        ("key_input", "[B, Lk, D]", vec![b, lk, d]),
        ("query", "[B, Lq, H·K]", vec![b, lq, h * k]),
        ("key", "[B, Lk, G·K]", vec![b, lk, g * k]),
        ("value", "[B, Lk, G·K]", vec![b, lk, g * k]),
        ("query_heads", "[B, H, Lq, K]", vec![b, h, lq, k]),
        ("key_heads", "[B, G, Lk, K]", vec![b, g, lk, k]),
        ("value_heads", "[B, G, Lk, K]", vec![b, g, lk, k]),
        ("scores", "[B, H, Lq, Lk]", vec![b, h, lq, lk]),
        ("maps", "[B, H, Lq, Lk]", vec![b, h, lq, lk]),
        ("context", "[B, H, Lq, K]", vec![b, h, lq, k]),
        ("merged", merged.0, vec![b, lq, merged.1]),
        ("output", "[B, Lq, D]", vec![b, lq, d]),
    ]
}

pub fn shapes(examination: &Examination) -> Result<Checked, SubjectError> {
    let rows = table(examination)?;
    Ok(match rows.iter().find(|row| !row.is_right()) {
        None => {
            let scores = rows.iter().rfind(|row| row.node.ends_with(".scores"));
            let scores = scores.map_or(String::new(), |row| format!("; scores {:?}", row.expected));
            Checked::ok(format!("{} nodes have the shape that the config says{scores}", rows.len()))
        }
        Some(NodeShape { node, expected, found: None, .. }) => Checked::failed(
            format!("the pass has no node {node}, of shape {expected:?}"),
            "the forward pass leaves a step out",
            "compare the pass with the table of shapes, top to bottom",
        ),
        Some(NodeShape { node, axes, expected, found: Some(found) }) => Checked::failed(
            format!("{node} has shape {found:?}, expected {axes} = {expected:?}"),
            "axes swapped in the wrong order, or a width that is not heads · d_head",
            "split as [B, L, H·K] → [B, L, H, K] → swap axes 1 and 2 → [B, H, L, K], and back the same way before the merge",
        ),
    })
}
