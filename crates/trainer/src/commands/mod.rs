//! What each command does.

mod bench;
mod compare;
mod doctor;
mod dry_run;
mod export;
mod generate;
mod heads;
mod report;
mod runs;
mod tasks;
mod train;

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use ::runs::{OpenRun, RunDirectory, RunError};
use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};

/// Why a command failed, in words for its user, and the program's exit code.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The command or a file that it names is wrong: exit code 2.
    pub fn usage(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 2 }
    }

    /// The command was right, but could not be carried out: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 1 }
    }

    /// A run's loss or gradient is no longer finite: exit code 4.
    pub fn diverged(message: impl Display) -> Self {
        Self { message: message.to_string(), code: 4 }
    }
}

/// How a command that did not fail ended.
pub enum Success {
    /// All done.
    Done,
    /// Stopped on request, to be gone on with: exit code 130, as after an interrupt.
    Interrupted,
    /// Carried out, and something is wrong with what was looked at: exit code 3.
    Unwell,
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        None => train::run(&cli.train),
        Some(Command::Train(arguments)) => train::run(&arguments),
        Some(Command::Tasks(arguments)) => tasks::run(&arguments),
        Some(Command::Compare(arguments)) => compare::run(&arguments),
        Some(Command::Report(arguments)) => report::run(&arguments),
        Some(Command::Heads(arguments)) => heads::run(&arguments),
        Some(Command::Export(arguments)) => export::run(&arguments),
        Some(Command::Generate(arguments)) => generate::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Bench(arguments)) => bench::run(&arguments),
        Some(Command::Runs(arguments)) => runs::run(&arguments),
        Some(Command::Completions { shell }) => {
            let mut script = vec![]; // clap_complete panics where its reader has gone away
            clap_complete::generate(shell, &mut Cli::command(), "trainer", &mut script);
            print(String::from_utf8_lossy(&script).trim_end());
            Ok(Success::Done)
        }
    };
    match result {
        Ok(Success::Done) => ExitCode::SUCCESS,
        Ok(Success::Interrupted) => ExitCode::from(130),
        Ok(Success::Unwell) => ExitCode::from(3),
        Err(failure) => {
            tell(format!("error: {}", failure.message));
            ExitCode::from(failure.code)
        }
    }
}

/// Opens the run in a folder, whose files must belong together.
///
/// # Errors
/// A folder without a run, a config that is refused, and files that are damaged or of different runs.
pub(crate) fn open_run(folder: &Path) -> Result<OpenRun, Failure> {
    let directory = RunDirectory::at(folder);
    if !directory.config_path().is_file() {
        return Err(Failure::usage(format!("{} is no run directory: it holds no config.toml", folder.display())));
    }
    directory.open().map_err(|error| match error {
        RunError::Config(error) => Failure::usage(error),
        error => Failure::failed(error),
    })
}

/// Prints to standard error; where nobody reads it, the exit code has to do.
pub(crate) fn tell(text: impl Display) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// Prints to standard output; a reader that has gone away (`| head`) ends the program quietly.
pub(crate) fn print(text: impl Display) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}
