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
//! - all of that of one planned run: [`RunRecord`]
//! - what its heads do: [`heads`]
//! - how run directories stand, and whether they are intact: [`inspection`]
//! - what is compared, and that its arms match: [`Experiment`], [`Ledger`]
//!
//! Nothing here trains, and nothing here panics on what a user or a disk can cause.

pub mod checkpoint;
pub mod config;
pub mod directory;
mod error;
pub mod experiment;
pub mod files;
pub mod heads;
pub mod inspection;
pub mod ledger;
pub mod lines;
pub mod manifest;
pub mod metrics;
mod nearest;
mod numbers;
pub mod records;
pub mod snapshots;
pub mod summary;
pub mod tensors;

pub use checkpoint::{Checkpoint, Checkpoints, Latest, Origin};
pub use config::{Backend, Config, ConfigError, Schedule, ScheduleBy, TaskSection, TrainConfig};
pub use directory::{Lock, RunDirectory, State};
pub use error::RunError;
pub use experiment::{Arm, Experiment, MetricName, PlannedRun, Regime};
pub use inspection::{Condition, Inspection};
pub use ledger::{Ledger, LedgerRun, Mismatch};
pub use lines::Log;
pub use manifest::{Fingerprints, Manifest, Parts, Program, WeightsFingerprint, weights_fingerprint};
pub use metrics::{Metric, MetricsLog, Timing, TimingLog, read_metrics, read_timings};
pub use records::RunRecord;
pub use snapshots::Snapshots;
pub use summary::{Best, Score, Status, Summary};
pub use tensors::{Tensor, Tensors};
