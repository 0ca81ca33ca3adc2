//! What a person is told of their data before anything is trained.

use std::path::Path;

use data::metrics::MetricKind;
use data::{Baseline, Split};
use runs::Config;

use super::written::Proposal;
use crate::screen::text::{bytes, count, task_sizes, thousands};
use crate::training::arm::Arm;

/// Samples that are shown.
const SAMPLES: u64 = 3;
/// Lines of a sample that are shown.
const LINES: usize = 14;
/// Classes whose share is told.
const CLASSES: usize = 8;

/// Files, sizes, three samples, what is scored, how classes spread, and what knowing nothing scores.
pub fn data(config: &Config) -> String {
    let task = &config.task.task;
    let mut lines = vec![];
    for file in task.stored().iter().flat_map(|stored| stored.files()) {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        lines.push(format!("{name}: {} ({})", bytes(file.bytes), file.role));
    }
    lines.push(format!("{}: {}", task.kind(), task_sizes(task)));
    let sets = &config.task.sets;
    let training = match (sets.train_examples, task.stored()) {
        (Some(examples), _) => thousands(examples),
        (None, Some(stored)) => format!("windows at {} places", thousands(stored.available(Split::Train))),
        (None, None) => "new samples".into(),
    };
    lines.push(format!(
        "samples: {training} for training, {} for validation, {} for the test",
        thousands(sets.validation_examples),
        thousands(sets.test_examples)
    ));
    let overlap = data::overlap(task, sets, Split::Test, config.seed, sets.train_examples.unwrap_or(0));
    if overlap.share() > 0.0 {
        lines.push(format!("{overlap}: on these a model may answer from memory"));
    }

    let generator = data::Generator::new(task, Split::Train, Split::Train.data_seed(config.seed));
    for index in 0..SAMPLES {
        let text = task.explain(&generator.sample(index));
        let all: Vec<&str> = text.lines().filter(|line| !line.ends_with("  padding")).collect();
        let mut shown: Vec<&str> = all.iter().copied().take(LINES).collect();
        // What the last line says is how it ends, or where its answer is.
        let left = all.len().saturating_sub(LINES + 1);
        let more = format!("       ... and {}", count(left, "more line"));
        if left > 0 {
            shown.push(&more);
        }
        shown.extend(all.last().filter(|_| all.len() > LINES));
        lines.push(format!("\ntraining sample {index}, as the model sees it: {}", shown.join("\n")));
    }

    let balance = data::balance(task, sets, Split::Train);
    lines.push(format!(
        "\nscored: {} of {} positions of {} training samples",
        thousands(balance.scored),
        thousands(balance.positions),
        thousands(balance.samples)
    ));
    let total: u64 = balance.classes.iter().sum();
    if total > 0 {
        let mut classes: Vec<(usize, u64)> =
            balance.classes.iter().copied().enumerate().filter(|(_, asked)| *asked > 0).collect();
        classes.sort_by_key(|(class, asked)| (std::cmp::Reverse(*asked), *class));
        let share = |(class, asked): &(usize, u64)| {
            format!("{} {:.1} %", task.answer_name(*class as u32), 100.0 * *asked as f64 / total as f64)
        };
        let told: Vec<String> = classes.iter().take(CLASSES).map(share).collect();
        let more = classes.len().saturating_sub(CLASSES);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        lines.push(format!("answers: {}{more}", told.join(", ")));
    }
    lines.push("\nwithout any learning, on the test set:".into());
    for Baseline { name, scores } in data::baselines(task, sets, Split::Test) {
        let told: Vec<String> = scores.iter().rev().map(|(kind, value): (&MetricKind, f64)| kind.told(value)).collect();
        lines.push(format!("  {name:36} {}", told.join(", ")));
    }
    lines.join("\n")
}

/// What was written, what it costs, and what to do next.
pub fn next(config: &Config, proposal: &Proposal, config_path: &Path, sweep_path: &Path) -> String {
    let model = &config.model;
    let (config_path, sweep_path) = (config_path.display(), sweep_path.display());
    format!(
        "\nwritten:\n  {config_path}: {}, d_model {}, {} parameters, {} steps\n  {sweep_path}: {} of it, decided by {}, \
         about {} on this machine\n\nnext:\n  trainer --config {config_path}            one run\n  trainer doctor --config {config_path}     is anything wrong?\n  \
         trainer compare {sweep_path}       how many heads it needs",
        count(model.layers, "layer"),
        model.d_model,
        thousands(Arm::new(config).parameters().total()),
        thousands(proposal.steps),
        count(proposal.runs as usize, "run"),
        proposal.metric(),
        minutes(proposal.minutes),
    )
}

fn minutes(minutes: f64) -> String {
    if minutes < 1.5 { "a minute".into() } else { format!("{minutes:.0} minutes") }
}
