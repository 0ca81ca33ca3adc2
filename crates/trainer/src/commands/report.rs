//! `trainer report`: results, figures, the page and a summary from run directories alone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use analysis::page::RunReport;
use analysis::results::write_run_page;
use runs::{RunDirectory, experiment};

use super::{Failure, Success, print, tell};
use crate::cli::ReportArguments;

pub fn run(arguments: &ReportArguments) -> Result<Success, Failure> {
    let folder = &arguments.folder;
    let page = match Kind::of(folder)? {
        Kind::Experiment => show(folder, arguments.mixed)?,
        Kind::Run => show_run(folder)?,
    };
    if arguments.open {
        open(&page);
    }
    Ok(Success::Done)
}

/// Writes the results of the experiment in `folder` beside its runs, prints the summary, and returns the page's path.
pub fn show(folder: &Path, mixed: bool) -> Result<PathBuf, Failure> {
    let (report, _written) = analysis::results::rebuild(folder, mixed).map_err(Failure::failed)?;
    print(analysis::terminal::summary(&report.results, folder));
    Ok(folder.join(analysis::page::FILE))
}

/// The same for a single run, which has a page and no results.
fn show_run(folder: &Path) -> Result<PathBuf, Failure> {
    let report = RunReport::read(&RunDirectory::at(folder)).map_err(Failure::failed)?;
    let page = write_run_page(&report, folder).map_err(Failure::failed)?;
    print(format!("{}\n  {}  curves and what else there is of this run", report.lead(), page.display()));
    Ok(page)
}

/// What a folder holds.
enum Kind {
    Experiment,
    Run,
}

impl Kind {
    fn of(folder: &Path) -> Result<Self, Failure> {
        let holds = |folder: &Path, name: &str| folder.join(name).is_file();
        if holds(folder, experiment::FILE) {
            return Ok(Self::Experiment);
        }
        if RunDirectory::at(folder).config_path().is_file() {
            return Ok(Self::Run);
        }
        let shown = folder.display();
        if !folder.is_dir() {
            return Err(Failure::usage(format!(
                "{shown} is no folder: give an experiment's, such as runs/h1-vs-h8, or a run's"
            )));
        }
        let within = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut known: Vec<PathBuf> =
            within.filter(|path| holds(path, experiment::FILE) || holds(path, "config.toml")).collect();
        known.sort();
        let hint = match known.first() {
            Some(first) => format!("it holds {} of them, such as {}", known.len(), first.display()),
            None => format!("an experiment's folder holds {}, a run's config.toml", experiment::FILE),
        };
        Err(Failure::usage(format!("{shown} is neither an experiment's folder nor a run's: {hint}")))
    }
}

/// Opens a page in the user's browser; where there is none, its path has been printed.
fn open(page: &Path) {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let arguments = before.iter().map(OsStr::new).chain([page.as_os_str()]);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if command.status().map_or(true, |status| !status.success()) {
        tell(format!("{program} could not open a browser: open {} yourself", page.display()));
    }
}
