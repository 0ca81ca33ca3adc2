//! The same numbers as CSV (RFC 4180 but for its line ends): empty where there is no number.

use crate::results::{Band, Results, RunResult, RunStatus};

/// One line a run.
pub fn runs(results: &Results) -> String {
    let mut text = String::from(
        "arm,pair,seed,status,steps,test_accuracy,test_loss,validation_accuracy,validation_loss,best_step,\
         best_validation_loss,first_step_at_threshold,spike_episodes,gradient_tail,lr,directory\n",
    );
    for arm in &results.arms {
        for run in &arm.runs {
            let RunResult { pair, seed, directory, .. } = run;
            let status = match run.status {
                RunStatus::Finished => "finished",
                RunStatus::Diverged => "diverged",
                RunStatus::Missing => "missing",
            };
            let fields = [
                field(&arm.name),
                pair.to_string(),
                seed.to_string(),
                status.into(),
                shown(run.steps),
                shown(run.test_accuracy),
                shown(run.test_loss),
                shown(run.validation_accuracy),
                shown(run.validation_loss),
                shown(run.best_step),
                shown(run.best_validation_loss),
                shown(run.first_step_at_threshold),
                shown(run.spike_episodes),
                shown(run.gradient_tail),
                arm.lr.to_string(),
                field(directory),
            ];
            text += &fields.join(",");
            text.push('\n');
        }
    }
    text
}

/// One line an arm, split and step.
pub fn curves(results: &Results) -> String {
    const PARTS: [&str; 6] = ["mean", "minimum", "lower_quartile", "median", "upper_quartile", "maximum"];
    let columns = ["loss", "accuracy"].into_iter().flat_map(|what| PARTS.map(|part| format!("{what}_{part}")));
    let mut text = format!("arm,split,step,runs,{}\n", columns.collect::<Vec<_>>().join(","));
    for arm in &results.arms {
        for curve in &arm.curves {
            for point in &curve.points {
                let start = [field(&arm.name), curve.split.to_string(), point.step.to_string(), point.runs.to_string()];
                let numbers =
                    [point.loss, point.accuracy].into_iter().flat_map(numbers).map(|number| number.to_string());
                text += &start.into_iter().chain(numbers).collect::<Vec<_>>().join(",");
                text.push('\n');
            }
        }
    }
    text
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
