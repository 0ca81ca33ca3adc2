//! The distributions the intervals need, and the generator every random number of this crate comes from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use statrs::distribution::{Binomial, ChiSquared, Continuous, ContinuousCDF, DiscreteCDF, Normal, StudentsT};
use statrs::function::beta::beta_reg;
use statrs::function::gamma::ln_gamma;

/// The t that a Student t variable of `degrees_of_freedom` (at least 1) exceeds with probability `upper_tail`.
pub(crate) fn student_t_upper(upper_tail: f64, degrees_of_freedom: f64) -> f64 {
    let student = student_t(degrees_of_freedom);
    let mut critical = -student.inverse_cdf(upper_tail);
    // statrs inverts to about 1e-10, far out only to 1e-1; Newton steps on its tail, good to 1e-13, mend both.
    for _ in 0..4 {
        let step = (student.sf(critical) - upper_tail) / student.pdf(critical);
        critical += step;
        if step.abs() <= 1e-14 * critical.abs() {
            break;
        }
    }
    critical
}

/// The probability that a Student t variable exceeds |`statistic`| in magnitude; degrees of freedom need not be whole.
pub(crate) fn student_t_two_sided(statistic: f64, degrees_of_freedom: f64) -> f64 {
    (2.0 * student_t(degrees_of_freedom).sf(statistic.abs())).min(1.0)
}

fn student_t(degrees_of_freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom)
        .expect("callers pass at least two values, so at least one degree of freedom")
}

/// Φ(z) of the standard normal distribution.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// Φ⁻¹(p), p in [0, 1]; infinite at the ends.
pub(crate) fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// The quantile of a Beta(a, b) variable, a and b at least 1: by bisection to the last bit, as statrs inverts to 1e-8.
pub(crate) fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if beta_reg(a, b, middle) < probability { low = middle } else { high = middle }
    }
}

/// The value below which a chi-squared variable of `degrees_of_freedom` lies with `probability`, by bisection.
pub(crate) fn chi_squared_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    let chi = ChiSquared::new(degrees_of_freedom).expect("callers pass at least one degree of freedom");
    let mut high = degrees_of_freedom.max(1.0);
    while chi.cdf(high) < probability {
        high *= 2.0;
    }
    let mut low = 0.0;
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if chi.cdf(middle) < probability { low = middle } else { high = middle }
    }
}

/// The logarithm of the density at `ratio` of s/σ, the sample standard deviation over the true one.
pub(crate) fn ln_density_of_deviation_ratio(ratio: f64, degrees_of_freedom: f64) -> f64 {
    let half = degrees_of_freedom / 2.0;
    let shape = (degrees_of_freedom - 1.0) * ratio.ln();
    std::f64::consts::LN_2 + half * half.ln() - ln_gamma(half) + shape - half * ratio * ratio
}

/// The probability of at most `successes` heads in `trials` throws of a fair coin.
pub(crate) fn fair_coin_at_most(successes: u64, trials: u64) -> f64 {
    Binomial::new(0.5, trials).expect("a half is a probability").cdf(successes)
}

/// ChaCha8 from a seed: the same numbers on every machine.
pub(crate) fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A uniform index below `count` (at least 1), by multiplying; its bias, below count/2⁶⁴, cannot be seen.
pub(crate) fn index_below(generator: &mut ChaCha8Rng, count: usize) -> usize {
    ((u128::from(generator.next_u64()) * count as u128) >> 64) as usize
}
