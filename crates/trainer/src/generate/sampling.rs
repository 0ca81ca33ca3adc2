//! How the next token is chosen from its logits.

/// The rule by which a token is chosen. The same seed chooses the same tokens: a token's random number follows from the seed
/// and its place alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by it; 0 takes the largest one always.
    pub temperature: f64,
    /// Only this many of the largest logits count, at least 1; all where None.
    pub top_k: Option<usize>,
    /// Names the random numbers.
    pub seed: u64,
}

impl Sampling {
    /// The largest logit, the first of several.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: None, seed: 0 };

    /// The token number `index` of what is generated, from finite logits, at least one.
    pub fn choose(&self, logits: &[f32], index: u64) -> u32 {
        // Falling, the first of equals first.
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(self.top_k.unwrap_or(usize::MAX).max(1));
        if self.temperature == 0.0 {
            return order[0] as u32;
        }
        let largest = f64::from(logits[order[0]]);
        let weight = |&token: &usize| ((f64::from(logits[token]) - largest) / self.temperature).exp();
        let mut left = uniform(self.seed, index) * order.iter().map(weight).sum::<f64>();
        for token in &order {
            left -= weight(token);
            if left < 0.0 {
                return *token as u32;
            }
        }
        order[0] as u32 // rounding alone leads here
    }
}

/// Uniform in [0, 1) with 53 bits, a pure function of the seed and a counter.
fn uniform(seed: u64, index: u64) -> f64 {
    let mut hash = blake3::Hasher::new_derive_key("headcount generate 1");
    hash.update(&seed.to_le_bytes()).update(&index.to_le_bytes());
    let mut bits = [0; 8];
    hash.finalize_xof().fill(&mut bits);
    (u64::from_le_bytes(bits) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOGITS: [f32; 4] = [1.0, 3.0, -2.0, 3.0];

    #[test]
    fn greedy_takes_the_first_of_the_largest() {
        assert_eq!(Sampling::GREEDY.choose(&LOGITS, 7), 1);
        let hot = Sampling { temperature: 5.0, top_k: Some(1), seed: 3 };
        assert!((0..50).all(|index| hot.choose(&LOGITS, index) == 1), "top 1 is greedy at any temperature");
    }

    /// Shares agree with the softmax of logits over temperature within four standard deviations.
    #[test]
    fn shares_are_the_softmax_of_what_top_k_leaves() {
        let draws = 20_000;
        for (temperature, top_k) in [(1.0, None), (2.5, None), (0.5, Some(3)), (1.0, Some(2))] {
            let sampling = Sampling { temperature, top_k, seed: 1 };
            let mut counts = [0.0; 4];
            (0..draws).for_each(|index| counts[sampling.choose(&LOGITS, index) as usize] += 1.0);
            let kept: &[usize] = match top_k {
                Some(2) => &[1, 3],
                Some(3) => &[0, 1, 3],
                _ => &[0, 1, 2, 3],
            };
            let weight =
                |token: usize| if kept.contains(&token) { (f64::from(LOGITS[token]) / temperature).exp() } else { 0.0 };
            let sum: f64 = (0..4).map(weight).sum();
            for (token, count) in counts.iter().enumerate() {
                let (share, expected) = (count / draws as f64, weight(token) / sum);
                let limit = 4.0 * (expected * (1.0 - expected) / draws as f64).sqrt();
                assert!((share - expected).abs() <= limit, "{temperature} {top_k:?} {token}: {share} {expected}");
            }
        }
    }

    #[test]
    fn a_seed_names_its_tokens() {
        let tokens = |seed| {
            let sampling = Sampling { temperature: 1.0, top_k: None, seed };
            (0..40).map(|index| sampling.choose(&[0.0; 9], index)).collect::<Vec<_>>()
        };
        assert_eq!(tokens(4), tokens(4));
        assert_ne!(tokens(4), tokens(5));
    }

    proptest! {
        /// Whatever the logits: a token that is among the k largest.
        #[test]
        fn the_choice_is_among_the_largest(logits in prop::collection::vec(-1e30f32..1e30, 1..20), k in 1usize..25,
            temperature in prop::sample::select(vec![0.0, 1e-300, 0.7, 1e300]), index: u64) {
            let chosen = Sampling { temperature, top_k: Some(k), seed: 0 }.choose(&logits, index) as usize;
            let larger = logits.iter().filter(|&&logit| logit > logits[chosen]).count();
            prop_assert!(larger < k);
        }
    }
}
