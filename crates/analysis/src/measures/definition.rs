//! What a measure is: its words, and how it is computed from what was seen of an attention.

use model::CallError;
use runs::heads::{AttentionSite, MeasureInfo, MeasureValue, OfRun, Tells, Unit};

use crate::{effects::Probe, maps::Maps, needs::Needs};

/// What a measure gives of each head, `[H]`; `None` where it has no meaning.
pub type OfHeads = Vec<Option<MeasureValue>>;

/// A measure of heads.
pub struct Measure {
    /// Its key in files.
    pub key: &'static str,
    /// What it is called wherever it is shown.
    pub title: &'static str,
    /// What it says, in one or two sentences.
    pub glossary: &'static str,
    /// What a head with much of it reads, as in "reads the token before", where it says such a thing.
    pub reads: Option<&'static str>,
    /// Least and greatest value, where it has both.
    pub range: Option<[f64; 2]>,
    /// What it is counted in.
    pub unit: Unit,
    /// What kind of thing it tells of a head.
    pub tells: Tells,
    /// What stands for a run among other runs.
    pub across: OfRun,
    /// What its numbers belong to, where it has several.
    pub parts: fn(&Needs) -> Vec<String>,
    /// One value a head of the attention.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub compute: fn(&Seen) -> Result<OfHeads, CallError>,
}

impl Measure {
    /// As a reader of files needs it.
    pub fn info(&self, needs: &Needs) -> MeasureInfo {
        MeasureInfo {
            key: self.key.into(),
            title: self.title.into(),
            glossary: self.glossary.into(),
            reads: self.reads.map(String::from),
            range: self.range,
            unit: self.unit,
            tells: self.tells,
            across: self.across,
            parts: (self.parts)(needs),
        }
    }
}

/// What was seen of one attention on the samples.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// Which of the model's attentions.
    pub site: AttentionSite,
    /// Its layer within its stack, from 0.
    pub layer: usize,
    /// Its maps.
    pub maps: Maps<'a>,
    /// `[B][L]`: the tokens of the sequence that both queries and keys stand at; `None` from one sequence to another.
    pub tokens: Option<&'a [i32]>,
    /// What the samples' answers depend on.
    pub needs: &'a Needs,
    /// The model at work.
    pub probe: &'a Probe<'a>,
}

impl Seen<'_> {
    /// No head has a value.
    pub fn none(&self) -> OfHeads {
        vec![None; self.maps.heads]
    }
}

/// Single numbers as values.
pub fn single(numbers: Vec<Option<f64>>) -> OfHeads {
    numbers.into_iter().map(|number| number.map(MeasureValue::Number)).collect()
}

/// A measure of one number has no parts.
pub(super) fn no_parts(_: &Needs) -> Vec<String> {
    vec![]
}

/// `x ln x`, and its limit 0 at 0.
pub(crate) fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// The mean of `of_row(b, i, row)` over the rows that count.
pub(super) fn mean_of_rows(maps: Maps, of_row: impl Fn(usize, usize, &[f32]) -> f64) -> Vec<Option<f64>> {
    let mean = |h: usize| {
        let (sum, rows) = maps
            .readable
            .rows()
            .fold((0.0, 0usize), |(sum, rows), (b, i)| (sum + of_row(b, i, maps.row(b, h, i)), rows + 1));
        (rows > 0).then(|| sum / rows as f64)
    };
    (0..maps.heads).map(mean).collect()
}

/// The weight on the readable keys j for which `is_meant(b, i, j)`, averaged over the rows that have some.
pub(super) fn share(maps: Maps, is_meant: impl Fn(usize, usize, usize) -> bool) -> Vec<Option<f64>> {
    let (mut sums, mut rows) = (vec![0.0; maps.heads], 0usize);
    for (b, i) in maps.readable.rows() {
        let readable = maps.readable.row(b, i);
        let meant: Vec<usize> = (0..maps.keys()).filter(|&j| readable[j] && is_meant(b, i, j)).collect();
        if meant.is_empty() {
            continue;
        }
        rows += 1;
        for (h, sum) in sums.iter_mut().enumerate() {
            let row = maps.row(b, h, i);
            *sum += meant.iter().map(|&j| f64::from(row[j])).sum::<f64>();
        }
    }
    sums.into_iter().map(|sum| (rows > 0).then(|| sum / rows as f64)).collect()
}
