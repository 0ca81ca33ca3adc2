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

use crate::results::Results;

pub use growth::{Growth, GrowthPoint, growth};

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its file's name without the ending.
    pub name: &'static str,
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

/// Every figure, in the order of the files and of the page. To add one: a file that draws it, its `mod` line, and its line here.
const FIGURES: &[Kind] = &[
    Kind { name: "accuracy", section: None, draw: |results| curves::draw(results, curves::Quantity::Accuracy) },
    Kind { name: "loss", section: None, draw: |results| curves::draw(results, curves::Quantity::Loss) },
    Kind { name: "loss-log", section: None, draw: |results| curves::draw(results, curves::Quantity::LogLoss) },
    Kind { name: "differences", section: Some(Section::Differences), draw: differences::draw },
    Kind { name: "repetitions", section: Some(Section::Differences), draw: repetitions::draw },
    Kind { name: "sweep", section: Some(Section::Settings), draw: sweep::draw },
    Kind { name: "learning-rates", section: Some(Section::Settings), draw: rates::draw },
];

/// Every figure that the result has numbers for.
pub fn all(results: &Results) -> Vec<Figure> {
    let drawn = FIGURES.iter().filter_map(|kind| {
        let Kind { name, section, draw } = kind;
        Some(Figure { name, section: *section, svg: draw(results)? })
    });
    drawn.collect()
}
