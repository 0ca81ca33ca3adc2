//! Figures of a result, laid out by hand as SVG.
//!
//! An SVG holds no script, no style sheet and no ids, so that it can stand inside an HTML page next to others.

mod axes;
mod canvas;
pub(crate) mod colours;
mod curves;
mod differences;
mod growth;
mod rates;
mod repetitions;
mod sweep;

pub(crate) use canvas::escaped;
pub use growth::{Growth, GrowthPoint, growth};

use crate::results::Results;

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its file's name without the ending.
    pub name: &'static str,
    /// A complete SVG document.
    pub svg: String,
}

/// Every figure that the result has numbers for.
pub fn all(results: &Results) -> Vec<Figure> {
    let figures = [
        ("accuracy", curves::draw(results, curves::Quantity::Accuracy)),
        ("loss", curves::draw(results, curves::Quantity::Loss)),
        ("loss-log", curves::draw(results, curves::Quantity::LogLoss)),
        ("differences", differences::draw(results)),
        ("repetitions", repetitions::draw(results)),
        ("sweep", sweep::draw(results)),
        ("learning-rates", rates::draw(results)),
    ];
    figures.into_iter().filter_map(|(name, svg)| Some(Figure { name, svg: svg? })).collect()
}
