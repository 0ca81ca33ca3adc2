//! The primary metric over a config key, such as the number of heads: a line for each level of the other keys.

use statistics::grid::Level;

use super::{
    axes::{LABEL, Panel, Scale, TITLE, extent},
    canvas::{Canvas, GREY, INK, Style},
    colours::{self, Line},
    possible,
};
use crate::{
    results::{ArmResult, Results},
    text::{capital, key_name, levels as levels_told},
};

const WIDTH: f64 = 1000.0;

/// `None` without a sweep of at least three arms with results.
pub(super) fn draw(results: &Results) -> Option<String> {
    let swept = results.sweep.as_ref()?;
    let styles = colours::of_arms(results);
    let mut arms: Vec<(f64, &ArmResult, Line)> = results
        .arms
        .iter()
        .zip(&styles)
        .filter_map(|(arm, style)| arm.description.is_some().then_some((arm.sweep_value?, arm, *style)))
        .collect();
    if arms.len() < 3 {
        return None;
    }
    arms.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels: Vec<&Level> = vec![];
    for arm in &results.arms {
        if !levels.contains(&&arm.level) {
            levels.push(&arm.level);
        }
    }
    let (first, last) = (arms.first()?.0, arms.last()?.0);
    let log = first > 0.0 && last / first >= 4.0;

    let values = || arms.iter().flat_map(|(_, arm, _)| arm.runs.iter().filter_map(|run| run.value));
    let ends = arms.iter().flat_map(|(_, arm, _)| &arm.interval_of_mean).flat_map(|limits| [limits.low, limits.high]);
    let (low, high) = extent(values().chain(ends).chain(results.metric.threshold), false)?;
    let [low, high] = possible(results.metric.range(), [low, high]);

    let words = results.metric.words();
    let title = format!("{} by {}: {}", capital(words), key_name(&swept.key), results.name);
    let named = if levels.len() > 1 { levels.len() } else { 0 };
    let top = 84.0 + 26.0 * named.div_ceil(2) as f64;
    let bottom = top + 430.0;
    let mut canvas = Canvas::new(WIDTH, bottom + 112.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    for (index, level) in levels.iter().take(named).enumerate() {
        let at = (40.0 + 470.0 * (index % 2) as f64, 80.0 + 26.0 * (index / 2) as f64);
        let own = arms.iter().find(|(_, arm, _)| arm.level == **level).map(|(_, _, style)| *style);
        if let Some(style) = own {
            canvas.sample(at, Line { colour: GREY, ..style });
            let told = levels_told(level.iter()).unwrap_or_default();
            canvas.text((at.0 + 44.0, at.1 + 6.0), &told, Style::new(LABEL - 2.0, INK));
        }
    }
    let (left, right) = (132.0, WIDTH - 44.0);
    // Room beside the outer arms for their dots.
    let (from, to) = if log {
        let reach = (last / first).powf(0.08);
        (first / reach, last * reach)
    } else {
        (first - 0.08 * (last - first), last + 0.08 * (last - first))
    };
    let x = Scale::new(from, to, log, left, right);
    let panel = Panel { left, top, right, bottom, x, y: Scale::new(low, high, false, bottom, top) };
    panel.y_axis(&mut canvas, Some(&axis(words, &results.metric.unit)), true);
    if let Some(threshold) = results.metric.threshold {
        panel.level(&mut canvas, threshold, &format!("solved at {threshold}"));
    }
    let mean = |arm: &ArmResult| arm.description.as_ref().map(|description| description.mean);
    for level in &levels {
        let of_level = arms.iter().filter(|(_, arm, _)| arm.level == **level);
        let line: Vec<(f64, f64)> = of_level.clone().filter_map(|(x, arm, _)| Some(panel.at(*x, mean(arm)?))).collect();
        let dash = of_level.clone().next().map_or("", |(_, _, style)| style.dash);
        canvas.polyline(&line, GREY, 2.0, dash);
    }
    for (value, arm, style) in &arms {
        let colour = style.colour;
        for (index, run) in arm.runs.iter().enumerate() {
            let spread = (index * 7 % 11) as f64 / 10.0 - 0.5;
            if let Some(result) = run.value {
                let (x, y) = panel.at(*value, result);
                let words = format!("{}, seed {}: {result:.4}", arm.label, run.seed);
                canvas.told_circle((x + 30.0 + 16.0 * spread, y), 4.5, colour, 0.5, &words);
            }
        }
        if let Some(interval) = &arm.interval_of_mean {
            let (x, low) = panel.at(*value, interval.low);
            let high = panel.y.at(interval.high);
            canvas.line((x, low), (x, high), colour, 4.0, "");
            for end in [low, high] {
                canvas.line((x - 9.0, end), (x + 9.0, end), colour, 3.0, "");
            }
        }
        if let Some(mean) = mean(arm) {
            canvas.mark(panel.at(*value, mean), style.mark, colour);
            canvas.told_circle(panel.at(*value, mean), 8.0, colour, 1.0, &format!("{}: {mean:.4}", arm.label));
        }
    }
    let mut ticks: Vec<f64> = arms.iter().map(|(value, ..)| *value).collect();
    ticks.dedup();
    panel.x_axis(&mut canvas, &swept.axis, Some(&ticks));
    let note =
        "Large dots: means, with 95 % intervals of each arm alone. Small dots: one run each, a diverged one not shown.";
    canvas.note(bottom + 94.0, note);
    Some(canvas.finish())
}

/// "test accuracy (share)"; the words alone where no unit is known.
fn axis(words: &str, unit: &str) -> String {
    if unit.is_empty() { words.into() } else { format!("{words} ({unit})") }
}
