//! What a model says where it is asked, and how sure it is.

use burn::tensor::Tensor;
use runs::heads::{SHOWN_POSITIONS, ShownAnswers};

use crate::batch::{Answers, DeviceBatch};

/// Classes that are told of each answer, beside the right one.
const LIKELIEST: usize = 3;

/// The answers of the first `samples` samples of a batch by logits `[N, outputs]` at its scored positions, at those positions that
/// are shown; none where numbers are said.
pub fn answers(logits: Tensor<2>, batch: &DeviceBatch, samples: usize) -> Vec<ShownAnswers> {
    let [_, outputs] = logits.dims();
    let length = batch.input.dims()[1];
    let count = batch.samples.iter().filter(|&&sample| sample < samples).count();
    let mut told = vec![vec![]; samples];
    let (Answers::Classes { on_host, .. }, true) = (&batch.answers, count > 0) else { return told };
    let values: Vec<f32> = logits.narrow(0, 0, count).into_data().iter::<f32>().collect();
    let positions = batch.scored.clone().into_data();
    let asked = batch.samples.iter().zip(on_host).zip(positions.iter::<i64>());
    for (((&sample, &target), position), logits) in asked.zip(values.chunks(outputs.max(1))) {
        if (position as usize % length) < SHOWN_POSITIONS {
            told[sample].push(answer(logits, target));
        }
    }
    told
}

/// The likeliest classes by these logits with their probabilities, to three decimals, and the right one.
pub fn answer(logits: &[f32], target: i32) -> Vec<(i32, f64)> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - most).exp()).sum();
    let probability = |class: usize| (1000.0 * f64::from(logits[class] - most).exp() / sum).round() / 1000.0;
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // The first of equals, as `argmax` has it.
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    let right = usize::try_from(target).ok().filter(|&target| target < logits.len());
    let mut told: Vec<usize> = order.into_iter().take(LIKELIEST).collect();
    told.extend(right.filter(|right| !told.contains(right)));
    told.into_iter().map(|class| (class as i32, probability(class))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_and_the_right_one_is_there() {
        let logits = [0.0, 3.0, 1.0, 2.0, -1.0];
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
        let share = |class: usize| (1000.0 * f64::from(logits[class]).exp() / sum).round() / 1000.0;
        assert_eq!(answer(&logits, 4), [(1, share(1)), (3, share(3)), (2, share(2)), (4, share(4))]);
        assert_eq!(answer(&logits, 1), [(1, share(1)), (3, share(3)), (2, share(2))]);
        assert_eq!(answer(&[7.0, 7.0], 1), [(0, 0.5), (1, 0.5)]);
    }
}
