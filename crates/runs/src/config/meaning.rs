//! What an override of the command line can only mean, where it isn't the TOML of its key's type.
//!
//! A shell takes quotes away and people write numbers as other programs do, so `train.lr=.003`, `train.steps=1e3`,
//! `model.causal=True` and `name=123` have one meaning each, given the key's type. What could mean two things is refused.

use crate::document::{ConfigError, Problem, Shown};

/// Integers above this can't be told from a neighbour when they are written as a decimal number.
const WHOLE: f64 = (1u64 << 53) as f64;

/// How often overrides were read anew so far is bounded by their number: each is, at most once.
pub(super) struct Meanings {
    /// As they are read.
    pub overrides: Vec<String>,
    is_reread: Vec<bool>,
}

impl Meanings {
    pub fn of(given: &[String]) -> Self {
        Self { overrides: given.to_vec(), is_reread: vec![false; given.len()] }
    }

    /// Whether `error` is about an override that can only mean one thing, as which it is to be read now.
    pub fn reread(&mut self, error: &ConfigError) -> bool {
        let Some((index, written, expected)) = self.at_fault(error) else { return false };
        let Some(meaning) = only_meaning(&expected, &written) else { return false };
        let path = self.overrides[index].split_once('=').map_or("", |(path, _)| path);
        self.overrides[index] = format!("{path}={meaning}");
        self.is_reread[index] = true;
        true
    }

    /// What may help with `error`, if that is an override that looks like several values.
    pub fn help(&self, error: &ConfigError) -> Option<String> {
        let (index, written, expected) = self.at_fault(error)?;
        let items: Vec<&str> = written.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim).collect();
        let key = self.overrides[index].split_once('=').map_or("", |(path, _)| path.trim());
        if items.len() > 1 && expected != "a list" && items.iter().all(|item| !item.is_empty()) {
            let items = items.join(", ");
            return Some(format!(
                "a run has one value; several are arms of an experiment file for `trainer compare`: `[grid]` and \
                 `\"{key}\" = [{items}]`"
            ));
        }
        None
    }

    /// Index, value as it was written and what was expected, of an override of the wrong type that is read for the first
    /// time.
    fn at_fault(&self, error: &ConfigError) -> Option<(usize, String, String)> {
        let [diagnostic] = error.diagnostics() else { return None };
        let (Problem::WrongType { key, expected, .. }, Shown::Override(_)) = (&diagnostic.problem, &diagnostic.place)
        else {
            return None;
        };
        let is_it = |(index, text): &(usize, &String)| {
            let path =
                text.split_once('=').map(|(path, _)| path.split('.').map(str::trim).collect::<Vec<_>>().join("."));
            !self.is_reread[*index] && path.as_ref() == Some(key)
        };
        // The last one counts.
        let (index, text) = self.overrides.iter().enumerate().rfind(is_it)?;
        let written = text.split_once('=').map_or("", |(_, value)| value).trim();
        Some((index, written.to_string(), expected.clone()))
    }
}

/// `written` as TOML of what was `expected`, where it can only mean that.
fn only_meaning(expected: &str, written: &str) -> Option<String> {
    let is_number = written.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    let number = written.parse::<f64>().ok().filter(|number| is_number && number.is_finite());
    match expected {
        expected if expected.starts_with("a whole number") => {
            let whole = number.filter(|number| number.fract() == 0.0 && (0.0..=WHOLE).contains(number))?;
            // `064` may be meant in another base.
            let has_leading_zero = written.len() > 1 && written.bytes().all(|byte| byte.is_ascii_digit());
            (!has_leading_zero).then(|| format!("{whole:.0}"))
        }
        "a number" => number.map(|number| format!("{number:?}")),
        "true or false" => Some(written.to_ascii_lowercase()).filter(|word| word == "true" || word == "false"),
        // A list or a section is no text that lost its quotes.
        "text in quotes" if !written.starts_with(['[', '{']) => Some(toml::Value::String(written.into()).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    const MINIMAL: &str = "[task]\nkind = \"registers\"\n";

    fn set(overrides: &[&str]) -> Result<Config, String> {
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        Config::parse_with(MINIMAL, "h8.toml", &overrides).map_err(|error| error.to_string())
    }

    /// hydra#999: values that a shell or a habit wrote otherwise than TOML has them.
    #[test]
    fn hydra_999_what_can_only_mean_one_thing_is_taken() {
        let config = set(&[
            "train.lr=.003",
            "train.steps=1e3",
            "train.warmup = 1E1",
            "model.causal=True",
            "model.mlp=FALSE",
            "name=123",
            "task.seq_len=6.4e1",
            "train.batch_size=32.0",
            "train.min_lr=+.0",
            "seed=2e2",
        ])
        .unwrap();
        assert_eq!((config.train.lr, config.train.steps, config.train.warmup), (0.003, 1000, 10));
        assert_eq!((config.model.causal, config.model.mlp, config.name.as_str()), (true, false, "123"));
        assert_eq!((config.task.task.seq_len(), config.train.batch_size, config.seed), (64, 32, 200));
        for (text, name) in
            [("name=true", "true"), ("name=1e5", "1e5"), ("name=2024-01-01", "2024-01-01"), ("name=0x1f", "0x1f")]
        {
            assert_eq!(set(&[text]).unwrap().name, name);
        }
        // Which of two equal keys is at fault, and what comes after it.
        assert_eq!(set(&["train.lr=1", "train.lr=.5"]).unwrap().train.lr, 0.5);
        assert_eq!(set(&["train.lr=.5", "train.lr=0.25"]).unwrap().train.lr, 0.25);
    }

    /// hydra#999: what could mean several things is refused, as it was written, with what to do.
    #[test]
    fn hydra_999_the_rest_is_hinted_at() {
        for (text, expected) in [
            ("model.heads=1,2,4", "`[grid]` and `\"model.heads\" = [1, 2, 4]`"),
            ("model.heads=[1, 2, 4]", "`[grid]`"),
            ("train.lr=1e-3,3e-3", "`\"train.lr\" = [1e-3, 3e-3]`"),
            ("train.steps=1.5e0", "expected a whole number"),
            ("train.steps=0100", "expected a whole number"),
            ("train.steps=-1e3", "expected a whole number"),
            ("train.steps=1e30", "expected a whole number"),
            ("train.lr=1e999", "out of range"),
            ("train.lr=nano", "expected a number"),
            ("model.causal=yes", "expected true or false"),
            ("model.causal=1", "expected true or false"),
        ] {
            let error = set(&[text]).unwrap_err();
            assert!(error.contains(expected) && error.contains(&format!("--set {text}")), "{text}: {error}");
            assert!(!error.contains("without quotes"), "{text}: {error}");
        }
        // The file itself stays as strict as it was.
        assert!(Config::parse(&format!("{MINIMAL}[train]\nsteps = 1e3\n"), "h8.toml").is_err());
        // What is refused later is shown as it was given.
        let error = set(&["train.lr=-.5"]).unwrap_err();
        assert!(error.contains("--set train.lr=-.5"), "{error}");
    }
}
