//! A result in a terminal: the verdict first, then a table, small curves, what the arms share, and where the files are.

mod heads;
mod trace;

use std::path::Path;

use data::Split;
use runs::experiment::Published;
use statistics::{Direction, outcome::StepsToThreshold, sweep::Enough};

use crate::{
    limits::PROBLEMS,
    results::{ArmResult, CurvePoint, Decision, Findings, Results, Swept},
    text::{aligned, counted, levels},
};

pub use heads::{alike as heads_alike, table as heads_table, used as heads_used};
pub use trace::{trace, values as traced_values};

/// Columns of a small curve.
const CURVE: usize = 48;

/// The result as text of some 30 lines, none with a line end of its own at the end. `folder` is where the files are.
pub fn summary(results: &Results, folder: &Path) -> String {
    format!("{}\n\n{}", answer(results), files(folder))
}

/// [`summary`] of a result that is in no files. Lines that begin with [`WARNING`] are to be seen as such.
pub fn answer(results: &Results) -> String {
    let mut sections = vec![
        head(results),
        about(results),
        table(results),
        curves(results),
        tuning(results),
        stability(results),
        matching(results),
        problems(results),
        ending(results),
    ];
    sections.retain(|section| !section.is_empty());
    sections.join("\n\n")
}

/// How a line begins that says what a reader must not miss.
pub const WARNING: &str = "warning: ";

/// What was found.
fn head(results: &Results) -> String {
    let mut lines = vec![results.answer.sentence.clone()];
    lines.extend(findings(results, &results.findings).into_iter().map(|line| format!("  {line}")));
    if let Decision::Open { next: Some(next), .. } = results.decision {
        lines.push(format!("  the next look is at {}", counted(next, "pair")));
    }
    if let Some(beyond) = &results.exploratory {
        lines.push(format!(
            "  beyond the plan, with {} (exploratory: it decides nothing):",
            counted(beyond.pairs, "pair")
        ));
        let own = match (&beyond.findings.sweeps[..], &beyond.findings.verdicts[..]) {
            ([only], _) => vec![only.sentence.clone()],
            ([], [only]) => vec![only.sentence.clone()],
            _ => findings(results, &beyond.findings),
        };
        lines.extend(own.into_iter().map(|line| format!("    {line}")));
    }
    lines.extend(results.warnings().into_iter().map(|warning| format!("{WARNING}{warning}")));
    if let Some(why) = &results.why_seeds {
        lines.push(format!("  few seeds: {why}"));
    }
    lines.join("\n")
}

/// Beside the answer: each of several sentences, and who solved the task.
fn findings(results: &Results, findings: &Findings) -> Vec<String> {
    let mut lines = vec![];
    if let Some(repetitions) = &results.repetitions {
        let differs = repetitions.each.iter().filter(|each| each.finds_a_difference());
        return differs.map(|each| each.sentence.clone()).collect();
    }
    if let (Some(swept), true) = (&results.sweep, findings.sweeps.len() > 1) {
        lines.extend(map(swept, findings).lines().map(String::from));
    } else if findings.sweeps.is_empty() && findings.verdicts.len() > 1 {
        lines.extend(findings.verdicts.iter().map(|verdict| verdict.sentence.clone()));
    }
    if findings.sweeps.is_empty() {
        lines.extend(
            findings.verdicts.iter().flat_map(|verdict| [&verdict.solving, &verdict.sooner]).flatten().cloned(),
        );
        if let [only] = &findings.verdicts[..] {
            lines.extend(only.found.correlation.map(|r| format!("correlation of the pairs: {r:.2}")));
        }
    }
    lines.extend(findings.interactions.iter().map(|interaction| interaction.sentence.clone()));
    lines
}

/// The numbers needed, level by level.
fn map(swept: &Swept, findings: &Findings) -> String {
    let mut rows = vec![vec![String::new(), format!("{} needed", swept.unit.many), "reached".into()]];
    for sweep in &findings.sweeps {
        let reached = sweep.found.steps.iter().map(|step| {
            let mean = step.description.as_ref().map_or("-".into(), |told| format!("{:.3}", told.mean));
            format!("{}: {mean}", step.value)
        });
        let at = sweep.at.clone().or_else(|| levels(sweep.level.iter())).unwrap_or_default();
        rows.push(vec![at, sweep.words.clone(), reached.collect::<Vec<_>>().join("  ")]);
    }
    aligned(&rows)
}

/// What it is about.
fn about(results: &Results) -> String {
    let mut lines = vec![match &results.about.question {
        Some(question) => format!("{}: {question}", results.name),
        None => results.name.clone(),
    }];
    if let Some(prediction) = &results.about.prediction {
        lines.push(format!("predicted: {prediction}"));
    }
    lines.join("\n")
}

/// What stood before, whether it came so, and whether it holds.
fn ending(results: &Results) -> String {
    let mut lines = vec![];
    lines.extend(results.check.iter().map(|check| format!("check: {}", check.sentence)));
    lines.extend(results.registered.iter().map(|registered| registered.words()));
    let told = results.predictions.iter();
    lines.extend(told.map(|told| format!("prediction {}: {}", told.fate.words(), told.predicted)));
    lines.join("\n")
}

fn matching(results: &Results) -> String {
    let ledger = results.ledger.as_ref();
    ledger.map_or(String::new(), |ledger| format!("matching\n{}", indented(&ledger.to_string())))
}

/// Whether an arm of a sweep is enough, in a word; nothing before that is known.
fn enough(results: &Results, arm: &ArmResult) -> String {
    let steps = results.findings.sweeps.iter().filter(|sweep| sweep.level == arm.level).flat_map(|s| &s.found.steps);
    let own = steps.into_iter().find(|step| Some(step.value) == arm.sweep_value);
    own.map_or(String::new(), |step| match step.enough {
        Enough::Sufficient => "yes".into(),
        Enough::Insufficient => "no".into(),
        Enough::FailuresOpen => "failures open".into(),
        Enough::Open => "open".into(),
    })
}

fn table(results: &Results) -> String {
    let metric = results.metric.words().to_string();
    let has_steps = results.arms.iter().any(|arm| arm.steps_to_threshold.is_some());
    let threshold = results.metric.threshold.filter(|_| has_steps).map(|threshold| threshold.to_string());
    let mut rows = vec![vec![
        metric,
        "runs".into(),
        "mean".into(),
        "sd".into(),
        "IQM".into(),
        "solved".into(),
        threshold.map_or(String::new(), |threshold| format!("steps to {threshold}")),
    ]];
    let is_swept = !results.findings.sweeps.is_empty();
    if is_swept {
        rows[0].push("enough".into());
    }
    let published = results.published.as_ref();
    if published.is_some() {
        rows[0].extend(["median", "best", "published"].map(String::from));
    }
    for arm in &results.arms {
        // What others published may be of any size.
        let number = |value: Option<f64>| match value {
            None => "-".into(),
            Some(value) if published.is_some() && value != 0.0 && value.abs() < 0.01 => format!("{value:.2e}"),
            Some(value) => format!("{value:.4}"),
        };
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
        if let Some(row) = rows.last_mut().filter(|_| is_swept) {
            row.push(enough(results, arm));
        }
        if let (Some(row), Some(published)) = (rows.last_mut(), published) {
            let best = description.map(|description| match results.metric.scale.direction {
                Direction::LowerIsBetter => description.minimum,
                Direction::HigherIsBetter => description.maximum,
            });
            let theirs = published.values.get(&arm.name).copied();
            row.extend([number(description.map(|description| description.median)), number(best), number(theirs)]);
        }
    }
    let mut table = aligned(&rows);
    if let Some(Published { source, of_runs, differs, .. }) = published {
        table += &format!("\npublished: {source}, {}", of_runs.words());
        if let Some(differs) = differs {
            table += &format!("\n  ours differ: {differs}");
        }
    }
    table
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
    let splits = [Split::Test, Split::Validation];
    let is_there = |split: &Split| results.arms.iter().any(|arm| arm.curves.iter().any(|curve| curve.split == *split));
    let Some(split) = splits.into_iter().find(is_there) else { return String::new() };
    let points = |arm: &ArmResult| -> Vec<(u64, f64)> {
        let curve = arm.curves.iter().find(|curve| curve.split == split);
        let points = curve.map(|curve| curve.points.as_slice()).unwrap_or_default();
        let mean = |point: &CurvePoint| Some((point.step, point.bands.get(&results.metric.key)?.mean));
        points.iter().filter_map(mean).collect()
    };
    let all: Vec<(u64, f64)> = results.arms.iter().flat_map(points).collect();
    let low = all.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = all.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let last = all.iter().map(|point| point.0).max().unwrap_or_default();
    if all.is_empty() {
        return String::new();
    }
    let key = results.metric.key.replace('_', " ");
    let words = if split == Split::Test { results.metric.words().to_string() } else { format!("{split} {key}") };
    let diverged: usize = results.arms.iter().map(|arm| arm.diverged).sum();
    let at_penalty = if diverged > 0 { ", diverged runs at the penalty" } else { "" };
    let mut rows = vec![format!("{words} over {last} steps, {low:.3} ▁ to {high:.3} █{at_penalty}")];
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
    table += &common_rates(results);
    for gap in tuning.gaps() {
        table += &format!("\n{gap}");
    }
    table
}

/// What the tuning runs say at every rate that all arms tried: whether the verdict is one of the rate.
fn common_rates(results: &Results) -> String {
    let Some(tuning) = &results.tuning else { return String::new() };
    let told = |(lr, differences): (f64, Vec<(String, f64)>)| {
        let parts = differences.into_iter().map(|(label, difference)| format!("{label} {difference:+.4}"));
        format!("\n  at {lr}: {}", parts.collect::<Vec<_>>().join(", "))
    };
    let rates: String = results.at_common_rates().into_iter().map(told).collect();
    if rates.is_empty() {
        return rates;
    }
    let baseline = results.arms.iter().find(|arm| arm.name == results.baseline);
    let baseline = baseline.map_or("", |arm| arm.label.as_str());
    format!("\nahead of {baseline} at each rate, in {}:{rates}", tuning.metric.words())
}

/// How steadily the arms trained (see [`statistics::stability`]).
fn stability(results: &Results) -> String {
    if results.ledger.is_none() {
        return String::new();
    }
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
