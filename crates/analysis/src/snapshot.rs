//! All that is said of a model at one step: its weights in, a [`StepAnalysis`] out.

use burn::module::Module;
use burn::tensor::Device;
use model::{Decoder, parameters};
use runs::{
    Config, Tensors,
    heads::{AttentionAnalysis, AttentionSite, HeadMeasures, StepAnalysis},
};

use crate::{
    HeadError,
    effects::Probe,
    encode,
    flags::flags,
    maps::Maps,
    measures::{MEASURES, Seen},
    roles::roles,
    samples::Samples,
    similarity::{divergence, mean_divergence, nearest},
};

/// Analyses the model of `config` with `weights` (the untrained ones where `None`), as it is at `step`. With `shown`, the maps
/// of that many samples are kept, and what it says there. `untrained` is the same model at step 0, `None` where that is this one.
///
/// # Errors
/// Weights that don't fit the config, samples that the model can't take, and numbers that aren't finite.
pub fn analyse(
    config: &Config,
    step: u64,
    weights: Option<Tensors>,
    samples: &Samples,
    shown: Option<usize>,
    untrained: Option<&StepAnalysis>,
    device: &Device,
) -> Result<StepAnalysis, HeadError> {
    let autodiff = device.clone().autodiff();
    let mut model = Decoder::new(&config.model, config.dims(), config.weights_seed(), &autodiff)?;
    let weights = match weights {
        Some(weights) => {
            model = parameters::from_host(model, &weights).map_err(|error| HeadError::Weights { step, error })?;
            weights
        }
        None => parameters::to_host(&model),
    };
    let probe = Probe::new(model.no_grad(), config, &weights, samples, device)?;

    let mut stacks = vec![(AttentionSite::Decoder, &probe.maps, &samples.decoder)];
    if let Some((encoder, cross)) = &samples.encoder {
        stacks.push((AttentionSite::Encoder, &probe.encoder_maps, encoder));
        stacks.push((AttentionSite::Cross, &probe.cross_maps, cross));
    }
    let mut attentions = vec![];
    for (site, maps, readable) in stacks {
        for (layer, weights) in maps.iter().enumerate() {
            let seen = Seen {
                site,
                layer,
                maps: Maps::new(config.model.heads, weights, readable),
                tokens: tokens(site, samples),
                needs: &samples.needs,
                probe: &probe,
            };
            attentions.push(attention(config, &seen, shown)?);
        }
    }
    let answers = shown.map(|samples| probe.answers(samples));
    let mut analysis = StepAnalysis { step, scores: probe.scores, answers, attentions };
    if !analysis.scores.are_finite() {
        return Err(HeadError::NotFinite { step });
    }
    analysis.scores = analysis.scores.map(rounded);
    for number in numbers(&mut analysis) {
        if !number.is_finite() {
            return Err(HeadError::NotFinite { step });
        }
        *number = rounded(*number);
    }
    judge(&mut analysis, untrained, &samples.needs.groups);
    Ok(analysis)
}

/// What is remarkable about each head, and what it is for, by the numbers as they are kept.
fn judge(analysis: &mut StepAnalysis, untrained: Option<&StepAnalysis>, parts: &[String]) {
    // Untrained heads are held against no others.
    let is_trained = untrained.is_some();
    let before = untrained.map_or_else(|| analysis.attentions.clone(), |untrained| untrained.attentions.clone());
    for (attention, before) in analysis.attentions.iter_mut().zip(&before) {
        let count = attention.heads.len();
        let untrained = mean_divergence(&before.divergence).filter(|_| is_trained).unwrap_or_default();
        for (head, before) in attention.heads.iter_mut().zip(&before.heads) {
            head.flags = flags(head, count, untrained);
            head.roles = roles(head, before, parts);
        }
    }
}

/// `[B][L]`: the tokens of the sequence that an attention stays within.
fn tokens(site: AttentionSite, samples: &Samples) -> Option<&[i32]> {
    match (site, &samples.batch.source) {
        (AttentionSite::Cross, _) => None,
        (AttentionSite::Encoder, Some(source)) => Some(&source.tokens),
        _ => Some(&*samples.batch.tokens).filter(|tokens| !tokens.is_empty()),
    }
}

/// What is said of the heads of one layer.
fn attention(config: &Config, seen: &Seen, shown: Option<usize>) -> Result<AttentionAnalysis, HeadError> {
    let Seen { site, layer, maps, .. } = *seen;
    let divergence = divergence(maps);
    let mut heads: Vec<HeadMeasures> =
        nearest(&divergence).into_iter().map(|nearest| HeadMeasures { nearest, ..Default::default() }).collect();
    for measure in MEASURES {
        for (head, value) in heads.iter_mut().zip((measure.compute)(seen)?) {
            head.measures.extend(value.map(|value| (measure.key.to_string(), value)));
        }
    }
    let maps = shown.map(|samples| encode::shown(maps, samples, is_causal(config, site)));
    Ok(AttentionAnalysis { site, layer, heads, divergence, maps })
}

/// Whether an attention reads what is before it only.
pub fn is_causal(config: &Config, site: AttentionSite) -> bool {
    site == AttentionSite::Decoder && config.model.causal
}

/// Every number of an analysis but the scores.
fn numbers(analysis: &mut StepAnalysis) -> impl Iterator<Item = &mut f64> {
    let StepAnalysis { step: _, scores: _, answers: _, attentions } = analysis;
    attentions.iter_mut().flat_map(of_attention)
}

fn of_attention(attention: &mut AttentionAnalysis) -> impl Iterator<Item = &mut f64> {
    let AttentionAnalysis { heads, divergence, site: _, layer: _, maps: _ } = attention;
    heads.iter_mut().flat_map(of_head).chain(divergence.iter_mut().flatten())
}

fn of_head(head: &mut HeadMeasures) -> impl Iterator<Item = &mut f64> {
    let HeadMeasures { measures, nearest, flags: _, roles: _ } = head;
    let nearest = nearest.iter_mut().map(|nearest| &mut nearest.divergence);
    measures.values_mut().flat_map(|value| value.numbers_mut()).chain(nearest)
}

/// To six significant digits: more would only be noise, and make files large.
pub fn rounded(number: f64) -> f64 {
    // A number in this notation is always read back; adding 0 turns −0 into 0.
    format!("{number:.5e}").parse().unwrap_or(number) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        assert_eq!(rounded(0.123456789), 0.123457);
        assert_eq!(rounded(-1234567.0), -1234570.0);
        assert_eq!(rounded(1e-300), 1e-300);
        assert!(rounded(-0.0).is_sign_positive());
    }
}
