//! A decoder written out in Burn's operations, from the weights of the real one, with a switch for each mistake.
//!
//! Legend: B batch, L length, D d_model, H heads, G key/value heads, K d_head, V outputs.

use std::collections::BTreeMap;

use architecture::ModelConfig;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use model::dropout::DropoutSite;
use model::{Call, CallError, Decoder, Dropout, Input, Output, Source};
use runs::Config;
use trainer::doctor::{Headcount, Program};
use trainer::training::batch::{DeviceBatch, Tally, losses};
use trainer::training::optimiser::{AdamW, FlatGradient};

/// A mistake; each is made somewhere by somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    // Input and embedding
    TokensShifted,
    TokensClipped,
    PositionsFromOne,
    TargetsShifted,
    // Attention
    HeadsNotSwapped,
    SplitWithoutSwap,
    NoScale,
    ScaledByDModel,
    GroupsInterleaved,
    MaskInverted,
    MaskTooNarrow,
    MaskTooWide,
    MaskAfterSoftmax,
    MaskOfMinus10000,
    PaddingIgnored,
    SoftmaxOverQueries,
    MapsAfterDropout,
    NanWhereNothingIsRead,
    MergeReversed,
    MergeWithoutSwap,
    // Around it
    NoFinalNorm,
    ConvolutionAhead,
    ConvolutionBehind,
    BatchStatistic,
    // Gradients and training
    BiasUnused,
    MapsDetached,
    BranchDetached,
    AccumulationOfMeans,
    AccumulationOfSums,
    OptimiserFrozen,
    OptimiserAscends,
    // Modes
    DropoutInEvaluation,
    DropoutNever,
    CacheForgets,
    OtherBackend,
}

/// The written-out decoder as a program.
pub struct Reference(pub Fault);

/// The parameters of a model by path, still tracked for gradients.
struct Weights(BTreeMap<String, (Vec<usize>, Tensor<1>)>);

impl Weights {
    fn of(model: &Decoder) -> Self {
        struct Visitor(Vec<String>, BTreeMap<String, (Vec<usize>, Tensor<1>)>);
        impl ModuleVisitor for Visitor {
            fn enter_module(&mut self, name: &str, _container: &str) {
                self.0.push(name.to_string());
            }
            fn exit_module(&mut self, _name: &str, _container: &str) {
                self.0.pop();
            }
            fn visit_float<const N: usize>(&mut self, param: &Param<Tensor<N>>) {
                let value = param.val();
                self.1.insert(self.0.join("."), (value.dims().to_vec(), value.flatten(0, N - 1)));
            }
        }
        let mut visitor = Visitor(vec![], BTreeMap::new());
        model.visit(&mut visitor);
        Self(visitor.1)
    }

    fn matrix(&self, path: &str) -> Tensor<2> {
        let (shape, flat) = &self.0[path];
        flat.clone().reshape([shape[0], shape[1]])
    }

    fn vector(&self, path: &str) -> Option<Tensor<1>> {
        self.0.get(path).map(|(_, flat)| flat.clone())
    }

    /// `x · W + b`.
    fn linear(&self, path: &str, x: Tensor<3>) -> Tensor<3> {
        self.linear_with(path, self.vector(&format!("{path}.bias")), x)
    }

    /// `x · W`, and a bias where there is one.
    fn linear_with(&self, path: &str, bias: Option<Tensor<1>>, x: Tensor<3>) -> Tensor<3> {
        let [b, l, d] = x.dims();
        let y = x.reshape([b * l, d]).matmul(self.matrix(&format!("{path}.weight")));
        let y = match bias {
            Some(bias) => y + bias.unsqueeze::<2>(),
            None => y,
        };
        let width = y.dims()[1];
        y.reshape([b, l, width])
    }

    /// Layer norm over the last axis.
    fn norm(&self, path: &str, x: Tensor<3>) -> Tensor<3> {
        let centred = x.clone() - x.mean_dim(2);
        let variance = centred.clone().powi_scalar(2).mean_dim(2);
        let normed = centred / (variance + 1e-5).sqrt();
        let row = |name: &str| self.vector(&format!("{path}.{name}")).unwrap().unsqueeze::<3>();
        normed * row("gamma") + row("beta")
    }
}

impl Reference {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }

    /// Forbidden connections `[B, L, L]`, row-major.
    fn forbidden(&self, causal: bool, [b, l]: [usize; 2], padding: Option<&[bool]>) -> Vec<bool> {
        let is_future = |i: usize, j: usize| match self.0 {
            Fault::MaskTooNarrow => j >= i,
            Fault::MaskTooWide => j > i + 1,
            _ => j > i,
        };
        let padding = padding.filter(|_| !self.is(Fault::PaddingIgnored));
        let one = |at: usize| {
            let (sample, i, j) = (at / (l * l), at / l % l, at % l);
            let forbidden = causal && is_future(i, j) || padding.is_some_and(|padding| padding[sample * l + j]);
            forbidden != self.is(Fault::MaskInverted)
        };
        (0..b * l * l).map(one).collect()
    }

    fn attention(&self, config: &ModelConfig, weights: &Weights, x: Tensor<3>, layer: usize, call: &Call) -> Tensor<3> {
        let path = format!("blocks.{layer}.attention");
        let keep = |node: &str, shape: &[usize], values: Tensor<1>| {
            if let Some(trace) = call.trace {
                match *shape {
                    [a, b, c] => trace.keep(format!("{path}.{node}"), &values.reshape([a, b, c])),
                    [a, b, c, d] => trace.keep(format!("{path}.{node}"), &values.reshape([a, b, c, d])),
                    _ => unreachable!("nodes have three or four axes"),
                }
            }
        };
        let keep3 = |node: &str, x: &Tensor<3>| keep(node, &x.dims(), x.clone().flatten(0, 2));
        let keep4 = |node: &str, x: &Tensor<4>| keep(node, &x.dims(), x.clone().flatten(0, 3));
        let [b, l, _] = x.dims();
        let (h, g, k) = (config.heads, config.kv_heads(), config.d_head());
        keep3("query_input", &x);
        keep3("key_input", &x);
        let [query, key, value] = ["query", "key", "value"].map(|name| {
            let projected = weights.linear(&format!("{path}.{name}"), x.clone());
            keep3(name, &projected);
            projected
        });
        let split = |z: Tensor<3>, heads: usize| {
            let heads_first: Tensor<4> = match self.0 {
                Fault::SplitWithoutSwap => z.reshape([b, heads, l, k]),
                Fault::HeadsNotSwapped => z.reshape([b, l, heads, k]),
                _ => z.reshape([b, l, heads, k]).swap_dims(1, 2),
            };
            heads_first // [B, heads, L, K]
        };
        let (query, key, value) = (split(query, h), split(key, g), split(value, g));
        keep4("query_heads", &query);
        keep4("key_heads", &key);
        keep4("value_heads", &value);

        if self.is(Fault::HeadsNotSwapped) {
            // Heads attend to heads, each position by itself: every shape fits again at the end.
            let scores = query.matmul(key.transpose()) / (k as f64).sqrt(); // [B, L, H, G]
            keep4("scores", &scores);
            let maps = softmax(scores, 3);
            keep4("maps", &maps);
            let context = maps.matmul(value); // [B, L, H, K]
            keep4("context", &context);
            let merged: Tensor<3> = context.reshape([b, l, h * k]);
            keep3("merged", &merged);
            let output = weights.linear(&format!("{path}.output"), merged);
            keep3("output", &output);
            return output;
        }

        // Every query head gets its own copy of its group's keys and values.
        let owner = |head: usize| if self.is(Fault::GroupsInterleaved) { head % g } else { head / (h / g) };
        let copies = |z: Tensor<4>| Tensor::cat((0..h).map(|head| z.clone().narrow(1, owner(head), 1)).collect(), 1);
        let (key, value) = (copies(key), copies(value)); // [B, H, L, K]
        let scale = match self.0 {
            Fault::NoScale => 1.0,
            Fault::ScaledByDModel => 1.0 / ((h * k) as f64).sqrt(),
            _ => 1.0 / (k as f64).sqrt(),
        };
        let scores = query.matmul(key.transpose()) * scale; // [B, H, L, L]
        keep4("scores", &scores);
        let maps = self.maps(config, scores, call);
        let dropped = match call.dropout {
            Some(dropout) => {
                self.dropped(maps.clone(), *dropout, layer, DropoutSite::Attention, config.attention_dropout)
            }
            None => maps.clone(),
        };
        keep4("maps", if self.is(Fault::MapsAfterDropout) { &dropped } else { &maps });
        let context = dropped.matmul(value); // [B, H, L, K]
        keep4("context", &context);
        let context = match self.0 {
            Fault::MergeReversed => context.flip([1]),
            _ => context,
        };
        let merged: Tensor<3> = match self.0 {
            Fault::MergeWithoutSwap => context.reshape([b, l, h * k]),
            _ => context.swap_dims(1, 2).reshape([b, l, h * k]),
        };
        keep3("merged", &merged);
        let output = weights.linear(&format!("{path}.output"), merged);
        keep3("output", &output);
        output
    }

    /// `[B, H, L, L]` to maps.
    fn maps(&self, config: &ModelConfig, scores: Tensor<4>, call: &Call) -> Tensor<4> {
        let [b, _, l, _] = scores.dims();
        let shape = scores.dims();
        let mut forbidden = self.forbidden(config.causal, [b, l], call.padding);
        let mut empty = vec![];
        for row in forbidden.chunks_mut(l) {
            let is_empty = row.iter().all(|&is_forbidden| is_forbidden);
            if is_empty && !self.is(Fault::NanWhereNothingIsRead) {
                row.fill(false);
            }
            empty.push(is_empty && !self.is(Fault::NanWhereNothingIsRead));
        }
        let device = scores.device();
        let mask = |values: Vec<bool>, width: usize| {
            let one = Tensor::<4, Bool>::from_data(TensorData::new(values, [b, 1, l, width]), &device);
            one.expand(shape)
        };
        let (forbidden, empty) = (mask(forbidden, l), mask(empty, 1));
        let maps = match self.0 {
            Fault::MaskAfterSoftmax => softmax(scores, 3).mask_fill(forbidden, 0.0),
            Fault::MaskOfMinus10000 => softmax(scores.mask_fill(forbidden, -1e4), 3),
            Fault::SoftmaxOverQueries => {
                let powers = (scores.clone() - scores.max_dim(2)).exp().mask_fill(forbidden, 0.0);
                powers.clone() / (powers.sum_dim(2) + 1e-30)
            }
            _ => softmax(scores.mask_fill(forbidden, f32::NEG_INFINITY), 3),
        };
        let maps = maps.mask_fill(empty, 0.0);
        if self.is(Fault::MapsDetached) { maps.detach() } else { maps }
    }

    fn dropped<const N: usize>(
        &self,
        x: Tensor<N>,
        dropout: Dropout,
        layer: usize,
        place: DropoutSite,
        p: f64,
    ) -> Tensor<N> {
        if self.is(Fault::DropoutNever) { x } else { dropout.at(layer, place, p).apply(x) }
    }

    fn mlp(&self, config: &ModelConfig, weights: &Weights, x: Tensor<3>, layer: usize) -> Tensor<3> {
        let up = weights.linear(&format!("blocks.{layer}.mlp.up"), x);
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let gelu = up.clone() * ((up * half).erf() + 1.0) * 0.5;
        let down = format!("blocks.{layer}.mlp.down");
        let bias = weights.vector(&format!("{down}.bias")).filter(|_| !self.is(Fault::BiasUnused));
        let y = weights.linear_with(&down, bias, gelu);
        // Mistakes between the last attention and the logits, which no node shows.
        if layer + 1 < config.layers {
            return y;
        }
        let [b, l, d] = y.dims();
        let zeros = Tensor::<3>::zeros([b, 1, d], &y.device());
        match self.0 {
            Fault::ConvolutionAhead => y.clone() + Tensor::cat(vec![y.narrow(1, 1, l - 1), zeros], 1) * 0.5,
            Fault::ConvolutionBehind => y.clone() + Tensor::cat(vec![zeros, y.narrow(1, 0, l - 1)], 1) * 0.5,
            Fault::BatchStatistic => y.clone() - y.mean_dim(0).mean_dim(1),
            Fault::OtherBackend if y.device().inner() != Device::flex() => y * 1.02,
            _ => y,
        }
    }

    fn logits(&self, config: &ModelConfig, model: &Decoder, tokens: Tensor<2, Int>, call: Call) -> Tensor<2> {
        let weights = Weights::of(model);
        let [b, l] = tokens.dims();
        let d = config.d_model;
        let table = weights.matrix("token.weight");
        let tokens = match self.0 {
            Fault::TokensClipped => tokens.clamp(0, table.dims()[0] as i64 - 2),
            _ => tokens,
        };
        let position = weights.matrix("position.weight");
        let most = position.dims()[0];
        let position = match self.0 {
            Fault::PositionsFromOne => {
                Tensor::cat(vec![position.clone().narrow(0, 1, most - 1), position.narrow(0, 0, 1)], 0)
            }
            _ => position,
        };
        let position = position.narrow(0, 0, l);
        let x: Tensor<3> = table.select(0, tokens.flatten(0, 1)).reshape([b, l, d]);
        let mut x = x + position.unsqueeze::<3>();
        if let Some(trace) = call.trace {
            trace.keep("embedding", &x);
        }
        // In evaluation there is none; whoever leaves it on draws one.
        let forgotten = Dropout { seed: 1, step: 0, micro_batch: 0 };
        let dropout = match self.0 {
            Fault::DropoutInEvaluation => Some(*call.dropout.unwrap_or(&forgotten)),
            _ => call.dropout.copied(),
        };
        let drop = |x: Tensor<3>, layer: usize, place: DropoutSite, p: f64| match dropout {
            Some(dropout) => self.dropped(x, dropout, layer, place, p),
            None => x,
        };
        x = drop(x, 0, DropoutSite::Embedding, config.embedding_dropout);
        for layer in 0..config.layers {
            let normed = weights.norm(&format!("blocks.{layer}.norm1"), x.clone());
            let change = self.attention(config, &weights, normed, layer, &call);
            x = x + drop(change, layer, DropoutSite::AttentionOutput, config.residual_dropout);
            let branch = if self.is(Fault::BranchDetached) { x.clone().detach() } else { x.clone() };
            let normed = weights.norm(&format!("blocks.{layer}.norm2"), branch);
            let change = self.mlp(config, &weights, normed, layer);
            x = x + drop(change, layer, DropoutSite::MlpOutput, config.residual_dropout);
            if let Some(trace) = call.trace {
                trace.keep(format!("blocks.{layer}.output"), &x);
            }
        }
        let x = if self.is(Fault::NoFinalNorm) { x } else { weights.norm("norm", x) };
        let logits: Tensor<2> = weights.linear("logits", x).flatten(0, 1); // [B·L, V]
        if let Some(trace) = call.trace {
            trace.keep("logits", &logits);
        }
        match call.scored {
            Some(scored) => logits.select(0, scored.clone()),
            None => logits,
        }
    }
}

impl Program for Reference {
    fn forward(&self, config: &ModelConfig, model: &Decoder, input: Input, call: Call) -> Result<Output, CallError> {
        let tokens = tokens(input);
        let logits = self.logits(config, model, tokens, call);
        let (maps, encoder_maps, cross_maps) = (vec![], vec![], vec![]);
        let (contexts, encoder_contexts, cross_contexts) = (vec![], vec![], vec![]);
        Ok(Output {
            logits,
            maps,
            encoder_maps,
            cross_maps,
            contexts,
            encoder_contexts,
            cross_contexts,
            inputs: vec![],
        })
    }

    /// Without a cache: everything up to a piece's end is read again, of which its rows are kept.
    fn decode(
        &self,
        config: &ModelConfig,
        model: &Decoder,
        input: Input,
        _source: Option<Source>,
        pieces: &[usize],
    ) -> Result<Tensor<2>, CallError> {
        let tokens = tokens(input);
        let [b, _] = tokens.dims();
        let (mut end, mut logits) = (0, vec![]);
        for &length in pieces {
            end += length;
            let first = if self.is(Fault::CacheForgets) { end - length } else { 0 };
            let read = end - first;
            let all = self.logits(config, model, tokens.clone().narrow(1, first, read), Call::default());
            let classes = all.dims()[1];
            logits.push(all.reshape([b, read, classes]).narrow(1, read - length, length));
        }
        Ok(Tensor::cat(logits, 1).flatten(0, 1))
    }

    fn batch(&self, config: &Config, indices: &[u64]) -> data::Batch {
        let mut batch = Headcount.batch(config, indices);
        match self.0 {
            Fault::TokensShifted => batch.tokens.chunks_mut(batch.len).for_each(|row| row.rotate_left(1)),
            Fault::TargetsShifted => batch.targets.chunks_mut(batch.len).for_each(|row| {
                row.rotate_left(1);
                row[batch.len - 1] = data::IGNORE;
            }),
            _ => {}
        }
        batch
    }

    fn accumulate(
        &self,
        config: &ModelConfig,
        model: &Decoder,
        batches: &[data::Batch],
        device: &Device,
    ) -> Result<(Tally, Option<FlatGradient>), CallError> {
        let whole: usize = batches.iter().map(data::Batch::scored).sum();
        let (mut tally, mut sum) = (Tally::default(), None::<FlatGradient>);
        for batch in batches {
            let Some(batch) = DeviceBatch::new(batch, device) else { continue };
            let logits = self.logits(config, model, tokens(batch.input.clone()), batch.call());
            let losses = losses(logits.clone(), &batch);
            let weight = match self.0 {
                Fault::AccumulationOfMeans => (batch.samples.len() * batches.len()) as f64,
                Fault::AccumulationOfSums => 1.0,
                _ => whole as f64,
            };
            let mut gradients = (losses.clone().sum() / weight).backward();
            let gradient = FlatGradient::take(model, &mut gradients);
            sum = Some(match sum {
                Some(sum) => sum.plus(gradient),
                None => gradient,
            });
            tally.add(Tally::of(losses.inner(), logits.inner(), &batch));
        }
        Ok((tally, sum))
    }

    fn step(&self, optimiser: &mut AdamW, model: Decoder, gradient: FlatGradient, lr: f64, step: u64) -> Decoder {
        match self.0 {
            Fault::OptimiserFrozen => model,
            Fault::OptimiserAscends => Headcount.step(optimiser, model, gradient, -lr, step),
            _ => Headcount.step(optimiser, model, gradient, lr, step),
        }
    }
}

/// The reference reads tokens alone.
fn tokens(input: Input) -> Tensor<2, Int> {
    match input {
        Input::Tokens(tokens) => tokens,
        Input::Numbers(_) => panic!("the reference reads tokens"),
    }
}
