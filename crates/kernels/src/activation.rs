//! What can follow a linear layer in the same kernel.

/// What follows a linear layer, entry by entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    None,
    /// `x·Φ(x)`, Φ being the normal distribution function (Hendrycks 2016, section 2).
    Gelu,
}
