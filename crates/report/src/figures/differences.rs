//! Paired differences: one dot a seed, the deciding interval, the margin.

use super::{
    axes::{LABEL, Panel, Scale, TITLE, extent},
    canvas::{Anchor, Canvas, GREY, INK, NOTE, Style, text_width},
    colours,
};
use crate::{
    results::Results,
    text::{capital, percent, wrapped},
};
use statistics::{Statement, TwoArms, outcome::Direction, pairs::ScoredPair};

const WIDTH: f64 = 1280.0;
/// Height of one arm's row, and where there are many.
const ROW: f64 = 118.0;
const LOW_ROW: f64 = 72.0;

/// `None` before a decision is due, and where no pair is complete.
pub(super) fn draw(results: &Results) -> Option<String> {
    let verdicts = &results.findings.verdicts;
    let comparisons: Vec<&TwoArms> = verdicts.iter().map(|verdict| &verdict.found).collect();
    let differences = || comparisons.iter().flat_map(|comparison| &comparison.pairs).map(difference);
    differences().next()?;
    let first = comparisons.first()?;
    let ends = comparisons.iter().filter_map(|comparison| interval(comparison)).flat_map(|[low, _, high]| [low, high]);
    let margin = results.metric.margin;
    let (low, high) = extent(differences().chain(ends).chain([0.0, -1.6 * margin, 1.6 * margin]), false)?;
    let height = if comparisons.len() > 12 { LOW_ROW } else { ROW };

    let is_one_baseline = verdicts.iter().all(|verdict| verdict.against == verdicts[0].against);
    let baseline = if is_one_baseline { first.baseline.name.as_str() } else { "its baseline" };
    let metric = results.metric.words();
    let title = match comparisons.as_slice() {
        [only] => format!("{} minus {baseline}: {metric}, pair by pair", only.arm.name),
        _ => format!("Each arm minus {baseline}: {metric}, pair by pair"),
    };
    let sentence = match (&results.repetitions, verdicts.as_slice()) {
        (Some(repetitions), _) => format!(
            "All pairs of {} repetitions together, of which {} found a difference.",
            repetitions.each.len(),
            repetitions.better + repetitions.worse
        ),
        (None, [only]) => capital(&only.sentence),
        (None, _) => String::new(),
    };
    let lines = wrapped(&sentence, 122);
    let top = 92.0 + 26.0 * lines.len() as f64;
    let bottom = top + height * comparisons.len() as f64;
    let mut canvas = Canvas::new(WIDTH, bottom + 134.0, &title);
    canvas.text((40.0, 46.0), &title, Style::new(TITLE, INK).bold());
    for (index, line) in lines.iter().enumerate() {
        canvas.text((40.0, 78.0 + 24.0 * index as f64), line, Style::new(LABEL - 2.0, GREY));
    }

    let names = comparisons.iter().map(|comparison| text_width(&comparison.arm.name, LABEL));
    let left = 64.0 + names.fold(60.0, f64::max);
    let right = WIDTH - 176.0;
    let x = Scale::new(low, high, false, left, right);
    let panel = Panel { left, top, right, bottom, x, y: Scale::new(0.0, 1.0, false, bottom, top) };
    if margin > 0.0 {
        let (from, to) = (x.at(-margin), x.at(margin));
        canvas.rectangle((from, top), (to - from, bottom - top), "#f0c987", 0.45);
        let style = Style::new(NOTE, "#8a6314").anchored(Anchor::Middle);
        canvas.text((x.at(0.0), top - 8.0), &format!("margin ± {margin}"), style);
    }
    for tick in x.ticks(8) {
        canvas.line((x.at(tick), top), (x.at(tick), bottom), "#ececec", 1.0, "");
    }
    canvas.line((x.at(0.0), top), (x.at(0.0), bottom), INK, 1.5, "");
    let colours = colours::of_arms(results);
    for (index, verdict) in verdicts.iter().enumerate() {
        let own = results.arms.iter().position(|arm| arm.name == verdict.arm);
        let colour = own.and_then(|own| colours.get(own)).map_or(INK, |line| line.colour);
        row(&mut canvas, &panel, top + height * (index as f64 + 0.5), &verdict.found, colour);
    }
    panel.x_axis(&mut canvas, "", None);
    let (worse, better) = match results.metric.scale.direction {
        Direction::HigherIsBetter => (left, right),
        Direction::LowerIsBetter => (right, left),
    };
    let arm = if let [only] = comparisons.as_slice() { &only.arm.name } else { "the arm" };
    let side = |at: f64, name: &str| {
        if at == left {
            (Anchor::Start, format!("← {name} better"))
        } else {
            (Anchor::End, format!("{name} better →"))
        }
    };
    for (at, name) in [(worse, baseline), (better, arm)] {
        let (anchor, text) = side(at, name);
        canvas.text((at, bottom + 56.0), &text, Style::new(LABEL - 1.0, INK).anchored(anchor));
    }
    let middle = ((left + right) / 2.0, bottom + 56.0);
    canvas.text(middle, &format!("difference in {metric}"), Style::new(LABEL, INK).anchored(Anchor::Middle));
    canvas.note(bottom + 98.0, &note(results));
    Some(canvas.finish())
}

/// Arm − baseline.
fn difference(pair: &ScoredPair) -> f64 {
    pair.arm - pair.baseline
}

/// Low end, mean and high end of arm − baseline: the interval that decides.
fn interval(comparison: &TwoArms) -> Option<[f64; 3]> {
    let (limits, mean) = (comparison.interval?, comparison.estimate?.mean);
    Some(match comparison.scale.direction {
        Direction::HigherIsBetter => [limits.low, mean, limits.high],
        Direction::LowerIsBetter => [-limits.high, -mean, -limits.low],
    })
}

fn row(canvas: &mut Canvas, panel: &Panel, middle: f64, comparison: &TwoArms, colour: &str) {
    let name = Style::new(LABEL, INK).anchored(Anchor::End);
    canvas.text((panel.left - 18.0, middle + 6.0), &comparison.arm.name, name);
    let pairs = comparison.pairs.len();
    let radius = if pairs > 40 { 4.0 } else { 7.0 };
    for (index, pair) in comparison.pairs.iter().enumerate() {
        // Spread in a fixed pattern, so that equal differences are all seen.
        let spread = (index * 7 % 11) as f64 / 10.0 - 0.5;
        let difference = difference(pair);
        let at = (panel.x.at(difference), middle + 20.0 + 36.0 * spread);
        let words = format!("seed {}: {difference:+.4}", pair.seed).replace('-', "−");
        if pair.arm_diverged || pair.baseline_diverged {
            canvas.told_ring(at, radius, colour, &words);
        } else {
            canvas.told_circle(at, radius, colour, 0.75, &words);
        }
    }
    if let Some(ends) = interval(comparison) {
        let y = middle - 26.0;
        let [low, mean, high] = ends.map(|end| panel.x.at(end));
        canvas.line((low, y), (high, y), INK, 4.0, "");
        for end in [low, high] {
            canvas.line((end, y - 9.0), (end, y + 9.0), INK, 3.0, "");
        }
        let diamond = [(mean, y - 10.0), (mean + 8.0, y), (mean, y + 10.0), (mean - 8.0, y)];
        canvas.polygon(&diamond, INK, 1.0);
    }
    let word = match comparison.statement {
        Statement::Better => "better",
        Statement::Worse => "worse",
        Statement::Equivalent => "equivalent",
        Statement::NoDifferenceSeen => "none seen",
        Statement::Undecided { .. } => "undecided",
    };
    canvas.text((panel.right + 26.0, middle + 6.0), word, Style::new(LABEL, INK).bold());
}

fn note(results: &Results) -> String {
    let found = || results.findings.verdicts.iter().map(|verdict| &verdict.found);
    let levels: Vec<f64> = found().filter_map(|found| found.interval).map(|interval| interval.level).collect();
    let level = levels.first().copied().unwrap_or_default();
    let arms = found().map(|found| found.rules.arms).max().unwrap_or(2);
    let wide = if arms > 2 { format!(", wide enough for all pairs of {arms} arms") } else { String::new() };
    let diverged = found().flat_map(|found| &found.pairs).any(|pair| pair.arm_diverged || pair.baseline_diverged);
    let rings = if diverged { " Rings: a run of the pair diverged." } else { "" };
    let level = percent(level);
    format!("Dots: one pair of runs each. Bar: mean with its paired {level} % interval{wide}.{rings}")
}
