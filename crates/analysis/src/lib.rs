//! What a model scores on a batch ([`batch`], the one place that says so), and what each of its attention heads does, step by step,
//! beside what it did untrained. Runs models, never trains.
//!
//! [`analyse`] gives what a run's `heads.json` holds ([`runs::heads::HeadAnalysis`]), [`of_runs`] that of every run of an
//! experiment. Everything is measured on the first samples of the validation set, the same for every run of a task:
//!
//! - what a head reads and what it is worth: the [`measures`]
//! - how alike two heads are: [`similarity`]
//! - what is remarkable: [`mod@flags`]; what a head is for: [`roles`]
//!
//! A removed head is replaced by its mean over the samples at each position, not by zero: the layers above are used to its
//! mean, and would be thrown off by its absence as much as by the loss of what it says. Heads are removed from every attention,
//! those of an encoder and the cross-attention among them: one at a time (the measure `removal`), all but one of a layer (`alone`),
//! or, where asked for, one after the other until none is left ([`runs::heads::Pruning`]).
//!
//! Maps are an aid, not proof: what a head reads need not be what the answer depends on (Jain 2019, arXiv 1902.10186).

mod ablation;
mod answers;
pub mod batch;
mod contexts;
mod effects;
mod encode;
mod error;
mod experiment;
pub mod flags;
mod limits;
pub mod maps;
pub mod measures;
pub mod needs;
mod pruning;
pub mod roles;
mod run;
mod samples;
pub mod similarity;
mod snapshot;
mod trace;
mod untrained;

pub use error::HeadError;
pub use experiment::of_runs;
pub use run::{Analysed, Steps, analyse, analyse_or_read};
pub use trace::{TraceError, forward_pass};
pub use untrained::heads_alike;
