//! How many are needed, as a map over the other keys.

use statistics::{grid::Level, sweep::SweepAnswer};

use super::{
    axes::{LABEL, TICK, TITLE},
    canvas::{Anchor, Canvas, GREY, INK, Style, text_width},
};
use crate::{
    results::{Results, SweepAtLevel},
    text::{by_number, capital, key_name},
};

/// Size of a cell.
const CELL: (f64, f64) = (124.0, 62.0);
/// Light enough for dark text: few to many.
const SHADES: [&str; 6] = ["#e6f0f8", "#c9e0ef", "#a5cce3", "#7fb5d5", "#5c9dc6", "#f4c9a8"];

/// `None` without sweeps at several levels.
pub(super) fn draw(results: &Results) -> Option<String> {
    let (swept, sweeps) = (results.sweep.as_ref()?, &results.findings.sweeps);
    if sweeps.len() < 2 {
        return None;
    }
    let map = Map::of(sweeps)?;
    let title = format!("{} needed: {}", capital(&swept.unit.many), results.name);
    let names = map.rows.iter().map(|row| text_width(row, LABEL));
    let left = 64.0 + names.fold(40.0, f64::max);
    let top = 128.0;
    let width = (left + CELL.0 * map.columns.len() as f64 + 44.0).max(90.0 + text_width(&title, TITLE));
    let bottom = top + CELL.1 * map.rows.len() as f64;
    let mut canvas = Canvas::new(width, bottom + 76.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    canvas.text((left, 84.0), &map.across, Style::new(TICK, GREY));
    let middle = |index: usize, size: f64| size * (index as f64 + 0.5);
    for (index, column) in map.columns.iter().enumerate() {
        let at = (left + middle(index, CELL.0), top - 12.0);
        canvas.text(at, column, Style::new(LABEL, INK).anchored(Anchor::Middle));
    }
    let mut values: Vec<f64> = sweeps.iter().map(needed).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    for (down, row) in map.rows.iter().enumerate() {
        let y = top + CELL.1 * down as f64;
        canvas.text((left - 16.0, y + CELL.1 / 2.0 + 6.0), row, Style::new(LABEL, INK).anchored(Anchor::End));
        for across in 0..map.columns.len() {
            let Some(sweep) = map.cells[down][across] else { continue };
            let rank = values.iter().position(|value| *value == needed(sweep)).unwrap_or_default();
            let shade = SHADES.len() - 2;
            let shade = if values.len() < 2 { 0 } else { rank * shade / (values.len() - 1) };
            let is_open = !sweep.found.answer.is_decided();
            let shade = if is_open { SHADES[SHADES.len() - 1] } else { SHADES[shade] };
            let x = left + CELL.0 * across as f64;
            canvas.rectangle((x + 1.5, y + 1.5), (CELL.0 - 3.0, CELL.1 - 3.0), shade, 1.0);
            let at = (x + CELL.0 / 2.0, y + CELL.1 / 2.0 + 8.0);
            canvas.text(at, &brief(sweep), Style::new(TITLE - 3.0, INK).bold().anchored(Anchor::Middle));
        }
    }
    let note = "Blue: the smallest number that is enough, the darker the more. Orange: not decided.";
    canvas.note(bottom + 44.0, note);
    Some(canvas.finish())
}

/// What the colour shows.
fn needed(sweep: &SweepAtLevel) -> f64 {
    match sweep.found.answer {
        SweepAnswer::Number { value } => value,
        SweepAnswer::Range { high, .. } => high,
        SweepAnswer::NoneShown { .. } | SweepAnswer::TooFewPairs { .. } => f64::MAX,
    }
}

/// Such as "4", "2 to 8", "≥ 4", "?".
fn brief(sweep: &SweepAtLevel) -> String {
    match sweep.found.answer {
        SweepAnswer::NoneShown { at_least } => format!("≥ {at_least}"),
        SweepAnswer::TooFewPairs { .. } => "?".into(),
        _ => sweep.words.clone(),
    }
}

/// Two keys cross; further ones stand beside the first.
struct Map<'a> {
    /// What the columns are.
    across: String,
    columns: Vec<String>,
    rows: Vec<String>,
    /// By row and column.
    cells: Vec<Vec<Option<&'a SweepAtLevel>>>,
}

impl<'a> Map<'a> {
    fn of(sweeps: &'a [SweepAtLevel]) -> Option<Self> {
        // The last key goes across, the others down.
        let key = sweeps.first()?.level.keys().next_back()?.clone();
        let column = |level: &Level| level.get(&key).cloned().unwrap_or_default();
        let row = |level: &Level| {
            let rest = level.iter().filter(|(other, _)| **other != key);
            rest.map(|(other, value)| format!("{} {value}", key_name(other))).collect::<Vec<_>>().join(", ")
        };
        let sorted = |of: &dyn Fn(&Level) -> String| {
            let mut names: Vec<String> = sweeps.iter().map(|sweep| of(&sweep.level)).collect();
            names.sort_by(|a, b| {
                let number = |name: &str| name.rsplit(' ').next().unwrap_or_default().to_string();
                by_number(&number(a), &number(b)).then_with(|| a.cmp(b))
            });
            names.dedup();
            names
        };
        let (columns, rows) = (sorted(&column), sorted(&row));
        let cell = |down: &String, across: &String| {
            sweeps.iter().find(|sweep| row(&sweep.level) == *down && column(&sweep.level) == *across)
        };
        let cells = rows.iter().map(|down| columns.iter().map(|across| cell(down, across)).collect()).collect();
        Some(Self { across: key_name(&key).replace('_', " "), columns, rows, cells })
    }
}
