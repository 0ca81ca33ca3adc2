//! Cross-entropy at scored positions.

use burn::tensor::{Int, Tensor, activation::log_softmax};

/// The loss of each scored position in nats: `−ln softmax(logits)[target]`.
///
/// `logits` `[N, V]`, `targets` `[N]` in `0..V`; gives `[N]`. Positions that aren't scored never get here, so there is no
/// index to ignore and no division by a count that may be zero.
pub fn cross_entropy(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [n, _] = logits.dims();
    -log_softmax(logits, 1).gather(1, targets.reshape([n, 1])).reshape([n])
}
