//! Between Burn's CPU tensors and slices of f32.

use std::mem::MaybeUninit;

use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::{Bytes, DType, Shape};

/// A tensor of flex under autodiff.
pub(crate) type Tracked = FloatTensor<Autodiff<Flex>>;

/// A buffer of `count` numbers that hold anything: to be written in full before it is read.
///
/// Clearing it first would be one more pass over memory in every operation.
pub(crate) fn unwritten(count: usize) -> Vec<f32> {
    let mut buffer: Vec<MaybeUninit<f32>> = Vec::with_capacity(count);
    // SAFETY: MaybeUninit needs no initialisation, and any bits are an f32; every kernel writes before it reads.
    unsafe {
        buffer.set_len(count);
        let mut buffer = std::mem::ManuallyDrop::new(buffer);
        Vec::from_raw_parts(buffer.as_mut_ptr().cast(), count, buffer.capacity())
    }
}

/// A contiguous tensor of `values`.
pub(crate) fn tensor(values: Vec<f32>, shape: impl Into<Shape>) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::contiguous(shape.into()), DType::F32)
}

/// A tensor whose entries lie in `values` in another order.
pub(crate) fn strided(values: Vec<f32>, shape: impl Into<Shape>, strides: Vec<isize>) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(values), Layout::new(shape.into(), strides, 0), DType::F32)
}

/// The tensor with its entries in row-major order; copied only where they lie in another.
pub(crate) fn contiguous(tensor: FlexTensor) -> FlexTensor {
    if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() }
}

/// The entries of a tensor that [`contiguous`] gave or a kernel made.
///
/// # Panics
/// On a tensor that isn't of f32 in row-major order.
pub(crate) fn slice(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice::<f32>().expect("a contiguous tensor of f32")
}

/// The length of each dimension.
pub(crate) fn dims<const N: usize>(tensor: &FlexTensor) -> [usize; N] {
    let shape = tensor.layout().shape();
    std::array::from_fn(|i| shape[i])
}
