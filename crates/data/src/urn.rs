//! Weighted drawing without replacement.

use crate::random::Stream;

/// Numbered balls; each draw takes one out, with probability proportional to its weight among those left.
///
/// Weights are integers and their partial sums stand in a Fenwick tree, so that a draw is exact and takes O(log n).
#[derive(Clone)]
pub(crate) struct Urn {
    weights: Vec<u64>,
    /// `sums[i - 1]`: the weight of the balls left among the `i & -i` ones that end with ball `i - 1`.
    sums: Vec<u64>,
    total: u64,
}

impl Urn {
    /// An urn with one ball a weight. Weights are positive and their sum fits a `u64`.
    pub fn new(weights: Vec<u64>) -> Self {
        let mut sums = weights.clone();
        for place in 1..=sums.len() {
            let parent = place + lowest_bit(place);
            if parent <= sums.len() {
                sums[parent - 1] += sums[place - 1];
            }
        }
        let total = weights.iter().sum();
        Self { weights, sums, total }
    }

    /// Takes one ball out and returns its number. The urn must not be empty.
    pub fn draw(&mut self, stream: &mut Stream) -> usize {
        let mut rest = stream.below(self.total);
        let mut ball = 0;
        let mut step = (self.sums.len() + 1).next_power_of_two() / 2;
        while step > 0 {
            let next = ball + step;
            if next <= self.sums.len() && self.sums[next - 1] <= rest {
                rest -= self.sums[next - 1];
                ball = next;
            }
            step /= 2;
        }
        self.remove(ball);
        ball
    }

    fn remove(&mut self, ball: usize) {
        let weight = self.weights[ball];
        self.total -= weight;
        let mut place = ball + 1;
        while place <= self.sums.len() {
            self.sums[place - 1] -= weight;
            place += lowest_bit(place);
        }
    }
}

fn lowest_bit(place: usize) -> usize {
    place & place.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::key;

    #[test]
    fn every_ball_comes_out_once() {
        for size in 1..40 {
            let mut urn = Urn::new((1..=size).collect());
            let mut stream = Stream::new(key(&["urn"]), size);
            let mut drawn: Vec<u64> = (0..size).map(|_| urn.draw(&mut stream) as u64).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, (0..size).collect::<Vec<_>>());
        }
    }

    #[test]
    fn first_draws_follow_the_weights() {
        let weights = [5, 1, 3, 1, 10];
        let urn = Urn::new(weights.to_vec());
        let mut counts = [0u64; 5];
        for number in 0..20_000 {
            counts[urn.clone().draw(&mut Stream::new(key(&["urn"]), number))] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!(count.abs_diff(1_000 * weight) < 300, "{counts:?} for weights {weights:?}");
        }
    }
}
