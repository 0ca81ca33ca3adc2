//! From a batch on the host to tensors on a device, and the numbers that a batch is judged by.

use burn::tensor::{Device, Int, Tensor, TensorData};
use data::metrics::{ACCURACY, LOSS, Scores};
use kernels::cross_entropy;
use model::{Call, Source};

/// A batch on a device, with its scored positions picked out.
pub struct DeviceBatch {
    /// `[B, L]`.
    pub tokens: Tensor<2, Int>,
    /// Flat positions `b·L + t` that are scored, `[N]`.
    pub scored: Tensor<1, Int>,
    /// Their targets, `[N]`.
    pub targets: Tensor<1, Int>,
    /// Their targets on the host.
    pub host_targets: Vec<i32>,
    /// The sample that each belongs to, `[N]`.
    pub samples: Vec<usize>,
    /// What an encoder reads, in sequence-to-sequence tasks.
    pub source: Option<DeviceSource>,
}

/// The sources of a batch on a device.
pub struct DeviceSource {
    /// `[B, Ls]`.
    pub tokens: Tensor<2, Int>,
    /// `[B, Ls]`, row-major: true = padding.
    pub padding: Vec<bool>,
}

impl DeviceSource {
    /// The sources of `batch`, where its task has any.
    pub fn new(batch: &data::Batch, device: &Device) -> Option<Self> {
        batch.source.as_ref().map(|source| Self {
            tokens: Tensor::from_data(TensorData::new(source.tokens.clone(), [batch.batch, source.len]), device),
            padding: source.padding.clone(),
        })
    }

    /// As a model takes it.
    pub fn call(&self) -> Source<'_> {
        Source { tokens: &self.tokens, padding: &self.padding }
    }
}

impl DeviceBatch {
    /// None where no position is scored: such a batch weighs nothing.
    pub fn new(batch: &data::Batch, device: &Device) -> Option<Self> {
        let (positions, targets) = batch.scored_positions();
        let n = targets.len();
        let samples = positions.iter().map(|&position| position as usize / batch.len).collect();
        (n > 0).then(|| Self {
            tokens: Tensor::from_data(TensorData::new(batch.tokens.clone(), [batch.batch, batch.len]), device),
            scored: Tensor::from_data(TensorData::new(positions, [n]), device),
            targets: Tensor::from_data(TensorData::new(targets.clone(), [n]), device),
            host_targets: targets,
            samples,
            source: DeviceSource::new(batch, device),
        })
    }

    /// What a model takes besides the tokens: scored positions, and sources where there are any.
    pub fn call(&self) -> Call<'_> {
        Call { scored: Some(&self.scored), source: self.source.as_ref().map(DeviceSource::call), ..Default::default() }
    }
}

/// Sums over scored positions, on the host in f64, so that averages do not depend on how samples fall into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Sum of the losses in nats.
    pub loss: f64,
    /// Positions whose largest logit is at the target.
    pub correct: u64,
    /// Scored positions.
    pub scored: u64,
}

impl Tally {
    /// The tally of one batch's losses `[N]` and logits `[N, V]`.
    pub fn of(losses: Tensor<1>, logits: Tensor<2>, targets: &[i32]) -> Self {
        let predicted = logits.argmax(1).into_data();
        let correct =
            predicted.iter::<i64>().zip(targets).filter(|&(guess, &target)| guess == i64::from(target)).count();
        let loss = losses.into_data().iter::<f32>().map(f64::from).sum();
        Self { loss, correct: correct as u64, scored: targets.len() as u64 }
    }

    /// The tallies of each sample of one batch, in their order, of those that have a scored position.
    pub fn of_samples(losses: Tensor<1>, logits: Tensor<2>, batch: &DeviceBatch) -> Vec<Self> {
        let predicted = logits.argmax(1).into_data();
        let is_right =
            predicted.iter::<i64>().zip(&batch.host_targets).map(|(guess, &target)| guess == i64::from(target));
        let losses = losses.into_data();
        let mut tallies: Vec<(usize, Self)> = vec![];
        for ((loss, is_right), &sample) in losses.iter::<f32>().zip(is_right).zip(&batch.samples) {
            let own = Self { loss: f64::from(loss), correct: u64::from(is_right), scored: 1 };
            match tallies.last_mut() {
                Some((last, tally)) if *last == sample => tally.add(own),
                _ => tallies.push((sample, own)),
            }
        }
        tallies.into_iter().map(|(_, tally)| tally).collect()
    }

    /// Adds another batch.
    pub fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.correct += other.correct;
        self.scored += other.scored;
    }

    /// Every metric that can be computed from the sums; NaN where nothing is scored.
    pub fn scores(&self) -> Scores {
        Scores::default().with(&LOSS, self.mean_loss()).with(&ACCURACY, self.accuracy())
    }

    /// Mean loss over scored positions; NaN where there are none.
    pub fn mean_loss(&self) -> f64 {
        self.loss / self.scored as f64
    }

    /// Share of scored positions that are right; NaN where there are none.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.scored as f64
    }
}

/// The loss of each scored position of `batch` under logits `[N, V]`.
pub fn losses(logits: Tensor<2>, batch: &DeviceBatch) -> Tensor<1> {
    cross_entropy(logits, batch.targets.clone())
}
