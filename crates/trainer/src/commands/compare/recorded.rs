//! `trainer compare --check FILE`: whether a result says what a recorded one says.
//!
//! Two results of one experiment agree where every statement and every answer is the same, and each mean lies within the
//! recorded interval, or no further from the recorded mean than a tenth of the margin (an interval of runs that are all alike
//! is a point, which other hardware misses by a last digit). The files are read as they are written, by their keys, so that
//! what a version adds does not matter.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use ::report::Results;
use serde_json::Value;

use crate::machine::exit::{Failure, Success};
use crate::screen::output::print;
use crate::screen::text::count;

/// A recorded `results.json`.
pub struct Recorded {
    path: PathBuf,
    results: Value,
}

/// The largest file that is read: a thousand arms' curves.
const MOST: u64 = 256 << 20;

/// Reads the file.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    let refuse = |problem: &dyn Display| Failure::usage(format!("{}: {problem}", path.display()));
    let text = runs::files::read_at_most(path, MOST).map_err(Failure::usage)?;
    let results: Value = serde_json::from_slice(&text).map_err(|error| refuse(&error))?;
    if !results["verdicts"].is_array() || !results["arms"].is_array() || !results["name"].is_string() {
        return Err(refuse(&"it is no results.json of a comparison"));
    }
    Ok(Recorded { path: path.into(), results })
}

impl Recorded {
    /// Says whether a new result agrees, and in what not.
    pub fn agrees_with(&self, new: &Results) -> Result<Success, Failure> {
        let new = serde_json::to_value(new).map_err(Failure::failed)?;
        let path = self.path.display();
        let Agreement { held, differing } = agreement(&self.results, &new);
        if differing.is_empty() {
            print(format!("\nagrees with {path}: {} hold", count(held, "recorded finding")));
            return Ok(Success::Done);
        }
        let lines: String = differing.iter().map(|line| format!("\n  - {line}")).collect();
        print(format!("\ndiffers from {path}, where {} hold:{lines}", count(held, "recorded finding")));
        Ok(Success::Unwell)
    }
}

/// What of a recorded result a new one says, too.
#[derive(Debug, Default, PartialEq)]
struct Agreement {
    held: usize,
    differing: Vec<String>,
}

impl Agreement {
    fn hold(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if holds {
            self.held += 1;
        } else {
            self.differing.push(otherwise());
        }
    }
}

fn agreement(recorded: &Value, new: &Value) -> Agreement {
    let mut found = Agreement::default();
    for key in ["name", "baseline"] {
        if recorded[key] != new[key] {
            found.differing.push(format!("{key}: {} now, recorded {}", plain(&new[key]), plain(&recorded[key])));
        }
    }
    let metric = |results: &Value, key: &str| results["metric"][key].clone();
    for key in ["name", "margin"] {
        let (now, then) = (metric(new, key), metric(recorded, key));
        if now != then {
            found.differing.push(format!("metric.{key}: {} now, recorded {}", plain(&now), plain(&then)));
        }
    }
    let margin = metric(recorded, "margin").as_f64().unwrap_or_default();
    for sweep in list(recorded, "sweeps") {
        let now = list(new, "sweeps").find(|other| other["level"] == sweep["level"]);
        let (now, then) = (now.map_or(&Value::Null, |now| &now["found"]["answer"]), &sweep["found"]["answer"]);
        found.hold(now == then, || format!("answer{}: {} now, recorded {}", at(sweep), plain(now), plain(then)));
    }
    for verdict in list(recorded, "verdicts") {
        let name = format!("{} against {}", plain(&verdict["arm"]), plain(&verdict["against"]));
        let is_it = |other: &&Value| other["arm"] == verdict["arm"] && other["against"] == verdict["against"];
        let Some(now) = list(new, "verdicts").find(is_it) else {
            found.differing.push(format!("{name}: not said now"));
            continue;
        };
        let kind = |verdict: &Value| plain(&verdict["found"]["statement"]["kind"]);
        found.hold(kind(now) == kind(verdict), || format!("{name}: {} now, recorded {}", kind(now), kind(verdict)));
        let mean = |verdict: &Value| verdict["found"]["estimate"]["mean"].as_f64();
        let interval = &verdict["found"]["interval"];
        value(&mut found, &format!("{name}, difference"), mean(now), mean(verdict), interval, margin);
    }
    for arm in list(recorded, "arms") {
        let name = format!("{}, mean", plain(&arm["label"]));
        let Some(now) = list(new, "arms").find(|other| other["name"] == arm["name"]) else {
            found.differing.push(format!("{name}: no such arm now"));
            continue;
        };
        let mean = |arm: &Value| arm["description"]["mean"].as_f64();
        value(&mut found, &name, mean(now), mean(arm), &arm["interval_of_mean"], margin);
    }
    found
}

fn value(found: &mut Agreement, name: &str, now: Option<f64>, then: Option<f64>, interval: &Value, margin: f64) {
    let Some(then) = then else { return };
    let end = |key: &str, other: f64| interval[key].as_f64().unwrap_or(other);
    let slack = margin / 10.0;
    let (low, high) = (end("low", then).min(then - slack), end("high", then).max(then + slack));
    let is_within = now.is_some_and(|now| low <= now && now <= high);
    found.hold(is_within, || {
        let now = now.map_or("nothing".into(), |now| format!("{now:.4}"));
        format!("{name}: {now} now, recorded {then:.4} ({low:.4} to {high:.4})")
    });
}

fn list<'a>(results: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    results[key].as_array().into_iter().flatten()
}

/// " with one layer", where a sweep is one of several.
fn at(sweep: &Value) -> String {
    sweep["at"].as_str().map(|at| format!(" {at}")).unwrap_or_default()
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results() -> Value {
        json!({
            "name": "heads", "baseline": "h1",
            "metric": { "name": "test accuracy", "margin": 0.02 },
            "sweeps": [{ "level": {}, "at": null, "found": { "answer": { "kind": "number", "value": 4.0 } } }],
            "verdicts": [{
                "arm": "h4", "against": "h1",
                "found": {
                    "statement": { "kind": "better" },
                    "estimate": { "mean": 0.4 },
                    "interval": { "level": 0.95, "low": 0.39, "high": 0.41 },
                },
            }],
            "arms": [
                { "name": "h1", "label": "1 head", "description": { "mean": 0.593 },
                  "interval_of_mean": { "low": 0.58, "high": 0.6 } },
                { "name": "h4", "label": "4 heads", "description": { "mean": 0.993 }, "interval_of_mean": null },
            ],
        })
    }

    /// The recorded result with one thing otherwise.
    fn differing(path: &str, value: Value) -> Vec<String> {
        let mut new = results();
        *new.pointer_mut(path).unwrap() = value;
        let Agreement { held, differing } = agreement(&results(), &new);
        assert_eq!(held + differing.len(), 5);
        differing
    }

    /// A device has a size of 0 and no end; it and a folder are refused before they are read.
    #[test]
    fn only_a_file_is_read() {
        for path in ["/dev/zero", "/", "no/such/file"] {
            assert!(read(Path::new(path)).is_err_and(|failure| failure.message().contains(path)), "{path}");
        }
    }

    #[test]
    fn the_same_result_agrees() {
        assert_eq!(agreement(&results(), &results()), Agreement { held: 5, differing: vec![] });
    }

    #[test]
    fn values_may_move_within_the_recorded_interval() {
        assert_eq!(differing("/verdicts/0/found/estimate/mean", json!(0.409)), Vec::<String>::new());
        assert_eq!(
            differing("/verdicts/0/found/estimate/mean", json!(0.42)),
            ["h4 against h1, difference: 0.4200 now, recorded 0.4000 (0.3900 to 0.4100)"]
        );
        // Without an interval by a tenth of the margin.
        assert_eq!(differing("/arms/1/description/mean", json!(0.9945)), Vec::<String>::new());
        assert_eq!(
            differing("/arms/1/description/mean", json!(0.99)),
            ["4 heads, mean: 0.9900 now, recorded 0.9930 (0.9910 to 0.9950)"]
        );
        assert_eq!(
            differing("/arms/0/description/mean", Value::Null),
            ["1 head, mean: nothing now, recorded 0.5930 (0.5800 to 0.6000)"]
        );
    }

    #[test]
    fn answers_and_statements_are_the_same_or_named() {
        assert_eq!(
            differing("/sweeps/0/found/answer", json!({ "kind": "range", "low": 2.0, "high": 8.0 })),
            [r#"answer: {"high":8.0,"kind":"range","low":2.0} now, recorded {"kind":"number","value":4.0}"#]
        );
        assert_eq!(
            differing("/verdicts/0/found/statement/kind", json!("equivalent")),
            ["h4 against h1: equivalent now, recorded better"]
        );
    }

    #[test]
    fn another_question_is_no_agreement() {
        let mut new = results();
        new["metric"]["margin"] = json!(0.01);
        new["verdicts"] = json!([]);
        let found = agreement(&results(), &new).differing;
        assert_eq!(found, ["metric.margin: 0.01 now, recorded 0.02", "h4 against h1: not said now"]);
    }
}
