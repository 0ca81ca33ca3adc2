//! Nothing is lost and nothing is silently wrong: kills at any moment, damaged files, full disks, too little memory,
//! hostile files.
//!
//! `HEADCOUNT_LONG=1` runs each of these at full length, minutes in all; without it each runs a sample of the same.

mod belongs;
mod changed;
mod damage;
mod disk;
mod hostile;
mod kills;
mod list;
mod room;
mod schedule;
mod workers;

use std::fs;
use std::path::Path;

use runs::RunDirectory;

use crate::support::*;

/// A run of a few milliseconds a step that has everything: dropout, two micro-batches a step, a fixed set that is passed
/// several times, and a checkpoint every five steps.
pub const TINY: &str = r#"
[task]
kind = "registers"
registers = 2
values = 3
seq_len = 8
train_examples = 300
validation_examples = 16
test_examples = 16
[model]
d_model = 8
heads = 2
embedding_dropout = 0.1
attention_dropout = 0.1
residual_dropout = 0.1
[train]
steps = 300
batch_size = 4
accumulate = 2
warmup = 10
eval_every = 50
checkpoint_every = 5
keep_checkpoints = 2
eval_batch = 16
"#;

/// `long` with `HEADCOUNT_LONG=1`, or else `short`.
pub fn times(short: usize, long: usize) -> usize {
    if std::env::var_os("HEADCOUNT_LONG").is_some_and(|value| value == "1") { long } else { short }
}

/// A workplace with [`TINY`] as `tiny.toml`.
pub fn tiny() -> Workplace {
    let place = Workplace::new();
    place.file("tiny.toml", TINY);
    place
}

/// Numbers that look random, other ones in each call of the tests: whichever they are, the outcome must be the same.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        println!("random numbers from {seed}");
        Self(seed)
    }

    /// From 0 to below `most`.
    pub fn below(&mut self, most: usize) -> usize {
        // The mixing of splitmix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most as u64) as usize
    }
}

/// Whether a checkpoint is half-written in the run under `out`.
pub fn is_writing(checkpoints: &Path) -> bool {
    let entries = fs::read_dir(checkpoints).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().ends_with(".new.tmp"))
}

/// The only run under `out`, once there is one.
pub fn run_in(place: &Workplace, out: &str) -> Option<RunDirectory> {
    let entry = fs::read_dir(place.path().join(out)).ok()?.next()?.ok()?;
    Some(RunDirectory::at(entry.path()))
}
