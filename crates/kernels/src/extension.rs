//! The kernels as operations of Burn's flex backend, with their backward passes under autodiff.

mod attention;
mod cross_entropy;
mod layer_norm;
mod linear;

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Flex, backend_extension};

use crate::activation::Activation;
use crate::fused::attention::Weighting;

/// The operations that the dispatcher of Burn routes here; see the public functions of the same names.
#[backend_extension(Autodiff, Flex)]
pub trait Kernels: Backend {
    /// See [`crate::layer_norm()`].
    fn layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self>;

    /// See [`crate::linear()`].
    fn linear_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self>;

    /// See [`crate::linear()`].
    fn linear_without_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self>;

    /// See [`crate::attention()`].
    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        weighting: Weighting,
    ) -> FloatTensor<Self>;

    /// Attention whose queries, keys and values are columns of one tensor; see [`crate::self_attention()`].
    fn packed_attention(projections: FloatTensor<Self>, heads: [usize; 2], weighting: Weighting) -> FloatTensor<Self>;

    /// See [`crate::cross_entropy()`].
    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self>;
}

impl Kernels for Flex {
    fn layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        layer_norm::Pass::run(x, gamma, beta, epsilon).output
    }

    fn linear_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        linear::Pass::run(x, weight, Some(bias), activation, false).output
    }

    fn linear_without_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        linear::Pass::run(x, weight, None, activation, false).output
    }

    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        weighting: Weighting,
    ) -> FloatTensor<Self> {
        attention::Pass::apart(query, key, value, weighting).contexts
    }

    fn packed_attention(projections: FloatTensor<Self>, heads: [usize; 2], weighting: Weighting) -> FloatTensor<Self> {
        attention::Pass::packed(projections, heads, weighting).contexts
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        cross_entropy::Pass::run(logits, targets).losses
    }
}

impl<C: CheckpointStrategy> Kernels for Autodiff<Flex, C> {
    fn layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        layer_norm::tracked::<C>(x, gamma, beta, epsilon)
    }

    fn linear_with_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        linear::tracked_with_bias::<C>(x, weight, bias, activation)
    }

    fn linear_without_bias(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        linear::tracked_without_bias::<C>(x, weight, activation)
    }

    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        weighting: Weighting,
    ) -> FloatTensor<Self> {
        attention::tracked::<C>(query, key, value, weighting)
    }

    fn packed_attention(projections: FloatTensor<Self>, heads: [usize; 2], weighting: Weighting) -> FloatTensor<Self> {
        attention::tracked_packed::<C>(projections, heads, weighting)
    }

    fn cross_entropy(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        cross_entropy::tracked::<C>(logits, targets)
    }
}
