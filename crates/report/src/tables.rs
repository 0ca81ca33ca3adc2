//! The same numbers as CSV (RFC 4180 but for its line ends): empty where there is no number.

use std::collections::BTreeSet;

use data::metrics::{METRICS, MetricKind, SplitMetric, present};

use crate::deciding::finite;
use crate::results::{ArmResult, Band, Results, RunResult, RunStatus};

/// One line a run.
pub fn runs(results: &Results) -> String {
    let has = |run: &RunResult, kind: &MetricKind| {
        SplitMetric::all().any(|metric| metric.kind == kind && run.scores.get(metric).is_some())
    };
    let runs = results.arms.iter().flat_map(|arm| &arm.runs);
    let there: Vec<&MetricKind> = present(|kind| runs.clone().any(|run| has(run, kind))).collect();
    let columns: Vec<SplitMetric> = SplitMetric::all().filter(|metric| there.contains(&metric.kind)).collect();
    let metrics: String = columns.iter().map(|metric| metric.name() + ",").collect();
    let mut text = format!(
        "arm,{}pair,seed,status,steps,value,{metrics}best_step,best_validation_loss,first_step_at_threshold,spike_episodes,\
         gradient_tail,lr,directory\n",
        settings_head(results),
    );
    for arm in &results.arms {
        for run in &arm.runs {
            let RunResult { pair, seed, directory, .. } = run;
            let status = match run.status {
                RunStatus::Finished => "finished",
                RunStatus::Diverged => "diverged",
                RunStatus::Missing => "missing",
            };
            let start = [
                field(&arm.name) + &settings(results, arm),
                pair.to_string(),
                seed.to_string(),
                status.to_string(),
                shown(run.steps),
                shown(run.value),
            ];
            let finite = |metric| run.scores.get(metric).and_then(finite);
            let scores = columns.iter().map(|&metric| shown(finite(metric)));
            let rest = [
                shown(run.best_step),
                shown(run.best_validation_loss),
                shown(run.first_step_at_threshold),
                shown(run.spike_episodes),
                shown(run.gradient_tail),
                shown(arm.lr),
                field(directory),
            ];
            text += &start.into_iter().chain(scores).chain(rest).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
    }
    text
}

/// One line an arm, split and step.
pub fn curves(results: &Results) -> String {
    const PARTS: [&str; 6] = ["mean", "minimum", "lower_quartile", "median", "upper_quartile", "maximum"];
    let curves = results.arms.iter().flat_map(|arm| &arm.curves);
    let points = curves.flat_map(|curve| &curve.points);
    let there = present(|kind| points.clone().any(|point| point.bands.contains_key(kind.key)));
    let own = (!METRICS.iter().any(|kind| kind.key == results.metric.key)).then_some(results.metric.key.as_str());
    let keys: Vec<&str> = there.map(|kind| kind.key).chain(own).collect();
    let columns = keys.iter().flat_map(|key| PARTS.map(|part| field(&format!("{key}_{part}"))));
    let mut text =
        format!("arm,{}split,step,runs,diverged,{}\n", settings_head(results), columns.collect::<Vec<_>>().join(","));
    for arm in &results.arms {
        for curve in &arm.curves {
            for point in &curve.points {
                let counts = [point.step, point.runs as u64, point.diverged as u64].map(|count| count.to_string());
                let start =
                    [field(&arm.name) + &settings(results, arm), curve.split.to_string()].into_iter().chain(counts);
                let numbers = keys.iter().flat_map(|key| match point.bands.get(*key) {
                    Some(band) => numbers(*band).map(|number| number.to_string()),
                    None => PARTS.map(|_| String::new()),
                });
                text += &start.chain(numbers).collect::<Vec<_>>().join(",");
                text.push('\n');
            }
        }
    }
    text
}

/// The keys in which any two arms differ, each with a comma after it.
fn settings_head(results: &Results) -> String {
    results
        .arms
        .iter()
        .flat_map(|arm| arm.settings.keys())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|key| field(key) + ",")
        .collect()
}

/// An arm's values at these keys, each after a comma; a text without its quotes, as CSV has its own.
fn settings(results: &Results, arm: &ArmResult) -> String {
    let keys: BTreeSet<&String> = results.arms.iter().flat_map(|arm| arm.settings.keys()).collect();
    let value = |key| arm.settings.get(key).map_or("", String::as_str);
    let plain = |text: &str| text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text).to_string();
    keys.into_iter().map(|key| ",".to_string() + &field(&plain(value(key)))).collect()
}

fn numbers(band: Band) -> [f64; 6] {
    [band.mean, band.minimum, band.lower_quartile, band.median, band.upper_quartile, band.maximum]
}

fn shown<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}
