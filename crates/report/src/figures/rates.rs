//! What the tuning runs showed: the final validation metric over learning rates.

use super::{
    axes::{LABEL, Panel, Scale, TITLE, extent},
    canvas::{Canvas, INK, Style, text_width},
    colours, possible,
};
use crate::results::Results;

const WIDTH: f64 = 1000.0;
/// Height of a row of the legend.
const ROW: f64 = 28.0;

/// `None` without tuning runs.
pub(super) fn draw(results: &Results) -> Option<String> {
    let tuning = results.tuning.as_ref()?;
    let rates = || tuning.arms.iter().flat_map(|arm| &arm.rates);
    let values = rates().flat_map(|rate| rate.values.iter().flatten().copied().chain(rate.mean));
    let (low, high) = extent(values, false)?;
    let [low, high] = possible(tuning.metric.kind.range, [low, high]);
    let (from, to) = extent(rates().map(|rate| rate.lr), true)?;

    let title = format!("Learning rates tried for each arm: {}", results.name);
    let places = legend(tuning.arms.iter().map(|arm| text_width(&arm.label, LABEL)));
    let top = 118.0 + places.last().map_or(0.0, |place| place.1 - 78.0);
    let bottom = top + 410.0;
    let mut canvas = Canvas::new(WIDTH, bottom + 112.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    let (left, right) = (132.0, WIDTH - 44.0);
    let x = Scale::new(from, to, true, left, right);
    let panel = Panel { left, top, right, bottom, x, y: Scale::new(low, high, false, bottom, top) };
    let unit = tuning.metric.kind.unit;
    panel.y_axis(&mut canvas, Some(&format!("final {} ({unit})", tuning.metric.words())), true);

    for ((arm, style), (x, y)) in tuning.arms.iter().zip(colours::of_arms(results)).zip(places) {
        let colour = style.colour;
        canvas.sample((x, y), style);
        canvas.text((x + 44.0, y + 6.0), &arm.label, Style::new(LABEL, INK));
        let means: Vec<(f64, f64)> = arm.rates.iter().filter_map(|rate| Some(panel.at(rate.lr, rate.mean?))).collect();
        canvas.arm_line(&means, style, 3.0);
        for rate in &arm.rates {
            for value in rate.values.iter().flatten() {
                let words = format!("{}, {}: {value:.4}", arm.label, rate.lr);
                canvas.told_circle(panel.at(rate.lr, *value), 5.0, colour, 0.55, &words);
            }
            if let Some(mean) = rate.mean.filter(|_| arm.chosen == Some(rate.lr)) {
                let words = format!("{} chose {}: {mean:.4}", arm.label, rate.lr);
                canvas.told_ring(panel.at(rate.lr, mean), 13.0, colour, &words);
            }
        }
    }
    let mut ticks: Vec<f64> = rates().map(|rate| rate.lr).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    panel.x_axis(&mut canvas, "peak learning rate (log scale)", Some(&ticks));
    let note = "Line: mean over the tuning seeds, a diverged run counting as worst. Dots: one run each. Ring: chosen.";
    canvas.note(bottom + 94.0, note);
    Some(canvas.finish())
}

/// Where the entry of each arm stands, rows as wide as the drawing.
fn legend(widths: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (40.0, 78.0);
    let mut places = vec![];
    for width in widths.map(|width| 84.0 + width) {
        if x + width > WIDTH && x > 40.0 {
            (x, y) = (40.0, y + ROW);
        }
        places.push((x, y));
        x += width;
    }
    places
}
