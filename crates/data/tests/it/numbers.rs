//! A task in real numbers goes the same way as one in tokens: generator, batch, fingerprint.

use std::sync::Arc;

use headcount_data::{
    Batch, Definition, Draw, Generator, IGNORE, NumberSizes, Numbers, Parameter, Sample, Sets, Split, Task, TaskError,
    fingerprint,
};

/// Points of a plane, a varying number of them. Every second real position is scored; its targets are the sum of the points
/// so far and the greatest first coordinate among them: O = 3.
#[derive(Clone, Copy, Debug)]
struct Points {
    least: usize,
    most: usize,
    scale: f64,
}

impl Definition for Points {
    fn kind(&self) -> &'static str {
        "points"
    }
    fn about(&self) -> &'static str {
        "points of a plane"
    }
    fn prediction(&self) -> &'static str {
        "none"
    }
    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("least", self.least.into()), ("most", self.most.into()), ("scale", self.scale.into())]
    }
    fn check(&self) -> Result<(), TaskError> {
        Ok(())
    }
    fn vocab(&self) -> usize {
        0
    }
    fn outputs(&self) -> usize {
        0
    }
    fn seq_len(&self) -> usize {
        self.most
    }
    fn numbers(&self) -> Option<NumberSizes> {
        Some(NumberSizes { inputs: 2, outputs: 3 })
    }
    fn prepare(&self) -> Draw {
        let Self { least, most, scale } = *self;
        Arc::new(move |stream| {
            let real = least + stream.below((most - least + 1) as u64) as usize;
            let mut numbers = Numbers {
                inputs: (0..2 * real).map(|_| (scale * stream.uniform()) as f32).collect(),
                targets: vec![0.0; 3 * most],
                scored: (0..most).map(|position| position < real && position % 2 == 1).collect(),
            };
            for position in (0..real).filter(|position| position % 2 == 1) {
                let read = &numbers.inputs[..2 * (position + 1)];
                let sum = |axis: usize| read.iter().skip(axis).step_by(2).sum::<f32>();
                let greatest = read.iter().step_by(2).copied().fold(0.0, f32::max);
                let target = [sum(0), sum(1), greatest];
                numbers.targets[3 * position..3 * (position + 1)].copy_from_slice(&target);
            }
            numbers.inputs.resize(2 * most, 0.0);
            Sample { real, ..Sample::of_numbers(most, numbers) }
        })
    }
    fn explain(&self, sample: &Sample) -> String {
        format!("{} points", sample.real)
    }
}

const POINTS: Points = Points { least: 3, most: 6, scale: 1.0 };

#[test]
fn numbers_of_samples_stand_side_by_side_in_a_batch() {
    let task = Task::new(POINTS);
    let generator = Generator::new(&task, Split::Train, 0);
    let batch = generator.batch(&(0..40).collect::<Vec<_>>());
    let numbers = batch.numbers.as_ref().unwrap();
    assert_eq!((batch.batch, batch.len, batch.tokens.len(), batch.targets.len()), (40, 6, 0, 240));
    assert_eq!((numbers.inputs.len(), numbers.targets.len(), numbers.scored.len()), (480, 720, 240));
    assert_eq!(batch.token_count(), 240);

    let mut lengths = std::collections::HashSet::new();
    for row in 0..40 {
        let sample = generator.sample(row as u64);
        let own = sample.numbers.as_ref().unwrap();
        assert_eq!(numbers.inputs[12 * row..12 * (row + 1)], own.inputs);
        assert_eq!(numbers.targets[18 * row..18 * (row + 1)], own.targets);
        assert_eq!(batch.padding[6 * row..6 * (row + 1)].iter().filter(|&&padding| !padding).count(), sample.real);
        assert_eq!(batch.rows(row..row + 1), generator.batch(&[row as u64]));
        assert!(own.inputs.iter().all(|number| (0.0..1.0).contains(number)));
        lengths.insert(sample.real);
    }
    assert_eq!(lengths.len(), 4, "every length comes up");
}

#[test]
fn scored_numbers_are_picked_out_by_position() {
    let scored = vec![false, true, true, false];
    let targets = vec![0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 0.0, 0.0];
    let numbers = Numbers { inputs: vec![], targets, scored };
    let batch = Batch { numbers: Some(numbers), ..Batch::new(2, 2, vec![5; 4], vec![IGNORE; 4]) };
    assert_eq!(batch.scored_numbers(), (vec![1, 2], vec![1.0, 2.0, 0.0, 3.0]));
    assert_eq!((batch.scored(), batch.scored_positions()), (2, (vec![], vec![])));
    let with_classes = Batch { targets: vec![7, 7, IGNORE, IGNORE], ..batch };
    assert_eq!((with_classes.scored(), with_classes.scored_positions()), (3, (vec![0, 1], vec![7, 7])));

    let generator = Generator::new(&Task::new(POINTS), Split::Test, 0);
    let batch = generator.batch(&(0..10).collect::<Vec<_>>());
    let (positions, targets) = batch.scored_numbers();
    assert_eq!((positions.len(), targets.len()), (batch.scored(), 3 * batch.scored()));
    assert!(positions.iter().all(|&position| position % 2 == 1 && !batch.padding[position as usize]));
    assert!(targets.chunks(3).all(|target| target[0] >= target[2] && target[2] > 0.0), "a sum is not below its parts");

    let empty = generator.batch(&[]);
    assert_eq!((empty.scored(), empty.scored_numbers()), (0, (vec![], vec![])));
    assert_eq!(Batch::new(1, 1, vec![0], vec![0]).scored_numbers(), (vec![], vec![]));
}

/// `Points` with something that is not a parameter changed behind its name: only the samples can tell.
#[derive(Clone, Copy, Debug)]
struct Changed(fn(&mut Sample));

impl Definition for Changed {
    fn kind(&self) -> &'static str {
        POINTS.kind()
    }
    fn about(&self) -> &'static str {
        POINTS.about()
    }
    fn prediction(&self) -> &'static str {
        POINTS.prediction()
    }
    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        POINTS.parameters()
    }
    fn check(&self) -> Result<(), TaskError> {
        Ok(())
    }
    fn vocab(&self) -> usize {
        0
    }
    fn outputs(&self) -> usize {
        0
    }
    fn seq_len(&self) -> usize {
        POINTS.seq_len()
    }
    fn numbers(&self) -> Option<NumberSizes> {
        POINTS.numbers()
    }
    fn prepare(&self) -> Draw {
        let (draw, change) = (POINTS.prepare(), self.0);
        Arc::new(move |stream| {
            let mut sample = draw(stream);
            change(&mut sample);
            sample
        })
    }
    fn explain(&self, sample: &Sample) -> String {
        POINTS.explain(sample)
    }
}

#[test]
fn the_fingerprint_covers_numbers_lengths_and_what_is_scored() {
    let sets = Sets { train_examples: Some(5), validation_examples: 5, test_examples: 5 };
    let print = |task: Task| fingerprint(&task, &sets, 0);
    let first = print(Task::new(POINTS));
    assert_eq!(first, print(Task::new(Changed(|_| ()))));
    let changes: [fn(&mut Sample); 4] = [
        |sample| sample.numbers.as_mut().unwrap().inputs[0] += 0.5,
        |sample| sample.numbers.as_mut().unwrap().targets[3] += 0.5,
        |sample| sample.numbers.as_mut().unwrap().scored[1] = false,
        |sample| sample.real -= 1,
    ];
    let mut seen = std::collections::HashSet::from([first]);
    for change in changes {
        assert!(seen.insert(print(Task::new(Changed(change)))));
    }
    assert!(seen.insert(print(Task::new(Points { scale: 2.0, ..POINTS }))));
}
