//! Going on from a prompt, one token at a time, with a cache of keys and values.

mod sampling;
pub mod speed;

use burn::tensor::{Device, Int, Tensor, TensorData};
use model::{Call, CallError, Decoder, Source, parameters};
use thiserror::Error;

pub use sampling::Sampling;

/// Tokens that can't be generated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GenerateError {
    /// The model can't take the input.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nothing to go on from.
    #[error("the prompt is empty: a model needs at least one token to go on from")]
    EmptyPrompt,
    /// The last token generated is not read again, so it needs no position.
    #[error(
        "{prompt} tokens of prompt and {limit} to generate need {needed} positions, and the model was trained on {context}: take fewer, or --window, which reads the last {context} only"
    )]
    TooLong { prompt: usize, limit: usize, needed: usize, context: usize },
    /// A run that diverged.
    #[error("the model's logits are no numbers: did the run diverge?")]
    NotFinite,
}

/// What to go on from, and how.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What an encoder reads, of one sample.
    pub source: Option<Source<'a>>,
    /// Tokens that are given.
    pub prompt: &'a [u32],
    /// How many tokens to generate at most.
    pub limit: usize,
    /// The token that ends the sequence; it is generated as well.
    pub end: Option<u32>,
    /// Most positions that are read at once.
    pub context: usize,
    /// Beyond the context go on from the last `context` tokens, instead of refusing. Their positions are other ones then, so
    /// the cache is emptied and they are read again, for each token.
    pub window: bool,
    /// How a token is chosen.
    pub sampling: Sampling,
}

/// The tokens that `model` adds to a prompt.
///
/// # Errors
/// A prompt that is empty or too long, logits that are no numbers, what the model refuses.
pub fn generate(model: &Decoder, request: Request, device: &Device) -> Result<Vec<u32>, GenerateError> {
    let Request { source, prompt, limit, end, context, window, sampling } = request;
    if prompt.is_empty() {
        return Err(GenerateError::EmptyPrompt);
    }
    let needed = (prompt.len() + limit).saturating_sub(1);
    if needed.max(prompt.len()) > context && !window {
        return Err(GenerateError::TooLong { prompt: prompt.len(), limit, needed, context });
    }
    let mut cache = model.cache(1, context.min(needed), source)?;
    let mut all = prompt.to_vec();
    let mut unread = prompt.len().min(context);
    while all.len() < prompt.len() + limit {
        if cache.held() + unread > context {
            cache.clear();
            unread = context;
        }
        let call = Call { scored: Some(&last_of(unread, device)), ..Default::default() };
        let logits = model.extend(row(&all[all.len() - unread..], device), &mut cache, call)?.logits;
        let logits = parameters::host_values(logits.flatten(0, 1));
        if logits.iter().any(|logit| !logit.is_finite()) {
            return Err(GenerateError::NotFinite);
        }
        let token = sampling.choose(&logits, (all.len() - prompt.len()) as u64);
        all.push(token);
        unread = 1;
        if end == Some(token) {
            break;
        }
    }
    Ok(all.split_off(prompt.len()))
}

/// What a model says at one position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said {
    /// The class or token of the largest logit.
    pub answer: u32,
    /// Its probability under the softmax.
    pub probability: f64,
}

/// What `model` says at each position of `tokens`, read at once.
///
/// # Errors
/// No tokens, logits that are no numbers, what the model refuses.
pub fn predictions(model: &Decoder, tokens: &[u32], device: &Device) -> Result<Vec<Said>, GenerateError> {
    if tokens.is_empty() {
        return Err(GenerateError::EmptyPrompt);
    }
    let logits = model.forward(row(tokens, device), Call::default())?.logits;
    let outputs = logits.dims()[1];
    let logits = parameters::host_values(logits.flatten(0, 1));
    if logits.iter().any(|logit| !logit.is_finite()) {
        return Err(GenerateError::NotFinite);
    }
    let said = |logits: &[f32]| {
        let answer = Sampling::GREEDY.choose(logits, 0);
        let largest = f64::from(logits[answer as usize]);
        let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - largest).exp()).sum();
        Said { answer, probability: 1.0 / sum }
    };
    Ok(logits.chunks(outputs).map(said).collect())
}

/// One sample's tokens on a device, `[1, L]`.
pub fn row(tokens: &[u32], device: &Device) -> Tensor<2, Int> {
    let ids: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
    Tensor::from_data(TensorData::new(ids, [1, tokens.len()]), device)
}

/// The last of L positions of one sample, `[1]`.
fn last_of(length: usize, device: &Device) -> Tensor<1, Int> {
    Tensor::from_data([length as i32 - 1], device)
}
