//! A tensor on the host: what is saved, loaded, exported and fingerprinted.

/// Numbers in row-major order and their shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostTensor {
    /// Length of each axis, such as `[64, 64]`; empty for a single number.
    pub shape: Vec<usize>,
    /// As many as the shape says, row-major.
    pub values: Vec<f32>,
}
