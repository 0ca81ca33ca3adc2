//! Counter-based random numbers: any stream of a key can be read alone, so there is no generator state to save.

use std::collections::HashSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::GENERATOR_VERSION;

/// A ChaCha8 key.
pub(crate) type Key = [u8; 32];

/// The key for one purpose: BLAKE3 of the generator version and `parts`, each with its length in front, so that no two
/// lists of parts run into the same bytes.
pub(crate) fn key(parts: &[&str]) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&GENERATOR_VERSION.to_le_bytes());
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// One stream of ChaCha8 numbers, which a task draws a sample from. The same stream gives the same numbers on every machine.
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// A stream for what all samples of a task share, such as a table; `parts` says for what, and of which parameters.
    pub fn shared(parts: &[&str]) -> Self {
        Self::new(key(parts), 0)
    }

    /// Stream `number` of `key`, from its start.
    pub(crate) fn new(key: Key, number: u64) -> Self {
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(number);
        Self(generator)
    }

    /// A uniform integer in `0..bound`, without bias (Lemire, arXiv 1805.10941). `bound` must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "nothing lies below 0");
        let mut product = u128::from(self.0.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            // 2^64 mod bound of the low halves are surplus; refusing them leaves equally many for every result.
            let surplus = bound.wrapping_neg() % bound;
            while (product as u64) < surplus {
                product = u128::from(self.0.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// A uniform number in `[0, 1)`, a multiple of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (-53f64).exp2()
    }

    /// A normal number, of mean 0 and variance 1 (Marsaglia's polar method). The logarithm is one in software: the same on every
    /// machine.
    pub fn normal(&mut self) -> f64 {
        loop {
            let [x, y] = [2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0];
            let square = x * x + y * y;
            if 0.0 < square && square < 1.0 {
                return x * (-2.0 * libm::log(square) / square).sqrt();
            }
        }
    }

    /// `count` different integers in `0..bound`, every ordered choice equally likely. `count <= bound`; quick where
    /// `count` is at most about half of `bound`, since repeats are drawn again.
    pub fn distinct(&mut self, count: usize, bound: u64) -> Vec<u64> {
        debug_assert!(count as u64 <= bound, "{count} different integers below {bound} do not exist");
        let mut seen = HashSet::with_capacity(count);
        let mut chosen = Vec::with_capacity(count);
        while chosen.len() < count {
            let candidate = self.below(bound);
            if seen.insert(candidate) {
                chosen.push(candidate);
            }
        }
        chosen
    }

    /// Shuffles `items`, every order equally likely (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_uniform_where_plain_scaling_is_not() {
        // With bound 3 * 2^62, scaling 64 bits without rejection gives one result in three twice as often.
        let bound = 3 << 62;
        let mut stream = Stream::new(key(&["below"]), 0);
        let mut counts = [0u32; 3];
        for _ in 0..30_000 {
            counts[(stream.below(bound) % 3) as usize] += 1;
        }
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 400), "{counts:?}");
    }

    /// Moments of the normal distribution, each within five standard errors.
    #[test]
    fn normal_numbers_have_normal_moments() {
        let mut stream = Stream::new(key(&["normal"]), 0);
        let numbers: Vec<f64> = (0..40_000).map(|_| stream.normal()).collect();
        let moment = |power: i32| numbers.iter().map(|number| number.powi(power)).sum::<f64>() / 40_000.0;
        for (power, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let error: f64 = 5.0 * f64::sqrt(variance / 40_000.0);
            assert!((moment(power) - expected).abs() < error, "moment {power} is {}", moment(power));
        }
    }

    #[test]
    fn keys_depend_on_where_parts_end() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["a"]), key(&["a", ""]));
    }

    #[test]
    fn shuffle_gives_every_order_equally_often() {
        let mut counts = std::collections::HashMap::new();
        let key = key(&["shuffle"]);
        for number in 0..12_000 {
            let mut items = [0, 1, 2];
            Stream::new(key, number).shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| count.abs_diff(2_000) < 200), "{counts:?}");
    }
}
