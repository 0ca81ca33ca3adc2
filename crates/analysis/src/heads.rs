//! What each attention head does, step by step, beside what it did untrained.
//!
//! A run's `heads.json` holds [`HeadAnalysis`], an experiment's [`ExperimentHeads`].

mod across;
mod record;

pub use across::{AcrossRuns, ArmHeads, ExperimentHeads, RunHeads, Spread};
pub use record::{
    AttentionAnalysis, Flag, HeadAnalysis, HeadMeasures, Nearest, Place, SCHEMA_VERSION, ShownMaps, ShownSample,
    ShownToken, StepAnalysis,
};

/// Positions of a shown sample, on either side of its maps.
pub const SHOWN_POSITIONS: usize = 64;
