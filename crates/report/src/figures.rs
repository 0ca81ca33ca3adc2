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
mod rates;
mod repetitions;
mod sweep;

use data::metrics::{METRICS, MetricKind};

use crate::results::Results;

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
    Kind { name: "sweep", section: Some(Section::Settings), draw: sweep::draw },
    Kind { name: "learning-rates", section: Some(Section::Settings), draw: rates::draw },
];

/// Every figure that the result has numbers for: the curves of each metric, also over logarithms where it has no end, then the
/// others.
pub fn all(results: &Results) -> Vec<Figure> {
    let curves = METRICS.iter().rev().flat_map(|kind| {
        let plain = (kind.key.to_string(), curves::draw(results, kind, false));
        let log = kind.span().is_infinite().then(|| (format!("{}-log", kind.key), curves::draw(results, kind, true)));
        [Some(plain), log].into_iter().flatten()
    });
    let curves = curves.filter_map(|(name, svg)| Some(Figure { name, section: None, svg: svg? }));
    let others = FIGURES.iter().filter_map(|Kind { name, section, draw }| {
        Some(Figure { name: name.to_string(), section: *section, svg: draw(results)? })
    });
    curves.chain(others).collect()
}

/// The ends of an axis without what no value of the metric can be, but for a little room.
fn possible(kind: &MetricKind, [low, high]: [f64; 2]) -> [f64; 2] {
    [low.max(kind.range.0), high.min(kind.range.1 + 0.02 * kind.span())]
}
