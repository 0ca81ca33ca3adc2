//! The parts of a training step, for whoever takes its time.

/// A part of an optimiser step, named when it is over. With several micro-batches the first four come once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Samples drawn on the host and put on the device.
    Data,
    /// From tokens to losses.
    Forward,
    /// From losses to the flat gradient.
    Backward,
    /// Loss and accuracy read back to the host.
    Reading,
    /// From the gradient's norm to new parameters.
    Optimiser,
}

impl Part {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 5] = [Self::Data, Self::Forward, Self::Backward, Self::Reading, Self::Optimiser];
}
