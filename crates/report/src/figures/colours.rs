//! One style an arm: colour, dashes and marks, told apart by colour-blind eyes too, and no two alike.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::results::Results;

/// Okabe and Ito 2008, "Color universal design", without yellow, which is too faint for lines on white.
const DISTINCT: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];

/// Matplotlib's viridis (Smith and van der Walt 2015) from 0 to 0.85 in eighths: an order that reads as one.
const ORDERED: [&str; 9] =
    ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151"];

/// As SVG's `stroke-dasharray`.
const DASHES: [&str; 4] = ["", "9 5", "3 4", "12 4 3 4"];

/// What stands on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mark {
    None,
    Circle,
    Square,
}

const MARKS: [Mark; 3] = [Mark::None, Mark::Circle, Mark::Square];

/// Dashes and marks that can be told apart: so many levels, and with the distinct colours so many arms.
const LINES: usize = DASHES.len() * MARKS.len();

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    pub colour: &'static str,
    pub dash: &'static str,
    pub mark: Mark,
}

impl Line {
    /// The line `index` of one colour.
    fn of(colour: &'static str, index: usize) -> Self {
        Self { colour, dash: DASHES[index % DASHES.len()], mark: MARKS[index / DASHES.len() % MARKS.len()] }
    }
}

/// The style of a figure of one arm alone.
pub(crate) const FIRST: Line = Line { colour: DISTINCT[0], dash: "", mark: Mark::None };

/// A style for each arm, in their order: along a sweep the colour is the number, and dashes and marks are the level of the
/// other keys. None is there twice up to 84 arms.
pub(crate) fn of_arms(results: &Results) -> Vec<Line> {
    let places: Option<Vec<(f64, String)>> = match &results.sweep {
        Some(_) => {
            let place = |arm: &crate::results::ArmResult| Some((arm.sweep_value?, format!("{:?}", arm.level)));
            results.arms.iter().map(place).collect()
        }
        None => None,
    };
    places.and_then(|places| along_a_sweep(&places)).unwrap_or_else(|| distinct(results.arms.len()))
}

fn distinct(count: usize) -> Vec<Line> {
    (0..count).map(|index| Line::of(DISTINCT[index % DISTINCT.len()], index / DISTINCT.len())).collect()
}

/// `None` where there are too few or too many numbers or levels, or an arm has the place of another.
fn along_a_sweep(places: &[(f64, String)]) -> Option<Vec<Line>> {
    let mut values: Vec<f64> = places.iter().map(|(value, _)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let mut levels: Vec<&String> = vec![];
    for (_, level) in places {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    if places.len() < 3 || !(2..=ORDERED.len()).contains(&values.len()) || levels.len() > LINES {
        return None;
    }
    let line = |(value, level): &(f64, String)| {
        let rank = values.iter().position(|other| other == value)?;
        let index = levels.iter().position(|other| *other == level)?;
        Some(Line::of(ORDERED[rank * (ORDERED.len() - 1) / (values.len() - 1)], index))
    };
    let lines: Vec<Line> = places.iter().map(line).collect::<Option<_>>()?;
    let different: BTreeSet<&Line> = lines.iter().collect();
    (different.len() == lines.len()).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_differ(lines: &[Line]) -> bool {
        lines.iter().collect::<BTreeSet<_>>().len() == lines.len()
    }

    /// tensorboard#1139: 36 arms shared 28 line styles.
    #[test]
    fn tensorboard_1139_no_style_is_there_twice() {
        for count in [1, 7, 8, 28, 29, 36, 64, 84] {
            assert!(all_differ(&distinct(count)), "{count}");
        }
        // Layers by heads by registers.
        let grid = |levels: usize, values: usize| -> Vec<(f64, String)> {
            (0..levels).flat_map(|level| (0..values).map(move |value| (value as f64, level.to_string()))).collect()
        };
        for (levels, values) in [(9, 4), (12, 3), (1, 9), (7, 9), (12, 9)] {
            let lines = along_a_sweep(&grid(levels, values)).unwrap();
            assert!(all_differ(&lines) && lines.len() == levels * values, "{levels} {values}");
        }
        // One colour a number, whatever the level.
        let lines = along_a_sweep(&grid(3, 4)).unwrap();
        assert!(lines[0].colour == lines[4].colour && lines[0].colour != lines[1].colour);
        // Too much to tell apart so, or two arms at one place.
        assert_eq!((along_a_sweep(&grid(13, 3)), along_a_sweep(&grid(2, 10))), (None, None));
        assert_eq!(along_a_sweep(&[(1.0, String::new()), (1.0, String::new()), (2.0, String::new())]), None);
    }
}
