//! How much of a test set training has shown: counted, and where it can't be, estimated.

use std::collections::HashSet;

use headcount_data::{Generator, Overlap, Registers, Seen, Sets, Sort, Split, Task, overlap};

const SETS: Sets = Sets { train_examples: None, validation_examples: 100, test_examples: 200 };

fn of(task: &Task, sets: &Sets, trained: u64) -> Overlap {
    overlap(task, sets, Split::Test, 0, trained)
}

/// 2 + 4 + 8 sources: after some hundred samples there is nothing new.
#[test]
fn sorting_two_values_has_fourteen_sources() {
    let task = Task::new(Sort::new(2, 1, 3));
    let found = of(&task, &Sets::default(), 800 * 64);
    let expected =
        Overlap { split: Split::Test, samples: 2048, distinct: 14, seen: Seen::Exactly(2048), possible: Some(14) };
    assert_eq!(found, expected);
    assert_eq!(found.share(), 1.0);
    let text = "2048 of 2048 test samples are among those that training shows; 14 of the 2048 differ; there are 14 different \
                samples in all";
    assert_eq!(found.to_string(), text);
}

#[test]
fn large_tasks_share_nothing() {
    let found = of(&Task::new(Registers::default()), &SETS, 50_000);
    assert_eq!((found.seen, found.distinct, found.share()), (Seen::Exactly(0), 200, 0.0));
    assert_eq!(found.to_string(), "0 of 200 test samples are among those that training shows");
}

/// Counted by comparing samples in full.
#[test]
fn counts_are_those_of_comparing_every_pair() {
    let task = Task::new(Registers { registers: 1, values: 2, seq_len: 10, ..Registers::default() });
    let draw = |split: Split, indices: &[u64]| -> Vec<Vec<u32>> {
        let generator = Generator::new(&task, split, split.data_seed(5));
        indices.iter().map(|&index| generator.sample(index).tokens).collect()
    };
    let tested = draw(Split::Test, &(0..200).collect::<Vec<_>>());
    let compare = |shown: &[u64]| {
        let shown: HashSet<Vec<u32>> = draw(Split::Train, shown).into_iter().collect();
        tested.iter().filter(|sample| shown.contains(*sample)).count() as u64
    };
    for trained in [0, 1, 100, 1000] {
        let expected = Seen::Exactly(compare(&(0..trained).collect::<Vec<_>>()));
        assert_eq!(overlap(&task, &SETS, Split::Test, 5, trained).seen, expected, "{trained}");
    }
    // A fixed set is shown in its own order, and no more of it than there is.
    let fixed = Sets { train_examples: Some(300), ..SETS };
    let first = headcount_data::train_indices(&fixed, 5, 0, 0, 1, 50);
    assert_eq!(overlap(&task, &fixed, Split::Test, 5, 50).seen, Seen::Exactly(compare(&first)));
    let all: Vec<u64> = (0..300).collect();
    assert_eq!(overlap(&task, &fixed, Split::Test, 5, 10_000).seen, Seen::Exactly(compare(&all)));
}

/// 2^22 equally likely samples, of which two million are looked at, and training shows n: a share of 1 - (1 - 2^-22)^n is
/// seen.
#[test]
fn what_cannot_be_counted_is_estimated() {
    let task = Task::new(Registers { registers: 1, values: 2, seq_len: 22, ..Registers::default() });
    let sets = Sets { test_examples: 20_000, ..SETS };
    let found = of(&task, &sets, 4 << 22);
    let Seen::About(_) = found.seen else { panic!("{found:?}") };
    let share = 1.0 - (-4f64).exp();
    // What was seen among the first 762,600 has a standard error of 0.0026, which is raised to the 22nd power.
    assert!((found.share() - share).abs() < 0.005, "{} and not {share}", found.share());
    assert!(found.to_string().starts_with("about "), "{found}");
}
