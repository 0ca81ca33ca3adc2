//! A model at work on the samples: what it says, the loss without a head or with it alone, the gradient of its gate.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use data::metrics::Scores;
use model::{Call, CallError, Decoder, Gating};
use runs::{
    Config, Tensors,
    heads::{AttentionSite, HeadPlace, ShownAnswers},
};

use crate::{
    HeadError,
    ablation::{Gates, Means, Sites, ablated, contexts, query_padding},
    answers::answers,
    batch::{DeviceBatch, Tally, losses},
    samples::Samples,
};

/// A model and what its attentions give on the samples.
pub struct Probe<'a> {
    /// What the model scores on the samples.
    pub scores: Scores,
    /// `[N, outputs]` at the scored positions of all samples.
    logits: Tensor<2>,
    /// `[B][H][L][L]` for each layer of the decoder.
    pub maps: Vec<Vec<f32>>,
    /// `[B][H][Ls][Ls]` for each layer of the encoder.
    pub encoder_maps: Vec<Vec<f32>>,
    /// `[B][H][L][Ls]` for each layer.
    pub cross_maps: Vec<Vec<f32>>,
    /// `[H]` for each attention: share of each head in what it writes.
    output_shares: Sites<Vec<f64>>,
    /// `[H]` for each attention.
    importance: Sites<Vec<f64>>,
    means: Means,
    /// In evaluation mode.
    model: Decoder,
    /// Of `model`, on the samples.
    loss: f64,
    /// What a change of the loss is told in parts of: 1 nat, or the variance of the numbers that are asked for.
    unit: f64,
    /// On the device without autodiff.
    samples: DeviceBatch,
    device: Device,
    config: &'a Config,
}

impl<'a> Probe<'a> {
    /// Runs `model`, which is that of `config` with `weights` and lives on `device` with autodiff, on the samples.
    ///
    /// # Errors
    /// Samples that the model can't take, or of which nothing is scored.
    pub fn new(
        model: Decoder,
        config: &'a Config,
        weights: &Tensors,
        samples: &Samples,
        device: &Device,
    ) -> Result<Self, HeadError> {
        let importance = importance(&model, config, samples, &device.clone().autodiff())?;
        let model = model.valid();
        let on_device = DeviceBatch::new(&samples.batch, device).ok_or(HeadError::NothingScored)?;
        let call = Call { maps: true, contexts: true, ..on_device.call() };
        let output = model.forward(on_device.input.clone(), call)?;
        // Computed as the losses without a head are, which return no maps: what differs is the head alone, to the last bit.
        let tally = tally(&model, &on_device, on_device.call())?;
        let logits = output.logits.clone();
        let contexts = contexts(&output);
        let output_shares = contexts.map(|site, layer, contexts| {
            let (d_model, padding) = (config.model.d_model, query_padding(site, &samples.batch));
            let output = weights.get(&format!("{}.output.weight", path(site, layer)));
            output.map_or(vec![], |output| contexts.output_shares(&output.values, d_model, padding))
        });
        let on_host = |maps: Vec<Tensor<4>>| maps.into_iter().map(host).collect();
        Ok(Self {
            scores: tally.scores(&samples.yardstick),
            logits,
            maps: on_host(output.maps),
            encoder_maps: on_host(output.encoder_maps),
            cross_maps: on_host(output.cross_maps),
            means: Means::new(&contexts, &samples.batch, device),
            output_shares,
            importance,
            model,
            loss: tally.mean_loss(),
            unit: samples.yardstick.variance,
            samples: on_device,
            device: device.clone(),
            config,
        })
    }

    /// What the model says at the scored positions that are shown of the first samples.
    pub fn answers(&self, samples: usize) -> Vec<ShownAnswers> {
        answers(self.logits.clone(), &self.samples, samples)
    }

    /// `[H]`: rise of the loss when a head's context in an attention is replaced by its mean over the samples at each position,
    /// in nats; where numbers are asked for, in parts of their variance.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub fn removal(&self, site: AttentionSite, layer: usize) -> Result<Vec<f64>, CallError> {
        self.rises(|head| move |other| other != HeadPlace { site, layer, head })
    }

    /// `[H]`: rise of the loss when the contexts of all other heads of the attention are.
    ///
    /// # Errors
    /// Samples that the model can't take.
    pub fn alone(&self, site: AttentionSite, layer: usize) -> Result<Vec<f64>, CallError> {
        self.rises(|head| move |other: HeadPlace| (other.site, other.layer) != (site, layer) || other.head == head)
    }

    /// `[H]`: the share of each head in what an attention writes; empty where its projection is unknown.
    pub fn output_shares(&self, site: AttentionSite, layer: usize) -> &[f64] {
        self.output_shares.of(site).get(layer).map_or(&[], Vec::as_slice)
    }

    /// `[H]`: the mean over samples of |∂ loss / ∂ gate| in an attention at gate 1, the loss being a sample's mean, in nats.
    pub fn importance(&self, site: AttentionSite, layer: usize) -> &[f64] {
        self.importance.of(site).get(layer).map_or(&[], Vec::as_slice)
    }

    /// How much the loss rises when those heads alone are kept which `kept` says for each head.
    fn rises<F: Fn(HeadPlace) -> bool>(&self, kept: impl Fn(usize) -> F) -> Result<Vec<f64>, CallError> {
        let rise = |head| {
            let gates = Gates::new(&self.config.model, kept(head), &self.device);
            let call = ablated(self.samples.call(), &gates, &self.means);
            Ok((tally(&self.model, &self.samples, call)?.mean_loss() - self.loss) / self.unit)
        };
        (0..self.config.model.heads).map(rise).collect()
    }
}

/// Where the weights of an attention are.
fn path(site: AttentionSite, layer: usize) -> String {
    match site {
        AttentionSite::Decoder => format!("blocks.{layer}.attention"),
        AttentionSite::Encoder => format!("encoder.blocks.{layer}.attention"),
        AttentionSite::Cross => format!("blocks.{layer}.cross_attention"),
    }
}

/// What `model` scores on `batch` by a call of it.
fn tally(model: &Decoder, batch: &DeviceBatch, call: Call) -> Result<Tally, CallError> {
    let logits = model.forward(batch.input.clone(), call)?.logits;
    Ok(Tally::of(losses(logits.clone(), batch), logits, batch))
}

/// `[H]` for each attention: the mean over samples of |∂ loss / ∂ gate| at gate 1, the loss being a sample's mean over its scored
/// positions (Michel 2019, section 4.1). `model` lives on `device` with autodiff. A sample in which nothing is scored is left
/// out.
///
/// # Errors
/// Samples that the model can't take, or of which nothing is scored.
fn importance(
    model: &Decoder,
    config: &Config,
    samples: &Samples,
    device: &Device,
) -> Result<Sites<Vec<f64>>, HeadError> {
    if config.model.layers == 0 {
        return Ok(Sites::default()); // and no gate to take a gradient of
    }
    let (b, heads) = (samples.batch.batch, config.model.heads);
    let batch = DeviceBatch::new(&samples.batch, device).ok_or(HeadError::NothingScored)?;
    let mut scored_of = vec![0usize; b];
    batch.samples.iter().for_each(|&sample| scored_of[sample] += 1);
    let weights: Vec<f32> = batch.samples.iter().map(|&sample| 1.0 / scored_of[sample] as f32).collect();
    let weights = Tensor::<1>::from_data(TensorData::new(weights, [batch.samples.len()]), device);

    let gates = Sites::new(&config.model, |_, _| Tensor::<2>::ones([b, heads], device).require_grad());
    let gating = |site| Gating { gates: Some(gates.of(site)), replacements: None };
    let call = Call {
        decoder: gating(AttentionSite::Decoder),
        encoder: gating(AttentionSite::Encoder),
        cross: gating(AttentionSite::Cross),
        ..batch.call()
    };
    let logits = model.forward(batch.input.clone(), call)?.logits;
    // The gates of a sample act on its own loss alone, so the gradient of the sum is that of each.
    let gradients = (losses(logits, &batch) * weights).sum().backward();
    let counted = scored_of.iter().filter(|&&scored| scored > 0).count() as f64;
    let unit = samples.yardstick.variance;
    Ok(gates.map(|_, _, gates| {
        let gradient = gates.grad(&gradients).map_or(vec![0.0; b * heads], host); // [B][H]
        let of_head =
            |h: usize| gradient.iter().skip(h).step_by(heads).map(|&slope| f64::from(slope).abs()).sum::<f64>();
        (0..heads).map(|h| of_head(h) / counted / unit).collect()
    }))
}

/// The numbers of a tensor, row-major.
pub(crate) fn host<const N: usize>(tensor: Tensor<N>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}
