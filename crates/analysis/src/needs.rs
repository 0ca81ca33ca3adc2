//! What the answers of the samples depend on, as their task has it.

use std::collections::BTreeMap;

use data::{IGNORE, Sample, Side, Task};

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
    /// Of the samples of a batch, in their order. This is the only place that asks the task.
    pub fn of(task: &Task, samples: &[Sample]) -> Self {
        let mut needs = Self::default();
        for (b, sample) in samples.iter().enumerate() {
            let numbers =
                |i: usize| sample.numbers.as_ref().is_some_and(|numbers| numbers.scored.get(i) == Some(&true));
            for i in (0..sample.targets.len()).filter(|&i| sample.targets[i] != IGNORE || numbers(i)) {
                let mut answer = Answer::default();
                for needed in task.needed(sample, i) {
                    let known = needs.groups.iter().position(|group| *group == needed.name);
                    let group = known.unwrap_or_else(|| {
                        needs.groups.push(needed.name);
                        needs.groups.len() - 1
                    });
                    let groups = match needed.side {
                        Side::Own => &mut answer.own,
                        Side::Source => &mut answer.source,
                    };
                    groups.resize(groups.len().max(group + 1), vec![]);
                    groups[group] = needed.positions;
                }
                if answer != Answer::default() {
                    needs.answers.insert((b, i), answer);
                }
            }
        }
        needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data::{Split, tasks};

    fn needs(task: &Task) -> (Needs, Vec<Sample>) {
        let samples: Vec<Sample> = (0..8).map(|index| task.sample(Split::Validation, 0, index)).collect();
        (Needs::of(task, &samples), samples)
    }

    #[test]
    fn registers_need_the_latest_write_of_each() {
        let task = Task::new(tasks::Registers { registers: 2, values: 2, ..Default::default() });
        // The tokens write registers 0, 1, 0 and 0.
        let sample = Sample::new(vec![1, 2, 0, 1], vec![IGNORE, 3, 0, 1]);
        let needs = Needs::of(&task, &[sample]);
        assert_eq!(needs.groups, ["register 0", "register 1"]);
        let own = |i| needs.answers[&(0, i)].own.clone();
        assert_eq!((own(1), own(3)), (vec![vec![0], vec![1]], vec![vec![3], vec![1]]));
        assert_eq!(needs.answers.len(), 3);
    }

    #[test]
    fn recall_needs_its_pair_and_sorting_its_source() {
        let (needs, samples) = needs(&Task::new(tasks::Mqar::default()));
        assert_eq!(needs.groups, ["key", "value"]);
        for (&(b, i), answer) in &needs.answers {
            let [key, value] = [0, 1].map(|group| answer.own[group][0]);
            let sample = &samples[b];
            assert_eq!((sample.tokens[key], sample.tokens[value] as i32), (sample.tokens[i], sample.targets[i]));
        }
        let (needs, samples) = self::needs(&Task::new(tasks::Sort::default()));
        assert_eq!(needs.groups, ["source token"]);
        for (&(b, i), answer) in &needs.answers {
            assert!(answer.own.is_empty());
            let source = &samples[b].source.as_ref().unwrap().tokens;
            assert!(answer.source[0].iter().all(|&position| source[position] as i32 == samples[b].targets[i]));
        }
    }
}
