//! The heads of run directories whose weights are made up: what is planted must be found.

#[allow(dead_code)] // other tests use the rest
#[path = "../../report/tests/synthetic/mod.rs"]
mod synthetic;

use data::metrics::{ACCURACY, LOSS};
use std::{collections::BTreeMap, fs, path::Path};

use architecture::{HostTensor, Parts};
use burn::tensor::{Device, Int};
use headcount_analysis::{HeadError, Steps, analyse, analyse_or_read, measures::MEASURES, of_runs};
use model::{Decoder, parameters};
use runs::{
    Checkpoint, Config, Fingerprints, Manifest, Program, RunDirectory, RunRecord, Snapshot, Status, Summary, Tensors,
    heads::{
        AttentionSite, Flag, HeadAnalysis, HeadMeasures, HeadPlace, Pruning, PruningPoint, RunHeads, StepAnalysis,
        Tolerance,
    },
};
use synthetic::{Kind, make};

const TOLERANCE: Option<Tolerance> = Some(Tolerance { metric: &ACCURACY, margin: 0.02 });

type Tensor2 = burn::tensor::Tensor<2, Int>;

const SMALL: &str = "name = \"small\"\n[task]\nkind = \"registers\"\nregisters = 2\nvalues = 3\nseq_len = 10\n\
    [model]\nd_model = 16\nheads = 4\nlayers = 2\n[train]\nsteps = 20\n";

fn config(text: &str, overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
    Config::parse_with(text, "test.toml", &overrides).unwrap()
}

/// Weights of the model, untrained, but of another seed than the config's, and with sharper maps.
fn weights(config: &Config) -> Tensors {
    let model = Decoder::new(&config.model, config.dims(), config.seed + 1, &Device::flex()).unwrap();
    let mut weights = parameters::to_host(&model);
    for (path, tensor) in &mut weights {
        if path.ends_with("query.weight") {
            tensor.values.iter_mut().for_each(|value| *value *= 6.0);
        }
    }
    weights
}

/// What stands in the manifest of [`run`].
fn manifest(config: &Config) -> Manifest {
    Manifest {
        config: config.to_toml(),
        program: Program { version: "0.1.0".into(), commit: None, dirty: None, build: None },
        backend: config.backend.to_string(),
        device: "CPU".into(),
        threads: 1,
        parameters: Parts::default(),
        flops_per_step: Parts::default(),
        tokens_per_step: 1,
        resumed: vec![],
        simd: None,
        fingerprints: Fingerprints { data: "data".into(), weights: "weights".into(), tensors: Default::default() },
    }
}

/// A finished run with a snapshot at each step.
fn run(parent: &Path, config: &Config, snapshots: &[(u64, Tensors)]) -> RunDirectory {
    let directory = RunDirectory::of(parent, config);
    drop(directory.create(config).unwrap());
    let manifest = manifest(config);
    manifest.write(&directory.manifest_path()).unwrap();
    let origin = manifest.origin();
    for (step, model) in snapshots {
        let (step, origin, model) = (*step, origin.clone(), model.clone());
        directory.snapshots().save(&Snapshot { step, origin, model }).unwrap();
    }
    directory.logs_after(None).unwrap();
    let (steps, metrics) = (config.train.steps, directory.metrics_hash().unwrap());
    let (status, tokens) = (Status::Finished, 1);
    Summary { status, steps, tokens, validation: None, test: None, best: None, best_test: None, metrics, origin }
        .write(&directory.summary_path())
        .unwrap();
    directory
}

/// The analysis of a run with these weights at its end.
fn analysis(config: &Config, last: Tensors) -> HeadAnalysis {
    let parent = tempfile::tempdir().unwrap();
    let directory = run(parent.path(), config, &[(config.train.steps, last)]);
    analyse(&directory.open_as(config).unwrap(), Steps::All, None, &Device::flex()).unwrap()
}

fn last_heads(analysis: &HeadAnalysis, layer: usize) -> &[HeadMeasures] {
    &analysis.last().unwrap().attentions[layer].heads
}

/// A matrix `[rows, columns]` with columns `from..from + width` of each row passed to `change` with the row's number.
fn columns(tensor: &mut HostTensor, from: usize, width: usize, mut change: impl FnMut(usize, &mut [f32])) {
    let all = tensor.shape[1];
    for (row, values) in tensor.values.chunks_mut(all).enumerate() {
        change(row, &mut values[from..from + width]);
    }
}

#[test]
fn a_head_whose_output_is_cut_off_is_dead_and_no_other() {
    let config = config(SMALL, &[]);
    let mut weights = weights(&config);
    // K = 4 and D = 16: the rows of head 2.
    weights.get_mut("blocks.1.attention.output.weight").unwrap().values[2 * 4 * 16..3 * 4 * 16].fill(0.0);
    let analysis = analysis(&config, weights);
    for (layer, h) in (0..2).flat_map(|layer| (0..4).map(move |h| (layer, h))) {
        let head = &last_heads(&analysis, layer)[h];
        assert_eq!(head.flags.contains(&Flag::Dead), (layer, h) == (1, 2), "{layer} {h} {head:?}");
    }
    let head = &last_heads(&analysis, 1)[2];
    assert_eq!(
        (head.number("output_share"), head.number("removal"), head.number("importance")),
        (Some(0.0), Some(0.0), Some(0.0))
    );
    let shares: f64 = last_heads(&analysis, 1).iter().map(|head| head.number("output_share").unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-5);
    let untrained = &analysis.untrained().unwrap().attentions;
    let is_spare_alone = |head: &HeadMeasures| head.flags.iter().all(|flag| *flag == Flag::Spare);
    assert!(untrained.iter().flat_map(|layer| &layer.heads).all(is_spare_alone), "{untrained:?}");
}

#[test]
fn a_head_with_the_queries_and_keys_of_another_is_its_duplicate() {
    let config = config(SMALL, &[]);
    let mut weights = weights(&config);
    for name in ["query.weight", "query.bias", "key.weight"] {
        let tensor = weights.get_mut(&format!("blocks.0.attention.{name}")).unwrap();
        let shape = tensor.shape.clone();
        tensor.shape = vec![tensor.values.len() / 16, 16];
        let original = tensor.values.clone();
        columns(tensor, 3 * 4, 4, |row, head| head.copy_from_slice(&original[row * 16 + 4..][..4]));
        tensor.shape = shape;
    }
    let analysis = analysis(&config, weights);
    let flagged: Vec<Vec<usize>> = (0..2)
        .map(|layer| {
            let heads = last_heads(&analysis, layer).iter().enumerate();
            heads.filter(|(_, head)| head.flags.contains(&Flag::Duplicate)).map(|(h, _)| h).collect()
        })
        .collect();
    assert_eq!(flagged, [vec![1, 3], vec![]]);
    let nearest = last_heads(&analysis, 0)[3].nearest.unwrap();
    assert_eq!((nearest.head, nearest.divergence), (1, 0.0));
    assert_eq!(analysis.last().unwrap().attentions[0].divergence[1][3], 0.0);
}

/// Column 0 of the stream marks position 0; the keys of head 0 read nothing else, and its queries always ask for it.
#[test]
fn a_head_that_rests_on_position_0_is_a_sink() {
    let config = config(SMALL, &["model.norm=none", "model.layers=1"]);
    let mut weights = weights(&config);
    let attention = |name: &str| format!("blocks.0.attention.{name}");
    columns(weights.get_mut("token.weight").unwrap(), 0, 1, |_, value| value[0] = 0.0);
    columns(weights.get_mut("position.weight").unwrap(), 0, 1, |row, value| {
        value[0] = if row == 0 { 40.0 } else { 0.0 }
    });
    let key = weights.get_mut(&attention("key.weight")).unwrap();
    columns(key, 0, 4, |row, head| head.fill(if row == 0 { 1.0 } else { 0.0 }));
    columns(key, 4, 12, |row, others| others.iter_mut().for_each(|value| *value *= if row == 0 { 0.0 } else { 1.0 }));
    columns(weights.get_mut(&attention("query.weight")).unwrap(), 0, 4, |_, head| head.fill(0.0));
    weights.get_mut(&attention("query.bias")).unwrap().values[..4].fill(1.0);
    let analysis = analysis(&config, weights);
    let heads = last_heads(&analysis, 0);
    assert!(heads[0].number("first_position").unwrap() > 0.999, "{:?}", heads[0]);
    let sinks: Vec<bool> = heads.iter().map(|head| head.flags.contains(&Flag::Sink)).collect();
    assert_eq!(sinks, [true, false, false, false]);
}

/// A head that says the same whatever it reads can be removed at no cost, but it writes, so it is spare and not dead.
#[test]
fn a_constant_head_is_spare_but_not_dead() {
    let config = config(SMALL, &["model.layers=1"]);
    let mut weights = weights(&config);
    columns(weights.get_mut("blocks.0.attention.value.weight").unwrap(), 4, 4, |_, head| head.fill(0.0));
    let analysis = analysis(&config, weights);
    let head = &last_heads(&analysis, 0)[1];
    assert!(head.number("removal").unwrap().abs() < 1e-6 && head.number("output_share").unwrap() > 0.025, "{head:?}");
    assert!(head.flags.contains(&Flag::Spare) && !head.flags.contains(&Flag::Dead));
    assert!(last_heads(&analysis, 0).iter().any(|head| head.number("removal").unwrap().abs() > 1e-4), "others matter");
}

/// Without norm and MLP the logits are linear in each head's context, so that effects follow by hand, in f64.
#[test]
fn effects_agree_with_a_linear_model_by_hand() {
    let config = config(SMALL, &["model.layers=1", "model.norm=none", "model.mlp=false"]);
    let weights = weights(&config);
    let analysis = analysis(&config, weights.clone());
    let (b, heads, l, k, d) = (64, 4, 10, 4, 16);
    let generator = data::Generator::new(&config.task.task, data::Split::Validation, 0);
    let batch = generator.batch(&(0..b as u64).collect::<Vec<_>>());
    let model = Decoder::new(&config.model, config.dims(), 0, &Device::flex()).unwrap();
    let model = parameters::from_host(model, &weights).unwrap();
    let shape = [b, l];
    let tokens = Tensor2::from_data(burn::tensor::TensorData::new(batch.tokens.clone(), shape), &Device::flex());
    let output = model.forward(tokens, model::Call { contexts: true, ..Default::default() }).unwrap();
    let host = |values: burn::tensor::TensorData| values.iter::<f32>().map(f64::from).collect::<Vec<f64>>();
    let (contexts, logits) = (host(output.contexts[0].clone().into_data()), host(output.logits.into_data()));
    let classes = config.dims().outputs;
    let (projection, last) = (&weights["blocks.0.attention.output.weight"].values, &weights["logits.weight"].values);
    // What head h's context at a position adds to the logits.
    let effect = |h: usize, context: &[f64]| -> Vec<f64> {
        let of_stream = |c: usize| (0..k).map(|i| context[i] * f64::from(projection[(h * k + i) * d + c])).sum::<f64>();
        let stream: Vec<f64> = (0..d).map(of_stream).collect();
        (0..classes).map(|v| (0..d).map(|c| stream[c] * f64::from(last[c * classes + v])).sum()).collect()
    };
    let context = |s: usize, h: usize, t: usize| &contexts[((s * heads + h) * l + t) * k..][..k];
    let mean = |h: usize, t: usize| -> Vec<f64> {
        (0..k).map(|i| (0..b).map(|s| context(s, h, t)[i]).sum::<f64>() / b as f64).collect()
    };
    let loss = |logits: &[f64], target: i32| {
        let greatest = logits.iter().copied().fold(f64::MIN, f64::max);
        let sum: f64 = logits.iter().map(|logit| (logit - greatest).exp()).sum();
        sum.ln() + greatest - logits[target as usize]
    };
    let scored: Vec<(usize, usize, i32)> = (0..b * l)
        .map(|at| (at / l, at % l, batch.targets[at]))
        .filter(|&(_, _, target)| target != data::IGNORE)
        .collect();
    let own = |s: usize, t: usize| &logits[(s * l + t) * classes..][..classes];
    let mean_loss = |is_kept: &dyn Fn(usize) -> bool| {
        let of_position = |&(s, t, target): &(usize, usize, i32)| {
            let mut logits = own(s, t).to_vec();
            for h in (0..heads).filter(|&h| !is_kept(h)) {
                let (with, without) = (effect(h, context(s, h, t)), effect(h, &mean(h, t)));
                logits
                    .iter_mut()
                    .zip(with.iter().zip(without))
                    .for_each(|(logit, (with, without))| *logit += without - with);
            }
            loss(&logits, target)
        };
        scored.iter().map(of_position).sum::<f64>() / scored.len() as f64
    };
    let whole = mean_loss(&|_| true);
    let last = analysis.last().unwrap();
    assert_eq!((last.step, analysis.samples, analysis.scored), (20, b, scored.len()));
    assert!((last.scores.number(&LOSS) - whole).abs() < 1e-5);
    for h in 0..heads {
        let head = &last_heads(&analysis, 0)[h];
        let near = |what: &str, got: Option<f64>, expected: f64| {
            assert!(got.is_some_and(|got| (got - expected).abs() < 1e-5), "{what} of head {h}: {got:?} {expected}");
        };
        near("removal", head.number("removal"), mean_loss(&|other| other != h) - whole);
        near("alone", head.number("alone"), mean_loss(&|other| other == h) - whole);
        // The slope of a sample's mean loss in the gate is Σ (softmax − target) · what the head adds.
        let mut slopes = BTreeMap::<usize, (f64, usize)>::new();
        for &(s, t, target) in &scored {
            let shares: Vec<f64> = (0..classes).map(|v| (-loss(own(s, t), v as i32)).exp()).collect();
            let added = effect(h, context(s, h, t));
            let slope =
                (0..classes).map(|v| (shares[v] - f64::from(u8::from(v as i32 == target))) * added[v]).sum::<f64>();
            let of_sample = slopes.entry(s).or_default();
            *of_sample = (of_sample.0 + slope, of_sample.1 + 1);
        }
        let importance =
            slopes.values().map(|(sum, count)| (sum / *count as f64).abs()).sum::<f64>() / slopes.len() as f64;
        near("importance", head.number("importance"), importance);
        assert!(head.number("removal").unwrap().abs() > 1e-4 && importance > 1e-3, "the head matters: {head:?}");
    }
}

#[test]
fn encoder_decoders_have_maps_and_effects_everywhere() {
    let text = "[task]\nkind = \"reverse\"\nmin_len = 2\nmax_len = 5\n[model]\narchitecture = \"encoder_decoder\"\n\
        d_model = 16\nheads = 2\n[train]\nsteps = 20\n";
    let config = config(text, &[]);
    let analysis = analysis(&config, weights(&config));
    let attentions = &analysis.last().unwrap().attentions;
    assert_eq!(
        attentions.iter().map(|a| a.site).collect::<Vec<_>>(),
        [AttentionSite::Decoder, AttentionSite::Encoder, AttentionSite::Cross]
    );
    for attention in attentions {
        let maps = attention.maps.as_ref().unwrap();
        let size = if attention.site == AttentionSite::Encoder {
            (5, 5)
        } else {
            (6, if attention.site == AttentionSite::Cross { 5 } else { 6 })
        };
        assert_eq!((maps.queries, maps.keys, maps.causal), (size.0, size.1, attention.site == AttentionSite::Decoder));
        for head in &attention.heads {
            assert!(
                head.number("entropy").is_some()
                    && head.number("confidence").is_some()
                    && head.number("first_position").is_some()
            );
            assert_eq!(head.number("distance").is_some(), attention.site != AttentionSite::Cross);
            assert_eq!(head.number("induction").is_some(), attention.site != AttentionSite::Cross);
            for key in ["output_share", "removal", "alone", "importance"] {
                assert!(head.number(key).is_some_and(|number| number != 0.0), "{key} {head:?}");
            }
            // Where an answer stands in the source is for the cross-attention to read.
            assert_eq!(head.measures.contains_key("needed"), attention.site == AttentionSite::Cross);
        }
    }
    assert!(analysis.shown[0].source.len() == 5 && analysis.shown[0].tokens.len() == 6);
}

#[test]
fn what_is_kept_is_used_until_something_changes() {
    let config = config(SMALL, &["model.layers=1"]);
    let parent = tempfile::tempdir().unwrap();
    let at_5 = weights(&config);
    let mut at_20 = at_5.clone();
    at_20.get_mut("logits.bias").unwrap().values[0] += 1.0;
    let directory = run(parent.path(), &config, &[(5, at_5), (20, at_20.clone())]);
    let get = |steps, anew| {
        analyse_or_read(&directory.open_as(&config).unwrap(), steps, None, &Device::flex(), anew).unwrap().analysis
    };
    let steps = |analysis: &HeadAnalysis| analysis.steps.iter().map(|step| step.step).collect::<Vec<_>>();

    let ends = get(Steps::Ends, false);
    assert_eq!(steps(&ends), [0, 20]);
    let all = get(Steps::All, false);
    assert_eq!(steps(&all), [0, 5, 20]);
    assert_eq!((&all.steps[0], &all.steps[2]), (&ends.steps[0], &ends.steps[1]));
    assert_ne!(all.steps[1].scores, all.steps[2].scores);
    assert_eq!(get(Steps::Ends, false), all, "it holds what is asked for");
    let bytes = fs::read(directory.heads_path()).unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf"));
    assert_eq!(serde_json::from_str::<HeadAnalysis>(&text).unwrap(), all);

    // A mark that only the file has shows that it was read.
    let marked = HeadAnalysis { task: "marked".into(), ..all.clone() };
    directory.open().unwrap().write_heads(&marked).unwrap();
    assert_eq!(get(Steps::All, false).task, "marked");
    assert_eq!(get(Steps::All, true).task, "registers");
    assert_eq!(fs::read(directory.heads_path()).unwrap(), bytes, "the same run, the same bytes");
    fs::write(directory.heads_path(), "{\"half\":").unwrap();
    assert_eq!(get(Steps::All, false), all);

    at_20.get_mut("logits.bias").unwrap().values[0] += 1.0;
    let origin = manifest(&config).origin();
    directory.snapshots().save(&Snapshot { step: 20, origin, model: at_20 }).unwrap();
    let changed = get(Steps::All, false);
    assert!(changed.computed_from != all.computed_from && changed.steps[2].scores != all.steps[2].scores);
}

#[test]
fn a_run_without_snapshots_has_its_last_checkpoint() {
    let config = config(SMALL, &["model.layers=1"]);
    let parent = tempfile::tempdir().unwrap();
    let directory = run(parent.path(), &config, &[]);
    let analyse = || analyse(&directory.open_as(&config).unwrap(), Steps::All, None, &Device::flex());
    let error = analyse().unwrap_err();
    assert!(matches!(error, HeadError::NoWeights { step: 20, .. }), "{error}");
    for step in [10, 20] {
        let (model, origin) = (weights(&config), manifest(&config).origin());
        directory.checkpoints().save(&Checkpoint { step, model, origin, ..Default::default() }).unwrap();
    }
    let steps: Vec<u64> = analyse().unwrap().steps.iter().map(|step| step.step).collect();
    assert_eq!(steps, [0, 20]);
    fs::remove_file(directory.summary_path()).unwrap();
    let error = analyse().unwrap_err();
    assert!(matches!(error, HeadError::NotDone { .. }), "{error}");
}

#[test]
fn a_model_without_layers_has_no_heads() {
    let config = config(SMALL, &["model.layers=0"]);
    let analysis = analysis(&config, weights(&config));
    assert!(analysis.steps.len() == 2 && analysis.steps.iter().all(|step| step.attentions.is_empty()));
}

#[test]
fn broken_weights_are_refused_by_their_step() {
    let config = config(SMALL, &["model.layers=1"]);
    let refusal = |change: &dyn Fn(&mut Tensors)| {
        let parent = tempfile::tempdir().unwrap();
        let mut weights = weights(&config);
        change(&mut weights);
        let directory = run(parent.path(), &config, &[(20, weights)]);
        analyse(&directory.open_as(&config).unwrap(), Steps::All, None, &Device::flex()).unwrap_err()
    };
    let error = refusal(&|weights| drop(weights.remove("norm.gamma")));
    assert!(error.to_string().contains("step 20") && error.to_string().contains("norm.gamma"), "{error}");
    let error = refusal(&|weights| weights.get_mut("norm.gamma").unwrap().values.fill(f32::NAN));
    assert!(matches!(error, HeadError::NotFinite { step: 20 }), "{error}");
}

/// Its steps, whether it has maps, and its problem.
fn outline(run: &RunHeads) -> (Vec<u64>, bool, Option<&str>) {
    let steps: Vec<&StepAnalysis> = run.analysis.iter().flat_map(|analysis| &analysis.steps).collect();
    let has_maps = steps.iter().any(|step| step.attentions.iter().any(|attention| attention.maps.is_some()));
    (steps.iter().map(|step| step.step).collect(), has_maps, run.problem.as_deref())
}

/// The first run of each arm has every step and maps, the others both ends; a run that failed says why.
#[test]
fn an_experiment_has_all_its_runs() {
    let arms = "registers = 2\nvalues = 3\nseq_len = 8\n[base.model]\nd_model = 8\n\
        [arms.h1]\nmodel.heads = 1\n[arms.h2]\nmodel.heads = 2\n";
    let made = make("heads", "seeds = 3\nwhy_seeds = \"a test\"", arms, |run| match (run.arm.as_str(), run.pair) {
        ("h1", 0) => Kind::Diverges { at: 7 },
        ("h2", 2) => Kind::Stopped { after: 90 },
        _ => Kind::Learns { at: 0.9 },
    });
    for run in made.experiment.runs_in(&made.folder) {
        let origin = runs::Manifest::read(&run.directory.manifest_path()).unwrap().origin();
        for step in [100, 800] {
            let (origin, model) = (origin.clone(), weights(&run.config));
            run.directory.snapshots().save(&Snapshot { step, origin, model }).unwrap();
        }
    }
    let read =
        || -> Vec<RunRecord> { made.experiment.runs_in(&made.folder).into_iter().map(RunRecord::read).collect() };
    let (records, mut told) = (read(), vec![]);
    let (heads, _) = of_runs(&records, TOLERANCE, &Device::flex(), false, |done, all| told.push((done, all)));
    assert_eq!(told, (0..=6).map(|done| (done, 6)).collect::<Vec<_>>());
    let runs = |arm: &str| {
        let of_arm = records.iter().zip(&heads).filter(|(record, _)| record.plan.arm == arm);
        of_arm.map(|(_, run)| outline(run)).collect::<Vec<_>>()
    };
    let (timeline, ends) = ((vec![0, 100, 800], true, None), (vec![0, 800], false, None));
    assert_eq!(runs("h1"), [(vec![], false, Some("diverged at step 7")), timeline.clone(), ends.clone()]);
    assert_eq!(runs("h2"), [timeline, ends, (vec![], false, Some("stopped after step 90"))]);
    // The run of an arm that has a timeline is pruned, the others are not.
    for (record, run) in records.iter().zip(&heads) {
        let Some(analysis) = &run.analysis else { continue };
        let pruned = analysis.pruning.as_ref().map(|pruning| pruning.points.len());
        let expected = if analysis.steps.len() == 3 { Some(record.plan.config.model.heads + 1) } else { None };
        assert_eq!(pruned, expected, "{} {}", record.plan.arm, record.plan.pair);
    }
    let described = &heads.iter().find_map(|run| run.analysis.as_ref()).unwrap().measures;
    let needed = described.iter().find(|measure| measure.key == "needed").unwrap();
    assert_eq!(needed.parts, ["register 0", "register 1"]);

    // What lies there is taken, and made anew it is the same.
    let kept = read();
    assert!(kept.iter().filter(|record| record.heads().is_some()).count() == 4);
    assert!(of_runs(&kept, TOLERANCE, &Device::flex(), false, |_, _| {}).0 == heads);
    assert!(of_runs(&kept, TOLERANCE, &Device::flex(), true, |_, _| {}).0 == heads);
}

/// Whoever reads a file of heads finds each measure described, within the range that it says.
#[test]
fn every_measure_is_described_and_keeps_its_range() {
    let keys: std::collections::HashSet<&str> = MEASURES.iter().map(|measure| measure.key).collect();
    assert_eq!(keys.len(), MEASURES.len());
    let config = config(SMALL, &[]);
    let analysis = analysis(&config, weights(&config));
    let described: Vec<&str> = analysis.measures.iter().map(|measure| measure.key.as_str()).collect();
    assert_eq!(described, MEASURES.iter().map(|measure| measure.key).collect::<Vec<_>>());
    for head in analysis.steps.iter().flat_map(|step| &step.attentions).flat_map(|attention| &attention.heads) {
        for measure in &analysis.measures {
            let numbers = head.numbers(&measure.key);
            assert_eq!(numbers.len(), measure.parts.len().max(1), "{}", measure.key);
            let [low, high] = measure.range.unwrap_or([f64::MIN, f64::MAX]);
            assert!(numbers.iter().all(|number| (low..=high + 1e-6).contains(number)), "{} {numbers:?}", measure.key);
        }
    }
}

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
