//! The primary metric over a config key, such as the number of heads.

use super::{
    axes::{Panel, Scale, TITLE, extent},
    canvas::{Canvas, GREY, INK, Style},
    colours, possible,
};
use crate::{
    results::{ArmResult, Results},
    text::capital,
};

const WIDTH: f64 = 1000.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = TOP + 430.0;

/// `None` without a sweep of at least three arms with results.
pub(super) fn draw(results: &Results) -> Option<String> {
    let key = results.sweep.as_deref()?;
    let colours = colours::of_arms(results);
    let mut arms: Vec<(f64, &ArmResult, &str)> = results
        .arms
        .iter()
        .zip(&colours)
        .filter_map(|(arm, (colour, _))| arm.description.is_some().then_some((arm.sweep_value?, arm, *colour)))
        .collect();
    if arms.len() < 3 {
        return None;
    }
    arms.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (first, last) = (arms.first()?.0, arms.last()?.0);
    let log = first > 0.0 && last / first >= 4.0;

    let kind = results.metric.name.kind;
    let values = || arms.iter().flat_map(|(_, arm, _)| arm.runs.iter().filter_map(|run| run.value));
    let ends =
        arms.iter().flat_map(|(_, arm, _)| &arm.interval_of_mean).flat_map(|interval| [interval.low, interval.high]);
    let (low, high) = extent(values().chain(ends).chain(results.metric.threshold), false)?;
    let [low, high] = possible(kind, [low, high]);

    let words = results.metric.name.words();
    let title = format!("{} by {}: {}", capital(&words), short(key), results.name);
    let mut canvas = Canvas::new(WIDTH, BOTTOM + 112.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    let (left, right) = (132.0, WIDTH - 44.0);
    // Room beside the outer arms for their dots.
    let (from, to) = if log {
        let reach = (last / first).powf(0.08);
        (first / reach, last * reach)
    } else {
        (first - 0.08 * (last - first), last + 0.08 * (last - first))
    };
    let x = Scale::new(from, to, log, left, right);
    let panel = Panel { left, top: TOP, right, bottom: BOTTOM, x, y: Scale::new(low, high, false, BOTTOM, TOP) };
    panel.y_axis(&mut canvas, Some(&format!("{words} ({})", kind.unit)), true);
    if let Some(threshold) = results.metric.threshold {
        panel.level(&mut canvas, threshold, &format!("solved at {threshold}"));
    }
    let mean = |arm: &ArmResult| arm.description.as_ref().map(|description| description.mean);
    let line: Vec<(f64, f64)> = arms.iter().filter_map(|(x, arm, _)| Some(panel.at(*x, mean(arm)?))).collect();
    canvas.polyline(&line, GREY, 2.0, "");
    for (value, arm, colour) in &arms {
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
            canvas.told_circle(panel.at(*value, mean), 8.0, colour, 1.0, &format!("{}: {mean:.4}", arm.label));
        }
    }
    let ticks: Vec<f64> = arms.iter().map(|(value, ..)| *value).collect();
    panel.x_axis(&mut canvas, &axis(key), Some(&ticks));
    let note =
        "Large dots: means, with 95 % intervals of each arm alone. Small dots: one run each, a diverged one not shown.";
    canvas.note(BOTTOM + 94.0, note);
    Some(canvas.finish())
}

/// `heads` of `model.heads`.
fn short(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

fn axis(key: &str) -> String {
    match key {
        "model.heads" => "attention heads".into(),
        "model.kv_heads" => "key/value heads".into(),
        "train.steps" => "optimiser steps".into(),
        _ => key.into(),
    }
}
