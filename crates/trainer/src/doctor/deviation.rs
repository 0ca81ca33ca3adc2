//! Comparing a tensor of the subject with what it should be.

use architecture::HostTensor;

/// The entry that is farthest from what it should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Its flat index.
    pub index: usize,
    /// What it is.
    pub found: f64,
    /// What it should be.
    pub expected: f64,
    /// The difference in units of the largest expected value, or of 1 where that is less.
    pub deviation: f64,
}

/// Compares entry by entry; an entry that is not a number is infinitely far off, unless it should be.
pub fn worst(found: &[f32], expected: &[f64]) -> Worst {
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0f64, |most, x| most.max(x.abs()));
    let mut worst = Worst { index: 0, found: 0.0, expected: 0.0, deviation: 0.0 };
    if found.len() != expected.len() {
        return Worst { deviation: f64::INFINITY, ..worst };
    }
    for (index, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let found = f64::from(found);
        let difference = (found - expected).abs() / scale;
        let deviation = if difference.is_nan() { f64::INFINITY } else { difference };
        if deviation > worst.deviation {
            worst = Worst { index, found, expected, deviation };
        }
    }
    worst
}

/// The largest absolute difference; infinite where one of them is not a number.
pub fn largest_difference(left: &[f32], right: &[f32]) -> f64 {
    let expected: Vec<f64> = right.iter().map(|&x| f64::from(x)).collect();
    let scale = expected.iter().filter(|x| x.is_finite()).fold(1.0f64, |most, x| most.max(x.abs()));
    worst(left, &expected).deviation * scale
}

/// The largest absolute value.
pub fn largest(values: &[f32]) -> f64 {
    values.iter().fold(0.0, |most, &x| f64::from(x.abs()).max(most))
}

/// Whether every number is finite.
pub fn is_finite(values: &[f32]) -> bool {
    values.iter().all(|x| x.is_finite())
}

/// Row `index` of the last axis.
pub fn row(tensor: &HostTensor, index: usize) -> &[f32] {
    let width = tensor.shape.last().copied().unwrap_or(1);
    &tensor.values[index * width..][..width]
}

/// The indices of a flat index in a shape, such as `[0, 3, 7]`.
pub fn unravel(shape: &[usize], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut at: Vec<usize> = shape.iter().rev().map(|&n| (rest % n.max(1), rest /= n.max(1)).0).collect();
    at.reverse();
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_number_is_worst() {
        assert_eq!(worst(&[1.0, 2.5], &[1.0, 2.0]).deviation, 0.25);
        assert_eq!(worst(&[1.0, f32::NAN, 9.0], &[1.0, 2.0, 3.0]).index, 1);
        assert_eq!(worst(&[1.0], &[1.0, 2.0]).deviation, f64::INFINITY);
        assert_eq!(largest_difference(&[f32::NAN], &[0.0]), f64::INFINITY);
        assert_eq!(largest_difference(&[3.0, 8.0], &[3.0, 10.0]), 2.0);
    }

    #[test]
    fn indices_are_row_major() {
        assert_eq!(unravel(&[2, 3, 4], 23), [1, 2, 3]);
        assert_eq!(unravel(&[2, 3, 4], 5), [0, 1, 1]);
        assert_eq!(unravel(&[], 0), Vec::<usize>::new());
    }
}
