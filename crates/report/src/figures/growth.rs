//! Time and memory of a training step over one of the model's sizes, both axes logarithmic.

use super::{
    Figure,
    axes::{LABEL, Panel, Scale, TITLE, extent},
    canvas::{Anchor, Canvas, GREY, INK, Style},
    colours::FIRST,
};
use crate::text::capital;

/// What a step took at several values of one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// The figure's file name without the ending.
    pub name: &'static str,
    /// What grows, as the axis says it.
    pub label: String,
    /// What stayed, and where it was measured: a sentence.
    pub note: String,
    /// Ascending.
    pub points: Vec<GrowthPoint>,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrowthPoint {
    /// The size, above 0.
    pub value: f64,
    /// Median of a step.
    pub milliseconds: f64,
    /// Lower and upper quartile.
    pub quartiles: [f64; 2],
    /// Analytic FLOPs of a step.
    pub flops: f64,
    /// Largest memory held, in bytes, where it is known.
    pub memory: Option<f64>,
}

const WIDTH: f64 = 1280.0;
const TOP: f64 = 118.0;
const BOTTOM: f64 = TOP + 420.0;
const MIB: f64 = 1048576.0;

/// Two panels, time and memory; `None` without a point.
///
/// The dashed line is what the time would be at the fastest rate of all points: how far it lies below the measured one is
/// what is lost there.
pub fn growth(growth: &Growth) -> Option<Figure> {
    let points = &growth.points;
    let fastest = points.iter().map(|point| point.milliseconds / point.flops).fold(f64::INFINITY, f64::min);
    let ideal: Vec<(f64, f64)> = points.iter().map(|point| (point.value, point.flops * fastest)).collect();
    let times: Vec<(f64, f64)> = points.iter().map(|point| (point.value, point.milliseconds)).collect();
    let memory: Vec<(f64, f64)> = points.iter().filter_map(|point| Some((point.value, point.memory? / MIB))).collect();
    let (from, to) = extent(points.iter().map(|point| point.value), true)?;

    let title = format!("{}: time and memory of a training step", capital(&growth.label));
    let mut canvas = Canvas::new(WIDTH, BOTTOM + 126.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    let ticks: Vec<f64> = points.iter().map(|point| point.value).collect();
    let heading = Style::new(LABEL, INK).bold().anchored(Anchor::Middle);
    let panels = [("milliseconds a step", "time", &times), ("peak memory (MiB)", "memory", &memory)];
    for (index, (label, word, line)) in panels.into_iter().enumerate() {
        let left = 132.0 + 610.0 * index as f64;
        let right = left + 494.0;
        let also = ideal.iter().filter(|_| index == 0).map(|(_, time)| *time);
        let also = also.chain(points.iter().filter(|_| index == 0).flat_map(|point| point.quartiles));
        let Some((low, high)) = extent(line.iter().map(|(_, value)| *value).chain(also), true) else { continue };
        let x = Scale::new(from, to, true, left, right);
        let panel = Panel { left, top: TOP, right, bottom: BOTTOM, x, y: Scale::new(low, high, true, BOTTOM, TOP) };
        panel.y_axis(&mut canvas, Some(label), true);
        let placed = |line: &[(f64, f64)]| line.iter().map(|(x, y)| panel.at(*x, *y)).collect::<Vec<_>>();
        if index == 0 {
            canvas.polyline(&placed(&ideal), GREY, 2.0, "6 5");
            for point in points {
                let [low, high] = point.quartiles.map(|value| panel.at(point.value, value));
                canvas.line(low, high, FIRST.colour, 3.0, "");
            }
        }
        canvas.polyline(&placed(line), FIRST.colour, 3.0, "");
        placed(line).into_iter().for_each(|at| canvas.circle(at, 6.0, FIRST.colour, 1.0));
        panel.x_axis(&mut canvas, &growth.label, Some(&ticks));
        canvas.text(((left + right) / 2.0, TOP - 14.0), word, heading);
    }
    let dashes = "Bars: quartiles. Dashed: the same FLOPs at the fastest rate of these points.";
    canvas.note(BOTTOM + 92.0, &format!("{} {dashes}", growth.note));
    Some(Figure { name: growth.name.to_string(), section: None, svg: canvas.finish() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: f64, milliseconds: f64, memory: Option<f64>) -> GrowthPoint {
        let quartiles = [milliseconds * 0.9, milliseconds * 1.2];
        GrowthPoint { value, milliseconds, quartiles, flops: 1e6 * value, memory }
    }

    fn drawn(points: Vec<GrowthPoint>) -> Option<Figure> {
        growth(&Growth { name: "growth-heads", label: "heads".into(), note: "layers 2.".into(), points })
    }

    #[test]
    fn a_figure_has_a_dot_for_each_number_and_renders() {
        let points = vec![point(1.0, 5.0, Some(1e8)), point(2.0, 5.5, None), point(4.0, 40.0, Some(3e8))];
        let figure = drawn(points).unwrap();
        assert_eq!(figure.name, "growth-heads");
        assert_eq!(figure.svg.matches("<circle").count(), 5);
        assert!(!figure.svg.contains("NaN") && !figure.svg.contains("inf"), "{}", figure.svg);
        assert!(roxmltree::Document::parse(&figure.svg).is_ok());
    }

    #[test]
    fn without_memory_there_is_one_panel_and_without_points_no_figure() {
        let svg = drawn(vec![point(1.0, 5.0, None), point(2.0, 9.0, None)]).unwrap().svg;
        assert!(svg.contains("milliseconds a step") && !svg.contains("peak memory"));
        assert_eq!(drawn(vec![]), None);
        assert!(drawn(vec![point(8.0, 5.0, None)]).is_some());
    }
}
