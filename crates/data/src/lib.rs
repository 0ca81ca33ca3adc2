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
//! - a sample alone or a batch: [`Generator`] (or [`Task::sample`] and [`batch()`])
//! - which samples a step holds: [`Sets`], [`TrainingOrder`]
//! - what models are measured by: [`metrics`]
//! - proof that two runs saw the same data: [`fingerprint()`]
//!
//! Shapes use one legend: B batch, L length, Ls length of the source in sequence-to-sequence tasks.

#![warn(missing_docs)]

mod definition;
mod error;
mod fingerprint;
mod generator;
pub mod metrics;
mod order;
mod parameter;
mod random;
mod sample;
pub mod tasks;
mod urn;

pub use definition::{Answers, Definition, Draw, Needed, Side, Task};
pub use error::{TaskError, in_range};
pub use fingerprint::fingerprint;
pub use generator::{Generator, batch};
pub use order::{Sets, TrainingOrder, steps_per_pass, train_indices};
pub use parameter::Parameter;
pub use random::Stream;
pub use sample::{Batch, IGNORE, NumberSizes, Numbers, Sample, Source, SourceBatch, SourceSizes, Split};
pub use tasks::{Fill, Mqar, RegisterError, Registers, Reverse, Sort, register};

/// Version of every generator in this crate. It is part of every random key and of [`fingerprint()`]; raise it
/// whenever the same parameters would give different samples.
pub const GENERATOR_VERSION: u32 = 1;
