//! The run directory of Headcount: the config that a run starts from and the files that it leaves behind.
//!
//! ```
//! use headcount_runs::{Config, RunDirectory, State};
//!
//! let config = Config::parse("name = \"h8\"\n[task]\nkind = \"registers\"\n", "h8.toml")?;
//! let parent = tempfile::tempdir()?;
//! let run = RunDirectory::of(parent.path(), &config);
//! assert_eq!(run.state()?, State::Absent);
//! let lock = run.create(&config)?;
//! assert_eq!(Config::load(&run.config_path(), &[])?, config);
//! # drop(lock);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - what a run is: [`Config`], read from TOML and `--set key=value`; errors point at the key
//! - where a run is: [`RunDirectory`], its state, its lock
//! - what it measured: [`MetricsLog`] and [`TimingLog`], one JSON object a line
//! - what it was: [`Manifest`], with [`weights_fingerprint()`]
//! - where it can go on from: [`Checkpoints`], each complete or absent
//! - what its weights were on the way: [`Snapshots`]
//! - how it ended: [`Summary`]
//! - reading it: [`RunDirectory::open`], the one place where its files are asked whether they belong together, by the
//!   [`Origin`] that each of them names
//! - writing anything else: [`files::write_output`]
//! - all of that of one planned run: [`RunRecord`]
//! - what its heads do: [`heads`]; one of its forward passes, node by node: [`forward`]
//! - how run directories stand, and whether they are intact: [`inspection`]
//! - what is compared, and that its arms match: [`Experiment`], [`Ledger`]; what of it stood before the runs:
//!   [`Registration`]; in what two configs differ: [`differences`]
//!
//! Nothing here trains, and nothing here panics on what a user or a disk can cause.

pub mod checkpoint;
pub mod claims;
pub mod config;
pub mod differences;
pub mod directory;
mod document;
mod error;
pub mod experiment;
pub mod files;
mod finite;
pub mod forward;
pub mod heads;
pub mod inspection;
mod layout;
pub mod ledger;
mod limits;
pub mod log;
pub mod manifest;
pub mod metrics;
mod nearest;
mod open;
mod origin;
pub mod records;
pub mod registration;
mod sealed;
pub mod seen;
mod sizes;
pub mod snapshots;
pub mod summary;
pub mod tensorboard;
pub mod tensors;
pub mod test_scores;

pub use checkpoint::{Checkpoint, Checkpoints, Latest};
pub use claims::{Asked, Claim, Claims};
pub use config::{Backend, Config, ConfigError, Schedule, ScheduleBy, TaskSection, TrainConfig};
pub use differences::Difference;
pub use directory::{Lock, RunDirectory, State};
pub use error::RunError;
pub use experiment::{Arm, Experiment, PlannedRun, ReadAt, Regime};
pub use inspection::{Condition, Inspection};
pub use ledger::{Ledger, LedgerRun, Mismatch};
pub use log::Log;
pub use manifest::{
    DataFile, Fingerprints, Manifest, Program, TensorFingerprint, WeightsFingerprint, weights_fingerprint,
};
pub use metrics::{MetricLine, MetricsLog, TimingLine, TimingLog, read_metrics, read_timings, read_timings_of};
pub use open::OpenRun;
pub use origin::Origin;
pub use records::RunRecord;
pub use registration::{Amendment, Registration};
pub use seen::{SeenInTraining, seen_in_training};
pub use snapshots::{Snapshot, Snapshots};
pub use summary::{Best, Status, Summary};
pub use tensors::Tensors;
pub use test_scores::{ScoresByUnit, TestScores};
