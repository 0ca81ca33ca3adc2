//! Every check once more on wgpu, in one test: opening the adapter takes seconds.

use crate::{attention, cache, decoder, encoder_decoder, heads, numbers, parameters, reports, support};

#[test]
fn every_check_holds_on_wgpu() {
    let Some(backend) = support::wgpu() else { return };
    let all = [
        attention::ALL,
        cache::ALL,
        decoder::ALL,
        encoder_decoder::ALL,
        heads::ALL,
        numbers::ALL,
        parameters::ALL,
        reports::ALL,
    ];
    for (name, check) in all.concat() {
        println!("{name}");
        check(&backend);
    }
}
