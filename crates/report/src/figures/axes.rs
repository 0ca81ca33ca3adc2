//! Scales, ticks, and the frame of a panel.

use super::canvas::{Anchor, Canvas, FAINT, GREY, INK, NOTE, Style};

/// From numbers to positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// `low` at `from`, `high` at `to`. With `log` both must be above 0. Equal ends are moved apart.
    pub fn new(low: f64, high: f64, log: bool, from: f64, to: f64) -> Self {
        let (low, high) = match (low < high, log) {
            (true, _) => (low, high),
            (false, true) => (low / 2.0, low * 2.0),
            (false, false) => (low - 0.5, low + 0.5),
        };
        Self { low, high, log, from, to }
    }

    /// The position of a number; one beyond an end is drawn at that end.
    pub fn at(self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Round numbers within the ends, about `count` of them.
    pub fn ticks(self, count: usize) -> Vec<f64> {
        if !self.log {
            return linear_ticks(self.low, self.high, count);
        }
        let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
        let inside = |value: &f64| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(value);
        let with = |steps: &[f64]| -> Vec<f64> {
            let values = decades.clone().flat_map(|decade| steps.iter().map(move |step| power_of_ten(*step, decade)));
            values.filter(inside).collect()
        };
        let choices = [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0]].map(with);
        let enough = choices.iter().position(|ticks| ticks.len() >= count.min(4));
        enough.map_or_else(|| linear_ticks(self.low, self.high, count), |index| choices[index].clone())
    }
}

/// `step · 10^decade`, as the nearest double to its decimal.
fn power_of_ten(step: f64, decade: i32) -> f64 {
    format!("{step}e{decade}").parse().unwrap_or(step)
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let raw = (high - low) / count.max(1) as f64;
    let decade = raw.log10().floor();
    let unit = 10f64.powf(decade);
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|step| step * unit).find(|step| *step >= raw * 0.999);
    let step = step.unwrap_or(10.0 * unit);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).take(50).map(|index| index as f64 * step).collect()
}

/// A number as an axis shows it.
pub(super) fn shown(value: f64) -> String {
    // Ticks are multiples of round steps: what lies beyond the tenth digit is rounding.
    let value = format!("{value:.9e}").parse::<f64>().unwrap_or(value);
    match value.abs() {
        0.0 => "0".into(),
        size if !(1e-4..1e7).contains(&size) => format!("{value:e}").replace('-', "−"),
        size if size >= 10_000.0 && value.fract() == 0.0 => {
            let thousands = value / 1000.0;
            if thousands.fract() == 0.0 { format!("{thousands}k") } else { format!("{value}") }
        }
        _ => format!("{value}").replace('-', "−"),
    }
}

/// Low and high of numbers with a margin of 4 % on either side; `None` without any.
pub(super) fn extent(values: impl IntoIterator<Item = f64>, log: bool) -> Option<(f64, f64)> {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for value in values.into_iter().filter(|value| value.is_finite() && (!log || *value > 0.0)) {
        (low, high) = (low.min(value), high.max(value));
    }
    if low > high {
        return None;
    }
    if log {
        let reach = (high / low).powf(0.04).max(1.05);
        return Some((low / reach, high * reach));
    }
    let reach = if high > low { 0.04 * (high - low) } else { 0.02 * high.abs().max(0.5) };
    Some((low - reach, high + reach))
}

/// Sizes of text.
pub(super) const TITLE: f64 = 25.0;
pub(super) const LABEL: f64 = 19.0;
pub(super) const TICK: f64 = 17.0;

/// A panel with its two scales.
#[derive(Clone, Copy)]
pub(super) struct Panel {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
    pub x: Scale,
    pub y: Scale,
}

impl Panel {
    /// Grid lines and numbers along y.
    pub fn y_axis(&self, canvas: &mut Canvas, label: Option<&str>, numbers: bool) {
        let ticks = self.y.ticks(6);
        for tick in &ticks {
            let y = self.y.at(*tick);
            canvas.line((self.left, y), (self.right, y), FAINT, 1.0, "");
            if numbers {
                let style = Style::new(TICK, INK).anchored(Anchor::End);
                canvas.text((self.left - 10.0, y + TICK * 0.36), &shown(*tick), style);
            }
        }
        if let Some(label) = label {
            let at = (self.left - 92.0, (self.top + self.bottom) / 2.0);
            canvas.turned(at, label, Style::new(LABEL, INK).anchored(Anchor::Middle), -90.0);
        }
    }

    /// Line, ticks, numbers and label along x, at `ticks` or at round numbers.
    pub fn x_axis(&self, canvas: &mut Canvas, label: &str, ticks: Option<&[f64]>) {
        canvas.line((self.left, self.bottom), (self.right, self.bottom), INK, 1.5, "");
        let room = ((self.right - self.left) / 95.0).clamp(3.0, 9.0) as usize;
        let ticks = ticks.map_or_else(|| self.x.ticks(room), <[f64]>::to_vec);
        for tick in ticks {
            let x = self.x.at(tick);
            canvas.line((x, self.bottom), (x, self.bottom + 6.0), INK, 1.5, "");
            let style = Style::new(TICK, INK).anchored(Anchor::Middle);
            canvas.text((x, self.bottom + 25.0), &shown(tick), style);
        }
        let at = ((self.left + self.right) / 2.0, self.bottom + 54.0);
        canvas.text(at, label, Style::new(LABEL, INK).anchored(Anchor::Middle));
    }

    /// A dashed line across, with a word above it at the left.
    pub fn level(&self, canvas: &mut Canvas, value: f64, word: &str) {
        let y = self.y.at(value);
        canvas.line((self.left, y), (self.right, y), GREY, 1.5, "6 5");
        canvas.text((self.left + 8.0, y - 6.0), word, Style::new(NOTE, GREY));
    }

    /// A point.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let ticks = |low, high, log| Scale::new(low, high, log, 0.0, 1.0).ticks(6);
        let texts = |low, high| ticks(low, high, false).into_iter().map(shown).collect::<Vec<String>>().join(" ");
        assert_eq!(texts(0.0, 1.0), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(texts(-0.011, 0.43), "0 0.1 0.2 0.3 0.4");
        assert_eq!(ticks(0.03, 2.0, true), [0.03, 0.1, 0.3, 1.0]);
        assert_eq!(ticks(0.3, 2.0, true), [0.5, 1.0, 1.5, 2.0]);
        assert_eq!(ticks(1e-5, 1.0, true).len(), 6);
        assert_eq!(shown(20_000.0), "20k");
        assert_eq!(shown(-0.30000000000000004), "−0.3");
    }

    #[test]
    fn positions_stay_within_the_panel_whatever_the_number() {
        let scale = Scale::new(1e-3, 1.0, true, 100.0, 200.0);
        for (value, expected) in [(1e-3, 100.0), (1.0, 200.0), (0.0, 100.0), (f64::INFINITY, 200.0)] {
            assert!((scale.at(value) - expected).abs() < 1e-9, "{value}");
        }
        let flat = Scale::new(0.5, 0.5, false, 0.0, 1.0);
        assert_eq!(flat.at(0.5), 0.5);
        assert_eq!(extent([], false), None);
        assert_eq!(extent([0.0, -1.0], true), None);
    }
}
