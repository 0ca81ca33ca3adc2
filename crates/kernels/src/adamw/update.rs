//! The numbers of an update.

/// The numbers of one update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The gradient is multiplied by this first: the factor of global-norm clipping, or 1.
    pub gradient_scale: f64,
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay, times the learning rate.
    pub weight_decay: f64,
    /// Number of the update, from 1.
    pub step: u64,
}

impl Update {
    pub(crate) fn correction1(&self) -> f64 {
        1.0 - self.beta1.powf(self.step as f64)
    }

    pub(crate) fn correction2(&self) -> f64 {
        (1.0 - self.beta2.powf(self.step as f64)).sqrt()
    }
}
