//! The heads of run directories whose weights are made up: what is planted must be found.

#[allow(dead_code)] // other tests use the rest
#[path = "../../../report/tests/synthetic/mod.rs"]
mod synthetic;

mod forward;
mod pruning;

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
        files: vec![],
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
            heads.filter(|(_, head)| head.flags.contains(&Flag::Twin)).map(|(h, _)| h).collect()
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
                    && head.number("top_weight").is_some()
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
    let (timeline, ends) = ((vec![0, 100, 800], true, None), (vec![0, 800], true, None));
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
