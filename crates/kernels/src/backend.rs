//! Where an operation runs: in the kernels, and on which threads.

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
