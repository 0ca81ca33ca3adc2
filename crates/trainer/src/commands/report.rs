//! `trainer report`: results, figures, the page and a summary from run directories alone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use report::page::{self, RunReport};
use report::{ExperimentReport, Results, TunedExperiment, terminal};
use runs::{Experiment, Registration, RunDirectory, experiment};

use super::files::refuse_linked;
use super::{heads, trace};
use crate::machine::exit::{Failure, Success};
use crate::screen::output::{next, print, print_warning, tell};

/// Arguments of `report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArguments {
    /// The folder of an experiment, such as runs/h1-vs-h8, or of a single run, whose heads are analysed.
    pub folder: PathBuf,
    /// Show report.html in the browser.
    #[arg(long)]
    pub open: bool,
    /// Take runs of other builds of this program, backends or vector instructions too, and say so in the result.
    #[arg(long)]
    pub mixed: bool,
}

pub fn run(arguments: &ReportArguments) -> Result<Success, Failure> {
    let folder = &arguments.folder;
    let kind = Kind::of(folder)?;
    refuse_linked(folder)?;
    let page = match kind {
        Kind::Experiment => {
            let experiment = Experiment::of_folder(folder).map_err(Failure::failed)?;
            note_changes(&experiment, folder);
            show(TunedExperiment::read(experiment, folder), arguments.mixed)?.page
        }
        Kind::Run => show_run(folder)?,
    };
    match page {
        Some(page) if arguments.open => open(&page),
        Some(_) => next(format!("trainer report {} --open", folder.display())),
        None if arguments.open => return Err(Failure::failed("there is no page to open")),
        _ => {}
    }
    Ok(Success::Done)
}

/// Of a result that has been shown: that it could not be kept. Where nothing can be written at all nobody counts on files, and
/// that is said; a disk that is full is an error.
fn unkept(error: impl std::fmt::Display, is_read_only: bool) -> Result<Option<PathBuf>, Failure> {
    let message = format!("the result is shown but not kept: {error}");
    if !is_read_only {
        return Err(Failure::failed(message));
    }
    tell(message);
    Ok(None)
}

/// Appends to a folder's registration in what its file was changed by hand. What can't be read or written is shown by the
/// report all the same, which looks for itself.
fn note_changes(experiment: &Experiment, folder: &Path) {
    if let Ok(Some(registered)) = Registration::read(folder) {
        let now = registered.clone().up_to_date(folder, experiment);
        if now != registered {
            drop(now.write(folder));
        }
    }
}

/// What was shown.
pub struct Shown {
    /// The page's path; none where the folder can only be read.
    pub page: Option<PathBuf>,
    pub results: Results,
}

/// Reads the runs of an experiment, writes its results beside them, with what its heads do, and prints the summary.
pub fn show(experiment: TunedExperiment, mixed: bool) -> Result<Shown, Failure> {
    let runs = experiment.read_runs();
    let report = ExperimentReport::new(&runs, mixed).map_err(Failure::failed)?;
    let report = report.with_heads(unless_failed(heads::of_experiment(&runs)));
    match report.write(&runs.folder) {
        Ok(_) => {
            print_result(&terminal::summary(&report.results, &runs.folder));
            for line in report.heads.iter().flat_map(terminal::heads_alike) {
                print_warning(format!("{}{line}", terminal::WARNING));
            }
            let used = report.heads.as_ref().map(|heads| terminal::heads_used(heads, &report.results));
            if let Some(used) = used.filter(|used| !used.is_empty()) {
                print(format!("\n{used}"));
            }
        }
        Err(error) if error.is_unwritten() => {
            print_result(&terminal::answer(&report.results));
            let page = unkept(&error, error.is_read_only())?;
            return Ok(Shown { page, results: report.results });
        }
        Err(error) => return Err(Failure::failed(error)),
    }
    Ok(Shown { page: Some(runs.folder.join(page::FILE)), results: report.results })
}

/// Prints a result; what a reader must not miss stands out.
pub fn print_result(text: &str) {
    // One call for what lies between warnings, so that a pipe gets it whole.
    let mut plain: Vec<&str> = vec![];
    for line in text.lines() {
        if !line.starts_with(terminal::WARNING) {
            plain.push(line);
            continue;
        }
        if !plain.is_empty() {
            print(plain.join("\n"));
            plain.clear();
        }
        print_warning(line);
    }
    if !plain.is_empty() {
        print(plain.join("\n"));
    }
}

/// The page of a single run, and what its heads do. A run that is not done has no heads to show yet.
fn show_run(folder: &Path) -> Result<Option<PathBuf>, Failure> {
    let report = RunReport::read(&RunDirectory::at(folder)).map_err(Failure::failed)?;
    let analysis = if report.done { unless_failed(heads::of_run(folder, None, false)) } else { None };
    let forward = if report.done { trace::of_run(folder, 0).ok() } else { None };
    let page = match report.write(folder, analysis.clone(), forward.as_ref()) {
        Err(error) if !error.is_unwritten() => return Err(Failure::failed(error)),
        page => page,
    };
    print(report.lead());
    if let Some(analysis) = analysis {
        print(format!("\n{}\n", terminal::heads_table(&analysis)));
    }
    match page {
        Ok(page) => {
            print(format!("  {}  all of this as a page, to open or to send", page.display()));
            Ok(Some(page))
        }
        Err(error) => unkept(&error, error.is_read_only()),
    }
}

/// A report is worth having without its heads.
fn unless_failed<T>(heads: Result<T, Failure>) -> Option<T> {
    heads.inspect_err(|failure| tell(format!("the heads could not be analysed: {}", failure.message()))).ok()
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
