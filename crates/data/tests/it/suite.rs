//! `induction`, `selective_copy`, `d_retrieval` and `farthest` are what their definitions say: solved again, slowly and in another
//! way.

use headcount_data::{DRetrieval, Farthest, Generator, IGNORE, Induction, Needed, Sample, SelectiveCopy, Split, Task};
use proptest::prelude::*;

use crate::assert_uniform;

/// The token behind the nearest earlier copy, searched for backwards.
fn after_the_copy(tokens: &[u32], t: usize) -> i32 {
    (0..t).rev().find(|&s| tokens[s] == tokens[t]).map_or(IGNORE, |s| tokens[s + 1] as i32)
}

/// As Python's `[token for token in tokens if token < vocab][number]`.
fn copied(task: &SelectiveCopy, tokens: &[u32], t: usize) -> i32 {
    let Some(number) = t.checked_sub(task.seq_len - task.copies) else { return IGNORE };
    let content: Vec<u32> = tokens.iter().copied().filter(|&token| (token as usize) < task.vocab).collect();
    content[number] as i32
}

fn positions(groups: &[Needed]) -> Vec<usize> {
    groups.iter().map(|group| group.positions[0]).collect()
}

fn sample(task: Task, index: u64) -> (Task, Sample) {
    let sample = task.sample(Split::Train, 0, index);
    (task, sample)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn induction_names_what_followed_the_last_copy(vocab in 2..8usize, seq_len in 2..30usize, index: u64) {
        let (task, sample) = sample(Task::new(Induction { vocab, seq_len }), index);
        for t in 0..seq_len {
            let tokens = &sample.tokens;
            prop_assert_eq!(sample.targets[t], after_the_copy(tokens, t));
            let groups = task.needed(&sample, t);
            prop_assert_eq!(groups.is_empty(), sample.targets[t] == IGNORE);
            let [copy, after] = positions(&groups)[..] else { continue };
            prop_assert!(copy < t && after == copy + 1 && tokens[copy] == tokens[t]);
            // Another token than that of t changes the answer where it is needed, and nowhere else.
            for position in (0..seq_len).filter(|&position| position != t) {
                let mut changed = tokens.clone();
                changed[position] = (0..vocab as u32).find(|&other| other != tokens[t] && other != tokens[position])
                    .unwrap_or(tokens[position]);
                let is_same = after_the_copy(&changed, t) == sample.targets[t];
                prop_assert!(is_same || position == copy || position == after);
                prop_assert!(!is_same || position != after || changed == *tokens);
            }
        }
    }

    #[test]
    fn selective_copy_says_the_tokens_in_order(vocab in 2..8usize, copies in 1..8usize, more in 0..20usize, index: u64) {
        let typed = SelectiveCopy { vocab, seq_len: 3 * copies + more, copies };
        let (task, sample) = sample(Task::new(typed), index);
        let read = typed.seq_len - copies;
        let names: Vec<String> = sample.tokens.iter().map(|&token| task.token_name(token)).collect();
        prop_assert_eq!(names[..read].iter().filter(|name| *name != "-").count(), copies);
        prop_assert!(names[read..].iter().all(|name| name == "?"));
        for t in 0..typed.seq_len {
            prop_assert_eq!(sample.targets[t], copied(&typed, &sample.tokens, t));
            let groups = task.needed(&sample, t);
            prop_assert_eq!(groups.len(), usize::from(t >= read));
            let Some(&place) = positions(&groups).first() else { continue };
            for position in (0..read).filter(|&position| (sample.tokens[position] as usize) < vocab) {
                let mut changed = sample.tokens.clone();
                changed[position] = (changed[position] + 1) % vocab as u32;
                let is_same = copied(&typed, &changed, t) == sample.targets[t];
                prop_assert_eq!(is_same, position != place);
            }
        }
    }

    /// The greatest along each direction, by sorting.
    #[test]
    fn d_retrieval_adds_the_greatest_of_each_direction(
        retrievals in 1..6usize, more in 0..4usize, seq_len in 1..20usize, direction_seed in 0..9u64, index: u64,
    ) {
        let typed = DRetrieval { retrievals, dim: retrievals + more, seq_len, direction_seed };
        let (task, sample) = sample(Task::new(typed), index);
        let numbers = sample.numbers.as_ref().unwrap();
        let directions = typed.directions();
        let mut sum = 0.0;
        let mut places = vec![];
        for (i, a) in directions.iter().enumerate() {
            for (j, b) in directions.iter().enumerate() {
                let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                prop_assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{i} and {j}: {product}");
            }
            let along = |t: usize| (0..typed.dim).map(|k| a[k] * f64::from(numbers.inputs[t * typed.dim + k])).sum::<f64>();
            let mut order: Vec<usize> = (0..seq_len).collect();
            order.sort_by(|&s, &t| along(s).total_cmp(&along(t)));
            sum += along(order[seq_len - 1]);
            places.push(order[seq_len - 1]);
        }
        prop_assert!((f64::from(numbers.targets[seq_len - 1]) - sum).abs() < 1e-5 * (1.0 + sum.abs()));
        prop_assert!(numbers.scored[seq_len - 1] && numbers.scored.iter().filter(|&&scored| scored).count() == 1);
        prop_assert_eq!(positions(&task.needed(&sample, seq_len - 1)), places);
        prop_assert!(seq_len == 1 || task.needed(&sample, 0).is_empty());
    }

    /// Of unit points the one with the smallest product is the one at the greatest distance.
    #[test]
    fn farthest_is_the_point_at_the_greatest_distance(dim in 2..10usize, points in 2..10usize, index: u64) {
        let (task, sample) = sample(Task::new(Farthest { dim, points }), index);
        let numbers = sample.numbers.as_ref().unwrap();
        let point = |t: usize| &numbers.inputs[t * dim..(t + 1) * dim];
        let distance = |s: &[f32], t: &[f32]| {
            s.iter().zip(t).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
        };
        for t in 0..points {
            prop_assert!((distance(point(t), &vec![0.0; dim]) - 1.0).abs() < 1e-5);
            let greatest = (0..points).map(|s| distance(point(t), point(s))).fold(0.0, f64::max);
            let said = &numbers.targets[t * dim..(t + 1) * dim];
            prop_assert!(numbers.scored[t] && distance(point(t), said) > greatest - 1e-5);
            let place = positions(&task.needed(&sample, t))[0];
            prop_assert_eq!(point(place), said);
        }
    }
}

#[test]
fn tokens_and_places_are_uniform() {
    let induction = Generator::new(&Task::new(Induction { vocab: 6, seq_len: 20 }), Split::Train, 0);
    let copy = Generator::new(&Task::new(SelectiveCopy { vocab: 3, seq_len: 12, copies: 3 }), Split::Train, 0);
    let (mut pairs, mut places, mut tokens) = ([0; 36], [0; 9], [0; 3]);
    for index in 0..5_000 {
        induction.sample(index).tokens.chunks(2).for_each(|pair| pairs[(6 * pair[0] + pair[1]) as usize] += 1);
        for (place, &token) in copy.sample(index).tokens[..9].iter().enumerate().filter(|(_, token)| **token < 3) {
            places[place] += 1;
            tokens[token as usize] += 1;
        }
    }
    assert_uniform("neighbouring tokens", &pairs);
    assert_uniform("places", &places);
    assert_uniform("tokens to copy", &tokens);
}

/// Points of the sphere: means of coordinates 0, of their squares 1/d, of products 0, each within five standard errors.
#[test]
fn points_are_uniform_on_the_sphere() {
    let generator = Generator::new(&Task::new(Farthest { dim: 4, points: 2 }), Split::Train, 0);
    let points: Vec<Vec<f32>> = (0..20_000).map(|index| generator.sample(index).numbers.unwrap().inputs).collect();
    let mean = |of: &dyn Fn(&[f32]) -> f32| points.iter().map(|point| f64::from(of(point))).sum::<f64>() / 20_000.0;
    for a in 0..4 {
        assert!(mean(&|point| point[a]).abs() < 5.0 * (0.25f64 / 20_000.0).sqrt());
        // E x^4 = 3 / (d (d + 2)) = 1/8, so the variance of a square is 1/8 - 1/16.
        assert!((mean(&|point| point[a] * point[a]) - 0.25).abs() < 5.0 * (0.0625f64 / 20_000.0).sqrt());
        for b in 0..4 {
            // Coordinates of two points of one sample, which are independent: the variance of a product is 1/16.
            assert!(mean(&|point| point[a] * point[4 + b]).abs() < 5.0 * (0.0625f64 / 20_000.0).sqrt());
        }
    }
}

/// The greatest of 128 normal numbers has mean 2.59 (David and Nagaraja, Order Statistics, by quadrature), so four of them 10.4.
#[test]
fn answers_of_d_retrieval_are_sums_of_four_maxima() {
    let generator = Generator::new(&Task::new(DRetrieval::default()), Split::Train, 0);
    let answer = |index| f64::from(*generator.sample(index).numbers.unwrap().targets.last().unwrap());
    let mean = (0..4_000).map(answer).sum::<f64>() / 4_000.0;
    assert!((mean - 4.0 * greatest_of(128)).abs() < 5.0 * (4.0f64 * 0.2 / 4_000.0).sqrt(), "{mean}");
}

/// E max of n standard normal numbers: the integral of 1 - F^n above 0, less that of F^n below.
fn greatest_of(n: i32) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (step, mut below, mut sum) = (1e-4, 0.0, 0.0);
    for place in -80_000..80_000 {
        let x = (f64::from(place) + 0.5) * step;
        below += density(x) * step;
        sum += if x > 0.0 { 1.0 - f64::powi(below, n) } else { -f64::powi(below, n) } * step;
    }
    sum
}
