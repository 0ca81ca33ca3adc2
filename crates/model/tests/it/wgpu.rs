//! Every check once more on wgpu, in one test: opening the adapter takes seconds.

use crate::{attention, cache, decoder, encoder_decoder, heads, parameters, reports, support};

#[test]
fn every_check_holds_on_wgpu() {
    let Some(backend) = support::wgpu() else { return };
    for (name, check) in
        [attention::ALL, cache::ALL, decoder::ALL, encoder_decoder::ALL, heads::ALL, parameters::ALL, reports::ALL]
            .concat()
    {
        println!("{name}");
        check(&backend);
    }
}
