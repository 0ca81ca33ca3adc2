//! A model some of whose heads are replaced by their mean contexts.

use architecture::ModelConfig;
use burn::tensor::{Device, Tensor, TensorData};
use data::Batch;
use model::{Call, Gating, Output};
use runs::heads::{AttentionSite, HeadPlace};

use crate::contexts::Contexts;

/// Something of each layer of each attention of a model; empty for the encoder and the cross-attention where there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sites<T> {
    pub decoder: Vec<T>,
    pub encoder: Vec<T>,
    pub cross: Vec<T>,
}

impl<T> Sites<T> {
    /// One for each layer of `site`.
    pub fn of(&self, site: AttentionSite) -> &[T] {
        match site {
            AttentionSite::Decoder => &self.decoder,
            AttentionSite::Encoder => &self.encoder,
            AttentionSite::Cross => &self.cross,
        }
    }

    /// What `change` makes of each, which is told where it stands.
    pub fn map<U>(&self, change: impl Fn(AttentionSite, usize, &T) -> U) -> Sites<U> {
        let of = |site| self.of(site).iter().enumerate().map(|(layer, one)| change(site, layer, one)).collect();
        Sites {
            decoder: of(AttentionSite::Decoder),
            encoder: of(AttentionSite::Encoder),
            cross: of(AttentionSite::Cross),
        }
    }

    /// What `make` gives for each layer of each attention of a model.
    pub fn new(config: &ModelConfig, make: impl Fn(AttentionSite, usize) -> T) -> Self {
        let of = |site| (0..layers(config, site)).map(|layer| make(site, layer)).collect();
        Self {
            decoder: of(AttentionSite::Decoder),
            encoder: of(AttentionSite::Encoder),
            cross: of(AttentionSite::Cross),
        }
    }
}

/// How many attentions a model has at `site`.
fn layers(config: &ModelConfig, site: AttentionSite) -> usize {
    if site == AttentionSite::Decoder || config.has_encoder() { config.layers } else { 0 }
}

/// Every head of a model, attention by attention.
pub fn heads(config: &ModelConfig) -> Vec<HeadPlace> {
    let of_layer = |site, layer| (0..config.heads).map(move |head| HeadPlace { site, layer, head });
    let of_site = |site| (0..layers(config, site)).flat_map(move |layer| of_layer(site, layer));
    AttentionSite::ALL.into_iter().flat_map(of_site).collect()
}

/// What the heads of all attentions have read, on the host; of an output with contexts.
pub fn contexts(output: &Output) -> Sites<Contexts> {
    let on_host = |contexts: &[Tensor<4>]| {
        let one = |contexts: &Tensor<4>| Contexts {
            shape: contexts.dims(),
            values: contexts.clone().into_data().iter::<f32>().collect(),
        };
        contexts.iter().map(one).collect()
    };
    Sites {
        decoder: on_host(&output.contexts),
        encoder: on_host(&output.encoder_contexts),
        cross: on_host(&output.cross_contexts),
    }
}

/// `[B][Lq]`: which queries of an attention at `site` are padding.
pub fn query_padding(site: AttentionSite, batch: &Batch) -> &[bool] {
    match (site, &batch.source) {
        (AttentionSite::Encoder, Some(source)) => &source.padding,
        _ => &batch.padding,
    }
}

/// What takes the place of the context of a removed head, `[H, Lq, K]` for each attention: its mean over samples at each
/// position.
pub struct Means(Sites<Tensor<3>>);

impl Means {
    /// From the contexts on `batch`.
    pub fn new(contexts: &Sites<Contexts>, batch: &Batch, device: &Device) -> Self {
        Self(contexts.map(|site, _, contexts| {
            let [_, h, l, k] = contexts.shape;
            Tensor::from_data(TensorData::new(contexts.mean(query_padding(site, batch)), [h, l, k]), device)
        }))
    }
}

/// How far each head is open, `[1, H]` for each attention.
pub struct Gates(Sites<Tensor<2>>);

impl Gates {
    /// The heads for which `is_kept` are open, the others closed.
    pub fn new(config: &ModelConfig, is_kept: impl Fn(HeadPlace) -> bool, device: &Device) -> Self {
        Self(Sites::new(config, |site, layer| {
            let gate = |head| if is_kept(HeadPlace { site, layer, head }) { 1.0f32 } else { 0.0 };
            let gates: Vec<f32> = (0..config.heads).map(gate).collect();
            Tensor::from_data(TensorData::new(gates, [1, config.heads]), device)
        }))
    }
}

/// `call` with the heads that are closed in `gates` replaced by their means.
pub fn ablated<'a>(call: Call<'a>, Gates(gates): &'a Gates, Means(means): &'a Means) -> Call<'a> {
    let gating = |site| Gating { gates: Some(gates.of(site)), replacements: Some(means.of(site)) };
    Call {
        decoder: gating(AttentionSite::Decoder),
        encoder: gating(AttentionSite::Encoder),
        cross: gating(AttentionSite::Cross),
        ..call
    }
}
