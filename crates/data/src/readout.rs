//! A task whose one answer is asked for at a token of its own.

use std::path::Path;
use std::sync::Arc;

use crate::answers::Answers;
use crate::definition::{Definition, Draw, Needed, Task};
use crate::error::TaskError;
use crate::file_error::FileError;
use crate::order::Sets;
use crate::parameter::Parameter;
use crate::sample::{IGNORE, NumberSizes, Numbers, Sample};
use crate::stored::Stored;

/// Such a task: see [`Task::with_readout`]. It is called as the task itself is, and has its parameters.
#[derive(Debug)]
pub(crate) struct WithReadout(pub Task);

impl Task {
    /// The same task with a read-out token before every sample, at which its one answer is asked for instead of at the last real
    /// position; the task itself where it has one, or has not [one answer](Definition::one_answer) for the whole sample.
    ///
    /// Samples are longer by that position. Its token is [`Definition::vocab`], which no other is, and its numbers are 0: a
    /// model has something of its own to read there.
    pub fn with_readout(&self) -> Self {
        if self.readout() || !self.one_answer() || self.source().is_some() {
            return self.clone();
        }
        Self::new(WithReadout(self.clone()))
    }
}

/// `sample` behind a read-out whose token is `token`, which is asked for what was asked last.
pub(crate) fn with_readout(sample: Sample, token: u32) -> Sample {
    let Sample { mut tokens, mut targets, real, source, numbers } = sample;
    let asked = targets.iter().rposition(|&target| target != IGNORE);
    let answer = asked.map_or(IGNORE, |position| std::mem::replace(&mut targets[position], IGNORE));
    targets.insert(0, answer);
    if !tokens.is_empty() {
        tokens.insert(0, token);
    }
    let positions = targets.len() - 1;
    let numbers = numbers.map(|Numbers { inputs, targets, scored }| {
        let width = |numbers: &[f32]| numbers.len().checked_div(positions).unwrap_or(0);
        let (read, said) = (width(&inputs), width(&targets));
        let asked = scored.iter().rposition(|&scored| scored);
        let answer = asked.map_or(vec![0.0; said], |position| targets[position * said..(position + 1) * said].to_vec());
        let has_numbers = !scored.is_empty();
        Numbers {
            inputs: [vec![0.0; read], inputs].concat(),
            targets: [answer, vec![0.0; targets.len()]].concat(),
            scored: if has_numbers { [vec![asked.is_some()], vec![false; positions]].concat() } else { scored },
        }
    });
    Sample { tokens, targets, real: real + 1, source, numbers }
}

/// `sample` as it was before [`with_readout`].
fn without_readout(sample: &Sample) -> Sample {
    let real = sample.real.saturating_sub(1);
    let mut targets: Vec<i32> = sample.targets.iter().skip(1).copied().collect();
    if let (Some(&answer), Some(last)) = (sample.targets.first(), targets.get_mut(real.saturating_sub(1))) {
        *last = answer;
    }
    let positions = sample.targets.len().max(1);
    let numbers = sample.numbers.as_ref().map(|numbers| {
        let (read, said) = (numbers.inputs.len() / positions, numbers.targets.len() / positions);
        let mut targets: Vec<f32> = numbers.targets.iter().skip(said).copied().collect();
        let mut scored: Vec<bool> = numbers.scored.iter().skip(1).copied().collect();
        if let (Some(&asked), Some(last)) = (numbers.scored.first(), real.checked_sub(1)) {
            scored[last] = asked;
            targets[last * said..(last + 1) * said].copy_from_slice(&numbers.targets[..said]);
        }
        Numbers { inputs: numbers.inputs.iter().skip(read).copied().collect(), targets, scored }
    });
    let tokens = sample.tokens.iter().skip(1).copied().collect();
    Sample { tokens, targets, real, source: sample.source.clone(), numbers }
}

impl Definition for WithReadout {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn about(&self) -> &'static str {
        self.0.about()
    }

    fn prediction(&self) -> &'static str {
        self.0.prediction()
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        self.0.parameters()
    }

    fn instance_seeds(&self) -> &'static [&'static str] {
        self.0.instance_seeds()
    }

    fn check(&self) -> Result<(), TaskError> {
        self.0.check()
    }

    fn vocab(&self) -> usize {
        self.0.vocab()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn seq_len(&self) -> usize {
        self.0.seq_len() + 1
    }

    fn numbers(&self) -> Option<NumberSizes> {
        self.0.numbers()
    }

    fn distinct_samples(&self) -> Option<u128> {
        self.0.distinct_samples()
    }

    fn one_answer(&self) -> bool {
        true
    }

    fn readout(&self) -> bool {
        true
    }

    fn plain(&self) -> Option<&Task> {
        Some(&self.0)
    }

    fn both_ways(&self) -> bool {
        true
    }

    fn open(&self, folder: &Path, sets: &Sets) -> Option<Result<Task, FileError>> {
        Some(self.0.open(folder, sets)?.map(|task| task.with_readout()))
    }

    fn stored(&self) -> Option<&Arc<Stored>> {
        self.0.stored()
    }

    /// Of the task itself: whoever draws adds the read-out.
    fn prepare(&self) -> Draw {
        self.0.prepare()
    }

    fn explain(&self, sample: &Sample) -> String {
        let text = self.0.explain(&without_readout(sample));
        format!("{}\n       the answer is said at a read-out token before all of these\n", text.trim_end())
    }

    fn answers(&self) -> Answers {
        self.0.answers()
    }

    fn token_name(&self, token: u32) -> String {
        if token as usize == self.vocab() { "read-out".into() } else { self.0.token_name(token) }
    }

    fn answer_name(&self, class: u32) -> String {
        self.0.answer_name(class)
    }

    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let last = sample.real.checked_sub(2).filter(|_| position == 0);
        let mut needed = last.map_or(vec![], |last| self.0.needed(&without_readout(sample), last));
        needed.iter_mut().flat_map(|part| &mut part.positions).for_each(|position| *position += 1);
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::sample::Split;
    use crate::tasks::{DRetrieval, Registers};

    #[test]
    fn the_one_answer_is_asked_for_at_the_read_out() {
        let plain = Task::new(DRetrieval { seq_len: 5, ..DRetrieval::default() });
        let task = plain.with_readout();
        assert_eq!((task.seq_len(), task.readout(), task.kind()), (6, true, "d_retrieval"));
        assert_eq!(task, plain); // by its parameters
        assert_eq!(task.downcast::<DRetrieval>().map(|task| task.seq_len), Some(5));
        let sample = Generator::new(&plain, Split::Test, 3).sample(7);
        let with = Generator::new(&task, Split::Test, 3).sample(7);
        let (own, other) = (sample.numbers.clone().unwrap(), with.numbers.clone().unwrap());
        assert_eq!((with.real, &other.inputs[..4], &other.inputs[4..]), (6, &[0.0; 4][..], &own.inputs[..]));
        assert_eq!((other.targets[0], &other.targets[1..]), (own.targets[4], &[0.0; 5][..]));
        assert_eq!(other.scored, [true, false, false, false, false, false]);
        assert_eq!(without_readout(&with), sample);
        let batch = Generator::new(&task, Split::Test, 3).batch(&[7, 8]);
        assert_eq!((batch.len, batch.scored(), batch.targets.len()), (6, 2, 12));
        let needed = |task: &Task, sample: &Sample, position| -> Vec<usize> {
            task.needed(sample, position).iter().flat_map(|part| part.positions.clone()).collect()
        };
        let moved: Vec<usize> = needed(&plain, &sample, 4).into_iter().map(|position| position + 1).collect();
        assert_eq!((needed(&task, &with, 0), needed(&task, &with, 5)), (moved, vec![]));
        assert!(task.explain(&with).contains("read-out"), "{}", task.explain(&with));
        assert_eq!(task.instance("direction_seed", 4).unwrap().seq_len(), 6);
        // Where every position is asked there is no one answer.
        let registers = Task::new(Registers::default());
        assert!(!registers.with_readout().readout());
    }

    #[test]
    fn tokens_padding_and_classes_come_along() {
        let targets = vec![IGNORE, IGNORE, 3, IGNORE];
        let sample = Sample { real: 3, ..Sample::new(vec![5, 6, 7, 0], targets) };
        let with = with_readout(sample.clone(), 9);
        assert_eq!(with.tokens, [9, 5, 6, 7, 0]);
        assert_eq!((with.targets.clone(), with.real), (vec![3, IGNORE, IGNORE, IGNORE, IGNORE], 4));
        assert_eq!(without_readout(&with), sample);
    }
}
