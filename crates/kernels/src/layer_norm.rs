//! Layer norm (Ba 2016, section 3.1).

use burn::tensor::{Tensor, module};

/// `(x − mean) / sqrt(variance + epsilon) · gamma + beta` over the last dimension, the variance being that of the row's
/// entries (divided by D).
///
/// `x` `[..., D]`, `gamma` and `beta` `[D]`; gives `[..., D]`.
pub fn layer_norm<const N: usize>(x: Tensor<N>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> Tensor<N> {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&x) {
        use crate::extension::Kernels;
        let (gamma, beta) = (gamma.into_dispatch(), beta.into_dispatch());
        return Tensor::from_dispatch(burn::backend::Dispatch::layer_norm(x.into_dispatch(), gamma, beta, epsilon));
    }
    plain(x, gamma, beta, epsilon)
}

/// [`layer_norm`] in Burn's operations.
pub fn plain<const N: usize>(x: Tensor<N>, gamma: Tensor<1>, beta: Tensor<1>, epsilon: f64) -> Tensor<N> {
    module::layer_norm(x, gamma, Some(beta), epsilon)
}
