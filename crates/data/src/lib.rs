//! Tasks: pure functions from (task, split, data seed, index) to samples, and batches of them on the host.
//!
//! ```
//! use headcount_data::{Generator, IGNORE, Registers, Split, Task};
//!
//! let task = Task::new(Registers::default());
//! task.check()?;
//! let generator = Generator::new(&task, Split::Train, Split::Train.data_seed(7));
//! let batch = generator.batch(&[0, 1, 2]);
//! assert_eq!((batch.batch, batch.len), (3, task.seq_len()));
//! assert_eq!(batch.scored(), batch.targets.iter().filter(|&&target| target != IGNORE).count());
//! # Ok::<(), headcount_data::TaskError>(())
//! ```
//!
//! - a task: what it is, [`Definition`]; those that there are, [`tasks`], one file each; [`Task`] holds any of them; [`register`]
//!   adds one from another crate
//! - a task with its sets, generated or read from files, as one value: [`Dataset`]; formats of files: [`files`]
//! - a sample alone or a batch: [`Generator`] (or [`Task::sample`] and [`batch()`])
//! - which samples a step holds: [`Sets`], [`TrainingOrder`]
//! - what models are measured by: [`metrics`]
//! - proof that two runs saw the same data: [`fingerprint()`]
//!
//! Shapes use one legend: B batch, L length, Ls length of the source in sequence-to-sequence tasks.

#![warn(missing_docs)]

mod answers;
mod baselines;
mod dataset;
mod definition;
mod error;
mod explain;
mod file_error;
pub mod files;
mod fingerprint;
mod generator;
mod kind;
mod limits;
pub mod metrics;
mod order;
mod overlap;
mod parameter;
mod random;
mod readout;
mod sample;
mod spread;
mod stored;
pub mod tasks;
mod urn;

pub use answers::Answers;
pub use baselines::{Baseline, baselines};
pub use dataset::Dataset;
pub use definition::{Definition, Draw, Needed, Side, Task};
pub use error::{TaskError, in_range};
pub use file_error::{FileError, FileProblem};
pub use files::OfFiles;
pub use fingerprint::fingerprint;
pub use generator::{Generator, batch};
pub use order::{Sets, TrainingOrder, steps_per_pass, train_indices};
pub use overlap::{Overlap, Seen, overlap};
pub use parameter::Parameter;
pub use random::Stream;
pub use sample::{Batch, IGNORE, NumberSizes, Numbers, Sample, Source, SourceBatch, SourceSizes, Split};
pub use spread::{Balance, Spread, balance, spread};
pub use stored::{PATHS, ReadFile, Stored};
pub use tasks::{
    DRetrieval, Farthest, Fill, Induction, Mqar, RegisterError, Registers, Reverse, SelectiveCopy, Sort, register,
};

/// Version of every generator in this crate. It is part of every random key and of [`fingerprint()`]; raise it
/// whenever the same parameters would give different samples.
pub const GENERATOR_VERSION: u32 = 1;
