//! An experiment as a file that stands alone: what all arms share under `[base]`, the rest under each arm.

use toml::Value;

use super::{
    Experiment,
    reader::{Leaf, Section, Text},
};

/// Every key written; no other file named.
pub(super) fn to_toml(experiment: &Experiment) -> String {
    let Experiment { name, about, regime, metric, baseline, seeds, why_seeds, repetitions, sweep, tuning, arms } =
        experiment;
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

    file.section("about");
    file.optional("question", about.question.as_deref().map(text));
    file.optional("prediction", about.prediction.as_deref().map(text));
    file.optional("expected", about.expected.as_deref().map(text));
    file.optional("minutes", about.minutes.map(Value::Float));
    file.optional("result", about.result.as_deref().map(text));

    file.section("metric");
    file.key("name", text(metric.name.name()));
    file.key("margin", Value::Float(metric.margin));
    file.optional("threshold", metric.threshold.map(Value::Float));

    if let Some(tuning) = tuning {
        file.section("tuning");
        file.key("lr", Value::Array(tuning.lr.iter().copied().map(Value::Float).collect()));
        file.key("seeds", integers(&tuning.seeds));
    }

    let leaves: Vec<Vec<Leaf>> = arms.iter().map(|arm| leaves(&arm.config.to_toml())).collect();
    let shared = |leaf: &&Leaf| {
        leaves.iter().all(|arm| arm.iter().any(|other| other.key == leaf.key && other.value == leaf.value))
    };
    file.section("base");
    for leaf in leaves.iter().take(1).flatten().filter(shared) {
        file.line(&leaf.key, &leaf.value);
    }
    for (arm, own) in arms.iter().zip(&leaves) {
        file.section(&format!("arms.{}", text(&arm.name)));
        file.key("label", text(&arm.label));
        if arm.seed_offset > 0 {
            file.key("seed_offset", integer(arm.seed_offset));
        }
        for leaf in own.iter().filter(|leaf| !shared(leaf)) {
            file.line(&leaf.key, &leaf.value);
        }
    }
    file.text
}

/// Keys and values of a resolved config in its order, name and seed aside.
pub(super) fn leaves(config: &str) -> Vec<Leaf> {
    let text = Text { origin: "resolved config", text: config };
    // What a config writes is TOML with plain keys.
    let Ok(table) = text.parse() else { return vec![] };
    Section { text, path: "", table: &table }.leaves(&["name", "seed"]).unwrap_or_default()
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
