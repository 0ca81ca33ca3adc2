//! From a batch on the host to tensors on a device, and the numbers that a batch is judged by.

use burn::tensor::{Device, Int, Tensor, TensorData};
use data::metrics::{ACCURACY, BITS_PER_BYTE, LOSS, MAE, MSE, NMSE, Scores, Yardstick};
use kernels::cross_entropy;
use model::{Call, Input, Source};

/// A batch on a device, with its scored positions picked out.
pub struct DeviceBatch {
    /// Tokens `[B, L]`, or numbers `[B, L, F]`.
    pub input: Input,
    /// Flat positions `b·L + t` that are scored, `[N]`.
    pub scored: Tensor<1, Int>,
    /// What should be said there.
    pub answers: Answers,
    /// The sample that each belongs to, `[N]`.
    pub samples: Vec<usize>,
    /// What an encoder reads, in sequence-to-sequence tasks.
    pub source: Option<DeviceSource>,
    /// [`data::Batch::padding_told`].
    padding: Option<Vec<bool>>,
}

/// What should be said at the scored positions, on a device and on the host.
pub enum Answers {
    /// A class each, `[N]`.
    Classes { targets: Tensor<1, Int>, on_host: Vec<i32> },
    /// O numbers each, `[N, O]`.
    Numbers { targets: Tensor<2>, on_host: Vec<f32> },
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

/// What a model reads of `batch`: its numbers where it has some to read, or else its tokens.
pub fn input(batch: &data::Batch, device: &Device) -> Input {
    let (b, l) = (batch.batch, batch.len);
    match batch.numbers_read() {
        Some(inputs) => {
            let width = inputs.len() / (b * l).max(1);
            Input::Numbers(Tensor::from_data(TensorData::new(inputs.to_vec(), [b, l, width]), device))
        }
        None => Input::Tokens(Tensor::from_data(TensorData::new(batch.tokens.clone(), [b, l]), device)),
    }
}

impl Answers {
    /// Flat positions that are scored, and what should be said there.
    fn of(batch: &data::Batch, device: &Device) -> (Vec<i32>, Self) {
        if batch.numbers_asked().is_none() {
            let (positions, on_host) = batch.scored_positions();
            let targets = Tensor::from_data(TensorData::new(on_host.clone(), [on_host.len()]), device);
            return (positions, Self::Classes { targets, on_host });
        }
        let (positions, on_host) = batch.scored_numbers();
        let shape = [positions.len(), on_host.len() / positions.len().max(1)];
        let targets = Tensor::from_data(TensorData::new(on_host.clone(), shape), device);
        (positions, Self::Numbers { targets, on_host })
    }
}

impl DeviceBatch {
    /// None where no position is scored: such a batch weighs nothing.
    pub fn new(batch: &data::Batch, device: &Device) -> Option<Self> {
        if batch.scored() == 0 {
            return None;
        }
        let (positions, answers) = Answers::of(batch, device);
        let n = positions.len();
        let samples = positions.iter().map(|&position| position as usize / batch.len).collect();
        Some(Self {
            input: input(batch, device),
            scored: Tensor::from_data(TensorData::new(positions, [n]), device),
            answers,
            samples,
            source: DeviceSource::new(batch, device),
            padding: batch.padding_told().map(<[bool]>::to_vec),
        })
    }

    /// What a model takes besides its input: scored positions, padding, and sources where there are any.
    pub fn call(&self) -> Call<'_> {
        Call {
            scored: Some(&self.scored),
            padding: self.padding.as_deref(),
            source: self.source.as_ref().map(DeviceSource::call),
            ..Default::default()
        }
    }
}

/// Sums over scored positions, on the host in f64, so that averages do not depend on how samples fall into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Sum of the losses: of classes in nats, of numbers the mean squared error of a position.
    pub loss: f64,
    /// Positions whose largest logit is at the target.
    pub correct: u64,
    /// Scored positions.
    pub scored: u64,
    /// Sum of the mean absolute errors of positions, where numbers are said.
    pub absolute: Option<f64>,
}

impl Tally {
    /// The tally of one batch's losses `[N]` and logits `[N, outputs]`.
    pub fn of(losses: Tensor<1>, logits: Tensor<2>, batch: &DeviceBatch) -> Self {
        let mut whole = Self::default();
        each_position(losses, logits, batch, |_, one| whole.add(one));
        whole
    }

    /// The tallies of each sample of one batch, in their order, of those that have a scored position, with the sample.
    pub fn of_samples(losses: Tensor<1>, logits: Tensor<2>, batch: &DeviceBatch) -> Vec<(usize, Self)> {
        let mut tallies: Vec<(usize, Self)> = vec![];
        each_position(losses, logits, batch, |place, own| match tallies.last_mut() {
            Some((last, tally)) if *last == batch.samples[place] => tally.add(own),
            _ => tallies.push((batch.samples[place], own)),
        });
        tallies
    }

    /// Adds another batch.
    pub fn add(&mut self, other: Self) {
        self.loss += other.loss;
        self.correct += other.correct;
        self.scored += other.scored;
        if let Some(absolute) = other.absolute {
            self.absolute = Some(self.absolute.unwrap_or(0.0) + absolute);
        }
    }

    /// Every metric that can be computed from the sums, on the set that `yardstick` is of; NaN where nothing is scored.
    pub fn scores(&self, yardstick: &Yardstick) -> Scores {
        let loss = self.mean_loss();
        match (self.absolute, yardstick.bytes_per_answer) {
            (Some(absolute), _) => Scores::default()
                .with(&MSE, loss)
                .with(&NMSE, loss / yardstick.variance)
                .with(&MAE, absolute / self.scored as f64),
            (None, None) => Scores::default().with(&LOSS, loss).with(&ACCURACY, self.accuracy()),
            (None, Some(bytes)) => Scores::default()
                .with(&LOSS, loss)
                .with(&ACCURACY, self.accuracy())
                .with(&BITS_PER_BYTE, loss / std::f64::consts::LN_2 / bytes),
        }
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

/// Gives every scored position's place among them and its tally, in their order.
fn each_position(losses: Tensor<1>, logits: Tensor<2>, batch: &DeviceBatch, mut give: impl FnMut(usize, Tally)) {
    let losses = losses.into_data();
    let losses = losses.iter::<f32>().map(f64::from);
    match &batch.answers {
        Answers::Classes { on_host, .. } => {
            let predicted = logits.argmax(1).into_data();
            let is_right = predicted.iter::<i64>().zip(on_host).map(|(guess, &target)| guess == i64::from(target));
            for (place, (loss, is_right)) in losses.zip(is_right).enumerate() {
                give(place, Tally { loss, correct: u64::from(is_right), scored: 1, absolute: None });
            }
        }
        Answers::Numbers { on_host, .. } => {
            let width = on_host.len() / batch.samples.len().max(1);
            let said: Vec<f32> = logits.into_data().iter::<f32>().collect();
            let rows = said.chunks(width.max(1)).zip(on_host.chunks(width.max(1)));
            for (place, (loss, (said, right))) in losses.zip(rows).enumerate() {
                let errors = said.iter().zip(right).map(|(&said, &right)| (f64::from(said) - f64::from(right)).abs());
                let absolute = Some(errors.sum::<f64>() / width as f64);
                give(place, Tally { loss, correct: 0, scored: 1, absolute });
            }
        }
    }
}

/// The loss of each scored position of `batch`, `[N]`, under logits `[N, outputs]`: cross-entropy of classes, the mean squared error of
/// numbers.
pub fn losses(logits: Tensor<2>, batch: &DeviceBatch) -> Tensor<1> {
    match &batch.answers {
        Answers::Classes { targets, .. } => cross_entropy(logits, targets.clone()),
        Answers::Numbers { targets, .. } => {
            let error = logits - targets.clone();
            (error.clone() * error).mean_dim(1).squeeze_dim(1)
        }
    }
}
