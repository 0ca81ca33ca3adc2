//! Counter-based random numbers: a stream is a pure function of its name, so nothing has to be saved or replayed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers named by what it is for.
pub(crate) struct Stream {
    generator: ChaCha8Rng,
    spare: Option<f64>,
}

impl Stream {
    /// The stream for `purpose` under a seed and a few counters.
    pub(crate) fn new(purpose: &str, seed: u64, counters: &[u64]) -> Self {
        let mut key = blake3::Hasher::new_derive_key("headcount model 1");
        key.update(&(purpose.len() as u64).to_le_bytes()).update(purpose.as_bytes()).update(&seed.to_le_bytes());
        for counter in counters {
            key.update(&counter.to_le_bytes());
        }
        Self { generator: ChaCha8Rng::from_seed(*key.finalize().as_bytes()), spare: None }
    }

    /// 32 uniform bits.
    pub(crate) fn bits(&mut self) -> u32 {
        self.generator.next_u32()
    }

    /// Uniform in [0, 1) with 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958), both of each pair used.
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        self.spare = Some(radius * sin);
        radius * cos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pure_and_differ_by_purpose_seed_and_counter() {
        let first = |purpose, seed, counters: &[u64]| Stream::new(purpose, seed, counters).bits();
        assert_eq!(first("a", 0, &[1, 2]), first("a", 0, &[1, 2]));
        let others = [first("a", 0, &[1, 2]), first("b", 0, &[1, 2]), first("a", 1, &[1, 2]), first("a", 0, &[2, 1])];
        for i in 0..4 {
            for j in 0..i {
                assert_ne!(others[i], others[j], "{i} {j}");
            }
        }
    }

    #[test]
    fn normal_has_mean_0_variance_1_and_its_tails() {
        let mut stream = Stream::new("test", 0, &[]);
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n as f64 - mean * mean;
        let tail = draws.iter().filter(|x| x.abs() > 1.959964).count() as f64 / n as f64;
        assert!(
            mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02 && (tail - 0.05).abs() < 0.004,
            "{mean} {variance} {tail}"
        );
    }
}
