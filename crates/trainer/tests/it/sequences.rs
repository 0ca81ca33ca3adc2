//! Encoder-decoders, from a config to an export.

use data::Split;
use data::metrics::LOSS;
use runs::Config;
use trainer::training::train::Ending;

use crate::support::*;

/// A few milliseconds a step, with every dropout.
const REVERSE: &str = r#"
[task]
kind = "reverse"
vocab = 5
min_len = 2
max_len = 5
validation_examples = 40
test_examples = 40
[model]
architecture = "encoder_decoder"
d_model = 16
heads = 2
embedding_dropout = 0.05
attention_dropout = 0.05
residual_dropout = 0.05
[train]
steps = 60
batch_size = 16
accumulate = 2
warmup = 10
eval_every = 20
eval_batch = 16
"#;

/// Sources go through training, accumulation and evaluation, and an interrupt leaves no trace.
#[test]
fn an_interrupted_encoder_decoder_goes_on_with_the_same_bytes() {
    let config = Config::parse(REVERSE, "reverse.toml").unwrap();
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let (expected, ending) = train_here(&config, whole.path());
    assert!(matches!(ending, Ending::Done(_)), "{ending:?}");
    let (_, ending) = train_until(&config, parts.path(), 33);
    assert!(matches!(ending, Ending::Interrupted { step: 33 }), "{ending:?}");
    let (run, _) = train_here(&config, parts.path());
    assert_same_files(&expected, &run);

    let lines = metrics(&run);
    let validation: Vec<f64> =
        lines.iter().filter(|line| line.split == Split::Validation).map(|line| line.scores.number(&LOSS)).collect();
    assert!(validation[validation.len() - 1] < 0.8 * validation[0], "it learns: {validation:?}");
    // 32 samples a step, each of 6 tokens and a source of 5.
    assert_eq!(lines[lines.len() - 1].tokens, 60 * 32 * 11);
}

#[test]
fn an_export_holds_what_the_encoder_reads() {
    let place = Workplace::new();
    place.file("reverse.toml", REVERSE);
    place.run("--config reverse.toml --set train.steps=2 --out runs").expect(0);
    let run = place.only_run("runs");
    let said = place.run(&format!("export {} --output out.safetensors", run.path().display())).expect(0);
    assert!(said.stdout.contains("out.safetensors"), "{said:?}");
    let bytes = std::fs::read(place.path().join("out.safetensors")).unwrap();
    let tensors = runs::tensors::from_bytes(&bytes, &place.path().join("out.safetensors")).unwrap();
    assert_eq!(tensors["example.tokens"].shape, [4, 6]);
    assert_eq!(tensors["example.logits"].shape, [4, 6, 6]);
    assert_eq!(tensors["example.source"].shape, [4, 5]);
    let padding = &tensors["example.source_padding"];
    assert_eq!(padding.shape, [4, 5]);
    assert!(padding.values.chunks(5).all(|row| row[0] == 0.0 && row.is_sorted()), "padding comes last: {padding:?}");
    assert!(padding.values.contains(&1.0));
}

#[test]
fn tasks_and_dry_run_know_sources() {
    let place = Workplace::new();
    let shown = place.run("tasks reverse --show 2 --set max_len=6").expect(0).stdout;
    for part in ["max_len = 6", "Source: 16 tokens, length 6", "source, ", "* end"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    place.file("reverse.toml", REVERSE);
    let shown = place.run("--config reverse.toml --dry-run").expect(0).stdout;
    for part in ["source positions", "cross-attention", "encoder mlp", "cross scores", "ms a step"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let refused = place.run("--config reverse.toml --set model.architecture=decoder --dry-run").expect(2).stderr;
    for part in ["model.architecture", "\"decoder\"", "\"reverse\""] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
}
