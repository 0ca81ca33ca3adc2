//! Multi-head attention in a Burn program of one's own: eight heads, a causal mask, and what each position reads.
//!
//! cargo run -p headcount-model --features flex --example causal_attention

use architecture::AttentionConfig;
use burn::tensor::{Device, Distribution, Tensor};
use headcount_model::{Attention, AttentionCall};
use kernels::AttentionMask;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::flex(); // any other of Burn's, and .autodiff() to train
    let (batch, length, d_model, heads) = (2, 5, 64, 8);
    let attention = Attention::init(&AttentionConfig::new(d_model, heads)?, 0, &device)?;

    let x = Tensor::<3>::random([batch, length, d_model], Distribution::Normal(0.0, 1.0), &device);
    let mask = AttentionMask::causal().prepare([batch, heads, length, length], &device)?;
    let call = AttentionCall { mask: Some(&mask), maps: true, ..Default::default() };
    let result = attention.forward(x.clone(), None, call);

    println!("input   [B, L, D]    {:?}", x.dims());
    println!("output  [B, L, D]    {:?}", result.output.dims());
    let maps = result.maps.ok_or("maps were asked for")?;
    println!("maps    [B, H, L, L] {:?}; of the first head:", maps.dims());
    for row in maps.into_data().iter::<f32>().take(length * length).collect::<Vec<_>>().chunks(length) {
        println!("{}", row.iter().map(|weight| format!("  {weight:.2}")).collect::<String>());
    }
    Ok(())
}
