//! Finding the smallest number that will do.

/// The first number in `from..=most` that holds, for a condition that holds from some number on.
pub(crate) fn first_that(from: usize, most: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
    let mut high = from;
    let mut low = from;
    while !holds(high) {
        if high >= most {
            return None;
        }
        low = high + 1;
        high = (2 * high).min(most);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::first_that;

    #[test]
    fn finds_the_first() {
        for threshold in 3..200 {
            assert_eq!(first_that(3, 150, |number| number >= threshold), (threshold <= 150).then_some(threshold));
        }
        assert_eq!(first_that(7, 150, |number| number >= 3), Some(7));
    }
}
