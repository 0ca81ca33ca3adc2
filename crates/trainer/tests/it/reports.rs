//! Small inputs that other projects got wrong, each named after its report. Those about files, order and schedule are
//! tested where they belong (accelerate#2016, Lightning#13163 and transformers#27820 in `interrupt`).

use architecture::{Dims, ModelConfig};
use burn::module::Module;
use burn::tensor::Device;
use data::{Batch, Generator, IGNORE, Split};
use model::{Call, Decoder, parameters};
use runs::TrainConfig;
use trainer::training::batch::{Answers, DeviceBatch, Tally};
use trainer::training::evaluate::FixedSet;
use trainer::training::gradient::accumulate;
use trainer::training::optimiser::{AdamW, FlatGradient};

use crate::support::*;

fn device() -> Device {
    Device::flex().autodiff()
}

fn decoder(length: usize, vocab: usize, causal: bool) -> Decoder {
    let config = ModelConfig { d_model: 32, heads: 4, causal, ..Default::default() };
    Decoder::new(&config, Dims::of_tokens(vocab, vocab, length), 0, &device()).unwrap()
}

/// Numbers below `most` that look random.
fn numbers(count: usize, most: u64, state: &mut u64) -> Vec<i32> {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*state >> 33) % most) as i32
    };
    (0..count).map(|_| next()).collect()
}

/// A sample of `length` whose last `scored` positions are scored.
fn sample(length: usize, scored: usize, state: &mut u64) -> Batch {
    let tokens = numbers(length, 8, state);
    let mut targets = numbers(length, 8, state);
    targets[..length - scored].fill(IGNORE);
    Batch::new(1, length, tokens, targets)
}

fn joined(batches: &[Batch]) -> Batch {
    let tokens = batches.iter().flat_map(|batch| batch.tokens.clone()).collect();
    let targets = batches.iter().flat_map(|batch| batch.targets.clone()).collect();
    Batch::new(batches.iter().map(|batch| batch.batch).sum(), batches[0].len, tokens, targets)
}

fn gradient(model: &Decoder, batches: &[Batch]) -> (Tally, Vec<f32>) {
    let (tally, gradient) = accumulate(model, batches, 0, 0, &device()).unwrap();
    (tally, gradient.unwrap().to_host())
}

fn largest_difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    left.iter().zip(right).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// transformers#24725: samples with 11 and 101 scored tokens, accumulated two times one, are one batch of two.
#[test]
fn transformers_24725_accumulation_weights_by_scored_tokens() {
    let model = decoder(110, 8, true);
    let state = &mut 1;
    let (few, many) = (sample(110, 11, state), sample(110, 101, state));
    let (whole, expected) = gradient(&model, &[joined(&[few.clone(), many.clone()])]);
    let (parts, accumulated) = gradient(&model, &[few.clone(), many.clone()]);
    assert_eq!((whole.scored, whole.correct), (112, parts.correct));
    assert!((whole.mean_loss() - parts.mean_loss()).abs() < 1e-6);
    let size = expected.iter().fold(0.0f32, |most, x| most.max(x.abs()));
    assert!(size > 0.01 && largest_difference(&expected, &accumulated) < 1e-5 * size);
    // The mean of the two samples' own means, the mistake of the report, is something else.
    let (few, many) = (gradient(&model, &[few]), gradient(&model, &[many]));
    let wrong: Vec<f32> = few.1.iter().zip(&many.1).map(|(a, b)| (a + b) / 2.0).collect();
    assert!(largest_difference(&expected, &wrong) > 0.1 * size);
    assert!(((few.0.mean_loss() + many.0.mean_loss()) / 2.0 - whole.mean_loss()).abs() > 1e-3);
}

/// pytorch#116349: every target ignored gives no NaN, but a batch that weighs nothing.
#[test]
fn pytorch_116349_all_ignored_weighs_nothing() {
    let model = decoder(12, 8, true);
    let state = &mut 2;
    let (nothing, something) = (sample(12, 0, state), sample(12, 5, state));
    let (tally, none) = accumulate(&model, std::slice::from_ref(&nothing), 0, 0, &device()).unwrap();
    assert_eq!(tally, Tally::default());
    assert!(none.is_none());
    assert_eq!(gradient(&model, &[nothing, something.clone()]), gradient(&model, &[something]));
}

/// The same in a whole run: steps in which nothing is scored log no line and change no weight.
#[test]
fn pytorch_116349_steps_without_a_scored_position() {
    let folder = tempfile::tempdir().unwrap();
    // Two registers are rarely both written within two tokens.
    let overrides = ["task.seq_len=2", "train.batch_size=1", "train.steps=40", "train.eval_every=40"];
    let (run, _) = train_here(&small(&overrides), folder.path());
    let lines = metrics(&run);
    let logged = losses(&run).len();
    assert!((5..35).contains(&logged), "{logged} of 40 steps scored something");
    assert!(lines.iter().all(|line| !line.diverged()));
    for (path, tensor) in run.checkpoints().load(40).unwrap().model {
        assert!(tensor.values.iter().all(|value| value.is_finite()), "{path}");
    }
}

/// Lightning#2924: batches of 256, 256 and 10 at accuracies .7, .8 and .9.
#[test]
fn lightning_2924_uneven_batches_are_weighted() {
    let mut tally = Tally::default();
    for (scored, correct, loss) in [(256, 179, 1.0), (256, 205, 2.0), (10, 9, 30.0)] {
        tally.add(Tally { scored, correct, loss: loss * scored as f64, ..Tally::default() });
    }
    assert!((tally.accuracy() - 0.7529).abs() < 1e-4, "{}", tally.accuracy());
    assert!((tally.mean_loss() - (256.0 + 512.0 + 300.0) / 522.0).abs() < 1e-12);
}

/// The same on a set: however it falls into batches, its score is the same.
#[test]
fn lightning_2924_a_set_scores_the_same_in_any_batches() {
    let config = small(&[]);
    let model = trainer::training::arm::Arm::new(&config).model(&Device::flex()).unwrap();
    let score = |batch| {
        FixedSet::new(&config.task.task, Split::Validation, config.seed, 25, batch)
            .score(&model, &Device::flex())
            .unwrap()
    };
    let whole = score(25);
    for batch in [1, 7, 24, 1000] {
        let parts = score(batch);
        assert_eq!((parts.scored, parts.correct), (whole.scored, whole.correct));
        assert!((parts.loss - whole.loss).abs() < 1e-5 * whole.loss);
    }
}

/// The classes that a batch asks for, as they are on the device, which the host's are.
fn targets(batch: &DeviceBatch) -> Vec<i32> {
    let Answers::Classes { targets, on_host } = &batch.answers else { panic!("classes") };
    let on_device: Vec<i32> = targets.clone().into_data().iter::<i32>().collect();
    assert_eq!(&on_device, on_host);
    on_device
}

/// transformers#47394: rows 0,1,2,3 have the targets 1,2,3, and none is taken from the next row.
#[test]
fn transformers_47394_no_target_from_the_next_row() {
    let batch = Batch::new(2, 4, vec![0, 1, 2, 3, 4, 5, 6, 7], vec![1, 2, 3, IGNORE, 5, 6, 7, IGNORE]);
    let on_device = DeviceBatch::new(&batch, &Device::flex()).unwrap();
    assert_eq!(on_device.scored.clone().into_data().iter::<i64>().collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6]);
    assert_eq!(targets(&on_device), [1, 2, 3, 5, 6, 7]);
    // Nor do logits at scored positions come from another row.
    let model = decoder(4, 8, true).valid();
    let logits = |batch: &Batch| {
        let batch = DeviceBatch::new(batch, &Device::flex()).unwrap();
        let call = Call { scored: Some(&batch.scored), ..Default::default() };
        model.forward(batch.input.clone(), call).unwrap().logits.into_data().iter::<f32>().collect::<Vec<_>>()
    };
    let alone = batch.rows(0..1);
    assert!(largest_difference(&logits(&batch)[..24], &logits(&alone)) < 1e-6);
}

/// trl#6357: padding that equals another token: only padding is ignored, since positions are scored, not tokens.
#[test]
fn trl_6357_only_padding_is_ignored() {
    let batch = Batch::new(1, 5, vec![0, 3, 0, 0, 0], vec![0, 0, 5, IGNORE, IGNORE]);
    let on_device = DeviceBatch::new(&batch, &Device::flex()).unwrap();
    assert_eq!(targets(&on_device), [0, 0, 5]);
    let (tally, _) = gradient(&decoder(5, 8, true), &[batch]);
    assert_eq!(tally.scored, 3);
}

/// transformers#1563: the global norm is clipped once per optimiser step, not per micro-batch.
#[test]
fn transformers_1563_clips_once_per_optimiser_step() {
    let moments = [("train.batch_size=16", "train.accumulate=1"), ("train.batch_size=4", "train.accumulate=4")].map(
        |(batch_size, accumulate)| {
            let folder = tempfile::tempdir().unwrap();
            let overrides = [batch_size, accumulate, "train.steps=1", "train.clip_norm=0.05", "train.eval_every=1"];
            let (run, _) = train_here(&small(&overrides), folder.path());
            let norm = metrics(&run)[1].grad_norm.unwrap();
            let state = run.checkpoints().load(1).unwrap().optimiser;
            let first = state.into_iter().filter(|(path, _)| path.ends_with("first_moment"));
            (norm, first.flat_map(|(_, tensor)| tensor.values).collect::<Vec<f32>>())
        },
    );
    let [(whole, expected), (accumulated, found)] = &moments;
    assert!(*whole > 0.2 && (whole - accumulated).abs() < 1e-5 * whole, "{whole} {accumulated}");
    // After one step the first moment is a tenth of the clipped gradient. Four micro-batches, each clipped to 0.05, would
    // add up to something longer.
    let length = found.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    assert!((length - 0.1 * 0.05).abs() < 1e-7, "{length}");
    assert!(largest_difference(expected, found) < 1e-8);
    // Micro-batches have longer gradients than their sum: clipping each would not be the same by chance.
    let config = small(&[]);
    let model = trainer::training::arm::Arm::new(&config).model(&device()).unwrap();
    let generator = Generator::new(&config.task.task, Split::Train, 0);
    let norms: f64 = (0..4)
        .map(|part| {
            let batch = generator.batch(&[4 * part, 4 * part + 1, 4 * part + 2, 4 * part + 3]);
            accumulate(&model, &[batch], 0, 0, &device()).unwrap().1.as_ref().map_or(0.0, FlatGradient::norm)
        })
        .sum();
    assert!(norms / 4.0 > 1.2 * whole, "{norms} {whole}");
}

/// transformers#48745: on fresh random tokens the next one can't be known: a loss below ln V means that the future leaks.
#[test]
fn transformers_48745_the_future_does_not_leak() {
    let chance = 8f64.ln();
    let causal = loss_on_random_tokens(true);
    assert!((chance - 0.02..chance + 0.1).contains(&causal), "{causal} instead of {chance}");
    // Without the causal mask the next token is there to be read: the test can fail.
    let leaking = loss_on_random_tokens(false);
    assert!(leaking < chance - 0.5, "{leaking}");
}

/// Mean loss over the last 30 of 150 steps on next-token targets.
fn loss_on_random_tokens(causal: bool) -> f64 {
    let (batch, len) = (32, 12);
    let settings = TrainConfig { lr: 1e-2, ..Default::default() };
    let mut model = decoder(len, 8, causal);
    let mut optimiser = AdamW::new(&settings, &model);
    let mut last = Tally::default();
    let state = &mut 3;
    for step in 0..150 {
        let tokens = numbers(batch * len, 8, state);
        let next = |position| if (position + 1) % len == 0 { IGNORE } else { tokens[position + 1] };
        let targets = (0..batch * len).map(next).collect();
        let (tally, gradient) =
            accumulate(&model, &[Batch::new(batch, len, tokens, targets)], 0, step, &device()).unwrap();
        let gradient = gradient.unwrap();
        let norm = gradient.norm();
        model = optimiser.step(model, gradient, norm, settings.lr, step + 1);
        if step >= 120 {
            last.add(tally);
        }
    }
    assert!(parameters::to_host(&model).values().all(|tensor| tensor.values.iter().all(|value| value.is_finite())));
    last.mean_loss()
}
