//! Trained heads beside untrained ones, by their maps alone.

use burn::module::Module;
use burn::tensor::Device;
use model::{Call, Decoder, parameters};
use runs::{
    Config, Tensors,
    heads::{AlikeHeads, AttentionSite},
};

use crate::{
    HeadError,
    batch::DeviceBatch,
    effects::host,
    maps::Maps,
    samples::Samples,
    similarity::{alike_heads, are_alike, divergence, mean_divergence},
};

/// The attentions of a model with `weights` whose heads all look alike, by comparison with the same model before its first step:
/// what [`runs::heads::HeadAnalysis::alike`] holds, from two forward passes.
///
/// # Errors
/// Weights that don't fit the config, and samples that the model can't take or of which nothing is scored.
pub fn heads_alike(config: &Config, weights: &Tensors, device: &Device) -> Result<Vec<AlikeHeads>, HeadError> {
    let samples = Samples::new(config);
    let untrained = Decoder::new(&config.model, config.dims(), config.weights_seed(), device)?;
    let trained = parameters::from_host(untrained.clone(), weights)
        .map_err(|error| HeadError::Weights { step: config.train.steps, error })?;
    let (before, now) =
        (differences(&untrained, config, &samples, device)?, differences(&trained, config, &samples, device)?);
    let of = |((site, layer, now), (.., before)): (Difference, Difference)| {
        let (now, before) = (now?, before?);
        are_alike(now, before).then(|| alike_heads(site, layer, now, before))
    };
    Ok(now.into_iter().zip(before).filter_map(of).collect())
}

/// Where an attention stands, and the mean divergence between its heads.
type Difference = (AttentionSite, usize, Option<f64>);

fn differences(
    model: &Decoder,
    config: &Config,
    samples: &Samples,
    device: &Device,
) -> Result<Vec<Difference>, HeadError> {
    let batch = DeviceBatch::new(&samples.batch, device).ok_or(HeadError::NothingScored)?;
    let call = Call { maps: true, ..batch.call() };
    let output = model.clone().no_grad().forward(batch.input.clone(), call)?;
    let mut sites = vec![(AttentionSite::Decoder, output.maps, &samples.decoder)];
    if let Some((encoder, cross)) = &samples.encoder {
        sites.push((AttentionSite::Encoder, output.encoder_maps, encoder));
        sites.push((AttentionSite::Cross, output.cross_maps, cross));
    }
    let mut differences = vec![];
    for (site, maps, readable) in sites {
        for (layer, weights) in maps.into_iter().enumerate() {
            let weights: Vec<f32> = host(weights);
            let maps = Maps::new(config.model.heads, &weights, readable);
            differences.push((site, layer, mean_divergence(&divergence(maps))));
        }
    }
    Ok(differences)
}
