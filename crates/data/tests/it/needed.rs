//! The positions that an answer is said to depend on are those that it does depend on.

use headcount_data::{Generator, IGNORE, Mqar, Needed, Registers, Reverse, Sample, Side, Sort, Split, Task};
use proptest::prelude::*;

use crate::{all_tasks, mqar, registers};

fn scored(sample: &Sample) -> impl Iterator<Item = usize> {
    (0..sample.targets.len()).filter(|&t| sample.targets[t] != IGNORE)
}

fn is_needed(groups: &[Needed], position: usize) -> bool {
    groups.iter().any(|group| group.positions.contains(&position))
}

#[test]
fn groups_are_positions_of_the_sample_with_names_that_stay() {
    for task in all_tasks() {
        let generator = Generator::new(&task, Split::Validation, 0);
        let mut names: Vec<String> = vec![];
        for index in 0..50 {
            let sample = generator.sample(index);
            for t in 0..task.seq_len() {
                let groups = task.needed(&sample, t);
                let numbers = sample.numbers.as_ref().is_some_and(|numbers| numbers.scored[t]);
                assert!(sample.targets[t] != IGNORE || numbers || groups.is_empty(), "{} {t}", task.kind());
                for group in &groups {
                    assert!(!group.positions.is_empty() && group.positions.is_sorted_by(|a, b| a < b), "{group:?}");
                    let end = match group.side {
                        Side::Own if task.both_ways() => task.seq_len(),
                        Side::Own => t + 1,
                        Side::Source => sample.source.as_ref().unwrap().real,
                    };
                    assert!(group.positions.iter().all(|&position| position < end), "{group:?} at {t}");
                }
                let found: Vec<String> = groups.into_iter().map(|group| group.name).collect();
                if names.is_empty() {
                    names = found;
                } else {
                    assert!(found.is_empty() || found == names, "{found:?} and {names:?}");
                }
            }
        }
        let expected: &[&str] = match task.kind() {
            "registers" => &["register 0", "register 1", "register 2", "register 3"],
            "mqar" => &["key", "value"],
            "reverse" | "sort" => &["source token"],
            "induction" => &["earlier copy", "token after it"],
            "selective_copy" => &["token to copy"],
            "d_retrieval" => &["direction 0", "direction 1", "direction 2", "direction 3"],
            "farthest" => &["farthest point"],
            _ => continue,
        };
        assert_eq!(names, expected);
    }
}

/// The target at t, searched for from t backwards.
fn register_target(task: &Registers, table: &[u32], tokens: &[u32], t: usize) -> i32 {
    let mut state = 0;
    for register in (0..task.registers).rev() {
        let writes = |&&token: &&u32| token as usize / task.values == register;
        let Some(&token) = tokens[..=t].iter().rev().find(writes) else { return IGNORE };
        state = state * task.values + token as usize % task.values;
    }
    table[state] as i32
}

/// The value of the pair whose key stands at t; of the earlier one where two have it.
fn mqar_target(task: &Mqar, tokens: &[u32], t: usize) -> Option<u32> {
    tokens[..2 * task.pairs].chunks(2).find(|pair| pair[0] == tokens[t]).map(|pair| pair[1])
}

fn rewritten(task: &Task, source: &[u32], t: usize) -> i32 {
    task.expected(source).expect("a source tells its target")[t]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn registers_need_each_latest_write(count in 1..5usize, values in 2..5usize, more in 0..12usize, index: u64) {
        let typed = Registers { outputs: 1 << 20, ..registers(count, values, count + more) };
        let (task, table) = (Task::new(typed), typed.table());
        let sample = task.sample(Split::Train, 0, index);
        for t in scored(&sample) {
            let groups = task.needed(&sample, t);
            prop_assert_eq!(groups.len(), count);
            let latest = |register: usize| groups[register].positions[0];
            for position in 0..task.seq_len() {
                let mut others = vec![];
                for token in 0..task.vocab() as u32 {
                    let mut tokens = sample.tokens.clone();
                    tokens[position] = token;
                    let target = register_target(&typed, &table, &tokens, t);
                    if is_needed(&groups, position) {
                        others.push(target);
                    } else if position > t || position < latest(token as usize / values) {
                        prop_assert_eq!(target, sample.targets[t], "token {} at {} changes {}", token, position, t);
                    } // else it overwrites what was the latest write
                }
                // Of 2^20 classes two states hardly share one, and all of a register's values never do.
                prop_assert!(others.is_empty() || others.iter().any(|&target| target != sample.targets[t]));
            }
        }
    }

    #[test]
    fn mqar_needs_the_pair_of_its_query(pairs in 1..5usize, more in 0..6usize, above in 1..20usize, index: u64) {
        let seq_len = 4 * pairs + 2 * more;
        let typed = mqar(seq_len + above, seq_len, pairs);
        let task = Task::new(typed);
        let sample = task.sample(Split::Train, 0, index);
        for t in scored(&sample) {
            let groups = task.needed(&sample, t);
            let [key, value] = [groups[0].positions[0], groups[1].positions[0]];
            for position in (0..seq_len).filter(|&position| position != t) {
                for token in 0..task.vocab() as u32 {
                    let mut tokens = sample.tokens.clone();
                    tokens[position] = token;
                    let target = mqar_target(&typed, &tokens, t).map(|value| value as i32);
                    let is_same = target == Some(sample.targets[t]);
                    if position == value || position == key {
                        prop_assert_eq!(is_same, token == sample.tokens[position]);
                    } else if position > 2 * pairs || position % 2 == 1 || token != sample.tokens[t] {
                        prop_assert!(is_same, "token {} at {} changes {}", token, position, t);
                    } // else the pair takes the query's key, which no sample has twice
                }
            }
        }
    }

    #[test]
    fn reverse_needs_the_mirrored_token(vocab in 2..6usize, min_len in 1..6usize, more in 0..6usize, index: u64) {
        let task = Task::new(Reverse::new(vocab, min_len, min_len + more));
        let sample = task.sample(Split::Train, 0, index);
        let source = sample.source.as_ref().unwrap();
        for t in scored(&sample) {
            let groups = task.needed(&sample, t);
            prop_assert_eq!(groups.is_empty(), t == source.real, "the end needs no token");
            for position in 0..source.real {
                for token in 0..vocab as u32 {
                    let mut tokens = source.tokens[..source.real].to_vec();
                    tokens[position] = token;
                    let is_same = rewritten(&task, &tokens, t) == sample.targets[t];
                    let stays = !is_needed(&groups, position) || token == source.tokens[position];
                    prop_assert_eq!(is_same, stays, "token {} at {}, target {}", token, position, t);
                }
            }
        }
    }

    /// Every token tells how many come before the answer; what must be fetched is the answer itself. So another token changes
    /// nothing as long as it stays on its side of the answer, and without the answer's own tokens the answer is another.
    #[test]
    fn sort_needs_the_tokens_that_are_the_answer(vocab in 2..6usize, min_len in 1..6usize, more in 0..6usize, index: u64) {
        let task = Task::new(Sort::new(vocab, min_len, min_len + more));
        let sample = task.sample(Split::Train, 0, index);
        let source = sample.source.as_ref().unwrap();
        for t in scored(&sample) {
            let groups = task.needed(&sample, t);
            prop_assert_eq!(groups.is_empty(), t == source.real, "the end needs no token");
            let Some(group) = groups.first() else { continue };
            let answer = sample.targets[t] as u32;
            for token in 0..vocab as u32 {
                for position in 0..source.real {
                    let mut tokens = source.tokens[..source.real].to_vec();
                    let before = std::mem::replace(&mut tokens[position], token);
                    if !is_needed(&groups, position) && before.cmp(&answer) == token.cmp(&answer) {
                        prop_assert_eq!(rewritten(&task, &tokens, t), sample.targets[t]);
                    }
                }
                let mut without = source.tokens[..source.real].to_vec();
                group.positions.iter().for_each(|&position| without[position] = token);
                prop_assert_eq!(rewritten(&task, &without, t) == sample.targets[t], token == answer);
            }
        }
    }
}
