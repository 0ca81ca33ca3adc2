//! `mqar` has Zoology's distributions.

use std::collections::{HashMap, HashSet};

use headcount_data::{Fill, Generator, IGNORE, Mqar, Sample, Split, Task};

use crate::{assert_fits, assert_uniform, mqar};

fn samples(task: &Mqar, count: u64) -> impl Iterator<Item = Sample> {
    let task = Task::new(*task);
    task.check().expect("parameters of a test are possible");
    let generator = Generator::new(&task, Split::Train, 0);
    (0..count).map(move |index| generator.sample(index))
}

/// The slot (from 0) that each pair's query stands in, in the order of the pairs.
fn query_slots(task: &Mqar, sample: &Sample) -> Vec<usize> {
    let first = 2 * task.pairs;
    let slot_of = |pair: usize| {
        let scored = |&position: &usize| {
            sample.targets[position] != IGNORE && sample.tokens[position] == sample.tokens[2 * pair]
        };
        let position = (first..task.seq_len).find(scored).expect("every pair has a query");
        assert_eq!(position % 2, 0, "queries stand at the start of a slot");
        (position - first) / 2
    };
    (0..task.pairs).map(slot_of).collect()
}

/// p(i) proportional to i^(a-1), slots from 1.
fn slot_probabilities(task: &Mqar) -> Vec<f64> {
    let slots = (task.seq_len - 2 * task.pairs) / 2;
    let weights: Vec<f64> = (1..=slots).map(|slot| (slot as f64).powf(task.power_a - 1.0)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn a_sample_is_pairs_then_queries_and_fill() {
    for task in [mqar(64, 32, 4), mqar(33, 32, 8), mqar(5, 4, 1), mqar(256, 64, 4), mqar(8192, 512, 64)] {
        for sample in samples(&task, 300) {
            assert_eq!((sample.tokens.len(), sample.targets.len()), (task.seq_len, task.seq_len));
            let first_value = task.vocab as u32 / 2;
            let mut pairs = HashMap::new();
            for pair in sample.tokens[..2 * task.pairs].chunks(2) {
                assert!((1..first_value).contains(&pair[0]) && (first_value..task.vocab as u32).contains(&pair[1]));
                assert_eq!(pairs.insert(pair[0], pair[1]), None, "no key comes twice");
            }
            assert_eq!(pairs.values().collect::<HashSet<_>>().len(), task.pairs, "no value comes twice");

            let scored: Vec<usize> = (0..task.seq_len).filter(|&t| sample.targets[t] != IGNORE).collect();
            assert!(scored[0] >= 2 * task.pairs);
            for &position in &scored {
                let value = pairs.remove(&sample.tokens[position]).expect("each key is asked for once");
                assert_eq!(sample.targets[position], value as i32, "a query's target is its key's value");
            }
            assert!(pairs.is_empty(), "every key is asked for");
        }
    }
}

#[test]
fn a_quarter_of_the_draws_fall_into_the_first_of_28_slots() {
    let task = mqar(256, 64, 4);
    let probabilities = slot_probabilities(&task);
    assert_eq!(probabilities.len(), 28);
    assert!((probabilities[0] - 0.25).abs() < 0.01, "{}", probabilities[0]);

    // Pair 0 draws from all slots, pair 1 from those that pair 0 left.
    let mut counts = [[0; 28]; 2];
    for sample in samples(&task, 40_000) {
        let slots = query_slots(&task, &sample);
        counts[0][slots[0]] += 1;
        counts[1][slots[1]] += 1;
    }
    assert_fits("first draw", &counts[0], &probabilities);
    let odds: f64 = probabilities.iter().map(|p| p / (1.0 - p)).sum();
    let second: Vec<f64> = probabilities.iter().map(|p| p * (odds - p / (1.0 - p))).collect();
    assert_fits("second draw", &counts[1], &second);
}

#[test]
fn slots_are_drawn_one_after_another_without_replacement() {
    // Six slots, four pairs: the exact probability of each of the 360 outcomes.
    for power_a in [0.01, 1.0, 2.5] {
        let task = Mqar { power_a, ..mqar(32, 20, 4) };
        let p = slot_probabilities(&task);
        let mut outcomes = vec![(vec![], 1.0)];
        for _ in 0..4 {
            let mut longer = vec![];
            for (taken, probability) in &outcomes {
                let left: f64 = (0..6).filter(|slot| !taken.contains(slot)).map(|slot| p[slot]).sum();
                for slot in (0..6).filter(|slot| !taken.contains(slot)) {
                    longer.push(([&taken[..], &[slot]].concat(), probability * p[slot] / left));
                }
            }
            outcomes = longer;
        }
        assert_eq!(outcomes.len(), 360);

        let mut seen: HashMap<Vec<usize>, u64> = HashMap::new();
        for sample in samples(&task, 100_000) {
            *seen.entry(query_slots(&task, &sample)).or_default() += 1;
        }
        // Outcomes too rare to judge one by one are judged together.
        let (common, rare): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, probability)| *probability > 1e-4);
        let mut counts: Vec<u64> = common.iter().map(|(slots, _)| seen.remove(slots).unwrap_or(0)).collect();
        let mut probabilities: Vec<f64> = common.iter().map(|(_, probability)| *probability).collect();
        if !rare.is_empty() {
            counts.push(seen.values().sum());
            probabilities.push(rare.iter().map(|(_, probability)| probability).sum());
        }
        assert_fits(&format!("slots at a = {power_a}"), &counts, &probabilities);
    }
}

#[test]
fn keys_and_values_are_uniform_at_every_place() {
    let task = mqar(32, 16, 4);
    let mut keys = [[0; 15]; 4];
    let mut values = [[0; 16]; 4];
    let mut together = vec![0; 15 * 16];
    for sample in samples(&task, 20_000) {
        for pair in 0..4 {
            let (key, value) = (sample.tokens[2 * pair] as usize - 1, sample.tokens[2 * pair + 1] as usize - 16);
            keys[pair][key] += 1;
            values[pair][value] += 1;
            if pair == 0 {
                together[16 * key + value] += 1;
            }
        }
    }
    for pair in 0..4 {
        assert_uniform("keys", &keys[pair]);
        assert_uniform("values", &values[pair]);
    }
    assert_uniform("key and value", &together);
}

#[test]
fn fill_is_uniform_over_the_vocabulary_or_zero() {
    // Six slots for four queries: the two fill positions within slots, and those after them, come from one distribution.
    let random = mqar(24, 20, 4);
    let mut counts = [[0; 24]; 2];
    for sample in samples(&random, 10_000) {
        for position in (8..20).filter(|&position| sample.targets[position] == IGNORE) {
            counts[position % 2][sample.tokens[position] as usize] += 1;
        }
    }
    assert_uniform("fill of empty slots", &counts[0]);
    assert_uniform("fill after queries", &counts[1]);

    for sample in samples(&Mqar { fill: Fill::Zero, ..random }, 100) {
        let fill = (8..20).filter(|&position| sample.targets[position] == IGNORE);
        assert_eq!(fill.map(|position| sample.tokens[position]).collect::<Vec<_>>(), [0; 8]);
    }
}

/// huggingface/trl#6357: what is ignored is a matter of position; a fill token that equals a key changes nothing.
#[test]
fn trl_6357_ignored_by_position_not_by_token() {
    let task = mqar(33, 32, 8);
    let lookalikes = samples(&task, 200)
        .flat_map(|sample| {
            let keys: HashSet<u32> = sample.tokens[..16].iter().copied().step_by(2).collect();
            assert_eq!(sample.targets.iter().filter(|&&target| target != IGNORE).count(), 8);
            (16..32).map(move |t| sample.targets[t] == IGNORE && keys.contains(&sample.tokens[t])).collect::<Vec<_>>()
        })
        .filter(|&lookalike| lookalike)
        .count();
    assert!(lookalikes > 200, "the case came up {lookalikes} times only");
}

#[test]
fn splits_and_seeds_share_no_sample() {
    let task = Task::new(mqar(64, 32, 4));
    let mut seen = HashSet::new();
    for (split, seed) in [(Split::Train, 0), (Split::Train, 1), (Split::Validation, 0), (Split::Test, 0)] {
        let generator = Generator::new(&task, split, seed);
        assert!((0..500).all(|index| seen.insert(generator.sample(index).tokens)), "{split}, seed {seed}");
    }
}
