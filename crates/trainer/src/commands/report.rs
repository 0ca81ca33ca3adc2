//! `trainer report`: results, figures and a summary from run directories alone.

use std::path::Path;

use super::{Failure, Success, heads, print};
use crate::cli::ReportArguments;

pub fn run(arguments: &ReportArguments) -> Result<Success, Failure> {
    if heads::is_run(&arguments.folder) {
        print(analysis::heads::table(&heads::of_run(&arguments.folder, false)?));
        return Ok(Success::Done);
    }
    show(&arguments.folder, arguments.mixed)?;
    Ok(Success::Done)
}

/// Writes the results of the experiment in `folder` beside its runs, what its heads do, and prints the summary.
pub fn show(folder: &Path, mixed: bool) -> Result<(), Failure> {
    let (report, _written) = analysis::results::rebuild(folder, mixed).map_err(Failure::failed)?;
    heads::of_experiment(folder)?;
    print(analysis::terminal::summary(&report.results, folder));
    Ok(())
}
