//! AdamW (Loshchilov 2019, algorithm 2) as PyTorch computes it, on flat tensors.

pub(crate) mod update;

use burn::tensor::Tensor;

pub use update::Update;

/// Flat tensors of the plain composition are padded with zeros to whole rows of this length, so that sums run row by row:
/// one long sum of flex would be cut into as many pieces as there are threads.
pub const ROW: usize = 256;

/// What AdamW changes: all of one length, a multiple of [`ROW`].
#[derive(Clone, Debug)]
pub struct Flat {
    /// The parameters.
    pub parameters: Tensor<1>,
    /// Running mean of gradients.
    pub first_moment: Tensor<1>,
    /// Running mean of squared gradients.
    pub second_moment: Tensor<1>,
}

/// One update with `gradient`, which has the same length. Tensors must not be tracked.
pub fn step(flat: Flat, gradient: Tensor<1>, update: Update) -> Flat {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&gradient) {
        return fused(flat, gradient, update);
    }
    plain(flat, gradient, update)
}

/// [`step`] in Burn's operations.
pub fn plain(flat: Flat, gradient: Tensor<1>, update: Update) -> Flat {
    let Update { gradient_scale, lr, beta1, beta2, epsilon, weight_decay, .. } = update;
    let gradient = if gradient_scale == 1.0 { gradient } else { gradient * gradient_scale };
    let first = flat.first_moment * beta1 + gradient.clone() * (1.0 - beta1);
    let first = flushed(first, update.least_first_moment());
    let second = flat.second_moment * beta2 + gradient.powi_scalar(2) * (1.0 - beta2);
    let second = flushed(second, update.least_second_moment());
    let deviation = second.clone().sqrt() / update.correction2() + epsilon;
    let change = first.clone() / deviation * (lr / update.correction1());
    let parameters = flat.parameters * (1.0 - lr * weight_decay) - change;
    Flat { parameters, first_moment: first, second_moment: second }
}

/// `moment` with 0 in the place of what is nearer to it than `least`.
fn flushed(moment: Tensor<1>, least: f32) -> Tensor<1> {
    let is_lost = moment.clone().abs().lower_elem(least);
    moment.mask_fill(is_lost, 0.0)
}

/// The L2 norm of `gradient`, whose length is a multiple of [`ROW`].
pub fn norm(gradient: &Tensor<1>) -> f64 {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(gradient) {
        let gradient = crate::fused::buffer::contiguous(primitive(gradient.clone()));
        return crate::fused::adamw::sum_of_squares(crate::fused::buffer::slice(&gradient)).sqrt();
    }
    plain_norm(gradient)
}

/// [`norm`] in Burn's operations.
pub fn plain_norm(gradient: &Tensor<1>) -> f64 {
    let rows = gradient.dims()[0] / ROW;
    let squares = gradient.clone().powi_scalar(2).reshape([rows, ROW]).sum_dim(1);
    f64::from(squares.sum().into_scalar::<f32>()).sqrt()
}

#[cfg(feature = "flex")]
fn primitive(x: Tensor<1>) -> burn::backend::flex::FlexTensor {
    x.try_into_primitive::<burn::backend::Flex>().expect("a tensor of flex that isn't tracked")
}

#[cfg(feature = "flex")]
fn fused(flat: Flat, gradient: Tensor<1>, update: Update) -> Flat {
    use crate::fused::buffer::{contiguous, slice, tensor, unwritten};
    use burn::backend::Flex;
    let own = |x: Tensor<1>| primitive(x).to_contiguous();
    let (mut first, mut second) = (own(flat.first_moment), own(flat.second_moment));
    let (old, gradient) = (contiguous(primitive(flat.parameters)), contiguous(primitive(gradient)));
    let mut parameters = unwritten(slice(&old).len());
    // Moments change in place, where nobody else reads them; parameters are read by the model until it has the new ones.
    crate::fused::adamw::step(
        slice(&old),
        &mut parameters,
        slice(&gradient),
        first.storage_mut::<f32>(),
        second.storage_mut::<f32>(),
        update,
    );
    let parameters = tensor(parameters, old.layout().shape().clone());
    let [parameters, first_moment, second_moment] = [parameters, first, second].map(Tensor::from_primitive::<Flex>);
    Flat { parameters, first_moment, second_moment }
}
