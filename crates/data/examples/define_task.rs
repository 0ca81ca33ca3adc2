//! A task from outside the crate: defined, registered, read from TOML, drawn.
//!
//! `cargo run -p headcount-data --example define_task`

use std::sync::Arc;

use headcount_data::{Definition, Draw, Parameter, Sample, Split, Task, TaskError, in_range, register};
use serde::Deserialize;

/// Parity of the bits read so far, asked for at every position.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parity {
    /// Bits a sample, 2 to 1024, and even.
    pub bits: usize,
}

impl Default for Parity {
    fn default() -> Self {
        Self { bits: 16 }
    }
}

impl Definition for Parity {
    fn kind(&self) -> &'static str {
        "parity"
    }

    fn about(&self) -> &'static str {
        "Bits one after another; at each the model must say whether it has read an odd number of ones."
    }

    fn prediction(&self) -> &'static str {
        "Every bit counts alike, which one head that averages can do: head counts should end alike."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("bits", self.bits.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        in_range("bits", self.bits, 2, 1024)?;
        if !self.bits.is_multiple_of(2) {
            let message = format!("bits = {} is odd", self.bits);
            return Err(TaskError::Impossible { keys: &["bits"], message });
        }
        Ok(())
    }

    fn vocab(&self) -> usize {
        2
    }

    fn outputs(&self) -> usize {
        2
    }

    fn seq_len(&self) -> usize {
        self.bits
    }

    fn prepare(&self) -> Draw {
        let bits = self.bits;
        Arc::new(move |stream| {
            let tokens: Vec<u32> = (0..bits).map(|_| stream.below(2) as u32).collect();
            let parity = |odd: &mut i32, &bit: &u32| {
                *odd ^= bit as i32;
                Some(*odd)
            };
            let targets = tokens.iter().scan(0, parity).collect();
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let lines = sample.tokens.iter().zip(&sample.targets).map(|(bit, odd)| format!("{bit}  * {odd}\n"));
        format!("{} bits; * = whether the ones so far are odd in number\n{}", self.bits, lines.collect::<String>())
    }
}

/// See above.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    register::<Parity>()?;

    // As a config's section has it: `kind` names the task, the other keys are its parameters.
    let mut section: toml::Table = toml::from_str("kind = 'parity'\nbits = 8")?;
    let kind = section.remove("kind").ok_or("no kind")?;
    let task = Task::from_kind(kind.as_str().unwrap_or_default(), section).ok_or("no such task")??;
    task.check()?;

    println!("{}\n", task.about());
    print!("{}", task.explain(&task.sample(Split::Train, 0, 0)));
    Ok(())
}
