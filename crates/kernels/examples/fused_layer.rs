//! Fused kernels in a Burn program of one's own: a layer with its GELU in one kernel and the loss in another, forward and
//! backward, trained by plain steps down the gradient.
//!
//! cargo run -p headcount-kernels --features flex --example fused_layer

use burn::tensor::{Device, Distribution, Tensor};
use headcount_kernels::{Activation, cross_entropy, is_fused, linear};

fn main() {
    let device = Device::flex().autodiff();
    let (n, inputs, classes) = (256, 16, 4);
    let x = Tensor::<2>::random([n, inputs], Distribution::Normal(0.0, 1.0), &device);
    let targets = x.clone().narrow(1, 0, classes).argmax(1).reshape([n]); // the largest of the first inputs
    let mut weight = Tensor::<2>::zeros([inputs, classes], &device).require_grad();
    println!("x [N, I] {:?}, weight [I, O] {:?}; by the kernels: {}", x.dims(), weight.dims(), is_fused(&x));

    for step in 0..=100 {
        let logits = linear(x.clone(), weight.clone(), None, Activation::Gelu);
        let loss = cross_entropy(logits, targets.clone()).mean();
        if step % 20 == 0 {
            println!("step {step:3}: loss {:.4}", loss.clone().into_scalar::<f32>());
        }
        let Some(gradient) = weight.grad(&loss.backward()) else { break };
        weight = Tensor::from_inner(weight.inner() - gradient).require_grad();
    }
}
