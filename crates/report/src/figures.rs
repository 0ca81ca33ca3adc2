//! Figures of a result, laid out by hand as SVG.
//!
//! An SVG holds no script, no style sheet and no ids, so that it can stand inside an HTML page next to others. Each is drawn once:
//! the page shows what lies in the folder.

mod axes;
mod canvas;
pub(crate) mod colours;
mod curves;
mod differences;
mod growth;
mod needed;
mod rates;
mod repetitions;
mod sweep;

use data::metrics::{METRICS, MetricKind};

use crate::results::{DecidingMetric, Results};

pub use growth::{Growth, GrowthPoint, growth};

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its file's name without the ending.
    pub name: String,
    /// The section of the page that shows it, if one does.
    pub section: Option<Section>,
    /// A complete SVG document.
    pub svg: String,
}

/// A section of the page that holds figures as they are. What one reads values from, the page draws itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Paired differences.
    Differences,
    /// What holds across settings.
    Settings,
}

/// A figure that results may have.
struct Kind {
    name: &'static str,
    section: Option<Section>,
    /// `None` where the results have no numbers for it.
    draw: fn(&Results) -> Option<String>,
}

/// Every figure but the curves, in the order of the files and of the page. To add one: a file that draws it, its `mod` line, and
/// its line here.
const FIGURES: &[Kind] = &[
    Kind { name: "differences", section: Some(Section::Differences), draw: differences::draw },
    Kind { name: "repetitions", section: Some(Section::Differences), draw: repetitions::draw },
    Kind { name: "heads-needed", section: Some(Section::Settings), draw: needed::draw },
    Kind { name: "sweep", section: Some(Section::Settings), draw: sweep::draw },
    Kind { name: "learning-rates", section: Some(Section::Settings), draw: rates::draw },
];

/// Every figure that the result has numbers for: the curves of each metric, also over logarithms where it has no end, then the
/// others.
pub fn all(results: &Results) -> Vec<Figure> {
    let known = METRICS.iter().rev().map(Quantity::of);
    let own = Quantity::deciding(&results.metric);
    let is_own = METRICS.iter().all(|kind| kind.key != own.key);
    let curves = known.chain(Some(own).filter(|_| is_own)).flat_map(|kind| {
        let plain = (kind.key.clone(), curves::draw(results, &kind, false));
        let log = kind.has_no_end().then(|| (format!("{}-log", kind.key), curves::draw(results, &kind, true)));
        [Some(plain), log].into_iter().flatten()
    });
    let curves = curves.filter_map(|(name, svg)| Some(Figure { name, section: None, svg: svg? }));
    let others = FIGURES.iter().filter_map(|Kind { name, section, draw }| {
        Some(Figure { name: name.to_string(), section: *section, svg: draw(results)? })
    });
    curves.chain(others).collect()
}

/// What curves are drawn of.
struct Quantity {
    /// Of its values in a point of a curve.
    key: String,
    words: String,
    axis: String,
    /// Smallest and greatest possible value.
    range: (f64, f64),
}

impl Quantity {
    fn of(kind: &MetricKind) -> Self {
        Self { key: kind.key.into(), words: kind.words.into(), axis: kind.axis.into(), range: kind.range }
    }

    fn deciding(metric: &DecidingMetric) -> Self {
        let (key, words) = (metric.key.clone(), metric.words().to_string());
        Self { key, words, axis: metric.axis.clone(), range: metric.range() }
    }

    fn has_no_end(&self) -> bool {
        (self.range.1 - self.range.0).is_infinite()
    }

    fn log_axis(&self) -> String {
        match self.axis.strip_suffix(')') {
            Some(axis) => format!("{axis}, log scale)"),
            None => format!("{}, log scale", self.axis),
        }
    }
}

/// The ends of an axis without what no value of the metric can be, but for a little room.
fn possible(range: (f64, f64), [low, high]: [f64; 2]) -> [f64; 2] {
    let room = if range.1.is_finite() { 0.02 * (range.1 - range.0) } else { 0.0 };
    [low.max(range.0), high.min(range.1 + room)]
}
