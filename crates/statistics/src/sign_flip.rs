//! The sign-flip test of paired differences: if the arms do not differ, every difference is as likely with the other
//! sign. It assumes no distribution beyond that symmetry.

use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use crate::describe::sorted;
use crate::distributions::generator;
use crate::error::{StatisticsError, check_values};

/// Up to this many pairs all 2^n sign patterns are counted; beyond, [`MONTE_CARLO_PATTERNS`] are drawn.
pub const EXACT_UP_TO: usize = 30;

/// Sign patterns drawn where there are too many to count.
pub const MONTE_CARLO_PATTERNS: usize = 100_000;

/// Sums closer than this share of Σ|difference| count as equal. Rounding in differences of accuracies is far below,
/// one example more or less far above. A tie counts against the arm, so an error here makes p larger.
const TIE: f64 = 1e-9;

/// The outcome of the sign-flip test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignFlip {
    /// Number of pairs.
    pub pairs: usize,
    /// Two-sided p: the share of sign patterns whose mean is at least as far from 0 as the observed one.
    pub p_value: f64,
    /// The smallest p that this many pairs can give: 2^(1−n) counted; 1/(patterns + 1) drawn.
    pub floor: f64,
    /// Whether every pattern was counted.
    pub exact: bool,
}

/// Two-sided sign-flip p of the mean difference (`scipy.stats.permutation_test`, `permutation_type='samples'`).
///
/// Counted up to [`EXACT_UP_TO`] pairs. Beyond, drawn from `random_seed`, with the observed pattern among those drawn
/// (Phipson and Smyth 2010), so that p is never 0.
///
/// Errors: no differences, or one that is not finite.
pub fn sign_flip(differences: &[f64], random_seed: u64) -> Result<SignFlip, StatisticsError> {
    check_values("sign-flip test", differences, 1)?;
    let pairs = differences.len();
    // Divided by the largest, so that sums cannot overflow and the tolerance cannot vanish.
    let largest = differences.iter().fold(0.0, |most: f64, d| most.max(d.abs()));
    let unit = if largest > 0.0 { largest } else { 1.0 };
    let scaled: Vec<f64> = differences.iter().map(|d| d / unit).collect();
    let magnitude: f64 = scaled.iter().map(|d| d.abs()).sum();
    let observed = scaled.iter().sum::<f64>().abs() - TIE * magnitude;

    if pairs <= EXACT_UP_TO {
        let patterns = 2_f64.powi(pairs as i32);
        return Ok(SignFlip {
            pairs,
            p_value: count_beyond(&scaled, observed) as f64 / patterns,
            floor: 2.0 / patterns,
            exact: true,
        });
    }
    let beyond = draw_beyond(&scaled, observed, random_seed);
    let patterns = (MONTE_CARLO_PATTERNS + 1) as f64;
    Ok(SignFlip { pairs, p_value: (beyond + 1) as f64 / patterns, floor: 1.0 / patterns, exact: false })
}

/// How many of the 2^n signed sums have a magnitude of at least `bound`. The sums of both halves are listed (2^(n/2)
/// each) and met in the middle: as exact as listing all, and no rounding builds up from one pattern to the next.
fn count_beyond(values: &[f64], bound: f64) -> u64 {
    if bound <= 0.0 {
        return 1 << values.len();
    }
    let (left, right) = values.split_at(values.len() / 2);
    let right = sorted(&signed_sums(right));
    let beyond = |sum: f64| {
        let above = right.len() - right.partition_point(|other| sum + other < bound);
        let below = right.partition_point(|other| sum + other <= -bound);
        (above + below) as u64
    };
    signed_sums(left).into_iter().map(beyond).sum()
}

/// All 2^n sums of the values with either sign; `[0]` for none.
fn signed_sums(values: &[f64]) -> Vec<f64> {
    values.iter().fold(vec![0.0], |sums, value| sums.iter().flat_map(|sum| [sum + value, sum - value]).collect())
}

/// How many of [`MONTE_CARLO_PATTERNS`] random signed sums have a magnitude of at least `bound`.
fn draw_beyond(values: &[f64], bound: f64, random_seed: u64) -> usize {
    let mut generator = generator(random_seed);
    let mut beyond = 0;
    for _ in 0..MONTE_CARLO_PATTERNS {
        let mut sum = 0.0;
        for chunk in values.chunks(64) {
            let signs = generator.next_u64();
            for (bit, value) in chunk.iter().enumerate() {
                sum += if signs >> bit & 1 == 1 { *value } else { -value };
            }
        }
        beyond += usize::from(sum.abs() >= bound);
    }
    beyond
}
