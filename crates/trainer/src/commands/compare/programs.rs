//! Runs of another build of this program are not taken for this one's.

use runs::{Manifest, PlannedRun, RunDirectory, State};

use crate::machine::backend;
use crate::machine::exit::Failure;
use crate::training::manifest::program;

/// Runs of another build of this program, or on other vector instructions, are refused, unless `mixed` allows them.
pub fn refuse_others(planned: &[PlannedRun], mixed: bool) -> Result<(), Failure> {
    if mixed {
        return Ok(());
    }
    let program = program();
    for run in planned {
        let directory: RunDirectory = runs::claims::latest(&run.directory);
        if directory.state().map_err(Failure::failed)? == State::Absent {
            continue;
        }
        let path = directory.manifest_path();
        if path.is_file() {
            let earlier = Manifest::read(&path).map_err(Failure::failed)?;
            if let Some(earlier) = earlier.programs().find(|earlier| **earlier != program) {
                return Err(Failure::failed(format!(
                    "{} was made by another version of this program ({earlier}; this is {program}): take another --out, remove it, or allow it with --mixed",
                    directory.path().display(),
                )));
            }
            let simd = backend::simd(run.config.backend);
            if let Some(level) = earlier.levels().find(|level| Some(*level) != simd.as_ref()) {
                return Err(Failure::failed(format!(
                    "{} was made with {level} vector instructions and this would use {}, which differ in last digits: set HEADCOUNT_SIMD={level} where the processor has them, take another --out, remove it, or allow it with --mixed",
                    directory.path().display(),
                    simd.as_deref().unwrap_or("none"),
                )));
            }
        }
    }
    Ok(())
}
