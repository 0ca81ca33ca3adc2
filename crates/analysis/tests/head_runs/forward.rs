//! A pass that is followed step by step is the model's own.

use base64::{Engine, prelude::BASE64_STANDARD};
use burn::tensor::{Int, Tensor, TensorData};
use data::{Generator, Split};
use headcount_analysis::{TraceError, forward_pass, heads_alike};
use model::{Call, Source};
use runs::forward::{ForwardPass, MaskKind, MaskedPass, Numbers};

use super::*;

fn values(numbers: &Numbers) -> Vec<f64> {
    let bytes = BASE64_STANDARD.decode(&numbers.values).unwrap();
    let values: Vec<f64> = bytes.chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect();
    assert_eq!(values.len(), numbers.shape.iter().product::<usize>());
    values
}

fn traced(config: &Config, sample: u64) -> Result<ForwardPass, TraceError> {
    let parent = tempfile::tempdir().unwrap();
    let directory = run(parent.path(), config, &[(config.train.steps, weights(config))]);
    forward_pass(&directory.open_as(config).unwrap(), sample, &Device::flex())
}

/// Each node is what its formula makes of the nodes before it.
fn check(pass: &ForwardPass, masked: &MaskedPass) {
    for attention in &masked.attentions {
        let (k, group) = (pass.d_head, pass.heads / pass.kv_heads);
        let [h, lq, lk] = attention.scores.shape[..] else { panic!("{:?}", attention.scores.shape) };
        assert_eq!((h, attention.query.shape.clone()), (pass.heads, vec![h, lq, k]));
        assert_eq!(attention.key.shape, [pass.kv_heads, lk, k]);
        assert_eq!(
            (attention.input.shape.clone(), attention.output.shape.clone()),
            (vec![lq, pass.d_model], vec![lq, pass.d_model])
        );
        let [q, key, v] = [&attention.query, &attention.key, &attention.value].map(values);
        let [scores, maps, context] = [&attention.scores, &attention.maps, &attention.context].map(values);
        for (head, i) in (0..h).flat_map(|head| (0..lq).map(move |i| (head, i))) {
            let row = |j: usize| (head * lq + i) * lk + j;
            let own = |tensor: &[f64], j: usize, c: usize| tensor[((head / group) * lk + j) * k + c];
            for j in 0..lk {
                let product: f64 = (0..k).map(|c| q[(head * lq + i) * k + c] * own(&key, j, c)).sum();
                assert!((product * pass.scale - scores[row(j)]).abs() < 1e-4, "{product} {}", scores[row(j)]);
            }
            let sum: f64 = (0..lk).map(|j| maps[row(j)]).sum();
            let readable: Vec<usize> = (0..lk).filter(|&j| maps[row(j)] > 0.0).collect();
            let exponential: f64 = readable.iter().map(|&j| scores[row(j)].exp()).sum();
            assert!(readable.is_empty() || (sum - 1.0).abs() < 1e-5, "{sum}");
            for &j in &readable {
                assert!((scores[row(j)].exp() / exponential - maps[row(j)]).abs() < 1e-5);
            }
            for c in 0..k {
                let read: f64 = (0..lk).map(|j| maps[row(j)] * own(&v, j, c)).sum();
                assert!((read - context[(head * lq + i) * k + c]).abs() < 1e-4);
            }
        }
    }
}

/// What the model says at the scored positions of a validation sample, with the masks of `causal` and `padding`.
fn said(config: &Config, sample: u64, causal: bool, padding: bool) -> Vec<(i32, f64)> {
    let mut model = config.model.clone();
    model.causal = causal;
    let device = Device::flex();
    let decoder = Decoder::new(&model, config.dims(), config.seed, &device).unwrap();
    let decoder = parameters::from_host(decoder, &weights(config)).unwrap();
    let task = &config.task.task;
    let batch = Generator::new(task, Split::Validation, Split::Validation.data_seed(config.seed)).batch(&[sample]);
    let tensor = |tokens: &[i32], len| Tensor::<2, Int>::from_data(TensorData::new(tokens.to_vec(), [1, len]), &device);
    let source = batch.source.as_ref().map(|source| {
        let kept = source.padding.iter().map(|&is_padding| is_padding && padding).collect::<Vec<bool>>();
        (tensor(&source.tokens, source.len), kept)
    });
    let source = source.as_ref().map(|(tokens, padding)| Source { tokens, padding });
    let logits =
        decoder.forward(tensor(&batch.tokens, batch.len), Call { source, ..Default::default() }).unwrap().logits;
    let [_, outputs] = logits.dims();
    let logits: Vec<f32> = logits.into_data().iter::<f32>().collect();
    let scored = batch.targets.iter().zip(logits.chunks(outputs)).filter(|(target, _)| **target != data::IGNORE);
    let likeliest = scored.map(|(_, logits)| {
        let best = (0..outputs).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
        let sum: f64 = logits.iter().map(|&logit| f64::from(logit - logits[best]).exp()).sum();
        (best as i32, 1.0 / sum)
    });
    likeliest.collect()
}

fn same(told: &[Vec<(i32, f64)>], said: &[(i32, f64)]) {
    assert_eq!(told.len(), said.len());
    for (told, said) in told.iter().zip(said) {
        assert!(told[0].0 == said.0 && (told[0].1 - said.1).abs() < 1e-3, "{told:?} {said:?}");
    }
}

#[test]
fn a_pass_is_the_models_and_so_is_what_leaks_without_its_mask() {
    let config = config(SMALL, &["model.kv_heads=2"]);
    let pass = traced(&config, 3).unwrap();
    assert_eq!((pass.sample, pass.step, pass.masks.clone()), (3, 20, vec![MaskKind::Causal]));
    let [own, open] = &pass.passes[..] else { panic!("{} passes", pass.passes.len()) };
    assert_eq!((own.without.clone(), open.without.clone()), (vec![], vec![MaskKind::Causal]));
    assert_eq!((own.attentions.len(), open.attentions.len()), (2, 2));
    check(&pass, own);
    check(&pass, open);
    same(&own.answers, &said(&config, 3, true, true));
    same(&open.answers, &said(&config, 3, false, true));
    let later = |masked: &MaskedPass| {
        let maps = values(&masked.attentions[0].maps);
        (0..10 * 4).flat_map(|row| (row % 10 + 1..10).map(move |j| row * 10 + j)).map(|at| maps[at]).sum::<f64>()
    };
    assert!(later(own) == 0.0 && later(open) > 1.0, "{} {}", later(own), later(open));
    // The first layer asks the same whatever the mask; the second reads what leaked.
    assert_eq!(own.attentions[0].scores, open.attentions[0].scores);
    assert_ne!(own.attentions[1].input, open.attentions[1].input);
}

#[test]
fn padding_of_a_source_can_leak_too() {
    let text = "name = \"small\"\n[task]\nkind = \"reverse\"\n[model]\nd_model = 16\nheads = 2\nlayers = 1\n\
        architecture = \"encoder_decoder\"\n[train]\nsteps = 20\n";
    let config = config(text, &[]);
    let sample =
        (0..20).find(|&sample| traced(&config, sample).unwrap().source.iter().any(|token| token.padding)).unwrap();
    let pass = traced(&config, sample).unwrap();
    assert_eq!(pass.masks, MaskKind::ALL);
    let without: Vec<Vec<MaskKind>> = pass.passes.iter().map(|masked| masked.without.clone()).collect();
    assert_eq!(without, [vec![], vec![MaskKind::Padding]]);
    for (masked, (causal, padding)) in pass.passes.iter().zip([(true, true), (true, false)]) {
        assert_eq!(masked.attentions.len(), 3, "decoder, encoder, cross-attention");
        check(&pass, masked);
        same(&masked.answers, &said(&config, sample, causal, padding));
    }
}

#[test]
fn what_cannot_be_followed_is_said() {
    let config = config(SMALL, &[]);
    let error = traced(&config, 1_000_000).unwrap_err().to_string();
    assert!(error.contains("no validation sample 1000000"), "{error}");
    let long = super::config(SMALL, &["task.seq_len=65"]);
    assert!(traced(&long, 0).unwrap_err().to_string().contains("65 positions is too long"));
}

#[test]
fn heads_that_do_not_differ_are_found_by_comparison_with_untrained_ones() {
    let config = config(SMALL, &[]);
    let mut alike = weights(&config);
    // Queries of 0: every head reads everything alike.
    let query = alike.get_mut("blocks.1.attention.query.weight").unwrap();
    query.values.fill(0.0);
    if let Some(bias) = alike.get_mut("blocks.1.attention.query.bias") {
        bias.values.fill(0.0);
    }
    let found = analysis(&config, alike.clone()).alike;
    assert_eq!(found.iter().map(|alike| (alike.layer, alike.divergence)).collect::<Vec<_>>(), [(1, 0.0)], "{found:?}");
    assert!(found[0].words.starts_with("All heads of layer 1 look alike: train longer, or check the initialisation."));
    let again = heads_alike(&config, &alike, &Device::flex()).unwrap();
    assert_eq!(again.iter().map(|alike| alike.layer).collect::<Vec<_>>(), [1]);
    // Sharper queries than untrained ones: heads differ.
    assert_eq!(analysis(&config, weights(&config)).alike, []);
}

#[test]
fn answers_are_those_of_the_model() {
    let config = config(SMALL, &[]);
    let analysis = analysis(&config, weights(&config));
    let last = analysis.last().unwrap();
    let answers = last.answers.as_ref().unwrap();
    assert_eq!(answers.len(), analysis.shown.len());
    for (sample, told) in answers.iter().enumerate() {
        same(told, &said(&config, sample as u64, true, true));
        let targets: Vec<i32> = analysis.shown[sample].tokens.iter().filter_map(|token| token.target).collect();
        assert!(told.iter().zip(&targets).all(|(told, target)| told.iter().any(|(class, _)| class == target)));
    }
}
