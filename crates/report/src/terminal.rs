//! A result in a terminal: the verdict first, then a table, small curves, what the arms share, and where the files are.

mod heads;

use std::path::Path;

use data::{Split, metrics::SplitMetric};
use statistics::{outcome::StepsToThreshold, verdict::Verdict};

use crate::{
    limits::PROBLEMS,
    results::{ArmResult, CurvePoint, Results},
    text::aligned,
};

pub use heads::{table as heads_table, used as heads_used};

/// Columns of a small curve.
const CURVE: usize = 48;

/// The result as text of some 30 lines, none with a line end of its own at the end. `folder` is where the files are.
pub fn summary(results: &Results, folder: &Path) -> String {
    format!("{}\n\n{}", answer(results), files(folder))
}

/// [`summary`] of a result that is in no files.
pub fn answer(results: &Results) -> String {
    let mut sections = vec![head(results), table(results), curves(results), tuning(results), stability(results)];
    sections.push(format!("matching\n{}", indented(&results.ledger.to_string())));
    sections.push(problems(results));
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

fn head(results: &Results) -> String {
    let mut lines = vec![match &results.about.question {
        Some(question) => format!("{}: {question}", results.name),
        None => results.name.clone(),
    }];
    if let Some(prediction) = &results.about.prediction {
        lines.push(format!("predicted: {prediction}"));
    }
    lines.push(String::new());
    match &results.repetitions {
        Some(repetitions) => {
            let wrong = repetitions.better + repetitions.worse;
            let (all, equivalent, undecided) = (repetitions.each.len(), repetitions.equivalent, repetitions.undecided);
            lines.push(format!(
                "  {all} repetitions: {wrong} found a difference, {equivalent} equivalent, {undecided} undecided"
            ));
            let differs =
                repetitions.each.iter().filter(|each| matches!(each.verdict, Verdict::Better | Verdict::Worse));
            lines.extend(differs.map(|each| format!("  {}", each.sentence)));
        }
        None => lines.extend(results.sentences.iter().map(|sentence| format!("  {sentence}"))),
    }
    if let Some(why) = &results.why_seeds {
        lines.push(format!("  few seeds: {why}"));
    }
    lines.join("\n")
}

fn table(results: &Results) -> String {
    let metric = results.metric.name.words();
    let threshold = results.metric.threshold.map(|threshold| threshold.to_string());
    let mut rows = vec![vec![
        metric,
        "runs".into(),
        "mean".into(),
        "sd".into(),
        "IQM".into(),
        "solved".into(),
        threshold.map_or(String::new(), |threshold| format!("steps to {threshold}")),
    ]];
    for arm in &results.arms {
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.4}"));
        let description = arm.description.as_ref();
        let mut runs = arm.finished.to_string();
        for (count, what) in [(arm.diverged, "diverged"), (arm.missing, "missing")] {
            if count > 0 {
                runs += &format!(" + {count} {what}");
            }
        }
        rows.push(vec![
            arm.label.clone() + if arm.name == results.baseline { " (baseline)" } else { "" },
            runs,
            number(description.map(|description| description.mean)),
            number(description.and_then(|description| description.standard_deviation)),
            number(description.map(|description| description.interquartile_mean)),
            arm.solve_rate.as_ref().map_or(String::new(), |rate| format!("{} of {}", rate.successes, rate.trials)),
            arm.steps_to_threshold.as_ref().map_or(String::new(), steps),
        ]);
    }
    aligned(&rows)
}

fn steps(steps: &StepsToThreshold) -> String {
    match steps.median {
        Some(median) if steps.never_reached > 0 => format!("{median} ({} never)", steps.never_reached),
        Some(median) => median.to_string(),
        None if steps.reached == 0 => "never".into(),
        None => format!("never in {} of {}", steps.never_reached, steps.first_step.len()),
    }
}

/// The mean validation curve of every arm, on one scale.
fn curves(results: &Results) -> String {
    let shown = SplitMetric { split: Split::Validation, ..results.metric.name };
    let points = |arm: &ArmResult| -> Vec<(u64, f64)> {
        let curve = arm.curves.iter().find(|curve| curve.split == Split::Validation);
        let points = curve.map(|curve| curve.points.as_slice()).unwrap_or_default();
        let mean = |point: &CurvePoint| Some((point.step, point.bands.get(shown.kind)?.mean));
        points.iter().filter_map(mean).collect()
    };
    let all: Vec<(u64, f64)> = results.arms.iter().flat_map(points).collect();
    let low = all.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let last = all.iter().map(|point| point.0).max().unwrap_or_default();
    if all.is_empty() {
        return String::new();
    }
    let mut rows = vec![format!("{} over {last} steps, {low:.3} ▁ to {high:.3} █", shown.words())];
    let width = results.arms.iter().map(|arm| arm.label.chars().count()).max().unwrap_or_default();
    for arm in &results.arms {
        rows.push(format!("{:width$}  {}", arm.label, small_curve(&points(arm), last, low, high)));
    }
    rows.join("\n")
}

/// One character a column, interpolated between the points; blank after the last.
fn small_curve(points: &[(u64, f64)], last: u64, low: f64, high: f64) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let block = |column: usize| {
        let step = last as f64 * column as f64 / (CURVE - 1) as f64;
        let after = points.iter().position(|point| point.0 as f64 >= step - 1e-9)?;
        let (to, value) = points[after];
        let (from, before) = points[after.saturating_sub(1)];
        let share = if to > from { (step - from as f64) / (to - from) as f64 } else { 1.0 };
        let value = before + (value - before) * share.clamp(0.0, 1.0);
        let level = if high > low { (value - low) / (high - low) } else { 0.0 };
        BLOCKS.get(((level * 8.0) as usize).min(7)).copied()
    };
    (0..CURVE).map(|column| block(column).unwrap_or(' ')).collect::<String>().trim_end().to_string()
}

fn tuning(results: &Results) -> String {
    let Some(tuning) = &results.tuning else { return String::new() };
    let mut rows = vec![vec![format!("tuned by {}", tuning.metric.words())]];
    rows[0].extend(tuning.arms.iter().take(1).flat_map(|arm| &arm.rates).map(|rate| format!("lr {}", rate.lr)));
    for arm in &tuning.arms {
        let mut row = vec![arm.label.clone()];
        row.extend(arm.rates.iter().map(|rate| {
            let mark = if arm.chosen == Some(rate.lr) { "*" } else { "" };
            rate.mean.map_or("-".into(), |mean| format!("{mark}{mean:.4}"))
        }));
        rows.push(row);
    }
    let at_edge: Vec<&str> = tuning.arms.iter().filter(|arm| arm.is_at_edge()).map(|arm| arm.label.as_str()).collect();
    let mut table = aligned(&rows);
    if !at_edge.is_empty() {
        let arms = at_edge.join(" and ");
        table += &format!("\nat the edge of the grid for {arms}: a rate beyond it may be better");
    }
    for gap in tuning.gaps() {
        table += &format!("\n{gap}");
    }
    table
}

/// How steadily the arms trained (see [`statistics::stability`]).
fn stability(results: &Results) -> String {
    let mut rows =
        vec![["stability", "runs with spikes", "spikes", "gradient norm p99 / median"].map(String::from).to_vec()];
    for arm in &results.arms {
        let found = &arm.stability;
        rows.push(vec![
            arm.label.clone(),
            format!("{} of {}", found.runs_with_spikes, arm.finished + arm.diverged),
            found.spike_episodes.to_string(),
            found.gradient_tail.map_or("-".into(), |tail| format!("{tail:.1}")),
        ]);
    }
    aligned(&rows)
}

fn problems(results: &Results) -> String {
    let problems = &results.problems;
    if problems.is_empty() {
        return String::new();
    }
    let mut lines = vec!["runs that did not finish".to_string()];
    for problem in problems.iter().take(PROBLEMS) {
        lines.push(format!("  {}: {}", problem.directory, problem.reason));
    }
    if problems.len() > PROBLEMS {
        lines.push(format!("  and {} more, in results.json", problems.len() - PROBLEMS));
    }
    lines.join("\n")
}

fn files(folder: &Path) -> String {
    let files = [
        ("report.html", "all of this as a page, to open or to send"),
        ("results.json", "all of this in numbers"),
        ("runs.csv", "one line a run"),
        ("curves.csv", "one line an arm, split and step"),
        ("figures", "SVG"),
    ];
    let paths = files.map(|(name, what)| (folder.join(name).display().to_string(), what));
    let width = paths.iter().map(|(path, _)| path.chars().count()).max().unwrap_or_default();
    let lines = paths.iter().map(|(path, what)| format!("  {path:width$}  {what}"));
    ["files".to_string()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
