//! How fast a model decodes with a cache and without, and what the cache takes, by the number of key/value heads.

use std::time::{Duration, Instant};

use architecture::{Dims, ModelConfig, ModelError};
use burn::tensor::{Device, Int, Tensor};
use model::{Call, CallError, Decoder, Source, parameters};
use serde::Serialize;
use thiserror::Error;

use super::last_of;

/// A model that can't be measured.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SpeedError {
    /// With other key/value heads or a longer context it can't be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It can't decode.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// One model at one length of context.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DecodingSpeed {
    /// Positions that are read for the token measured, itself included.
    pub context: usize,
    /// Key/value heads.
    pub kv_heads: usize,
    /// Bytes of the cache's tensors for this context.
    pub cache_bytes: u64,
    /// Tokens a second when the positions before are cached.
    pub cached: f64,
    /// Tokens a second when everything is read again for each, an encoder's source too.
    pub uncached: f64,
}

impl DecodingSpeed {
    /// What the sharing of key/value heads is called.
    pub fn sharing(&self, heads: usize) -> &'static str {
        match self.kv_heads {
            kv_heads if kv_heads == heads => "MHA",
            1 => "MQA",
            _ => "GQA",
        }
    }
}

/// Key/value heads to compare: as many as there are heads, one, and the divisor between them nearest to the root.
pub fn groupings(heads: usize) -> Vec<usize> {
    let between = (2..heads).find(|kv_heads| heads.is_multiple_of(*kv_heads) && kv_heads * kv_heads >= heads);
    let mut groupings = vec![heads];
    groupings.extend(between);
    groupings.extend((heads > 1).then_some(1));
    groupings
}

/// Tokens that are decoded to measure one, of which the fastest counts.
const STEPS: usize = 24;
/// What is cached before is read in pieces of this length, so that no map of the whole context is needed.
const PIECE: usize = 256;
/// How long one figure may take, beyond a first measurement.
const PATIENCE: Duration = Duration::from_millis(700);

/// Measures `config` with untrained weights, one sample, at `context` positions for each of `kv_heads`. `dims` are the task's;
/// learned positions are as many as the context needs.
///
/// # Errors
/// A model that can't be built, or that reads both ways.
pub fn measure(
    config: &ModelConfig,
    dims: Dims,
    kv_heads: usize,
    context: usize,
    device: &Device,
) -> Result<DecodingSpeed, SpeedError> {
    let config = ModelConfig { kv_heads: Some(kv_heads), ..config.clone() };
    let model = Decoder::new(&config, Dims { length: context, ..dims }, 0, device)?;
    let source_length = dims.source.map_or(1, |source| source.length);
    let tokens = Tensor::<2, Int>::zeros([1, source_length], device);
    let padding = vec![false; source_length];
    let source = dims.source.map(|_| Source { tokens: &tokens, padding: &padding });
    let zeros = |length: usize| Tensor::<2, Int>::zeros([1, length], device);

    let mut cache = model.cache(1, context, source)?;
    let steps = STEPS.min(context.div_ceil(2));
    while cache.held() < context - steps {
        let piece = PIECE.min(context - steps - cache.held());
        model.extend(zeros(piece), &mut cache, Call { scored: Some(&last_of(piece, device)), ..Default::default() })?;
    }
    let mut seconds = vec![];
    while cache.held() < context {
        let started = Instant::now();
        let call = Call { scored: Some(&last_of(1, device)), ..Default::default() };
        arrive(model.extend(zeros(1), &mut cache, call)?.logits);
        seconds.push(started.elapsed().as_secs_f64());
    }
    let (cached, cache_bytes) = (1.0 / fastest(&seconds), cache.bytes());
    drop(cache);

    let (begun, mut seconds) = (Instant::now(), vec![]);
    while seconds.len() < 2 || seconds.len() < STEPS && begun.elapsed() < PATIENCE {
        let started = Instant::now();
        let call = Call { scored: Some(&last_of(context, device)), source, ..Default::default() };
        arrive(model.forward(zeros(context), call)?.logits);
        seconds.push(started.elapsed().as_secs_f64());
    }
    Ok(DecodingSpeed { context, kv_heads, cache_bytes, cached, uncached: 1.0 / fastest(&seconds) })
}

/// Waits until the logits are on the host, where a token is chosen.
fn arrive(logits: Tensor<2>) {
    parameters::host_values(logits.flatten(0, 1));
}

/// The smallest time: what else runs on the machine can only add to it.
fn fastest(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use architecture::cost;

    #[test]
    fn groupings_are_divisors_from_all_heads_to_one() {
        let expected: [(usize, &[usize]); 6] =
            [(1, &[1]), (2, &[2, 1]), (3, &[3, 1]), (8, &[8, 4, 1]), (12, &[12, 4, 1]), (16, &[16, 4, 1])];
        for (heads, expected) in expected {
            assert_eq!(groupings(heads), expected);
        }
    }

    #[test]
    fn a_row_holds_counted_bytes_and_finite_speeds() {
        let config = ModelConfig { d_model: 16, heads: 4, layers: 2, ..Default::default() };
        let dims = Dims::of_tokens(5, 3, 8);
        for context in [1, 2, 40] {
            let row = measure(&config, dims, 2, context, &Device::flex()).unwrap();
            let grouped = ModelConfig { kv_heads: Some(2), ..config.clone() };
            assert_eq!(row.cache_bytes, cost::cache_bytes(&grouped, 1, context as u64));
            assert!(row.cached.is_finite() && row.uncached.is_finite() && row.cached > 0.0, "{row:?}");
        }
        let both_ways = ModelConfig { causal: false, ..config };
        assert_eq!(measure(&both_ways, dims, 2, 8, &Device::flex()), Err(SpeedError::Call(CallError::NotCausal)));
    }
}
