//! The two distributions the intervals need, and the generator every random number of this crate comes from.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

/// The t that a Student t variable of `degrees_of_freedom` (at least 1) exceeds in magnitude with probability
/// 1 − `level`.
pub(crate) fn student_t_critical(level: f64, degrees_of_freedom: usize) -> f64 {
    let student = student_t(degrees_of_freedom);
    let upper_tail = (1.0 - level) / 2.0;
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

/// The probability that a Student t variable exceeds |`statistic`| in magnitude.
pub(crate) fn student_t_two_sided(statistic: f64, degrees_of_freedom: usize) -> f64 {
    (2.0 * student_t(degrees_of_freedom).sf(statistic.abs())).min(1.0)
}

fn student_t(degrees_of_freedom: usize) -> StudentsT {
    StudentsT::new(0.0, 1.0, degrees_of_freedom as f64)
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

/// ChaCha8 from a seed: the same numbers on every machine.
pub(crate) fn generator(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A uniform index below `count` (at least 1), by multiplying; its bias, below count/2⁶⁴, cannot be seen.
pub(crate) fn index_below(generator: &mut ChaCha8Rng, count: usize) -> usize {
    ((u128::from(generator.next_u64()) * count as u128) >> 64) as usize
}
