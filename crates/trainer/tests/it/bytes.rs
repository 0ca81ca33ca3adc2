//! Same inputs, same bytes: on one machine, on flex whatever the number of threads.

use crate::support::*;

/// Large enough for the matrix products of flex to be cut up among threads, 60 steps with evaluations between.
fn full_size() -> String {
    format!(
        "--config {}/h8.toml --set train.steps=60 --set train.eval_every=20 --set task.validation_examples=300 \
         --set task.test_examples=100",
        configs().display()
    )
}

/// Two layers, every dropout, two micro-batches a step, a fixed set with a short last batch.
fn everything_on() -> String {
    format!(
        "--config {}/h8.toml --set train.steps=30 --set train.eval_every=10 --set task.validation_examples=100 \
         --set task.test_examples=100 --set model.layers=2 --set train.batch_size=32 --set train.accumulate=2 \
         --set task.train_examples=500 --set model.embedding_dropout=0.1 --set model.attention_dropout=0.1 \
         --set model.residual_dropout=0.1",
        configs().display()
    )
}

/// Twelve million parameters: enough for flex to cut a sum over all of them into one piece a thread.
const WIDE: &str = "--config small.toml --set model.d_model=1024 --set train.steps=3 --set train.eval_every=3 \
    --set train.batch_size=1 --set train.eval_batch=1 --set task.validation_examples=1 --set task.test_examples=1";

fn assert_same(arguments: &str, variants: [&str; 2]) {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    for (index, variant) in variants.iter().enumerate() {
        place.run(&format!("{arguments} {variant} --out {index} --quiet")).expect(0);
    }
    assert_same_files(&place.only_run("0"), &place.only_run("1"));
}

#[test]
fn two_runs_on_flex() {
    assert_same(&full_size(), ["--threads 2", "--threads 2"]);
    assert_same(&everything_on(), ["--threads 2", "--threads 2"]);
}

#[test]
fn one_thread_and_two_on_flex() {
    assert_same(&full_size(), ["--threads 1", "--threads 2"]);
    assert_same(&everything_on(), ["--threads 1", "--threads 2"]);
    assert_same(WIDE, ["--threads 1", "--threads 2"]);
}

#[test]
fn two_runs_on_ndarray() {
    assert_same(&everything_on(), ["--backend ndarray", "--backend ndarray"]);
}

/// The comparison above would notice: dropout acts, and so does the seed.
#[test]
fn dropout_and_seed_change_the_bytes() {
    let place = Workplace::new();
    let variants = [&[][..], &["model.attention_dropout=0.1"], &["seed=1"]];
    let files = variants.map(|overrides| result_files(&train_here(&small(overrides), place.path()).0));
    assert_ne!(files[0]["metrics.jsonl"], files[1]["metrics.jsonl"]);
    assert_ne!(files[0]["metrics.jsonl"], files[2]["metrics.jsonl"]);
}
