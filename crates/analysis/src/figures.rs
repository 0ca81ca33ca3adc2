//! Figures of a result, laid out by hand as SVG and rendered to PNG with one embedded font.
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

use std::sync::{Arc, LazyLock};

pub(crate) use canvas::escaped;
pub use growth::{Growth, GrowthPoint, growth};
use resvg::{tiny_skia, usvg};

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

/// Pixels of a PNG for one unit of its SVG.
const SCALE: f32 = 2.0;

/// An SVG of this module as a PNG.
///
/// # Errors
/// A sentence, where the SVG is not valid or too large.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    // One font for all, so that a figure looks the same on every machine.
    static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    });
    let options = usvg::Options { fontdb: FONTS.clone(), font_family: canvas::FONT.into(), ..Default::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE).ceil() as u32, (size.height() * SCALE).ceil() as u32);
    let mut pixels = tiny_skia::Pixmap::new(width, height).ok_or("the figure is too large")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
