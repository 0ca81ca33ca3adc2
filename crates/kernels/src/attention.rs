//! Scaled dot-product attention (Vaswani 2017, section 3.2.1) with grouped queries (Ainslie 2023).

use burn::tensor::{Bool, Tensor, activation::softmax};

use crate::activation::Activation;
use crate::linear;
use crate::mask::PreparedMask;

/// How scores become weights: their scale, what may be read, and which weights are dropped.
#[derive(Clone, Copy, Default)]
pub struct Attending<'a> {
    /// Factor of the products of queries and keys; 1/√K where None.
    pub scale: Option<f64>,
    /// Forbidden connections; none where None.
    pub mask: Option<&'a PreparedMask>,
    /// Weights that are set to zero, `[B, H, Lq, Lk]`, and the probability of that: the others are divided by the
    /// probability of being kept (Srivastava 2014, section 10).
    pub dropout: Option<(&'a Tensor<4, Bool>, f64)>,
}

impl Attending<'_> {
    fn assert_fits(&self, scores: [usize; 4]) {
        if let Some(mask) = self.mask {
            mask.assert_fits(scores);
        }
    }
}

/// Contexts `[B, H, Lq, K]` of queries `[B, H, Lq, K]` that read keys and values `[B, G, Lk, K]`: softmax of the scaled
/// products, times the values. Query head h reads key/value head `h / (H/G)`, rounded down.
///
/// A row that may read nothing gives zeros and has a gradient of zero.
///
/// # Panics
/// On shapes that don't fit.
pub fn attention(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, attending: Attending) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&query) {
        return fused(query, key, value, attending);
    }
    plain(query, key, value, attending).contexts
}

/// The nodes of the plain composition.
#[derive(Clone, Debug)]
pub struct Attended {
    /// Scaled products, before the mask, `[B, H, Lq, Lk]`.
    pub scores: Tensor<4>,
    /// Weights before dropout, `[B, H, Lq, Lk]`: each row sums to 1, or is 0 where nothing may be read.
    pub maps: Tensor<4>,
    /// `[B, H, Lq, K]`.
    pub contexts: Tensor<4>,
}

/// [`attention`] in Burn's operations, with every node.
pub fn plain(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, attending: Attending) -> Attended {
    let ([b, h, lq, k], [_, g, lk, _]) = (query.dims(), key.dims());
    attending.assert_fits([b, h, lq, lk]);
    let query = query * attending.scale.unwrap_or_else(|| 1.0 / (k as f64).sqrt());

    // The H/G query heads of a group are more rows for their key head: no key is copied.
    let query = query.reshape([b, g, h / g * lq, k]);
    let scores = query.matmul(key.transpose()).reshape([b, h, lq, lk]);
    let maps = masked_softmax(scores.clone(), attending);
    let kept = match attending.dropout {
        Some((dropped, probability)) => (maps.clone() / (1.0 - probability)).mask_fill(dropped.clone(), 0.0),
        None => maps.clone(),
    };
    let contexts = kept.reshape([b, g, h / g * lq, lk]).matmul(value).reshape([b, h, lq, k]);
    Attended { scores, maps, contexts }
}

/// Softmax over the keys a query may read; a row with none is 0 and has a gradient of 0.
fn masked_softmax(scores: Tensor<4>, attending: Attending) -> Tensor<4> {
    let shape = scores.dims();
    let scores = match attending.mask.and_then(|mask| mask.forbidden.as_ref()) {
        // Minus infinity, not a large number: a score of −2e4 must not let the future through.
        Some(forbidden) => scores.mask_fill(forbidden.clone().expand(shape), f32::NEG_INFINITY),
        None => scores,
    };
    let maps = softmax(scores, 3);
    match attending.mask.and_then(|mask| mask.empty_rows.as_ref()) {
        Some(empty) => maps.mask_fill(empty.clone().expand(shape), 0.0),
        None => maps,
    }
}

/// The weights of a projection.
#[derive(Clone, Debug)]
pub struct Projection {
    /// `[D, heads·K]`.
    pub weight: Tensor<2>,
    /// `[heads·K]`.
    pub bias: Option<Tensor<1>>,
}

/// Contexts `[B, H, L, K]` of positions `x` `[B, L, D]` that read each other: [`attention`] with the projections of `x` to
/// queries, keys and values as heads of width `k`. The kernel takes all three in one product.
///
/// # Panics
/// On shapes that don't fit.
pub fn self_attention(x: Tensor<3>, projections: [Projection; 3], k: usize, attending: Attending) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if crate::backend::is_fused(&x) {
        return fused_self_attention(x, projections, k, attending);
    }
    plain_self_attention(x, projections, k, attending)
}

/// [`self_attention`] in Burn's operations.
pub fn plain_self_attention(x: Tensor<3>, projections: [Projection; 3], k: usize, attending: Attending) -> Tensor<4> {
    let [b, l, _] = x.dims();
    let [query, key, value] = projections.map(|Projection { weight, bias }| {
        let heads = weight.dims()[1] / k;
        linear::plain(x.clone(), weight, bias, Activation::None).reshape([b, l, heads, k]).swap_dims(1, 2)
    });
    plain(query, key, value, attending).contexts
}

#[cfg(feature = "flex")]
fn fused_self_attention(x: Tensor<3>, projections: [Projection; 3], k: usize, attending: Attending) -> Tensor<4> {
    use crate::extension::Kernels;
    use burn::backend::Dispatch;

    let widths = projections.each_ref().map(|projection| projection.weight.dims()[1]);
    let [h, g, values] = widths.map(|width| width / k);
    assert!(g > 0 && h % g == 0, "{h} query heads can't share {g} key/value heads");
    assert_eq!(g, values, "heads of keys and of values");
    let [b, l, _] = x.dims();
    let has_bias = projections.iter().any(|projection| projection.bias.is_some());
    let device = x.device();
    let biases = projections
        .iter()
        .zip(widths)
        .map(|(projection, width)| projection.bias.clone().unwrap_or_else(|| Tensor::zeros([width], &device)));
    let bias = has_bias.then(|| Tensor::cat(biases.collect(), 0));
    let weight = Tensor::cat(projections.map(|projection| projection.weight).to_vec(), 1);
    let all = linear::linear(x, weight, bias, Activation::None);
    let weighting = weighting(attending, [b, h, l, l], k);
    Tensor::from_dispatch(Dispatch::packed_attention(all.into_dispatch(), [h, g], weighting))
}

#[cfg(feature = "flex")]
fn fused(query: Tensor<4>, key: Tensor<4>, value: Tensor<4>, attending: Attending) -> Tensor<4> {
    use crate::extension::Kernels;
    use burn::backend::Dispatch;

    let ([b, h, lq, k], [_, g, lk, _]) = (query.dims(), key.dims());
    assert!(g > 0 && h % g == 0, "{h} query heads can't share {g} key/value heads");
    assert_eq!(key.dims(), value.dims(), "keys and values");
    assert_eq!([b, k], [key.dims()[0], key.dims()[3]], "queries and keys");
    let (query, key, value) = (query.into_dispatch(), key.into_dispatch(), value.into_dispatch());
    Tensor::from_dispatch(Dispatch::attention(query, key, value, weighting(attending, [b, h, lq, lk], k)))
}

/// What the kernel asks of [`Attending`], for `scores` `[B, H, Lq, Lk]` of heads of width `k`.
#[cfg(feature = "flex")]
fn weighting(attending: Attending, scores: [usize; 4], k: usize) -> crate::fused::attention::Weighting {
    use crate::fused::attention::{Dropped, Forbidden, Marks, Weighting};
    use burn::backend::{DispatchTensorKind, TensorMetadata};

    attending.assert_fits(scores);
    let marks = |marks: &Tensor<4, Bool>| match marks.clone().into_dispatch().kind {
        DispatchTensorKind::Flex(marks) => Marks::new(marks.bool()),
        other => panic!("queries on flex, but a mask on {:?}", other.device()),
    };
    let forbidden = match attending.mask {
        None | Some(PreparedMask { forbidden: None, empty_rows: None, .. }) => Forbidden::Nothing,
        Some(PreparedMask { causal: Some(_), .. }) => Forbidden::Future,
        Some(PreparedMask { forbidden: Some(forbidden), empty_rows: None, .. }) => Forbidden::Marked(marks(forbidden)),
        Some(PreparedMask { forbidden, empty_rows: Some(empty), .. }) => {
            let all = match forbidden {
                Some(forbidden) => {
                    let [b, h, q, _] = std::array::from_fn(|i| forbidden.dims()[i].max(empty.dims()[i]));
                    let shape = [b, h, q, forbidden.dims()[3]];
                    forbidden.clone().expand(shape).bool_or(empty.clone().expand(shape))
                }
                None => empty.clone(),
            };
            Forbidden::Marked(marks(&all))
        }
    };
    let dropped = attending
        .dropout
        .filter(|&(_, probability)| probability > 0.0)
        .map(|(dropped, probability)| Dropped { marks: marks(dropped), scale: (1.0 / (1.0 - probability)) as f32 });
    let scale = attending.scale.map_or_else(|| 1.0 / (k as f32).sqrt(), |scale| scale as f32);
    Weighting { scale, forbidden, dropped }
}
