//! Cross-entropy at scored positions.

use burn::tensor::{Int, Tensor, activation::log_softmax};

/// The loss of each scored position in nats: `−ln softmax(logits)[target]`.
///
/// `logits` `[N, V]`, `targets` `[N]` in `0..V`; gives `[N]`. Positions that aren't scored never get here, so there is no
/// index to ignore and no division by a count that may be zero. With N = 0 the sum is 0 and no backward pass can start.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = logits.dims();
    if n == 0 {
        return Tensor::zeros([0], &logits.device());
    }
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&logits) {
        use crate::extension::Kernels;
        let targets = targets.into_dispatch();
        return Tensor::from_dispatch(burn::backend::Dispatch::cross_entropy(logits.into_dispatch(), targets));
    }
    plain(logits, targets)
}

/// [`cross_entropy`] in Burn's operations, for N > 0.
pub fn plain(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = logits.dims();
    -log_softmax(logits, 1).gather(1, targets.reshape([n, 1])).reshape([n])
}
