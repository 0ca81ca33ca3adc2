//! `trainer generate`, from a trained run to what it says.

use burn::tensor::{Device, Int, Tensor, TensorData};
use model::{Call, Decoder, Source, parameters};
use runs::{Config, RunDirectory};
use serde_json::Value;
use trainer::generate::{GenerateError, Request, Sampling, generate, row};

use crate::support::*;

/// Learnt in 150 steps of a few milliseconds.
const REVERSE: &str = r#"
[task]
kind = "reverse"
vocab = 3
min_len = 1
max_len = 3
validation_examples = 40
test_examples = 40
[model]
architecture = "encoder_decoder"
d_model = 32
heads = 4
kv_heads = 2
[train]
steps = 150
batch_size = 32
lr = 1e-2
warmup = 10
eval_every = 50
"#;

const MQAR: &str = r#"
[task]
kind = "mqar"
vocab = 24
seq_len = 12
pairs = 2
validation_examples = 20
test_examples = 20
[model]
d_model = 16
heads = 2
positions = "rope"
[train]
steps = 3
batch_size = 8
eval_every = 3
"#;

fn trained(place: &Workplace, text: &str) -> (RunDirectory, Config, Decoder) {
    place.file("config.toml", text);
    place.run("--config config.toml --quiet --out runs").expect(0);
    let run = place.only_run("runs");
    let config = Config::load(&run.config_path(), &[]).unwrap();
    let model = Decoder::new(&config.model, config.dims(), 0, &Device::flex()).unwrap();
    let checkpoint = run.checkpoints().latest().unwrap().unwrap().checkpoint;
    (run, config, parameters::from_host(model, &checkpoint.model).unwrap())
}

fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap() as u32).collect()
}

/// The largest logit at the last position of `tokens`, read at once without a cache.
fn greedy(model: &Decoder, tokens: &[u32], source: Option<Source>) -> u32 {
    let logits = model.forward(row(tokens, &Device::flex()), Call { source, ..Default::default() }).unwrap().logits;
    let answers: Vec<i32> = logits.argmax(1).into_data().iter::<i32>().collect();
    answers[tokens.len() - 1] as u32
}

/// What is generated is what the model says step by step without a cache, and after training it is the reverse.
#[test]
fn a_source_is_rewritten_to_its_end() {
    let place = Workplace::new();
    let (run, config, model) = trained(&place, REVERSE);
    let path = run.path().display().to_string();
    let ask = |what: &str| -> Value {
        serde_json::from_str(&place.run(&format!("generate {path} {what} --json")).expect(0).stdout).unwrap()
    };
    let mut right = 0;
    for index in 0..4 {
        let found = ask(&format!("--sample {index}"));
        let (source, generated) = (numbers(&found["source"]), numbers(&found["generated"]));
        let expected: Vec<u32> = source.iter().rev().copied().chain([3]).collect();
        assert_eq!(numbers(&found["expected"]), expected);
        let sample = config.task.task.sample(data::Split::Validation, 0, index).source.unwrap();
        assert_eq!(source, sample.tokens[..sample.real]);

        let padded: Vec<i32> = (0..3).map(|t| source.get(t).map_or(0, |&token| token as i32)).collect();
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(padded, [1, 3]), &Device::flex());
        let padding: Vec<bool> = (0..3).map(|t| t >= source.len()).collect();
        let mut all = vec![3];
        while all.len() < 5 && (all.len() == 1 || all[all.len() - 1] != 3) {
            all.push(greedy(&model, &all, Some(Source { tokens: &tokens, padding: &padding })));
        }
        assert_eq!(generated, all[1..], "sample {index}");
        right += usize::from(generated == expected);
    }
    assert!(right >= 3, "it has learnt to reverse: {right} of 4");

    let own = ask("--source 2,0");
    assert_eq!((numbers(&own["source"]), numbers(&own["expected"])), (vec![2, 0], vec![0, 2, 3]));
    let given = ask("--source 2,0 --prompt 0 --tokens 1");
    assert_eq!((numbers(&given["given"]), numbers(&given["generated"]).len()), (vec![0], 1));
    let text = place.run(&format!("generate {path} --sample 0")).expect(0).stdout;
    for part in
        ["config seed 0, step 150: validation sample 0\nsource ", "\ngenerated ", " end\n", "\nright to the end\n"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (what, said) in [
        ("--source 2,3", "no token 3 in the source"),
        ("--source 2,2,2,2", "a source of 4 tokens: `reverse` was trained on 1 to 3"),
        ("--prompt 2", "nothing to read: --sample 0"),
        ("--source 2 --prompt 1,1 --tokens 3", "3 tokens of prompt and 3 to generate need 5 positions"),
        ("--sample 0 --step 149", "no checkpoint of step 149: there are "),
    ] {
        let ran = place.run(&format!("generate {path} {what}")).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
}

/// A class is nothing to read next: each position gets its answer, and `--tokens` is refused.
#[test]
fn classes_are_shown_at_each_position() {
    let place = Workplace::new();
    let (run, config, model) = trained(&place, &SMALL.replace("steps = 120", "steps = 40"));
    let path = run.path().display().to_string();
    let found = place.run(&format!("generate {path} --sample 2 --best --json")).expect(0).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let sample = config.task.task.sample(data::Split::Validation, 0, 2);
    for (t, position) in found["positions"].as_array().unwrap().iter().enumerate() {
        assert_eq!(position["token"].as_u64(), Some(u64::from(sample.tokens[t])));
        let expected = Some(sample.targets[t]).filter(|&target| target != data::IGNORE).map(|target| target as u64);
        assert_eq!(position["expected"].as_u64(), expected);
    }
    // The last checkpoint's, by prompt: the answers of one forward pass, and the right ones from the task.
    let found = place.run(&format!("generate {path} --prompt 0,3,1 --json")).expect(0).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    for (t, position) in found["positions"].as_array().unwrap().iter().enumerate() {
        assert_eq!(position["answer"].as_u64(), Some(u64::from(greedy(&model, &[0, 3, 1][..=t], None))));
        assert_eq!(position["expected"].is_null(), t == 0, "both registers are written from token 1 on");
        let probability = position["probability"].as_f64().unwrap();
        assert!(probability > 1.0 / 8.0 && probability <= 1.0, "the largest of 8: {probability}");
    }
    for (what, said) in [
        ("--prompt 0 --tokens 3", "a class is no token that could be read next"),
        ("--prompt 0 --temperature 1", "say how many with --tokens N"),
        ("--prompt 6", "there is no token 6 in the prompt: `registers` has 0 to 5 there"),
        ("--source 1", "`registers` has no source to read"),
        ("--prompt 0,0,0,0,0,0,0,0,0,0,0,0,0", "a prompt of 13 tokens is longer than the 12"),
        ("", "nothing to read"),
    ] {
        let ran = place.run(&format!("generate {path} {what}")).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
}

#[test]
fn tokens_are_generated_drawn_and_windowed() {
    let place = Workplace::new();
    let (run, _, model) = trained(&place, MQAR);
    let path = run.path().display().to_string();
    let ask = |what: &str| {
        let said = place.run(&format!("generate {path} {what} --json")).expect(0).stdout;
        numbers(&serde_json::from_str::<Value>(&said).unwrap()["generated"])
    };
    let mut all = vec![1, 14, 2, 15, 1];
    (0..8).for_each(|_| all.push(greedy(&model, &all, None)));
    assert_eq!(ask("--prompt 1,14,2,15,1 --tokens 8"), all[5..], "the last token generated needs no position");

    let drawn = |seed: u32| ask(&format!("--prompt 1 --tokens 10 --temperature 3 --top-k 20 --seed {seed}"));
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let shown = place.run(&format!("generate {path} --sample 0 --tokens 1")).expect(0).stdout;
    assert!(shown.contains("key ") && shown.contains("was never trained"), "{shown}");

    let refused = place.run(&format!("generate {path} --prompt 1,14,2,15,1 --tokens 9")).expect(2).stderr;
    let said = "5 tokens of prompt and 9 to generate need 13 positions, and the model was trained on 12";
    assert!(refused.contains(said) && refused.contains("--window"), "{refused}");
    assert_eq!(ask("--prompt 1,14,2,15,1 --tokens 9 --window")[..8], all[5..]);
    for (what, said) in [
        ("--prompt 1 --tokens 2 --top-k 3", "add --temperature 1"),
        ("--prompt 1 --tokens 2 --temperature -1", "a finite number, at least 0"),
        ("--prompt one --tokens 2", "`one` is no token"),
        ("--sample 0 --prompt 1", "cannot be used with"),
    ] {
        let ran = place.run(&format!("generate {path} {what}")).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
    let nowhere = place.run("generate runs --sample 0").expect(2).stderr;
    assert!(nowhere.contains("runs is no run directory"), "{nowhere}");
}

/// Beyond the context each token follows from the last tokens alone, as if they were all that there is.
#[test]
fn a_window_reads_the_last_tokens_again() {
    let config = Config::parse(&MQAR.replace("rope", "learned"), "mqar.toml").unwrap();
    let device = Device::flex();
    let model = Decoder::new(&config.model, config.dims(), 0, &device).unwrap();
    let prompt: Vec<u32> = (0..15).map(|t| t * 7 % 24).collect();
    for (length, limit) in [(15, 5), (12, 3), (10, 6), (1, 20)] {
        let prompt = &prompt[..length];
        let (window, sampling, end) = (true, Sampling::GREEDY, None);
        let request = Request { source: None, prompt, limit, end, context: 12, window, sampling };
        let mut all = prompt.to_vec();
        for _ in 0..limit {
            all.push(greedy(&model, &all[all.len().saturating_sub(12)..], None));
        }
        assert_eq!(generate(&model, request, &device).unwrap(), all[length..], "{length} {limit}");
        let refused = generate(&model, Request { window: false, ..request }, &device);
        let error = GenerateError::TooLong { prompt: length, limit, needed: length + limit - 1, context: 12 };
        assert_eq!(refused, Err(error));
        // It ends with the token that says so, which may be the first.
        let first = Request { end: Some(all[length]), ..request };
        assert_eq!(generate(&model, first, &device).unwrap(), [all[length]]);
        assert_eq!(generate(&model, Request { prompt: &[], ..request }, &device), Err(GenerateError::EmptyPrompt));
    }
}

#[test]
fn a_model_that_reads_both_ways_generates_nothing_but_answers() {
    let place = Workplace::new();
    let (run, ..) = trained(&place, &MQAR.replace("heads = 2", "heads = 2\ncausal = false"));
    let path = run.path().display().to_string();
    place.run(&format!("generate {path} --sample 0")).expect(0);
    for what in ["--sample 0 --tokens 1", "--bench --context 8"] {
        let refused = place.run(&format!("generate {path} {what}")).expect(2).stderr;
        assert!(refused.contains("causal = false reads both ways"), "{refused}");
    }
}

#[test]
fn bench_counts_bytes_and_compares_groupings() {
    let place = Workplace::new();
    place.file("reverse.toml", REVERSE);
    let bench = "generate --config reverse.toml --set model.heads=8 --set model.kv_heads=8 --bench --context 6,20";
    let measured = place.run(&format!("{bench} --json")).expect(0);
    assert_eq!(measured.stderr, "");
    let measured: Value = serde_json::from_str(&measured.stdout).unwrap();
    let rows = measured["rows"].as_array().unwrap();
    let found: Vec<[u64; 3]> =
        rows.iter().map(|row| ["context", "kv_heads", "cache_bytes"].map(|key| row[key].as_u64().unwrap())).collect();
    let expected: Vec<[u64; 3]> = [6, 20]
        .into_iter()
        .flat_map(|context| [8, 4, 1].map(|kv_heads| [context, kv_heads, 2 * kv_heads * 4 * (context + 3) * 4])) // K = 4
        .collect();
    assert_eq!(found, expected);
    assert!(rows.iter().all(|row| row["cached"].as_f64().unwrap() > 0.0 && row["uncached"].as_f64().unwrap() > 0.0));
    let table = place.run(bench).expect(0).stdout;
    for part in ["MHA", "GQA", "MQA", "at 20 positions one key/value head decodes ", "of the bytes"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    for (what, said) in [
        ("--bench --sample 0", "cannot be used with"),
        ("--sample 0", "--config is for --bench"),
        ("--bench --context 0", "0 is not in"),
        ("--bench --context 8,x", "invalid digit"),
    ] {
        let ran = place.run(&format!("generate --config reverse.toml {what}")).expect(2);
        assert!(ran.stderr.contains(said), "{said}: {ran:?}");
    }
}
