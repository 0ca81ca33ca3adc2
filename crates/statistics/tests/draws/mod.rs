//! Random numbers for simulations: the same on every machine.
#![allow(dead_code)] // Each test binary uses some.

pub mod experiments;
pub mod spikes;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub type Draw = fn(&mut ChaCha8Rng) -> f64;

pub fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// 20,000 with `HEADCOUNT_LONG=1`, else so many.
pub fn simulations(short: usize) -> usize {
    if std::env::var("HEADCOUNT_LONG").is_ok_and(|value| value == "1") { 20_000 } else { short }
}

/// Three standard errors above a chance of 5 %, in per cent: what as many simulations of exactly 5 % may show.
pub fn five_percent(simulations: usize) -> f64 {
    5.0 + 300.0 * (0.05_f64 * 0.95 / simulations as f64).sqrt()
}

/// Uniform in (0, 1].
pub fn uniform(generator: &mut ChaCha8Rng) -> f64 {
    ((generator.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// Standard normal, by Box and Muller.
pub fn normal(generator: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * uniform(generator).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(generator)).cos()
}

/// Exponential, shifted to a mean of 0; skewness 2, standard deviation 1.
pub fn exponential(generator: &mut ChaCha8Rng) -> f64 {
    -uniform(generator).ln() - 1.0
}

/// Lognormal with σ = 1, shifted to a mean of 0; skewness 6.2, standard deviation 2.16.
pub fn lognormal(generator: &mut ChaCha8Rng) -> f64 {
    normal(generator).exp() - 0.5_f64.exp()
}

/// 1 with this chance, else 0.
pub fn happens(generator: &mut ChaCha8Rng, chance: f64) -> f64 {
    f64::from(u8::from(uniform(generator) <= chance))
}

/// The sum of four exponential variables: a gamma variable of shape 4, skewness 1.
pub fn gamma(generator: &mut ChaCha8Rng) -> f64 {
    (0..4).map(|_| -uniform(generator).ln()).sum()
}
