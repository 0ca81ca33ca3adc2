//! The vector instructions of an experiment are those of whoever begins it: sums over others differ in last digits, so that a mixed
//! cluster would not make what one machine makes.

use std::path::Path;

use runs::{Backend, Experiment};

use crate::machine::backend;
use crate::machine::exit::Failure;
use crate::screen::output::tell;

/// The file in an experiment's folder that names them.
const FILE: &str = "vectors";

/// Computes with the vector instructions that the experiment was begun with, where this processor has them and nobody asked for
/// others. To be called before anything is computed.
///
/// # Safety
/// No other thread may be running: the environment is changed.
///
/// # Errors
/// Where this processor does not have them.
pub unsafe fn take_over(experiment: &Experiment, folder: &Path) -> Result<(), Failure> {
    let Ok(begun) = runs::files::read_at_most(&folder.join(FILE), 100) else { return Ok(()) };
    let begun = String::from_utf8_lossy(&begun).trim().to_string();
    let is_asked = std::env::var_os(kernels::LEVEL_VARIABLE).is_some();
    if is_asked || !uses(experiment) || backend::simd(Backend::Flex).is_none_or(|own| own == begun) {
        return Ok(()); // what was asked for and does not fit is told with the runs that it does not fit
    }
    // SAFETY: the caller's promise.
    unsafe { std::env::set_var(kernels::LEVEL_VARIABLE, &begun) };
    if let Err(error) = kernels::level() {
        return Err(Failure::failed(format!(
            "{} was begun with {begun} vector instructions, which this processor does not have ({error}): sums would differ in last \
             digits. Begin it anew with {}=portable, or a level that all machines have, or allow it with --mixed",
            folder.display(),
            kernels::LEVEL_VARIABLE,
        )));
    }
    tell(format!("computing with {begun} vector instructions, as the experiment was begun"));
    Ok(())
}

/// Names them for whoever comes later; to be called by one process at a time.
pub fn keep(experiment: &Experiment, folder: &Path) {
    let path = folder.join(FILE);
    if let Some(level) = backend::simd(Backend::Flex).filter(|_| uses(experiment) && !path.exists()) {
        // A folder that can't be written says so with what matters.
        drop(runs::files::write_output(&path, format!("{level}\n").as_bytes()));
    }
}

fn uses(experiment: &Experiment) -> bool {
    experiment.arms.iter().any(|arm| arm.config.backend == Backend::Flex)
}
