//! What the checks of values share: each node is recomputed on the host in f64 from the node before.

use architecture::HostTensor;

use super::deviation::{unravel, worst};
use super::examination::{AttentionPlace, Examination, Probe, Reads};
use super::finding::Checked;
use super::shapes::table;
use super::subject::SubjectError;

/// Greatest deviation of a node in f32 from the same in f64, in units of its largest value.
const TOLERANCE: f64 = 1e-4;

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
    fn of(examination: &Examination, probe: &'a Probe, place: &AttentionPlace) -> Self {
        let config = examination.model();
        let source = probe.inputs.batch.source.as_ref().map_or(0, |source| source.len);
        let (lq, lk) = match place.reads {
            Reads::Itself => (probe.inputs.batch.len, probe.inputs.batch.len),
            Reads::Source => (source, source),
            Reads::Memory => (probe.inputs.batch.len, source),
        };
        let (h, g, k) = (config.heads, config.kv_heads(), config.d_head());
        Self { probe, path: place.path.clone(), b: probe.inputs.batch.batch, h, g, k, lq, lk }
    }

    /// A node by its last name, such as `scores`.
    pub fn get(&self, node: &str) -> HostTensor {
        // Every node was found when the shapes were compared.
        self.probe.node(&format!("{}.{node}", self.path)).unwrap_or_default()
    }
}

/// Carries out `check` on as many attentions as the effort allows, spread over the model, until one is wrong.
pub(super) fn each_attention(
    examination: &Examination,
    seen: &str,
    mut check: impl FnMut(&AttentionPlace, &Nodes) -> Result<Option<Checked>, SubjectError>,
) -> Result<Checked, SubjectError> {
    let probe = examination.probe()?;
    // Where a shape is wrong there is nothing to compare.
    if table(examination)?.iter().any(|row| !row.is_right()) {
        return Ok(Checked::skipped("a node has the wrong shape: see shapes"));
    }
    let all = examination.attentions();
    let count = examination.effort.attentions.min(all.len());
    let places: Vec<&AttentionPlace> = (0..count).map(|chosen| &all[spread(chosen, count, all.len())]).collect();
    for &place in &places {
        if let Some(problem) = check(place, &Nodes::of(examination, probe, place))? {
            return Ok(problem);
        }
    }
    Ok(match places.len() {
        0 => Checked::skipped("the model has no attention: layers = 0"),
        1 => Checked::ok(format!("{seen} in the only attention")),
        n => Checked::ok(format!("{seen} in {n} attentions")),
    })
}

/// The place among `all` of the `chosen`-th of `count`: the first is the first and the last the last.
fn spread(chosen: usize, count: usize, all: usize) -> usize {
    chosen * (all - 1) / (count - 1).max(1)
}

/// What else a node may be, its cause and the fix.
pub(super) type Mistake = (Vec<f64>, &'static str, &'static str);

/// Compares a node with what it should be and, where it differs, with what usual mistakes would make of it.
pub(super) fn compared(name: &str, found: &HostTensor, expected: &[f64], mistakes: &[Mistake]) -> Option<Checked> {
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
            Checked::failed(format!("{seen}; it is exactly what this mistake gives"), *cause, *fix)
        }
        None => Checked::failed(
            seen,
            "the step that makes this node does something else than its formula",
            "compute this entry by hand from the node before it, and step through the code until they part",
        ),
    })
}
