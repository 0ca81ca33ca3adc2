//! An experiment as a file that stands alone: what all arms share under `[base]`, the rest under each arm.

use toml::Value;

use super::{Arm, Claim, Experiment, Predicted, Published, ReadAt};
use crate::document::leaves;

/// Every key written; no other file named.
pub(super) fn to_toml(experiment: &Experiment) -> String {
    let Experiment {
        name,
        about,
        regime,
        metric,
        baseline,
        seeds,
        why_seeds,
        repetitions,
        sweep,
        tuning,
        vary,
        looks,
        predict,
        check,
        published,
        arms,
    } = experiment;
    let mut file = File::default();
    file.key("name", text(name));
    file.key("baseline", text(baseline));
    file.key("regime", text(regime.name()));
    file.key("seeds", integers(seeds));
    file.optional("why_seeds", why_seeds.as_deref().map(text));
    if *repetitions > 1 {
        file.key("repetitions", integer(*repetitions as u64));
    }
    file.optional("sweep", sweep.as_deref().map(text));
    if !vary.is_empty() {
        file.key("vary", Value::Array(vary.iter().map(|key| text(key)).collect()));
    }
    if !looks.is_empty() {
        file.key("looks", Value::Array(looks.iter().map(|pairs| integer(*pairs as u64)).collect()));
    }

    file.section("about");
    file.optional("question", about.question.as_deref().map(text));
    file.optional("prediction", about.prediction.as_deref().map(text));
    file.optional("expected", about.expected.as_deref().map(text));
    file.optional("minutes", about.minutes.map(Value::Float));
    file.optional("result", about.result.as_deref().map(text));

    file.section("metric");
    file.key("name", text(&metric.name.name()));
    file.key("margin", Value::Float(metric.margin));
    file.optional("threshold", metric.threshold.map(Value::Float));
    if metric.at != ReadAt::default() {
        file.key("at", text(metric.at.name()));
    }
    file.optional("failure_difference", metric.failure_difference.map(Value::Float));
    file.optional("max_failure", metric.max_failure.map(Value::Float));

    if let Some(tuning) = tuning {
        file.section("tuning");
        file.key("lr", Value::Array(tuning.lr.iter().copied().map(Value::Float).collect()));
        file.key("seeds", integers(&tuning.seeds));
    }
    if let Some(check) = check {
        file.section("check");
        file.key("steps", integer(check.steps));
        file.key("pairs", integer(check.pairs as u64));
    }
    if let Some(Published { source, of_runs, differs, values }) = published {
        file.section("published");
        file.key("source", text(source));
        file.key("of_runs", text(of_runs.name()));
        file.optional("differs", differs.as_deref().map(text));
        file.section("published.values");
        for (arm, value) in values {
            file.key(&text(arm).to_string(), Value::Float(*value));
        }
    }
    for Predicted { claim, level } in predict {
        file.section("[predict]");
        match claim {
            Claim::Better { arm } => file.key("better", text(arm)),
            Claim::Equivalent { arm: Some(arm) } => file.key("equivalent", text(arm)),
            Claim::Equivalent { arm: None } => file.key("equivalent", Value::Boolean(true)),
            Claim::Sufficient { value } => file.key("sufficient", Value::Float(*value)),
        }
        if !level.is_empty() {
            let level: Vec<String> = level.iter().map(|(key, value)| format!("{} = {value}", text(key))).collect();
            file.line("where", &format!("{{ {} }}", level.join(", ")));
        }
    }

    let leaves: Vec<_> = arms.iter().map(leaves_of).collect();
    let shared = |leaf: &&(String, String)| leaves.iter().all(|arm| arm.contains(leaf));
    file.section("base");
    for (key, value) in leaves.iter().take(1).flatten().filter(shared) {
        file.line(key, value);
    }
    for (arm, own) in arms.iter().zip(&leaves) {
        file.section(&format!("arms.{}", text(&arm.name)));
        file.key("label", text(&arm.label));
        if arm.seed_offset > 0 {
            file.key("seed_offset", integer(arm.seed_offset));
        }
        for (key, value) in own.iter().filter(|leaf| !shared(leaf)) {
            file.line(key, value);
        }
    }
    file.text
}

/// Keys and values of an arm's config in its order; name and seed are the experiment's.
fn leaves_of(arm: &Arm) -> Vec<(String, String)> {
    let mut leaves = leaves(&arm.config.to_toml());
    leaves.retain(|(key, _)| !matches!(key.as_str(), "name" | "seed"));
    leaves
}

#[derive(Default)]
struct File {
    text: String,
}

impl File {
    fn section(&mut self, name: &str) {
        self.text += &format!("\n[{name}]\n");
    }

    fn key(&mut self, key: &str, value: Value) {
        self.line(key, &value.to_string());
    }

    fn optional(&mut self, key: &str, value: Option<Value>) {
        value.into_iter().for_each(|value| self.key(key, value));
    }

    fn line(&mut self, key: &str, value: &str) {
        self.text += &format!("{key} = {value}\n");
    }
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

fn integer(number: u64) -> Value {
    // Every number here passed a check against TOML's largest.
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn integers(numbers: &[u64]) -> Value {
    Value::Array(numbers.iter().copied().map(integer).collect())
}
