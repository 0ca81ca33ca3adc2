//! What is read piece by piece into a cache is what is read at once; with the small inputs that others got wrong, each named
//! after the public report.

use architecture::{Architecture, Dims, Merge, ModelConfig, Norm, Positions, SourceDims, cost};
use burn::tensor::{Device, Int, Tensor, TensorData};
use headcount_model::dropout::Dropout;
use headcount_model::{Cache, Call, CallError, Decoder, Source};
use kernels::MaskError;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Backend, Worst, values};

checks![
    tinyllm_17_prefill_into_an_empty_cache_is_no_cache,
    torchtune_959_greedy_64_tokens_with_the_cache_are_those_without,
    unsloth_4100_a_left_padded_batch_is_each_prompt_alone,
    keras_23038_a_token_changes_nothing_before_it_with_the_cache,
    rotary_embedding_torch_11_cached_keys_keep_their_rotation,
    whatever_the_model_and_the_pieces_the_cache_changes_nothing,
    bytes_are_those_of_the_tensors_held,
];

const DIMS: Dims = Dims::of_tokens(11, 11, 72);
const SOURCE: SourceDims = SourceDims { vocab: 9, length: 5 };

fn config() -> ModelConfig {
    ModelConfig { d_model: 16, layers: 2, heads: 4, d_ff: Some(32), ..Default::default() }
}

fn model(config: &ModelConfig, backend: &Backend) -> Decoder {
    let source = config.has_encoder().then_some(SOURCE);
    Decoder::new(config, Dims { source, ..DIMS }, 0, &backend.device).unwrap()
}

/// Tokens without structure, one row a sample.
fn prompt(length: usize, salt: usize) -> Vec<i32> {
    (0..length).map(|t| ((t * t + 3 * t * salt + 7 * salt) % 11) as i32).collect()
}

/// Samples of unequal length aligned at their ends, as a model takes them. Token 5 is as real as any elsewhere.
struct Padded {
    batch: usize,
    length: usize,
    tokens: Vec<i32>,
    padding: Vec<bool>,
}

impl Padded {
    fn new(prompts: &[Vec<i32>]) -> Self {
        let length = prompts.iter().map(Vec::len).max().unwrap();
        let (mut tokens, mut padding) = (vec![], vec![]);
        for prompt in prompts {
            let missing = length - prompt.len();
            tokens.extend([vec![5; missing], prompt.clone()].concat());
            padding.extend([vec![true; missing], vec![false; prompt.len()]].concat());
        }
        Self { batch: prompts.len(), length, tokens, padding }
    }

    /// Columns `from..to`.
    fn piece(&self, from: usize, to: usize, backend: &Backend) -> (Tensor<2, Int>, Vec<bool>) {
        let columns = |row: usize| row * self.length + from..row * self.length + to;
        let tokens: Vec<i32> = (0..self.batch).flat_map(|row| self.tokens[columns(row)].to_vec()).collect();
        let padding = (0..self.batch).flat_map(|row| self.padding[columns(row)].to_vec()).collect();
        (Tensor::from_data(TensorData::new(tokens, [self.batch, to - from]), &backend.device), padding)
    }

    fn has_padding(&self) -> bool {
        self.padding.contains(&true)
    }
}

/// A source for each of `batch` samples, and its padding.
fn sources(batch: usize, backend: &Backend) -> (Tensor<2, Int>, Vec<bool>) {
    let tokens: Vec<i32> = (0..batch * SOURCE.length).map(|i| (i * 5 % SOURCE.vocab) as i32).collect();
    let padding = (0..batch).flat_map(|b| (0..SOURCE.length).map(move |t| t > 2 + b % 3)).collect();
    (Tensor::from_data(TensorData::new(tokens, [batch, SOURCE.length]), &backend.device), padding)
}

/// Logits `[B, L, outputs]` and maps, `[B, H, L, L]` a layer.
struct Whole {
    logits: Vec<f32>,
    maps: Vec<Vec<f32>>,
}

/// Everything at once, without a cache.
fn whole(model: &Decoder, input: &Padded, source: Option<Source>, backend: &Backend) -> Whole {
    let (tokens, padding) = input.piece(0, input.length, backend);
    let padding = input.has_padding().then_some(&padding[..]);
    let output = model.forward(tokens, Call { padding, source, maps: true, ..Default::default() }).unwrap();
    Whole { logits: values(output.logits), maps: output.maps.into_iter().map(values).collect() }
}

/// In pieces of `lengths`, into a cache that holds exactly as much.
fn in_pieces(model: &Decoder, input: &Padded, lengths: &[usize], source: Option<Source>, backend: &Backend) -> Whole {
    let (b, l) = (input.batch, input.length);
    assert_eq!(lengths.iter().sum::<usize>(), l);
    let mut cache = model.cache(b, l, source).unwrap();
    let mut logits = vec![vec![]; b];
    let mut maps: Vec<Vec<Vec<f32>>> = vec![];
    for &length in lengths {
        let (tokens, padding) = input.piece(cache.held(), cache.held() + length, backend);
        // A piece without padding need not say so.
        let padding = padding.contains(&true).then_some(&padding[..]);
        let output = model.extend(tokens, &mut cache, Call { padding, maps: true, ..Default::default() }).unwrap();
        for (row, logits) in values(output.logits).chunks(length * DIMS.outputs).zip(&mut logits) {
            logits.extend(row);
        }
        maps.resize(output.maps.len(), vec![]);
        for (all, maps) in maps.iter_mut().zip(output.maps) {
            let [b, h, lq, lk] = maps.dims();
            all.resize(b * h, vec![]);
            for (rows, all) in values(maps).chunks(lq * lk).zip(all) {
                // What is not there yet is read by nobody.
                all.extend(rows.chunks(lk).flat_map(|row| [row, &vec![0.0; l - lk]].concat()));
            }
        }
    }
    Whole { logits: logits.concat(), maps: maps.into_iter().map(|layer| layer.concat()).collect() }
}

fn tolerance(backend: &Backend) -> f64 {
    if backend.name == "wgpu" { 1e-4 } else { 1e-5 }
}

#[track_caller]
fn assert_agree(what: &str, found: &Whole, expected: &Whole, backend: &Backend) {
    let mut worst = Worst::new(backend.name, tolerance(backend));
    worst.compare_values(&format!("{what}: logits"), &found.logits, &expected.logits);
    assert_eq!(found.maps.len(), expected.maps.len());
    for (layer, (found, expected)) in found.maps.iter().zip(&expected.maps).enumerate() {
        worst.compare_values(&format!("{what}: maps of layer {layer}"), found, expected);
    }
}

/// TinyLLM#17: the first call with a cache went another way than the call without one.
fn tinyllm_17_prefill_into_an_empty_cache_is_no_cache(backend: &Backend) {
    for &positions in Positions::ALL {
        let model = model(&ModelConfig { positions, ..config() }, backend);
        let input = Padded::new(&[prompt(9, 1), prompt(9, 2)]);
        let (found, expected) = (in_pieces(&model, &input, &[9], None, backend), whole(&model, &input, None, backend));
        assert_agree(&format!("{positions:?}"), &found, &expected, backend);
    }
}

/// https://github.com/meta-pytorch/torchtune/issues/959: generated text changed when the cache was on. A causal model says
/// the same of a prefix and of what goes on from it, so one pass over everything tells what would have been generated
/// without the cache at each step.
fn torchtune_959_greedy_64_tokens_with_the_cache_are_those_without(backend: &Backend) {
    for (positions, kv_heads) in [(Positions::Learned, 4), (Positions::Rope, 2)] {
        let model = model(&ModelConfig { positions, kv_heads: Some(kv_heads), ..config() }, backend);
        let start = Padded::new(&[prompt(5, 1)]);
        let mut cache = model.cache(1, 5 + 64, None).unwrap();
        let (mut next, _) = start.piece(0, 5, backend);
        let (mut all, mut found) = (start.tokens.clone(), vec![]);
        for _ in 0..64 {
            let last = Tensor::<1, Int>::from_data([next.dims()[1] as i32 - 1], &backend.device);
            let call = Call { scored: Some(&last), ..Default::default() };
            let logits = model.extend(next, &mut cache, call).unwrap().logits;
            next = logits.clone().argmax(1); // [1, 1]
            all.extend(next.clone().into_data().iter::<i32>());
            found.extend(values(logits));
        }
        let input = Tensor::<2, Int>::from_data(TensorData::new(all.clone(), [1, 69]), &backend.device);
        let logits = model.forward(input, Call::default()).unwrap().logits;
        let greedy: Vec<i32> = logits.clone().argmax(1).into_data().iter::<i32>().collect();
        assert_eq!(all[5..], greedy[4..68], "{}: {positions:?}", backend.name);
        let expected = &values(logits)[4 * DIMS.outputs..68 * DIMS.outputs];
        Worst::new(backend.name, tolerance(backend)).compare_values("logits", &found, expected);
        let said: std::collections::BTreeSet<i32> = all[5..].iter().copied().collect();
        assert!(said.len() > 1, "a model that says one thing proves little: {said:?}");
    }
}

/// https://github.com/unslothai/unsloth/issues/4100: positions counted from the padding.
fn unsloth_4100_a_left_padded_batch_is_each_prompt_alone(backend: &Backend) {
    for &positions in Positions::ALL {
        let model = model(&ModelConfig { positions, ..config() }, backend);
        let prompts = [prompt(2, 1), prompt(7, 2), prompt(5, 3)];
        let input = Padded::new(&prompts);
        let together = whole(&model, &input, None, backend);
        let cached = in_pieces(&model, &input, &[4, 1, 1, 1], None, backend);
        for (sample, prompt) in prompts.iter().enumerate() {
            let alone = whole(&model, &Padded::new(std::slice::from_ref(prompt)), None, backend).logits;
            for (way, all) in [("at once", &together), ("cached", &cached)] {
                let row = input.length * DIMS.outputs;
                let end = &all.logits[(sample + 1) * row - alone.len()..(sample + 1) * row];
                let what = format!("{positions:?}, {way}, sample {sample}");
                Worst::new(backend.name, tolerance(backend)).compare_values(&what, end, &alone);
            }
        }
    }
}

/// https://github.com/keras-team/keras/issues/23038, where the position is written again: what was said before it, in its
/// own piece and in earlier ones, stays to the bit.
fn keras_23038_a_token_changes_nothing_before_it_with_the_cache(backend: &Backend) {
    let model = model(&config(), backend);
    let base = Padded::new(&[prompt(6, 1), prompt(6, 2)]);
    for pieces in [&[6][..], &[2, 3, 1], &[1; 6]] {
        let before = in_pieces(&model, &base, pieces, None, backend);
        for t in 0..6 {
            let mut changed = Padded::new(&[prompt(6, 1), prompt(6, 2)]);
            changed.tokens[t] = (changed.tokens[t] + 1) % 11; // of sample 0
            let after = in_pieces(&model, &changed, pieces, None, backend);
            let (o, half) = (DIMS.outputs, 6 * DIMS.outputs);
            assert_eq!(before.logits[..t * o], after.logits[..t * o], "{}: token {t} leaks", backend.name);
            assert_ne!(before.logits[t * o..half], after.logits[t * o..half], "{}: token {t} is read", backend.name);
            assert_eq!(before.logits[half..], after.logits[half..], "{}: the other sample", backend.name);
        }
    }
}

/// https://github.com/lucidrains/rotary-embedding-torch/issues/11: keys were rotated as if each call began at 0. Here one
/// token is read after contexts that are alike but for how far away they are.
fn rotary_embedding_torch_11_cached_keys_keep_their_rotation(backend: &Backend) {
    let model = model(&ModelConfig { positions: Positions::Rope, layers: 1, ..config() }, backend);
    let last_row = |fill: usize| {
        let input = Padded::new(&[[vec![3], vec![7; fill], vec![2]].concat()]);
        let found = in_pieces(&model, &input, &[fill + 1, 1], None, backend);
        assert_agree(&format!("fill {fill}"), &found, &whole(&model, &input, None, backend), backend);
        // The odds of the first token against the last one depend on their distance.
        let row: Vec<f32> = found.maps[0][..(fill + 2) * (fill + 2)].to_vec();
        row[(fill + 1) * (fill + 2)] / row[row.len() - 1]
    };
    assert!((last_row(1) - last_row(6)).abs() > 1e-3, "{}", backend.name);
}

/// A model, prompts and a division into pieces.
#[derive(Clone, Debug)]
struct Case {
    config: ModelConfig,
    lengths: Vec<usize>,
    /// Where pieces end, taken modulo the length.
    cuts: Vec<usize>,
}

fn cases() -> impl Strategy<Value = Case> {
    let heads = prop::sample::select(vec![(4, 4), (4, 2), (4, 1), (1, 1)]);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let config = (prop::sample::select(Positions::ALL), heads, switches).prop_map(
        |(positions, (heads, kv_heads), (encoder, mean, bare, straight, no_mlp, key_bias))| ModelConfig {
            architecture: if encoder { Architecture::EncoderDecoder } else { Architecture::Decoder },
            positions,
            heads,
            kv_heads: Some(kv_heads),
            merge: if mean { Merge::Mean } else { Merge::Concat },
            norm: if bare { Norm::None } else { Norm::Pre },
            residual: !straight,
            mlp: !no_mlp,
            key_bias,
            ..config()
        },
    );
    let lengths = prop::collection::vec(1usize..=9, 1..=3);
    (config, lengths, prop::collection::vec(1usize..9, 0..5)).prop_map(|(config, lengths, cuts)| Case {
        config,
        lengths,
        cuts,
    })
}

/// Every position kind, grouping, ablation, batch, left padding and division into pieces, with and without an encoder.
fn whatever_the_model_and_the_pieces_the_cache_changes_nothing(backend: &Backend) {
    let count = if backend.name == "wgpu" { 4 } else { 48 };
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(count) });
    let check = |case: Case| {
        let model = model(&case.config, backend);
        let prompts: Vec<Vec<i32>> =
            case.lengths.iter().enumerate().map(|(salt, &length)| prompt(length, salt)).collect();
        let input = Padded::new(&prompts);
        let mut ends: Vec<usize> = case.cuts.iter().map(|cut| cut % input.length).chain([0, input.length]).collect();
        ends.sort_unstable();
        ends.dedup();
        let pieces: Vec<usize> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (tokens, padding) = sources(input.batch, backend);
        let source = case.config.has_encoder().then_some(Source { tokens: &tokens, padding: &padding });

        let expected = whole(&model, &input, source, backend);
        let found = in_pieces(&model, &input, &pieces, source, backend);
        let real: Vec<usize> = (0..input.padding.len()).filter(|&i| !input.padding[i]).collect();
        let at_real = |all: &Whole| -> Vec<f32> {
            let rows = all.logits.chunks(DIMS.outputs).collect::<Vec<_>>();
            real.iter().flat_map(|&i| rows[i].to_vec()).collect()
        };
        let what = format!("{case:?}");
        let mut worst = Worst::new(backend.name, tolerance(backend));
        worst.compare_values(&what, &at_real(&found), &at_real(&expected));
        for (found, expected) in found.maps.iter().zip(&expected.maps) {
            worst.compare_values(&what, found, expected);
        }
        Ok(())
    };
    if let Err(error) = runner.run(&cases(), check) {
        panic!("{error}");
    }
}

fn bytes_are_those_of_the_tensors_held(backend: &Backend) {
    let (b, capacity) = (3, 20);
    for (kv_heads, d_head) in [(4, None), (2, None), (1, None), (2, Some(6))] {
        let config = ModelConfig { kv_heads: Some(kv_heads), d_head, ..config() };
        let expected = (2 * 2 * kv_heads * d_head.unwrap_or(4) * capacity * b * 4) as u64; // 2 layers, 4 bytes a number
        assert_eq!(cost::cache_bytes(&config, b as u64, capacity as u64), expected);
        let model = model(&config, backend);
        let mut cache = model.cache(b, capacity, None).unwrap();
        assert_eq!(cache.bytes(), expected, "{}", backend.name);
        model.extend(Tensor::<2, Int>::zeros([b, 7], &backend.device), &mut cache, Call::default()).unwrap();
        assert_eq!(cache.bytes(), expected, "{}", backend.name);
        assert_eq!((cache.batch(), cache.held(), cache.capacity()), (b, 7, capacity));
    }
    let config = ModelConfig { architecture: Architecture::EncoderDecoder, kv_heads: Some(2), ..config() };
    let (tokens, padding) = sources(b, backend);
    let cache =
        model(&config, backend).cache(b, capacity, Some(Source { tokens: &tokens, padding: &padding })).unwrap();
    assert_eq!(cache.bytes(), cost::cache_bytes(&config, b as u64, (capacity + SOURCE.length) as u64));
}

fn on_flex() -> Backend {
    Backend { name: "flex", device: Device::flex(), tolerance: 1e-5 }
}

/// A cache that was cleared is an empty one, whatever stood in it.
#[test]
fn a_cleared_cache_is_empty() {
    let backend = on_flex();
    let model = model(&config(), &backend);
    let mut cache = model.cache(2, 9, None).unwrap();
    let input = Padded::new(&[prompt(3, 1), prompt(5, 2)]);
    let (tokens, padding) = input.piece(0, 5, &backend);
    let call = Call { padding: Some(&padding), ..Default::default() };
    let first = values(model.extend(tokens.clone(), &mut cache, call).unwrap().logits);
    model.extend(Tensor::<2, Int>::ones([2, 4], &backend.device), &mut cache, Call::default()).unwrap();
    cache.clear();
    assert_eq!(cache.held(), 0);
    assert_eq!(values(model.extend(tokens, &mut cache, call).unwrap().logits), first);
}

#[test]
fn what_does_not_fit_a_cache_is_refused_and_leaves_it_as_it_was() {
    let backend = on_flex();
    let model = model(&config(), &backend);
    let mut cache = model.cache(2, 8, None).unwrap();
    let zeros = |length| Tensor::<2, Int>::zeros([2, length], &backend.device);
    let padding = [true, true, false, false, false, false];
    model.extend(zeros(3), &mut cache, Call { padding: Some(&padding), ..Default::default() }).unwrap();
    let mut twin = cache.clone();

    let refusal = |cache: &mut Cache, tokens: Tensor<2, Int>, call: Call| model.extend(tokens, cache, call).err();
    let plain = Call::default;
    let full = CallError::CacheFull { held: 3, more: 6, capacity: 8 };
    assert_eq!(full.to_string(), "a cache of 8 positions holds 3: there is no room for 6 more");
    assert_eq!(refusal(&mut cache, zeros(6), plain()), Some(full));
    let three = Tensor::zeros([3, 1], &backend.device);
    assert_eq!(refusal(&mut cache, three, plain()), Some(CallError::CacheBatch { given: 3, batch: 2 }));
    for (padding, sample) in [([true, false], 0), ([false, true], 1)] {
        let call = Call { padding: Some(&padding), ..plain() };
        assert_eq!(refusal(&mut cache, zeros(1), call), Some(CallError::CachePadding { sample }));
    }
    let wrong = CallError::Padding(MaskError::WrongCount { shape: [2, 1, 1, 1], expected: 2, given: 3 });
    assert_eq!(refusal(&mut cache, zeros(1), Call { padding: Some(&[false; 3]), ..plain() }), Some(wrong));
    let dropout = Dropout { seed: 0, step: 0, micro_batch: 0 };
    assert_eq!(
        refusal(&mut cache, zeros(1), Call { dropout: Some(&dropout), ..plain() }),
        Some(CallError::CacheDropout)
    );
    let (tokens, padding) = sources(2, &backend);
    let source = Some(Source { tokens: &tokens, padding: &padding });
    assert_eq!(refusal(&mut cache, zeros(1), Call { source, ..plain() }), Some(CallError::CacheSource));
    assert_eq!(model.cache(2, 8, source).err(), Some(CallError::UnreadSource));

    let next = |cache: &mut Cache| values(model.extend(zeros(1), cache, plain()).unwrap().logits);
    assert_eq!(next(&mut cache), next(&mut twin), "a refusal changes nothing");
}

/// With learned positions the longest sample counts, not its padding.
#[test]
fn a_cache_ends_where_the_learned_positions_end() {
    let backend = on_flex();
    let model = model(&config(), &backend);
    let mut cache = model.cache(1, 200, None).unwrap();
    let zeros = |length| Tensor::<2, Int>::zeros([1, length], &backend.device);
    let padding: Vec<bool> = (0..DIMS.length).map(|t| t < 2).collect();
    model.extend(zeros(DIMS.length), &mut cache, Call { padding: Some(&padding), ..Default::default() }).unwrap();
    model.extend(zeros(2), &mut cache, Call::default()).unwrap();
    let error = model.extend(zeros(1), &mut cache, Call::default()).unwrap_err();
    assert_eq!(error, CallError::TooLong { length: DIMS.length + 1, most: DIMS.length });
}

#[test]
fn a_model_that_reads_both_ways_has_no_cache() {
    let error = model(&ModelConfig { causal: false, ..config() }, &on_flex()).cache(1, 8, None).unwrap_err();
    assert_eq!(error, CallError::NotCausal);
    assert!(error.to_string().contains("causal = false"), "{error}");
}

#[test]
fn an_encoder_needs_its_source_when_the_cache_is_made() {
    let backend = on_flex();
    let model = model(&ModelConfig { architecture: Architecture::EncoderDecoder, ..config() }, &backend);
    assert_eq!(model.cache(2, 8, None).err(), Some(CallError::NoSource));
    let (tokens, padding) = sources(3, &backend);
    let source = Some(Source { tokens: &tokens, padding: &padding });
    assert_eq!(model.cache(2, 8, source).err(), Some(CallError::SourceBatch { sources: 3, batch: 2 }));
}
