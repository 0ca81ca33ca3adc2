//! `registers`: remember the latest value written to each of several registers.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::random::Stream;
use crate::sample::{IGNORE, Sample};

/// Most entries of the table: 4 MiB.
const TABLE_LIMIT: usize = 1 << 20;

/// Parameters of `registers`: D registers, each holding one of P values.
///
/// A token writes value v into register r: id = r * P + v; tokens are uniform. Position t is scored if and only if every
/// register has been written in `0..=t`; its target is `table[sum over r of v_r * P^r]` of the latest values v_r.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Registers {
    /// D, the number of registers, at least 1. P^D may be at most 2^20.
    pub registers: usize,
    /// P, the number of values a register can hold, at least 2.
    pub values: usize,
    /// Length of a sample in tokens, from D to 65,536.
    pub seq_len: usize,
    /// Number of classes that the table's entries come from, 2 to 2^20.
    pub outputs: usize,
    /// Seed of the table. It depends on nothing else that varies: neither on the split nor on the run's seed.
    pub table_seed: u64,
}

impl Default for Registers {
    fn default() -> Self {
        Self { registers: 4, values: 4, seq_len: 32, outputs: 8, table_seed: 0 }
    }
}

impl Registers {
    /// The target of each position of `tokens` under `table`.
    fn targets(&self, table: &[u32], tokens: &[u32]) -> Vec<i32> {
        let mut memory = Memory::new(self);
        let target = |&token: &u32| {
            memory.write(token as usize);
            memory.index().map_or(IGNORE, |index| table[index] as i32)
        };
        tokens.iter().map(target).collect()
    }

    /// The target of each state of the registers, `[P^D]`, each uniform in `0..outputs`; state v_0, v_1, ... stands at
    /// index sum of v_r * P^r. A function of D, P, `outputs` and `table_seed`.
    pub fn table(&self) -> Vec<u32> {
        let Self { registers, values, seq_len: _, outputs, table_seed } = *self;
        let parameters = format!("{registers} {values} {outputs} {table_seed}");
        let mut stream = Stream::shared(&["registers table", &parameters]);
        (0..values.pow(registers as u32)).map(|_| stream.below(outputs as u64) as u32).collect()
    }
}

/// The latest value of each register.
struct Memory {
    values: usize,
    latest: Vec<Option<usize>>,
}

impl Memory {
    fn new(task: &Registers) -> Self {
        Self { values: task.values, latest: vec![None; task.registers] }
    }

    fn write(&mut self, token: usize) {
        self.latest[token / self.values] = Some(token % self.values);
    }

    /// The index of this state in the table, once every register has been written.
    fn index(&self) -> Option<usize> {
        self.latest.iter().rev().try_fold(0, |index, value| Some(index * self.values + (*value)?))
    }
}

impl Definition for Registers {
    fn kind(&self) -> &'static str {
        "registers"
    }

    fn about(&self) -> &'static str {
        "Each token writes a value into a register. Once every register has been written, the \
        model must name, at every position, the class that a fixed random table assigns to the latest values of all \
        registers together."
    }

    fn prediction(&self) -> &'static str {
        "One layer must hold several attention patterns at once, one for each register: \
        accuracy rises with the number of heads until about heads = registers, the more the more registers there are."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { registers, values, seq_len, outputs, table_seed } = *self;
        vec![
            ("registers", registers.into()),
            ("values", values.into()),
            ("seq_len", seq_len.into()),
            ("outputs", outputs.into()),
            ("table_seed", table_seed.into()),
        ]
    }

    fn instance_seeds(&self) -> &'static [&'static str] {
        &["table_seed"]
    }

    fn check(&self) -> Result<(), TaskError> {
        let Self { registers, values, seq_len, outputs, table_seed } = *self;
        in_range("registers", registers, 1, 20)?;
        in_range("values", values, 2, TABLE_LIMIT)?;
        in_range("seq_len", seq_len, 1, 65_536)?;
        in_range("outputs", outputs, 2, 1 << 20)?;
        in_range("table_seed", table_seed, 0, i64::MAX as u64)?; // TOML has no larger integers
        if values.checked_pow(registers as u32).is_none_or(|entries| entries > TABLE_LIMIT) {
            return Err(TaskError::TableTooLarge { registers, values, limit: TABLE_LIMIT });
        }
        if seq_len < registers {
            return Err(TaskError::TooShortToScore { seq_len, registers });
        }
        Ok(())
    }

    fn vocab(&self) -> usize {
        self.registers * self.values
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    /// Every sequence of tokens: vocab^seq_len.
    fn distinct_samples(&self) -> Option<u128> {
        Some((self.vocab() as u128).saturating_pow(self.seq_len as u32))
    }

    fn prepare(&self) -> Draw {
        let (task, table) = (*self, self.table());
        Arc::new(move |stream| {
            let tokens: Vec<u32> = (0..task.seq_len).map(|_| stream.below(task.vocab() as u64) as u32).collect();
            let targets = task.targets(&table, &tokens);
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let mut text = format!(
            "{} registers of {} values: token = register * {} + value; * = scored\n    t  token  writes    ",
            self.registers, self.values, self.values
        );
        let width = (self.values - 1).to_string().len().max((self.registers - 1).to_string().len() + 1);
        for register in 0..self.registers {
            let _ = write!(text, " {:>width$}", format!("r{register}"));
        }
        text.push_str("   target\n");
        let mut memory = Memory::new(self);
        for (position, (&token, &target)) in sample.tokens.iter().zip(&sample.targets).enumerate() {
            let (register, value) = (token as usize / self.values, token as usize % self.values);
            memory.write(token as usize);
            let _ = write!(text, "{position:>5}  {token:>5}  {:<10}", format!("r{register} = {value}"));
            for value in &memory.latest {
                let _ = write!(text, " {:>width$}", value.map_or("-".to_string(), |value| value.to_string()));
            }
            if target != IGNORE {
                let _ = write!(text, "   * {target}");
            }
            text.push('\n');
        }
        text
    }

    fn token_name(&self, token: u32) -> String {
        format!("r{}={}", token as usize / self.values, token as usize % self.values)
    }

    fn answer_name(&self, class: u32) -> String {
        format!("class {class}")
    }

    /// `register r`: its latest write, up to the position itself.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        if sample.targets[position] == IGNORE {
            return vec![];
        }
        let latest = |register: usize| {
            let writes = |&token: &u32| token as usize / self.values == register;
            sample.tokens[..=position].iter().rposition(writes)
        };
        let group = |register| Some(Needed::own(format!("register {register}"), vec![latest(register)?]));
        (0..self.registers).filter_map(group).collect()
    }

    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        Some(self.targets(&self.table(), read))
    }
}
