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
    /// First moments nearer to 0 than this become 0. A moment whose gradients have ended halves every few steps until it is no
    /// normal number any more, and there rounding to nearest holds it for ever (4 of the smallest numbers times 0.9 round to 4): every later
    /// step would pay for arithmetic that processors do a hundred times slower. What such a moment adds to a parameter is lost beside
    /// any parameter above 1e-22.
    pub(crate) fn least_first_moment(&self) -> f32 {
        f32::MIN_POSITIVE
    }

    /// The same of second moments, whose root is lost beside `epsilon` then; 0, which no moment is below, where `epsilon` is so
    /// small that it is not.
    pub(crate) fn least_second_moment(&self) -> f32 {
        if self.epsilon >= 1e-9 { f32::MIN_POSITIVE } else { 0.0 }
    }

    pub(crate) fn correction1(&self) -> f64 {
        1.0 - self.beta1.powf(self.step as f64)
    }

    pub(crate) fn correction2(&self) -> f64 {
        (1.0 - self.beta2.powf(self.step as f64)).sqrt()
    }
}
