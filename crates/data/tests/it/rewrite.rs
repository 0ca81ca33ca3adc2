//! `reverse` and `sort` are what their definitions say.

use headcount_data::{Generator, IGNORE, Reverse, Sample, Sort, Source, Split, Task};

use crate::{assert_fits, assert_uniform};

fn reverse(vocab: usize, min_len: usize, max_len: usize) -> Task {
    Task::new(Reverse::new(vocab, min_len, max_len))
}

fn sort(vocab: usize, min_len: usize, max_len: usize) -> Task {
    Task::new(Sort::new(vocab, min_len, max_len))
}

fn samples(task: &Task, split: Split, count: u64) -> impl Iterator<Item = (Sample, Source)> {
    task.check().expect("parameters of a test are possible");
    let generator = Generator::new(task, split, 0);
    (0..count).map(move |index| {
        let sample = generator.sample(index);
        let source = sample.source.clone().expect("a source");
        (sample, source)
    })
}

/// The target by another way than the task's: from the end, or the smallest of what is left.
fn naive_target(task: &Task, mut left: Vec<u32>) -> Vec<u32> {
    let mut target = vec![];
    while !left.is_empty() {
        let next = match task.kind() {
            "sort" => (0..left.len()).min_by_key(|&place| left[place]).expect("not empty"),
            _ => left.len() - 1,
        };
        target.push(left.remove(next));
    }
    target
}

#[test]
fn the_decoder_reads_start_and_prefix_and_names_the_rest() {
    let sizes = [(16, 4, 12), (2, 1, 1), (3, 1, 9), (50, 7, 7)];
    for task in sizes.into_iter().flat_map(|(v, least, most)| [reverse(v, least, most), sort(v, least, most)]) {
        let sizes = task.source().expect("a source");
        let boundary = sizes.vocab;
        assert_eq!((task.vocab(), task.outputs(), task.seq_len()), (boundary + 1, boundary + 1, sizes.len + 1));
        for split in [Split::Train, Split::Validation, Split::Test] {
            for (sample, source) in samples(&task, split, 200) {
                let target = naive_target(&task, source.tokens[..source.real].to_vec());
                let n = target.len();
                // In: start, target. Out: target, end. Then padding, which is never scored.
                assert_eq!(sample.tokens[0], boundary as u32);
                assert_eq!(sample.tokens[1..=n], target);
                assert!(sample.targets[..n].iter().zip(&target).all(|(&said, &token)| said == token as i32));
                assert_eq!(sample.targets[n], boundary as i32);
                assert!(sample.targets[n + 1..].iter().all(|&target| target == IGNORE));
                assert_eq!((sample.real, source.real), (n + 1, n));
                assert!(sample.tokens[n + 1..].iter().chain(&source.tokens[n..]).all(|&token| token == 0));
            }
        }
    }
}

/// huggingface/trl#6357: a real token that equals the padding is still real, and scored.
#[test]
fn trl_6357_padding_is_known_from_the_length() {
    let task = reverse(2, 1, 4);
    let generator = Generator::new(&task, Split::Train, 0);
    let batch = generator.batch(&(0..200).collect::<Vec<_>>());
    let sources = batch.source.expect("sources");
    let real_zeros = sources.tokens.iter().zip(&sources.padding).filter(|&(&token, &padding)| token == 0 && !padding);
    assert!(real_zeros.count() > 100);
    let real = sources.padding.iter().filter(|&&padding| !padding).count();
    let scored = batch.targets.iter().filter(|&&target| target != IGNORE).count();
    assert_eq!(scored, real + batch.batch, "each real token, and an end for each sample");
}

#[test]
fn lengths_and_tokens_are_uniform() {
    for task in [reverse(16, 4, 12), sort(16, 4, 12)] {
        let (mut lengths, mut tokens, mut neighbours) = ([0; 9], [0; 16], [0; 256]);
        for (_, source) in samples(&task, Split::Train, 20_000) {
            lengths[source.real - 4] += 1;
            for pair in source.tokens[..source.real].chunks_exact(2) {
                tokens[pair[0] as usize] += 1;
                neighbours[(16 * pair[0] + pair[1]) as usize] += 1;
            }
        }
        assert_uniform("lengths", &lengths);
        assert_uniform("tokens", &tokens);
        assert_uniform("neighbouring tokens", &neighbours);
    }
}

#[test]
fn the_smallest_of_a_sorted_source_comes_first() {
    // P(min of n uniform tokens of V >= m) = ((V - m) / V)^n.
    let mut counts = [0; 5];
    for (sample, _) in samples(&sort(5, 3, 3), Split::Validation, 20_000) {
        counts[sample.targets[0] as usize] += 1;
    }
    let above = |m: usize| ((5 - m) as f64 / 5.0).powi(3);
    let probabilities: Vec<f64> = (0..5).map(|m| above(m) - above(m + 1)).collect();
    assert_fits("smallest", &counts, &probabilities);
}
