//! Fused operations with their own backward pass for the CPU.
//!
//! Each operation is one public function on tensors. On the flex backend, in f32, it runs a kernel of this crate, forward
//! and backward; on every other backend and type it is the plain composition of Burn's operations, which stands beside it
//! as `plain`. That choice is made in one place, [`is_fused`], and the two are tested against each other and against f64.
//!
//! Results of the kernels don't depend on the number of threads: work is cut by the size of the problem alone, and
//! partial sums are added in order. They may differ in last bits between processors with other vector instructions.
//!
//! Shapes: B samples, L positions (Lq queries, Lk keys), D d_model, H heads, G key/value heads, K d_head, N rows, I inputs
//! and O outputs of a layer, V classes. A mask has one meaning: `true` = forbidden.

pub mod adamw;
pub mod attention;
pub mod cross_entropy;
pub mod layer_norm;
pub mod linear;

#[cfg(feature = "flex")]
mod extension;
#[cfg(feature = "flex")]
mod fused;

pub use attention::{Attending, Projection, attention, self_attention};
pub use cross_entropy::cross_entropy;
pub use layer_norm::layer_norm;
pub use linear::{Activation, linear};

use burn::tensor::Tensor;

/// Whether operations on `x` run the kernels: it is of f32 and on the flex backend.
#[cfg(feature = "flex")]
pub fn is_fused<const N: usize>(x: &Tensor<N>) -> bool {
    use burn::backend::DispatchTensorKind::{Autodiff, Flex};
    use burn::tensor::DType;
    x.dtype() == DType::F32
        && match x.clone().into_dispatch().kind {
            Flex(_) => true,
            Autodiff(inner) => matches!(*inner, Flex(_)),
            #[allow(unreachable_patterns)]
            _ => false,
        }
}

/// Whether operations on `x` run the kernels: without the flex backend they never do.
#[cfg(not(feature = "flex"))]
pub fn is_fused<const N: usize>(_: &Tensor<N>) -> bool {
    false
}

/// Runs `work` as one of the threads that share the kernels' work. Called from any other thread, every kernel would first
/// have to wake one and wait for it, which costs more than many a kernel.
#[cfg(feature = "flex")]
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| work())
}

/// Runs `work`.
#[cfg(not(feature = "flex"))]
pub fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    work()
}
