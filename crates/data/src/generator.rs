//! From (task, split, data seed, index) to samples and batches.

use std::fmt;
use std::sync::Arc;

#[cfg(doc)]
use crate::definition::Definition;
use crate::definition::{Draw, Task};
use crate::random::{Key, Stream, key};
use crate::readout::with_readout;
use crate::sample::{Batch, NumberSizes, Numbers, Sample, SourceBatch, SourceSizes, Split};
use crate::stored::Stored;

/// A task prepared for one split and data seed: tables and weights are built once, each sample is then cheap.
///
/// Sample `index` is ChaCha8 stream `index` under the BLAKE3 key of (generator version, task parameters, split, data
/// seed): a pure function, so it is the same alone, in any batch, in any order and on any thread. In a task of files it is what
/// [`Stored::sample`] gives, with that stream.
#[derive(Clone)]
pub struct Generator {
    key: Key,
    origin: Origin,
    seq_len: usize,
    source: Option<SourceSizes>,
    numbers: Option<NumberSizes>,
    /// The token of the read-out, where there is one.
    readout: Option<u32>,
}

/// Where samples come from.
#[derive(Clone)]
enum Origin {
    Drawn(Draw),
    Read(Arc<Stored>, Split),
}

impl Generator {
    /// Prepares `task` for `split`; take `data_seed` from [`Split::data_seed`].
    ///
    /// # Panics
    /// May panic, or never return a sample, if [`Definition::check`] would refuse the task, or if it has files that are not
    /// [open](Definition::open).
    pub fn new(task: &Task, split: Split, data_seed: u64) -> Self {
        let key = key(&["samples", &task.canonical(), split.name(), &data_seed.to_string()]);
        let origin = match task.stored() {
            Some(stored) => Origin::Read(stored.clone(), split),
            None => Origin::Drawn(task.prepare()),
        };
        let readout = task.readout().then(|| task.vocab() as u32);
        Self { key, origin, seq_len: task.seq_len(), source: task.source(), numbers: task.numbers(), readout }
    }

    /// Sample `index`, of length `seq_len`. In a set that is read, `index` lies below its size.
    pub fn sample(&self, index: u64) -> Sample {
        let mut stream = Stream::new(self.key, index);
        let sample = match &self.origin {
            Origin::Drawn(draw) => draw(&mut stream),
            Origin::Read(stored, split) => stored.sample(*split, index, &mut stream),
        };
        match self.readout {
            Some(token) => with_readout(sample, token),
            None => sample,
        }
    }

    /// The samples `indices`, in that order; B = `indices.len()`.
    pub fn batch(&self, indices: &[u64]) -> Batch {
        let (batch, len) = (indices.len(), self.seq_len);
        let mut tokens = Vec::with_capacity(batch * len);
        let mut targets = Vec::with_capacity(batch * len);
        let mut padding = Vec::with_capacity(batch * len);
        let mut sources =
            self.source.map(|SourceSizes { len, .. }| SourceBatch { len, tokens: vec![], padding: vec![] });
        let mut numbers = self.numbers.map(|_| Numbers::default());
        for &index in indices {
            let sample = self.sample(index);
            if let (Some(sources), Some(source)) = (&mut sources, &sample.source) {
                sources.tokens.extend(source.tokens.iter().map(|&token| token as i32));
                sources.padding.extend((0..sources.len).map(|position| position >= source.real));
            }
            if let (Some(numbers), Some(sample)) = (&mut numbers, &sample.numbers) {
                numbers.inputs.extend_from_slice(&sample.inputs);
                numbers.targets.extend_from_slice(&sample.targets);
                numbers.scored.extend_from_slice(&sample.scored);
            }
            padding.extend((0..len).map(|position| position >= sample.real));
            tokens.extend(sample.tokens.iter().map(|&token| token as i32));
            targets.extend_from_slice(&sample.targets);
        }
        Batch { batch, len, tokens, targets, padding, source: sources, numbers }
    }
}

impl Task {
    /// Sample `index` of `split`. To draw more than one, keep a [`Generator`].
    ///
    /// # Panics
    /// As [`Generator::new`].
    pub fn sample(&self, split: Split, data_seed: u64, index: u64) -> Sample {
        Generator::new(self, split, data_seed).sample(index)
    }
}

impl fmt::Debug for Generator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Generator").field("seq_len", &self.seq_len).finish_non_exhaustive()
    }
}

/// The samples `indices` of a task's split as one batch; for more than one batch keep a [`Generator`].
///
/// # Panics
/// As [`Generator::new`].
pub fn batch(task: &Task, split: Split, data_seed: u64, indices: &[u64]) -> Batch {
    Generator::new(task, split, data_seed).batch(indices)
}
