//! What nothing that Headcount wrote, or could compute, goes beyond. Sizes of files are in bytes and are asked before any
//! memory is taken for what is in them.

/// A config or an experiment file.
pub(crate) const CONFIG: u64 = 1 << 20;
/// `manifest.json`: two hundred for each tensor.
pub(crate) const MANIFEST: u64 = 32 << 20;
/// `summary.json`.
pub(crate) const SUMMARY: u64 = 1 << 20;
/// `checkpoint.json`.
pub(crate) const CHECKPOINT_INDEX: u64 = 1 << 20;
/// `heads.json`: maps take megabytes.
pub(crate) const HEADS: u64 = 256 << 20;
/// `test_scores.json`: a hundred for each of 100,000 samples, twice.
pub(crate) const TEST_SCORES: u64 = 64 << 20;
/// A line of a log; ours are a tenth of that.
pub(crate) const LINE: usize = 4096;
/// A log that is read whole: some ten million lines.
pub(crate) const LOG: u64 = 2 << 30;
/// The header of a tensor file: a hundred for each of 80,000 tensors. What is read of it takes more memory.
pub(crate) const TENSOR_HEADER: u64 = 8 << 20;
/// A tensor file: twice the largest model's weights (the optimiser holds two moments), and a header.
pub(crate) const TENSORS: u64 = (8 << 30) + TENSOR_HEADER;
/// Folders within folders that are looked into for runs: an experiment's tuning runs are three deep.
pub(crate) const DEPTH: usize = 6;
/// Bytes of an event file for TensorBoard.
pub(crate) const EVENTS: u64 = 1 << 30;
/// Bytes of a claim on a run.
pub(crate) const CLAIM: u64 = 4096;

/// A seed: the largest integer that TOML can hold.
pub(crate) const SEED: u64 = i64::MAX as u64;
/// What is added to a seed for the first weights; a sum with any seed fits.
pub(crate) const WEIGHTS_OFFSET: u64 = 1_000_000_000;
/// A name, in bytes: it becomes part of a folder's name.
pub(crate) const NAME: usize = 100;
/// The arms of an experiment, grid included.
pub(crate) const ARMS: usize = 64;
/// The seeds of an experiment, repetitions included: as many run directories an arm.
pub(crate) const SEEDS: u64 = 10_000;
/// How many times as long the runs of a check may train.
pub(crate) const LONGER: u64 = 64;
/// `registration.json`: the experiment's file, and again for each change.
pub(crate) const REGISTRATION: u64 = 64 << 20;
/// By how many rates a grid of learning rates is extended at each end.
pub(crate) const EXTENSIONS: usize = 2;
/// Learning rates of a tuning.
pub(crate) const RATES: usize = 64;

/// Steps of a run, and what is counted in steps.
pub(crate) const STEPS: u64 = 100_000_000;
/// Samples in a batch, and micro-batches in a step.
pub(crate) const SAMPLES: u64 = 1 << 16;
/// Samples in a step.
pub(crate) const STEP_SAMPLES: u128 = 1 << 24;
/// Numbers in one tensor: 1 GiB of f32.
pub(crate) const ELEMENTS: u128 = 1 << 28;
/// Checkpoints that a run keeps, besides the best.
pub(crate) const CHECKPOINTS: u64 = 1000;
/// Snapshots of a run.
pub(crate) const SNAPSHOTS: u64 = 1000;
