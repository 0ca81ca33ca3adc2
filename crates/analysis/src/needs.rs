//! What the answers of the samples depend on, as their task has it.

use std::collections::BTreeMap;

use data::{Batch, IGNORE, Task};

/// The positions that each answer depends on, in groups that have names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Such as "register 0"; empty where the task does not say.
    pub groups: Vec<String>,
    /// By sample and position: what the answer that is asked for there depends on.
    pub answers: BTreeMap<(usize, usize), Answer>,
}

/// What one answer depends on, `[groups][positions]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Positions of the decoder's own sequence, its own position among them.
    pub own: Vec<Vec<usize>>,
    /// Positions of the source.
    pub source: Vec<Vec<usize>>,
}

impl Needs {
    /// Of the samples of a batch. This is the only place that asks the task.
    pub fn of(task: &Task, batch: &Batch) -> Self {
        let Task::Registers(task) = task else { return Self::default() };
        let latest_writes = |sample: &[i32]| {
            let of_register = |register| sample.iter().rposition(|&token| token as usize / task.values == register);
            (0..task.registers).map(|register| of_register(register).into_iter().collect()).collect()
        };
        let mut answers = BTreeMap::new();
        for (b, targets) in batch.targets.chunks(batch.len).enumerate() {
            for i in (0..batch.len).filter(|&i| targets[i] != IGNORE) {
                let own = latest_writes(&batch.tokens[b * batch.len..=b * batch.len + i]);
                answers.insert((b, i), Answer { own, source: vec![] });
            }
        }
        Self { groups: (0..task.registers).map(|register| format!("register {register}")).collect(), answers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_need_the_latest_write_of_each() {
        let task = Task::Registers(data::tasks::Registers { registers: 2, values: 2, ..Default::default() });
        // The tokens write registers 0, 1, 0 and 0.
        let batch = Batch { batch: 1, len: 4, tokens: vec![1, 2, 0, 1], targets: vec![IGNORE, 3, 0, 1], source: None };
        let needs = Needs::of(&task, &batch);
        assert_eq!(needs.groups, ["register 0", "register 1"]);
        let own = |i| needs.answers[&(0, i)].own.clone();
        assert_eq!((own(1), own(3)), (vec![vec![0], vec![1]], vec![vec![3], vec![1]]));
        assert_eq!(needs.answers.len(), 3);
    }
}
