//! All that is said of a model at one step: its weights in, a [`StepAnalysis`] out.

use burn::module::Module;
use burn::tensor::Device;
use data::Registers;
use model::{Decoder, parameters};
use runs::{Config, Tensors};

use super::{
    HeadError,
    effects::{Effects, Probe, importance},
    encode,
    flags::flags,
    maps::{Maps, Readable},
    measures::{self, OfHeads},
    record::{AttentionAnalysis, HeadMeasures, Place, StepAnalysis},
    samples::Samples,
    similarity::{divergence, nearest},
};

/// Analyses the model of `config` with `weights` (the untrained ones where `None`), as it is at `step`. With `shown`, the maps
/// of that many samples are kept.
///
/// # Errors
/// Weights that don't fit the config, samples that the model can't take, and numbers that aren't finite.
pub fn analyse(
    config: &Config,
    step: u64,
    weights: Option<Tensors>,
    samples: &Samples,
    shown: Option<usize>,
    device: &Device,
) -> Result<StepAnalysis, HeadError> {
    let autodiff = device.clone().autodiff();
    let mut model = Decoder::new(&config.model, config.dims(), config.seed, &autodiff)?;
    let weights = match weights {
        Some(weights) => {
            model = parameters::from_host(model, &weights).map_err(|error| HeadError::Weights { step, error })?;
            weights
        }
        None => parameters::to_host(&model),
    };
    let model = model.no_grad();
    let probe = Probe::new(model.clone().valid(), samples, device)?;
    let mut importance = importance(&model, [config.model.layers, config.model.heads], samples, &autodiff)?;

    let mut attentions = vec![];
    let stack = |place, maps: &[Vec<f32>], readable: &Readable| -> Vec<AttentionAnalysis> {
        let layer = |(layer, weights): (usize, &Vec<f32>)| {
            let maps = Maps::new(config.model.heads, weights, readable);
            attention(config, place, layer, maps, samples, shown)
        };
        maps.iter().enumerate().map(layer).collect()
    };
    for mut attention in stack(Place::Decoder, &probe.maps, &samples.decoder) {
        let layer = attention.layer;
        let output = &weights.get(&format!("blocks.{layer}.attention.output.weight"));
        let shares = output.map_or(vec![], |output| {
            probe.contexts[layer].output_shares(&output.values, config.model.d_model, &samples.padding)
        });
        add_effects(&mut attention.heads, &shares, &probe.effects(layer)?, &std::mem::take(&mut importance[layer]));
        attentions.push(attention);
    }
    if let Some((encoder, cross)) = &samples.encoder {
        attentions.extend(stack(Place::Encoder, &probe.encoder_maps, encoder));
        attentions.extend(stack(Place::Cross, &probe.cross_maps, cross));
    }
    let mut analysis = StepAnalysis { step, loss: probe.loss, accuracy: probe.accuracy, attentions };
    for attention in &mut analysis.attentions {
        let heads = attention.heads.len();
        attention.heads.iter_mut().for_each(|head| head.flags = flags(head, heads));
    }
    for number in numbers(&mut analysis) {
        if !number.is_finite() {
            return Err(HeadError::NotFinite { step });
        }
        *number = rounded(*number);
    }
    Ok(analysis)
}

/// What the maps of one layer say.
fn attention(
    config: &Config,
    place: Place,
    layer: usize,
    maps: Maps,
    samples: &Samples,
    shown: Option<usize>,
) -> AttentionAnalysis {
    let none = || vec![None; maps.heads];
    // From one sequence to another there is no distance, and no token before.
    let positions = |measure: fn(Maps) -> OfHeads| if place == Place::Cross { none() } else { measure(maps) };
    let tokens = match (place, &samples.batch.source) {
        (Place::Cross, _) => None,
        (Place::Encoder, Some(source)) => Some(source.tokens.as_slice()),
        _ => Some(samples.batch.tokens.as_slice()),
    };
    let of_tokens = |measure: fn(Maps, &[i32]) -> OfHeads| tokens.map_or_else(none, |tokens| measure(maps, tokens));
    let registers = match config.task.task.downcast::<Registers>() {
        Some(task) => {
            measures::registers(maps, &samples.batch.tokens, &samples.is_scored(), task.registers, task.values)
        }
        None => vec![None; maps.heads],
    };
    let divergence = divergence(maps);
    let nearest = nearest(&divergence);
    let (entropy, confidence) = (measures::entropy(maps), measures::confidence(maps));
    let (distance, previous) = (positions(measures::distance), positions(measures::previous_token));
    let (duplicate, induction) = (of_tokens(measures::duplicate_token), of_tokens(measures::induction));
    let first = measures::first_position(maps);
    let head = |(h, registers)| HeadMeasures {
        entropy: entropy[h],
        confidence: confidence[h],
        distance: distance[h],
        previous_token: previous[h],
        duplicate_token: duplicate[h],
        induction: induction[h],
        first_position: first[h],
        registers,
        nearest: nearest[h],
        ..Default::default()
    };
    AttentionAnalysis {
        place,
        layer,
        heads: registers.into_iter().enumerate().map(head).collect(),
        divergence,
        maps: shown.map(|samples| encode::shown(maps, samples, is_causal(config, place))),
    }
}

/// Whether an attention reads what is before it only.
pub fn is_causal(config: &Config, place: Place) -> bool {
    place == Place::Decoder && config.model.causal
}

fn add_effects(heads: &mut [HeadMeasures], shares: &[f64], effects: &Effects, importance: &[f64]) {
    for (h, head) in heads.iter_mut().enumerate() {
        head.output_share = shares.get(h).copied();
        head.removal = Some(effects.removal[h]);
        head.alone = Some(effects.alone[h]);
        head.importance = importance.get(h).copied();
    }
}

/// Every number of an analysis.
fn numbers(analysis: &mut StepAnalysis) -> impl Iterator<Item = &mut f64> {
    let StepAnalysis { step: _, loss, accuracy, attentions } = analysis;
    [loss, accuracy].into_iter().chain(attentions.iter_mut().flat_map(of_attention))
}

fn of_attention(attention: &mut AttentionAnalysis) -> Vec<&mut f64> {
    let AttentionAnalysis { heads, divergence, place: _, layer: _, maps: _ } = attention;
    heads.iter_mut().flat_map(of_head).chain(divergence.iter_mut().flatten()).collect()
}

fn of_head(head: &mut HeadMeasures) -> Vec<&mut f64> {
    let HeadMeasures {
        entropy,
        confidence,
        distance,
        previous_token,
        duplicate_token,
        induction,
        first_position,
        registers,
        output_share,
        removal,
        alone,
        importance,
        nearest,
        flags: _,
    } = head;
    let single = [
        entropy,
        confidence,
        distance,
        previous_token,
        duplicate_token,
        induction,
        first_position,
        output_share,
        removal,
        alone,
        importance,
    ];
    let nearest = nearest.iter_mut().map(|nearest| &mut nearest.divergence);
    single.into_iter().flatten().chain(registers.iter_mut().flatten()).chain(nearest).collect()
}

/// To six significant digits: more would only be noise, and make files large.
fn rounded(number: f64) -> f64 {
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
