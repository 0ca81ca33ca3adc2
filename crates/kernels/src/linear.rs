//! A linear layer with its activation.

use std::f64::consts::FRAC_1_SQRT_2;

use burn::tensor::{Tensor, module};

use crate::activation::Activation;

/// `activation(x·weight + bias)`: `x` `[..., I]`, `weight` `[I, O]`, `bias` `[O]`; gives `[..., O]`.
pub fn linear<const N: usize>(
    x: Tensor<N>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<N> {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&x) {
        use crate::extension::Kernels;
        use burn::backend::Dispatch;
        let (x, weight) = (x.into_dispatch(), weight.into_dispatch());
        return Tensor::from_dispatch(match bias {
            Some(bias) => Dispatch::linear_with_bias(x, weight, bias.into_dispatch(), activation),
            None => Dispatch::linear_without_bias(x, weight, activation),
        });
    }
    plain(x, weight, bias, activation)
}

/// [`linear`] in Burn's operations.
pub fn plain<const N: usize>(
    x: Tensor<N>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    activation: Activation,
) -> Tensor<N> {
    let y = module::linear(x, weight, bias);
    match activation {
        Activation::None => y,
        Activation::Gelu => gelu(y),
    }
}

/// Not Burn's `gelu`: on most backends its gradient is that of the tanh approximation, off by up to 9e-4 (near x = 2).
fn gelu<const N: usize>(x: Tensor<N>) -> Tensor<N> {
    let below = ((x.clone() * FRAC_1_SQRT_2).erf() + 1.0) * 0.5;
    x * below
}
