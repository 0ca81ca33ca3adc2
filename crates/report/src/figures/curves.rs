//! Learning curves: the mean over seeds with its bands, validation beside training.

use data::Split;

use super::{
    Quantity,
    axes::{LABEL, Panel, Scale, TITLE, extent},
    canvas::{Anchor, Canvas, INK, Style, text_width},
    colours, possible,
};
use crate::{
    results::{Band, Curve, Results},
    text::capital,
};

const WIDTH: f64 = 1280.0;
const PLOT: f64 = 430.0;
/// Most arms whose bands from smallest to largest can be told apart.
const MOST_WITH_RANGE: usize = 3;

/// The curves of a metric, over logarithms of it where `log`; `None` where it was not logged.
pub(super) fn draw(results: &Results, kind: &Quantity, log: bool) -> Option<String> {
    let splits: Vec<(Split, &str)> =
        [(Split::Test, "test"), (Split::Validation, "validation"), (Split::Train, "training")]
            .into_iter()
            .filter(|(split, _)| results.arms.iter().any(|arm| arm.curves.iter().any(|curve| curve.split == *split)))
            .collect();
    let curves = || results.arms.iter().flat_map(|arm| &arm.curves);
    let values = curves().flat_map(|curve| &curve.points).filter_map(|point| point.bands.get(&kind.key));
    let values = values.flat_map(|band| {
        // Whole bands, but for logarithms of next to nothing.
        let range = results.arms.len() <= MOST_WITH_RANGE;
        let (least, most) =
            if range { (band.minimum, band.maximum) } else { (band.lower_quartile, band.upper_quartile) };
        [if log { least.max(band.mean * 0.1) } else { least }.min(band.mean), most.max(band.mean)]
    });
    let threshold =
        results.metric.threshold.filter(|threshold| results.metric.key == kind.key && !(log && *threshold <= 0.0));
    curves().next()?;
    let (low, high) = extent(values.chain(threshold), log)?;
    let [low, high] = if log { [low, high] } else { possible(kind.range, [low, high]) };
    let last = curves().flat_map(|curve| &curve.points).map(|point| point.step).max()? as f64;

    let title = format!("{} over training: {}", capital(&kind.words), results.name);
    let label = if log { kind.log_axis() } else { kind.axis.clone() };
    let (legend, rows) = legend(results);
    let top = 96.0 + 30.0 * rows as f64;
    let bottom = top + PLOT;
    let mut canvas = Canvas::new(WIDTH, bottom + 126.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    let colours = colours::of_arms(results);
    for ((x, y, label), line) in legend.iter().zip(&colours) {
        canvas.sample((*x, *y - 6.0), *line);
        canvas.text((*x + 44.0, *y), label, Style::new(LABEL, INK));
    }
    let (left, right, gap) = (124.0, WIDTH - 36.0, 54.0);
    let width = (right - left - gap * (splits.len() - 1) as f64) / splits.len() as f64;
    for (index, (split, word)) in splits.iter().enumerate() {
        let left = left + index as f64 * (width + gap);
        let right = left + width;
        let x = Scale::new(0.0, last, false, left, right);
        let panel = Panel { left, top, right, bottom, x, y: Scale::new(low, high, log, bottom, top) };
        panel.y_axis(&mut canvas, (index == 0).then_some(label.as_str()), index == 0);
        if let Some(threshold) = threshold.filter(|_| *split != Split::Train) {
            panel.level(&mut canvas, threshold, &format!("solved at {threshold}"));
        }
        let of_split = |curves: &[Curve]| curves.iter().find(|curve| curve.split == *split).cloned();
        let arms: Vec<_> = results.arms.iter().map(|arm| of_split(&arm.curves)).zip(&colours).collect();
        for (curve, line) in &arms {
            bands(&mut canvas, &panel, curve.as_ref(), kind, line.colour, results.arms.len() <= MOST_WITH_RANGE);
        }
        for (curve, style) in &arms {
            let points = curve.iter().flat_map(|curve| &curve.points);
            let line: Vec<_> = points
                .filter_map(|point| Some(panel.at(point.step as f64, point.bands.get(&kind.key)?.mean)))
                .collect();
            canvas.arm_line(&line, **style, 3.0);
        }
        panel.x_axis(&mut canvas, "optimiser steps", None);
        let heading = Style::new(LABEL, INK).bold().anchored(Anchor::Middle);
        canvas.text(((left + right) / 2.0, top - 14.0), word, heading);
    }
    canvas.note(bottom + 92.0, &note(results));
    Some(canvas.finish())
}

/// The middle half, and where few arms leave room for it, minimum to maximum.
fn bands(canvas: &mut Canvas, panel: &Panel, curve: Option<&Curve>, kind: &Quantity, colour: &str, range: bool) {
    let points = curve.map(|curve| curve.points.as_slice()).unwrap_or_default();
    let measured: Vec<(f64, &Band)> =
        points.iter().filter_map(|point| Some((point.step as f64, point.bands.get(&kind.key)?))).collect();
    type Edge = fn(&Band) -> f64;
    let edges: [(Edge, Edge, f64); 2] = [
        (|band| band.minimum, |band| band.maximum, 0.12),
        (|band| band.lower_quartile, |band| band.upper_quartile, 0.22),
    ];
    for (low, high, opacity) in edges.into_iter().skip(usize::from(!range)) {
        let there = measured.iter().map(|(step, band)| panel.at(*step, high(band)));
        let back = measured.iter().rev().map(|(step, band)| panel.at(*step, low(band)));
        canvas.polygon(&there.chain(back).collect::<Vec<_>>(), colour, opacity);
    }
}

/// Where each arm's entry stands, and the number of rows.
fn legend(results: &Results) -> (Vec<(f64, f64, String)>, usize) {
    let (mut x, mut row) = (40.0, 0);
    let mut entries = vec![];
    for arm in &results.arms {
        let width = 44.0 + text_width(&arm.label, LABEL) + 40.0;
        if x + width > WIDTH && x > 40.0 {
            (x, row) = (40.0, row + 1);
        }
        entries.push((x, 84.0 + 30.0 * row as f64, arm.label.clone()));
        x += width;
    }
    (entries, row + 1)
}

fn note(results: &Results) -> String {
    let runs = results.arms.iter().map(|arm| arm.finished + arm.diverged).max().unwrap_or_default();
    let diverged: usize = results.arms.iter().map(|arm| arm.diverged).sum();
    let averaged = results.arms.iter().flat_map(|arm| &arm.curves).map(|curve| curve.averaged_steps).max();
    let range = if results.arms.len() <= MOST_WITH_RANGE { ", and smallest to largest" } else { "" };
    let of = if runs == 1 { "seed" } else { "seeds" };
    let mut note = format!("Line: mean over {runs} {of}. Bands: middle half{range}.");
    if let Some(steps) = averaged.filter(|steps| *steps > 1) {
        note += &format!(" Training: means of {steps} logged steps.");
    }
    if diverged > 0 {
        let (of, stands) = if diverged == 1 { ("run", "stands") } else { ("runs", "stand") };
        note += &format!(" {diverged} {of} diverged, and {stands} at the penalty from there on.");
    }
    note
}
