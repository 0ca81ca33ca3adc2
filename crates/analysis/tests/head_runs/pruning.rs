//! What a trained model uses: heads removed one after the other.

use super::*;

/// The pruning of a run with these weights at its end.
fn pruning(config: &Config, last: Tensors) -> Pruning {
    let parent = tempfile::tempdir().unwrap();
    let directory = run(parent.path(), config, &[(config.train.steps, last)]);
    let open = directory.open_as(config).unwrap();
    analyse(&open, Steps::Ends, TOLERANCE, &Device::flex()).unwrap().pruning.unwrap()
}

fn removed(pruning: &Pruning) -> Vec<HeadPlace> {
    pruning.points.iter().filter_map(|point| point.removed).collect()
}

/// A model that names the class of the token it stands at, made by hand: one register, no norm, no MLP. The stream holds the
/// position in columns 0 to 7, the token in 8 to 11 and the answer from 16 on. Heads 0 and 1 both read their own position and write
/// its class, head 2 writes nothing, and what head 3 writes nobody reads.
fn two_heads_that_know() -> (Config, Tensors) {
    let text = "name = \"by-hand\"\n[task]\nkind = \"registers\"\nregisters = 1\nvalues = 4\nseq_len = 8\n\
        [model]\nd_model = 32\nheads = 4\nnorm = \"none\"\nmlp = false\n[train]\nsteps = 20\n";
    let config = config(text, &[]);
    let model = Decoder::new(&config.model, config.dims(), 0, &Device::flex()).unwrap();
    let mut weights = parameters::to_host(&model);
    let mut set = |name: &str, entries: &[(usize, usize, f32)]| {
        let tensor = weights.get_mut(name).unwrap();
        tensor.values.fill(0.0);
        let width = *tensor.shape.last().unwrap();
        entries.iter().for_each(|&(row, column, value)| tensor.values[row * width + column] = value);
    };
    let (tokens, classes) = (config.dims().vocab, config.dims().outputs);
    let mut class_of = vec![None; tokens];
    for index in 0..64 {
        let sample = config.task.task.sample(data::Split::Train, 0, index);
        for (&token, &class) in sample.tokens.iter().zip(&sample.targets) {
            assert!(class_of[token as usize].is_none_or(|known| known == class), "one register has one answer a token");
            class_of[token as usize] = Some(class);
        }
    }
    assert!(classes <= 16 && tokens == 4);
    let all = |count: usize, entry: &dyn Fn(usize) -> (usize, usize, f32)| (0..count).map(entry).collect::<Vec<_>>();
    set("position.weight", &all(8, &|p| (p, p, 1.0)));
    set("token.weight", &all(4, &|t| (t, 8 + t, 1.0)));
    let heads = |entry: &dyn Fn(usize, usize) -> (usize, usize, f32)| -> Vec<_> {
        (0..4).flat_map(|h| (0..8).map(move |i| (h, i))).map(|(h, i)| entry(h, i)).collect()
    };
    // 6 · 6 / √8 for the own position, 0 for the others: e¹² to 1.
    set("blocks.0.attention.query.weight", &heads(&|h, p| (p, 8 * h + p, 6.0)));
    set("blocks.0.attention.key.weight", &heads(&|h, p| (p, 8 * h + p, 6.0)));
    set("blocks.0.attention.value.weight", &heads(&|h, i| (8 + i % 4, 8 * h + i % 4, 1.0)));
    let answer = |h: usize, t: usize| (8 * h + t, 16 + class_of[t].unwrap() as usize, 8.0);
    let mut output: Vec<_> = (0..2).flat_map(|h| (0..4).map(move |t| (h, t))).map(|(h, t)| answer(h, t)).collect();
    output.extend(all(4, &|t| (8 * 3 + t, 12 + t, 8.0)));
    set("blocks.0.attention.output.weight", &output);
    set("logits.weight", &all(classes, &|class| (16 + class, class, 1.0)));
    for name in ["query.bias", "value.bias", "output.bias"] {
        set(&format!("blocks.0.attention.{name}"), &[]);
    }
    set("logits.bias", &[]);
    (config, weights)
}

/// Either of two heads that do the same can go, but not both: each is spare, and one is used.
#[test]
fn of_two_heads_that_do_the_same_one_is_used() {
    let (config, weights) = two_heads_that_know();
    let flags: Vec<Vec<Flag>> =
        last_heads(&analysis(&config, weights.clone()), 0).iter().map(|head| head.flags.clone()).collect();
    assert!(flags.iter().all(|flags| flags.contains(&Flag::Spare)), "{flags:?}");
    let dead: Vec<bool> = flags.iter().map(|flags| flags.contains(&Flag::Dead)).collect();
    assert_eq!(dead, [false, false, true, false], "head 3 writes");

    let pruning = pruning(&config, weights);
    let place = |head| HeadPlace { site: AttentionSite::Decoder, layer: 0, head };
    let order = removed(&pruning);
    assert_eq!(order[..2], [place(2), place(3)], "they are free");
    assert_eq!(pruning.points.iter().map(|point| point.kept).collect::<Vec<_>>(), [4, 3, 2, 1, 0]);
    let accuracies: Vec<f64> = pruning.points.iter().map(|point| point.test.number(&ACCURACY)).collect();
    assert_eq!(accuracies[..4], [1.0; 4]);
    assert!(accuracies[4] < 0.6, "{accuracies:?}");
    let losses: Vec<f64> = pruning.points.iter().map(|point| point.test.number(&LOSS)).collect();
    assert!(losses[0] == losses[2] && losses[3] - losses[2] < 0.01 && losses[4] > 0.5, "{losses:?}");
    assert_eq!((pruning.used.heads, pruning.used.metric.as_str(), pruning.used.margin), (1, "accuracy", 0.02));
    // Chance is all that is lost by another margin.
    let all = Tolerance { metric: &ACCURACY, margin: 1.0 };
    assert_eq!(pruning.clone().within(all).used.heads, 0);
    assert_eq!(pruning.within(Tolerance { metric: &LOSS, margin: 0.0 }).used.heads, 2);
}

/// Gates of every head, and means of its contexts, as a pass of a model takes them.
struct Slow {
    model: Decoder,
    heads: usize,
    layers: usize,
    has_encoder: bool,
    means: Vec<Vec<burn::tensor::Tensor<3>>>,
}

impl Slow {
    const SITES: [AttentionSite; 3] = [AttentionSite::Decoder, AttentionSite::Encoder, AttentionSite::Cross];

    fn new(config: &Config, weights: &Tensors, validation: &data::Batch) -> Self {
        let model = Decoder::new(&config.model, config.dims(), 0, &Device::flex()).unwrap();
        let model = parameters::from_host(model, weights).unwrap();
        let (heads, layers, has_encoder) = (config.model.heads, config.model.layers, validation.source.is_some());
        let mut slow = Self { model, heads, layers, has_encoder, means: vec![] };
        let output = slow.output(validation, None);
        for (site, contexts) in
            Self::SITES.iter().zip([output.contexts, output.encoder_contexts, output.cross_contexts])
        {
            let padding = match (&validation.source, site) {
                (Some(source), AttentionSite::Encoder) => &source.padding,
                _ => &validation.padding,
            };
            let mean = |contexts: burn::tensor::Tensor<4>| {
                let [b, h, l, k] = contexts.dims();
                let values: Vec<f32> = contexts.into_data().iter::<f32>().collect();
                let mean = |(h, i, c): (usize, usize, usize)| {
                    let real: Vec<f64> = (0..b)
                        .filter(|s| !padding[s * l + i])
                        .map(|s| f64::from(values[((s * slow.heads + h) * l + i) * k + c]))
                        .collect();
                    (real.iter().sum::<f64>() / real.len().max(1) as f64) as f32
                };
                let places = (0..h).flat_map(|h| (0..l).flat_map(move |i| (0..k).map(move |c| (h, i, c))));
                let means: Vec<f32> = places.map(mean).collect();
                burn::tensor::Tensor::from_data(burn::tensor::TensorData::new(means, [h, l, k]), &Device::flex())
            };
            let means = contexts.into_iter().map(mean).collect();
            slow.means.push(means);
        }
        slow
    }

    /// A whole pass, in which the heads of `without` are closed.
    fn output(&self, batch: &data::Batch, without: Option<&[HeadPlace]>) -> model::Output {
        let device = Device::flex();
        let tensor = |tokens: &[i32], length: usize| {
            Tensor2::from_data(burn::tensor::TensorData::new(tokens.to_vec(), [batch.batch, length]), &device)
        };
        let source = batch.source.as_ref().map(|source| (tensor(&source.tokens, source.len), &source.padding));
        let gates: Vec<Vec<burn::tensor::Tensor<2>>> = Self::SITES
            .iter()
            .map(|&site| {
                let layers = if site == AttentionSite::Decoder || self.has_encoder { self.layers } else { 0 };
                let of_layer = |layer| {
                    let is_gone = |head| without.is_some_and(|gone| gone.contains(&HeadPlace { site, layer, head }));
                    let gates: Vec<f32> = (0..self.heads).map(|head| f32::from(u8::from(!is_gone(head)))).collect();
                    burn::tensor::Tensor::from_data(burn::tensor::TensorData::new(gates, [1, self.heads]), &device)
                };
                (0..layers).map(of_layer).collect()
            })
            .collect();
        let gating = |site: usize| match without {
            Some(_) => model::Gating { gates: Some(&gates[site]), replacements: Some(&self.means[site]) },
            None => model::Gating::default(),
        };
        let call = model::Call {
            source: source.as_ref().map(|(tokens, padding)| model::Source { tokens, padding }),
            decoder: gating(0),
            encoder: gating(1),
            cross: gating(2),
            contexts: true,
            ..Default::default()
        };
        self.model.forward(tensor(&batch.tokens, batch.len), call).unwrap()
    }

    /// Of each sample: the sum of its losses, of its right answers, and how many positions are scored, from logits in f64.
    fn samples(&self, batch: &data::Batch, without: &[HeadPlace]) -> Vec<[f64; 3]> {
        let logits = self.output(batch, Some(without)).logits;
        let classes = logits.dims()[1];
        let logits: Vec<f64> = logits.into_data().iter::<f32>().map(f64::from).collect();
        let mut sums = vec![[0.0; 3]; batch.batch];
        for (at, &target) in batch.targets.iter().enumerate().filter(|(_, target)| **target != data::IGNORE) {
            let row = &logits[at * classes..][..classes];
            let greatest = row.iter().copied().fold(f64::MIN, f64::max);
            let loss =
                row.iter().map(|logit| (logit - greatest).exp()).sum::<f64>().ln() + greatest - row[target as usize];
            let is_right = (0..classes).all(|class| row[class] <= row[target as usize]);
            let own = [loss, f64::from(u8::from(is_right)), 1.0];
            sums[at / batch.len].iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        sums
    }
}

/// Loss, accuracy, and both of their standard errors: the jackknife's, which for a ratio of sums is near the one that is kept.
fn scored(samples: &[[f64; 3]]) -> [[f64; 2]; 2] {
    let ratio = |left_out: Option<usize>, of: usize| {
        let kept = || samples.iter().enumerate().filter(|(s, _)| Some(*s) != left_out).map(|(_, sums)| sums);
        kept().map(|sums| sums[of]).sum::<f64>() / kept().map(|sums| sums[2]).sum::<f64>()
    };
    let count = samples.len() as f64;
    let error = |of: usize| {
        let whole = ratio(None, of);
        let squares = (0..samples.len()).map(|s| (ratio(Some(s), of) - whole).powi(2)).sum::<f64>();
        (squares * (count - 1.0) / count).sqrt()
    };
    [[ratio(None, 0), ratio(None, 1)], [error(0), error(1)]]
}

/// All that is kept of a pruning, from whole passes with every candidate in every round.
#[test]
fn pruning_is_what_whole_passes_give() {
    let sort = "[task]\nkind = \"reverse\"\nmin_len = 2\nmax_len = 5\nvalidation_examples = 40\ntest_examples = 90\n[model]\n\
        architecture = \"encoder_decoder\"\nd_model = 16\nheads = 2\nlayers = 2\n[train]\nsteps = 20\neval_batch = 32\n";
    let registers = format!("{SMALL}eval_batch = 50\n");
    for (text, overrides, heads) in
        [(sort, &[][..], 12), (registers.as_str(), &["task.test_examples=70", "task.validation_examples=30"][..], 8)]
    {
        let config = config(text, overrides);
        let weights = weights(&config);
        let pruning = pruning(&config, weights.clone());
        let batch = |split, count: u64| {
            data::Generator::new(&config.task.task, split, 0).batch(&(0..count).collect::<Vec<_>>())
        };
        let sets = config.task.sets;
        let validation = batch(data::Split::Validation, sets.validation_examples);
        let test = batch(data::Split::Test, sets.test_examples);
        assert_eq!(pruning.validation_samples as u64, sets.validation_examples);
        assert_eq!(pruning.test_samples as u64, sets.test_examples);
        let slow = Slow::new(&config, &weights, &validation);
        let sites: &[AttentionSite] = if slow.has_encoder { &Slow::SITES } else { &Slow::SITES[..1] };
        let mut left: Vec<HeadPlace> = sites
            .iter()
            .flat_map(|&site| (0..2).map(move |layer| (site, layer)))
            .flat_map(|(site, layer)| (0..config.model.heads).map(move |head| HeadPlace { site, layer, head }))
            .collect();
        assert_eq!((left.len(), pruning.points.len()), (heads, heads + 1));
        let mut gone: Vec<HeadPlace> = vec![];
        for (index, point) in pruning.points.iter().enumerate() {
            if let Some(removed) = point.removed {
                let loss = |place: HeadPlace| {
                    let without: Vec<HeadPlace> = gone.iter().copied().chain([place]).collect();
                    scored(&slow.samples(&validation, &without))[0][0]
                };
                let least = left.iter().map(|place| loss(*place)).fold(f64::MAX, f64::min);
                assert!(loss(removed) < least + 1e-6, "{removed:?} after {gone:?}: {} {least}", loss(removed));
                left.retain(|place| *place != removed);
                gone.push(removed);
            }
            let PruningPoint { kept, validation: on_validation, test: on_test, standard_error, .. } = point;
            assert_eq!(*kept, heads - index);
            let [[loss, accuracy], _] = scored(&slow.samples(&validation, &gone));
            let near = |got: f64, expected: f64, within: f64, what: &str| {
                assert!((got - expected).abs() <= within, "{what} of {kept} heads: {got} {expected}");
            };
            near(on_validation.number(&LOSS), loss, 1e-5, "validation loss");
            near(on_validation.number(&ACCURACY), accuracy, 1e-5, "validation accuracy");
            let [[loss, accuracy], [loss_error, accuracy_error]] = scored(&slow.samples(&test, &gone));
            near(on_test.number(&LOSS), loss, 1e-5, "loss");
            near(on_test.number(&ACCURACY), accuracy, 1e-5, "accuracy");
            near(standard_error.number(&LOSS), loss_error, 0.05 * loss_error, "error of the loss");
            near(standard_error.number(&ACCURACY), accuracy_error, 0.05 * accuracy_error, "error of the accuracy");
        }
        assert!(left.is_empty());
    }
}

/// What is kept is judged by a new margin without being computed again, and stays when more steps are analysed.
#[test]
fn a_pruning_that_is_kept_is_only_judged_anew() {
    let config = config(SMALL, &["model.layers=1"]);
    let parent = tempfile::tempdir().unwrap();
    let directory = run(parent.path(), &config, &[(5, weights(&config)), (20, weights(&config))]);
    let get = |steps, pruned| {
        analyse_or_read(&directory.open_as(&config).unwrap(), steps, pruned, &Device::flex(), false).unwrap().analysis
    };
    assert_eq!(get(Steps::Ends, None).pruning, None);
    let pruned = get(Steps::Ends, TOLERANCE);
    let mut marked = pruned.clone();
    marked.pruning.as_mut().unwrap().passes = 7777;
    directory.open().unwrap().write_heads(&marked).unwrap();
    let none = Tolerance { metric: &ACCURACY, margin: 1.0 };
    let judged = get(Steps::Ends, Some(none)).pruning.unwrap();
    assert_eq!((judged.passes, judged.used.heads, judged.used.margin), (7777, 0, 1.0));
    assert_eq!(directory.open().unwrap().heads().unwrap().unwrap().pruning, Some(judged.clone()));
    let all = get(Steps::All, None);
    assert_eq!((all.steps.len(), all.pruning), (3, Some(judged)));
}
