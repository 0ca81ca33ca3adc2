//! The intervals of all repetitions below each other: how often does one of them decide?

use super::{
    axes::{LABEL, Panel, Scale, TICK, TITLE, extent},
    canvas::{Anchor, Canvas, GREY, INK, NOTE, Style},
};
use crate::results::Results;

const WIDTH: f64 = 1000.0;
const TOP: f64 = 122.0;
const ROW: f64 = 23.0;
/// Intervals that say "better" or "worse".
const DECIDED: &str = "#d55e00";

/// `None` without repetitions.
pub(super) fn draw(results: &Results) -> Option<String> {
    let repetitions = results.repetitions.as_ref()?;
    let margin = results.metric.margin;
    let ends =
        repetitions.each.iter().flat_map(|each| &each.interval).flat_map(|interval| [interval.low, interval.high]);
    let (low, high) = extent(ends.chain([0.0, -1.6 * margin, 1.6 * margin]), false)?;
    let first = &results.findings.verdicts.first()?.found;

    let title = format!("{} repetitions: {}", repetitions.each.len(), results.name);
    let bottom = TOP + ROW * repetitions.each.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 112.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    let words = repetitions.words();
    let counts = words.split_once(": ").map_or(words.as_str(), |(_, counts)| counts);
    canvas.text((40.0, 78.0), counts, Style::new(LABEL - 2.0, GREY));
    let (left, right) = (96.0, WIDTH - 44.0);
    let x = Scale::new(low, high, false, left, right);
    let panel = Panel { left, top: TOP, right, bottom, x, y: Scale::new(0.0, 1.0, false, bottom, TOP) };
    if margin > 0.0 {
        let (from, to) = (x.at(-margin), x.at(margin));
        canvas.rectangle((from, TOP), (to - from, bottom - TOP), "#f0c987", 0.45);
        let style = Style::new(NOTE, "#8a6314").anchored(Anchor::Middle);
        canvas.text((x.at(0.0), TOP - 8.0), &format!("margin ± {margin}"), style);
    }
    canvas.line((x.at(0.0), TOP), (x.at(0.0), bottom), INK, 1.5, "");
    for (index, each) in repetitions.each.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let style = Style::new(TICK - 2.0, GREY).anchored(Anchor::End);
        canvas.text((left - 14.0, y + 5.0), &(index + 1).to_string(), style);
        let (Some(interval), Some(mean)) = (&each.interval, each.mean) else { continue };
        let colour = if each.finds_a_difference() { DECIDED } else { INK };
        let (low, mean, high) = (x.at(interval.low), x.at(mean), x.at(interval.high));
        canvas.line((low, y), (high, y), colour, 3.0, "");
        for end in [low, high] {
            canvas.line((end, y - 6.0), (end, y + 6.0), colour, 2.5, "");
        }
        canvas.circle((mean, y), 5.5, colour, 1.0);
    }
    let label = format!("advantage of {} over {}: {}", first.arm.name, first.baseline.name, first.scale.name);
    panel.x_axis(&mut canvas, &label, None);
    let note =
        "Bars: mean paired difference of one repetition with its 95 % interval; coloured where it found a difference.";
    canvas.note(bottom + 94.0, note);
    Some(canvas.finish())
}
