//! A trained model with fewer and fewer heads; see [`Pruning`]. Which head goes is decided on validation samples, what is left is
//! read on test samples.
//!
//! Greedy removal of n heads would try n(n + 1)/2 times. Here a round tries those [`TRIED`] heads that cost least when they were
//! last tried, the first round all: 16 n or so. With at most 16 heads nothing is left out. With more, a head may be missed of which
//! the removal came to cost less because others went, as long as it is not among the cheapest 16.

use architecture::cost::forward_flops;
use burn::tensor::{Device, Tensor};
use data::{
    Batch, Generator, Split,
    metrics::{METRICS, MetricKind, Scores, Yardstick},
};
use model::{Call, CallError, Decoder, Output, Resume, parameters};
use runs::{
    Config, Tensors,
    heads::{AttentionSite, HeadPlace, HeadsUsed, Pruning, PruningPoint, Tolerance},
};

use crate::{
    HeadError,
    ablation::{Gates, Means, ablated, contexts, heads},
    batch::{DeviceBatch, Tally, losses},
    limits::{PRUNING_FLOPS, PRUNING_SAMPLES, PRUNING_TEST_SAMPLES, TRIED},
    snapshot::rounded,
};

/// Prunes the model of `config` with `weights` (the untrained ones where `None`), which are those of `step`. `validation` are the
/// first validation samples: heads are replaced by their means over all of them.
///
/// # Errors
/// Weights that don't fit the config, samples that the model can't take, nothing scored, and numbers that aren't finite.
pub fn prune(
    config: &Config,
    step: u64,
    weights: Option<&Tensors>,
    validation: &Batch,
    tolerance: Tolerance,
    device: &Device,
) -> Result<Pruning, HeadError> {
    let mut model = Decoder::new(&config.model, config.dims(), config.weights_seed(), device)?;
    if let Some(weights) = weights {
        model = parameters::from_host(model, weights).map_err(|error| HeadError::Weights { step, error })?;
    }
    let plan = Plan::new(config, validation.batch as u64);
    let pruner = Pruner { means: means(&model, validation, device)?, model, config, device };
    let chosen = pruner.choose(&validation.rows(0..plan.validation as usize))?;
    let test = pruner.test(&chosen.order, plan.test)?;
    let points = points(&chosen, &test, &pruner.yardstick(Split::Test));
    let scores =
        |point: &PruningPoint| [point.validation, point.test, point.standard_error, point.difference_standard_error];
    if !points.iter().flat_map(scores).all(|scores| scores.are_finite()) {
        return Err(HeadError::NotFinite { step });
    }
    let used = HeadsUsed::of(&points, tolerance);
    let (validation_samples, test_samples) = (plan.validation as usize, plan.test as usize);
    Ok(Pruning { validation_samples, passes: chosen.passes, test_samples, points, used })
}

/// How many samples are read, so that it takes seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    validation: u64,
    test: u64,
}

impl Plan {
    /// Of `available` validation samples.
    fn new(config: &Config, available: u64) -> Self {
        let dims = config.dims();
        let flops = forward_flops(&config.model, dims, 1, dims.length as u64).total();
        let fit = |passes: u64| PRUNING_FLOPS / (passes * flops).max(1);
        let heads = heads(&config.model).len();
        // The whole model once, and then in each round the candidates and the one that was chosen.
        let tried = |round: usize| if round == 0 { heads } else { (heads - round).min(TRIED) };
        let passes = 1 + (0..heads).map(|round| tried(round) as u64 + 1).sum::<u64>();
        let validation = fit(passes).clamp(PRUNING_SAMPLES.0, PRUNING_SAMPLES.1).min(available);
        let test = fit(heads as u64 + 1).clamp(PRUNING_TEST_SAMPLES.0, PRUNING_TEST_SAMPLES.1);
        Self { validation, test: test.min(config.task.sets.test_examples) }
    }
}

/// What takes the place of removed heads: their means over `batch`.
fn means(model: &Decoder, batch: &Batch, device: &Device) -> Result<Means, HeadError> {
    let on_device = DeviceBatch::new(batch, device).ok_or(HeadError::NothingScored)?;
    let call = Call { contexts: true, ..on_device.call() };
    Ok(Means::new(&contexts(&model.forward(on_device.input.clone(), call)?), batch, device))
}

/// A model whose heads are removed.
struct Pruner<'a> {
    model: Decoder,
    means: Means,
    config: &'a Config,
    device: &'a Device,
}

/// In which order heads go.
struct Chosen {
    order: Vec<HeadPlace>,
    /// With all heads, then after each removal.
    scores: Vec<Scores>,
    passes: usize,
}

/// What a model scores with some of its heads.
#[derive(Default)]
struct Read {
    /// Summed batch by batch, as any evaluation is.
    whole: Tally,
    samples: Vec<Tally>,
}

impl Pruner<'_> {
    fn yardstick(&self, split: Split) -> Yardstick {
        Yardstick::of(&self.config.task.task, &self.config.task.sets, split)
    }

    /// The order by the losses on `batch`; of equal ones the first head goes.
    fn choose(&self, batch: &Batch) -> Result<Chosen, HeadError> {
        let yardstick = self.yardstick(Split::Validation);
        let batch = DeviceBatch::new(batch, self.device).ok_or(HeadError::NothingScored)?;
        let (mut left, output) = Left::whole(self, batch)?;
        let mut chosen = Chosen { order: vec![], scores: vec![left.tally(output).scores(&yardstick)], passes: 1 };
        // What the loss was without each head, when that was last tried.
        let mut candidates: Vec<(f64, HeadPlace)> =
            heads(&self.config.model).into_iter().map(|place| (f64::NEG_INFINITY, place)).collect();
        while !candidates.is_empty() {
            let tried = if chosen.order.is_empty() { candidates.len() } else { candidates.len().min(TRIED) };
            for (loss, place) in &mut candidates[..tried] {
                *loss = left.tally(left.without(*place)?).mean_loss();
                chosen.passes += 1;
            }
            candidates[..tried].sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let (_, gone) = candidates.remove(0);
            let output = left.remove(gone)?;
            chosen.passes += 1;
            chosen.order.push(gone);
            chosen.scores.push(left.tally(output).scores(&yardstick));
            candidates.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        }
        Ok(chosen)
    }

    /// With all heads, then after each removal, on the first `examples` test samples.
    fn test(&self, order: &[HeadPlace], examples: u64) -> Result<Vec<Read>, HeadError> {
        let generator = Generator::new(&self.config.task.task, Split::Test, Split::Test.data_seed(self.config.seed));
        let mut reads: Vec<Read> = (0..=order.len()).map(|_| Read::default()).collect();
        let size = self.config.train.eval_batch as u64;
        for first in (0..examples).step_by(size as usize) {
            let indices: Vec<u64> = (first..(first + size).min(examples)).collect();
            let Some(batch) = DeviceBatch::new(&generator.batch(&indices), self.device) else { continue };
            let (mut left, output) = Left::whole(self, batch)?;
            left.read(output, &mut reads[0]);
            for (place, read) in order.iter().zip(&mut reads[1..]) {
                let output = left.remove(*place)?;
                left.read(output, read);
            }
        }
        if reads[0].samples.is_empty() { Err(HeadError::NoTest) } else { Ok(reads) }
    }
}

/// A model on a batch, with the heads that are left.
struct Left<'a> {
    pruner: &'a Pruner<'a>,
    batch: DeviceBatch,
    removed: Vec<HeadPlace>,
    /// What each block of the decoder reads, `[B, L, D]`.
    inputs: Vec<Tensor<3>>,
}

impl<'a> Left<'a> {
    /// All of them.
    fn whole(pruner: &'a Pruner<'a>, batch: DeviceBatch) -> Result<(Self, Output), CallError> {
        let mut left = Self { pruner, batch, removed: vec![], inputs: vec![] };
        let mut output = left.pass(None, true)?;
        left.inputs = std::mem::take(&mut output.inputs);
        Ok((left, output))
    }

    /// What the model says without `place`, too.
    fn without(&self, place: HeadPlace) -> Result<Output, CallError> {
        self.pass(Some(place), false)
    }

    /// The same for good.
    fn remove(&mut self, place: HeadPlace) -> Result<Output, CallError> {
        let mut output = self.pass(Some(place), true)?;
        self.inputs.truncate(self.inputs.len() - output.inputs.len());
        self.inputs.append(&mut output.inputs);
        self.removed.push(place);
        Ok(output)
    }

    /// From the first block on that reads something else.
    fn pass(&self, without: Option<HeadPlace>, inputs: bool) -> Result<Output, CallError> {
        let Pruner { model, means, config, device } = self.pruner;
        let is_kept = |place: HeadPlace| Some(place) != without && !self.removed.contains(&place);
        let gates = Gates::new(&config.model, is_kept, device);
        let resume = without.filter(|place| place.site != AttentionSite::Encoder).and_then(|place| {
            let input = self.inputs.get(place.layer)?;
            Some(Resume { layer: place.layer, input })
        });
        let call = Call { inputs, resume, ..ablated(self.batch.call(), &gates, means) };
        model.forward(self.batch.input.clone(), call)
    }

    fn tally(&self, output: Output) -> Tally {
        Tally::of(losses(output.logits.clone(), &self.batch), output.logits, &self.batch)
    }

    fn read(&self, output: Output, read: &mut Read) {
        let logits = output.logits;
        let losses = losses(logits.clone(), &self.batch);
        let samples = Tally::of_samples(losses.clone(), logits.clone(), &self.batch);
        read.samples.extend(samples.into_iter().map(|(_, tally)| tally));
        read.whole.add(Tally::of(losses, logits, &self.batch));
    }
}

/// The curve.
fn points(chosen: &Chosen, test: &[Read], yardstick: &Yardstick) -> Vec<PruningPoint> {
    let removed = std::iter::once(None).chain(chosen.order.iter().copied().map(Some));
    let all: &[Tally] = test.first().map_or(&[], |read| &read.samples);
    let point = |(index, ((removed, validation), read)): (usize, ((Option<HeadPlace>, &Scores), &Read))| {
        let own =
            |kind: &MetricKind| standard_error(&read.samples, |tally, _| tally.scores(yardstick).number(kind), all);
        let difference = |kind: &MetricKind| {
            standard_error(
                &read.samples,
                |tally, all| tally.scores(yardstick).number(kind) - all.scores(yardstick).number(kind),
                all,
            )
        };
        let errors = |of: &dyn Fn(&MetricKind) -> Option<f64>| {
            let measured = METRICS.iter().filter(|kind| read.whole.scores(yardstick).get(kind).is_some());
            let errors = measured.filter_map(|kind| Some((kind, of(kind)?)));
            errors.fold(Scores::default(), |scores, (kind, error)| scores.with(kind, error)).map(rounded)
        };
        PruningPoint {
            kept: chosen.order.len() - index,
            removed,
            validation: validation.map(rounded),
            test: read.whole.scores(yardstick).map(rounded),
            standard_error: errors(&own),
            difference_standard_error: errors(&difference),
        }
    };
    removed.zip(&chosen.scores).zip(test).enumerate().map(point).collect()
}

/// Standard error over samples of a mean over scored positions, of which a sample has more or fewer: that of a ratio of two
/// means (Cochran 1977, Sampling Techniques, section 2.11). `value` is a sample's own mean, and is told the same sample among
/// `all`. `None` for a single sample.
fn standard_error(samples: &[Tally], value: impl Fn(&Tally, &Tally) -> f64, all: &[Tally]) -> Option<f64> {
    let count = samples.len() as f64;
    if samples.len() < 2 {
        return None;
    }
    let weighted: Vec<(f64, f64)> =
        samples.iter().zip(all).map(|(tally, all)| (tally.scored as f64, value(tally, all))).collect();
    let scored: f64 = weighted.iter().map(|(scored, _)| scored).sum();
    let mean = weighted.iter().map(|(scored, value)| scored * value).sum::<f64>() / scored;
    let squares: f64 = weighted.iter().map(|(scored, value)| (scored * (value - mean)).powi(2)).sum();
    Some((squares / (count * (count - 1.0))).sqrt() * count / scored)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(output: &Output) -> Vec<u32> {
        output.logits.clone().into_data().iter::<f32>().map(f32::to_bits).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// With all heads it is the model's own logits, and a pass that goes on from a block gives what a whole one does, to the bit.
        #[test]
        fn passes_are_those_of_the_model_itself(
            (heads_of_layer, layers, has_encoder) in (prop::sample::select(vec![1usize, 2, 4]), 1usize..4, any::<bool>()),
            seed in 0u64..1000,
            order in prop::collection::vec(any::<prop::sample::Index>(), 4),
        ) {
            let task = if has_encoder {
                "kind = \"reverse\"\nmin_len = 2\nmax_len = 5\n[model]\narchitecture = \"encoder_decoder\""
            } else {
                "kind = \"registers\"\nseq_len = 12\n[model]\narchitecture = \"decoder\""
            };
            let text = format!("seed = {seed}\n[task]\n{task}\nd_model = 16\nheads = {heads_of_layer}\nlayers = {layers}\n");
            let config = Config::parse(&text, "test.toml").unwrap();
            let device = Device::flex();
            let model = Decoder::new(&config.model, config.dims(), seed, &device).unwrap();
            let generator = Generator::new(&config.task.task, Split::Test, 0);
            let batch = generator.batch(&(0..6).collect::<Vec<_>>());
            let means = means(&model, &batch, &device).unwrap();
            let on_device = DeviceBatch::new(&batch, &device).unwrap();
            let own = model.forward(on_device.input.clone(), on_device.call()).unwrap();
            let pruner = Pruner { model, means, config: &config, device: &device };
            let (mut left, whole) = Left::whole(&pruner, on_device).unwrap();
            prop_assert_eq!(bits(&whole), bits(&own));
            let mut candidates = heads(&config.model);
            for index in order.into_iter().take(candidates.len()) {
                let place = candidates.remove(index.index(candidates.len()));
                let tried = left.without(place).unwrap();
                let removed = left.remove(place).unwrap();
                let complete = left.pass(None, false).unwrap();
                prop_assert_eq!(bits(&tried), bits(&complete));
                prop_assert_eq!(bits(&removed), bits(&complete));
                prop_assert_eq!(left.inputs.len(), layers);
            }
        }
    }

    #[test]
    fn errors_are_those_of_equal_and_of_unequal_samples() {
        let tally = |loss, scored| Tally { loss, scored, ..Tally::default() };
        let loss = |tally: &Tally, _: &Tally| tally.mean_loss();
        // Means 1, 2 and 3: their deviation 1 over the root of 3.
        let equal = [tally(2.0, 2), tally(4.0, 2), tally(6.0, 2)];
        assert!((standard_error(&equal, loss, &equal).unwrap() - 1.0 / 3f64.sqrt()).abs() < 1e-12);
        // A mean of 2, residuals 1 · (5 − 2) and 3 · (1 − 2), over a mean of 2 positions: sqrt((9 + 9) / 2) / 2.
        let unequal = [tally(5.0, 1), tally(3.0, 3)];
        assert!((standard_error(&unequal, loss, &unequal).unwrap() - 1.5).abs() < 1e-12);
        // What is common to both cancels.
        let difference = |tally: &Tally, all: &Tally| tally.mean_loss() - all.mean_loss();
        assert_eq!(standard_error(&unequal, difference, &unequal), Some(0.0));
        assert_eq!(standard_error(&unequal[..1], loss, &unequal[..1]), None);
    }

    #[test]
    fn samples_are_fewer_where_there_is_more_to_compute() {
        let plan = |text: &str| Plan::new(&Config::parse(text, "test.toml").unwrap(), 64);
        let registers = "[task]\nkind = \"registers\"\n";
        assert_eq!(plan(registers), Plan { validation: 64, test: 512 });
        let deep = plan(&format!("{registers}[model]\nlayers = 4\nheads = 16\n"));
        assert!((8..64).contains(&deep.validation) && (32..=512).contains(&deep.test), "{deep:?}");
        let wide = plan(&format!("{registers}[model]\nd_model = 1024\nlayers = 8\nheads = 32\n"));
        assert_eq!(wide, Plan { validation: 8, test: 32 });
        let few = plan("[task]\nkind = \"registers\"\ntest_examples = 5\n");
        assert_eq!(few, Plan { validation: 64, test: 5 });
    }
}
