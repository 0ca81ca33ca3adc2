//! A task of your own with the whole command line: `compare`, `heads`, `doctor` and all the rest know it.
//!
//! ```sh
//! cargo run -p trainer --example own_task -- tasks two_ends --show 1
//! cargo run -p trainer --example own_task -- --config two_ends.toml
//! ```
//!
//! where `two_ends.toml` holds `[task]` and `kind = "two_ends"`; an experiment may name it in the same way.

use std::process::ExitCode;
use std::sync::Arc;

use data::{Definition, Draw, IGNORE, Needed, Parameter, Sample, TaskError, in_range};
use serde::Deserialize;

/// At each position but the first: the first token plus the one before, modulo the number of tokens.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TwoEnds {
    /// V, how many tokens there are, 2 to 1,000.
    pub tokens: usize,
    /// L, the length of a sample, 2 to 1,024.
    pub seq_len: usize,
}

impl Default for TwoEnds {
    fn default() -> Self {
        Self { tokens: 8, seq_len: 16 }
    }
}

impl TwoEnds {
    fn answer(&self, tokens: &[u32], position: usize) -> i32 {
        let Some(before) = position.checked_sub(1) else { return IGNORE };
        ((tokens[0] + tokens[before]) as usize % self.tokens) as i32
    }
}

impl Definition for TwoEnds {
    fn kind(&self) -> &'static str {
        "two_ends"
    }

    fn about(&self) -> &'static str {
        "Tokens one after another; at each the model must add the first of all and the one before, modulo their number."
    }

    fn prediction(&self) -> &'static str {
        "Two patterns of attention at once, to the start and to the place before: two heads are enough, one is not."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("tokens", self.tokens.into()), ("seq_len", self.seq_len.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        in_range("tokens", self.tokens, 2, 1000)?;
        in_range("seq_len", self.seq_len, 2, 1024)
    }

    fn vocab(&self) -> usize {
        self.tokens
    }

    fn outputs(&self) -> usize {
        self.tokens
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    fn prepare(&self) -> Draw {
        let task = *self;
        Arc::new(move |stream| {
            let tokens: Vec<u32> = (0..task.seq_len).map(|_| stream.below(task.tokens as u64) as u32).collect();
            let targets = (0..task.seq_len).map(|position| task.answer(&tokens, position)).collect();
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let line = |(position, (token, target)): (usize, (&u32, &i32))| match *target {
            IGNORE => format!("{position:>4}  {token}\n"),
            answer => format!("{position:>4}  {token}  * {answer}\n"),
        };
        let lines = sample.tokens.iter().zip(&sample.targets).enumerate().map(line);
        format!("   t  token; * = the first and the one before, added\n{}", lines.collect::<String>())
    }

    /// What each answer depends on: heads are then told by whether they look there.
    fn needed(&self, _sample: &Sample, position: usize) -> Vec<Needed> {
        match position.checked_sub(1) {
            Some(before) => vec![Needed::own("first token", vec![0]), Needed::own("token before", vec![before])],
            None => vec![],
        }
    }

    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        Some((0..read.len()).map(|position| self.answer(read, position)).collect())
    }
}

/// The command line of `trainer`, with one task more. Workers of a comparison are this program too, so they know it.
fn main() -> ExitCode {
    if let Err(error) = data::register::<TwoEnds>() {
        trainer::screen::output::tell(error);
        return ExitCode::FAILURE;
    }
    trainer::cli::main()
}
