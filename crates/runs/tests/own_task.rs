//! Configs name tasks that another crate has registered, with errors as for any other.

use data::{Definition, Draw, NumberSizes, Parameter, Sample, TaskError, in_range, register};
use headcount_runs::Config;
use serde::Deserialize;

/// Each token is its own answer; with `numbers`, it says that it reads numbers too.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Echo {
    words: usize,
    numbers: bool,
}

impl Definition for Echo {
    fn kind(&self) -> &'static str {
        "echo"
    }
    fn about(&self) -> &'static str {
        "each token is its own answer"
    }
    fn prediction(&self) -> &'static str {
        "none"
    }
    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("words", self.words.into()), ("numbers", self.numbers.into())]
    }
    fn check(&self) -> Result<(), TaskError> {
        in_range("words", self.words, 2, 100)
    }
    fn vocab(&self) -> usize {
        self.words
    }
    fn outputs(&self) -> usize {
        self.words
    }
    fn seq_len(&self) -> usize {
        8
    }
    fn numbers(&self) -> Option<NumberSizes> {
        self.numbers.then_some(NumberSizes { inputs: 1, outputs: 0 })
    }
    fn prepare(&self) -> Draw {
        let words = self.words as u64;
        std::sync::Arc::new(move |stream| {
            let tokens: Vec<u32> = (0..8).map(|_| stream.below(words) as u32).collect();
            Sample::new(tokens.clone(), tokens.into_iter().map(|token| token as i32).collect())
        })
    }
    fn explain(&self, sample: &Sample) -> String {
        format!("{:?}", sample.tokens)
    }
}

fn parse(parameters: &str) -> Result<Config, String> {
    register::<Echo>().unwrap();
    Config::parse(&format!("[task]\nkind = \"echo\"\n{parameters}"), "own.toml").map_err(|error| error.to_string())
}

#[test]
fn a_config_of_a_registered_task_goes_both_ways() {
    let config = parse("words = 5\ntrain_examples = 100\n").unwrap();
    assert_eq!((config.dims().vocab, config.dims().length), (5, 8));
    assert_eq!(config.task.task.downcast::<Echo>().unwrap().words, 5);
    assert_eq!(Config::parse(&config.to_toml(), "again.toml").unwrap(), config);
}

#[test]
fn its_errors_are_those_of_any_task() {
    for (parameters, parts) in [
        ("wrods = 5", ["unknown key `task.wrods`", "own.toml:3", "did you mean `task.words`?"]),
        ("words = \"5\"", ["task.words", "own.toml:3", "write 5 without quotes"]),
        ("words = 1", ["`task.words`: words = 1 is out of range", "own.toml:3", "2..=100"]),
        ("words = 5\nnumbers = true", ["`task.kind`", "own.toml:2", "kind = \"echo\" reads tokens and numbers"]),
    ] {
        let error = parse(parameters).unwrap_err();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
