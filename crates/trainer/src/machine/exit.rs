//! How the program ends: its exit codes, and what is said where one isn't 0.

use std::fmt::Display;
use std::io::ErrorKind;
use std::process::ExitCode;

use crate::screen::output::{lost, tell};

/// The codes, as the help has them.
pub const CODES: &str = "Exit codes: 0 done, 1 failed, 2 a mistake in the command or a file it names, 3 something that doctor or\n\
    runs found, or what compare --check did not find again, 4 diverged (a loss or gradient that is not finite),\n\
    130 stopped, 141 done, but what it printed found no reader.";

const FAILED: u8 = 1;
/// A mistake in the command.
pub const USAGE: u8 = 2;
const FOUND: u8 = 3;
const DIVERGED: u8 = 4;
/// Stopped on request: as shells have it after Ctrl-C.
pub const INTERRUPTED: u8 = 130;
/// As shells have it where a closed pipe ends a program.
const UNREAD: u8 = 141;

/// Why a command failed, in words for its user, and the program's exit code.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The command or a file that it names is wrong: exit code 2.
    pub fn usage(message: impl Display) -> Self {
        Self { message: message.to_string(), code: USAGE }
    }

    /// The command was right, but could not be carried out: exit code 1.
    pub fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), code: FAILED }
    }

    /// A run's loss or gradient is no longer finite: exit code 4.
    pub fn diverged(message: impl Display) -> Self {
        Self { message: message.to_string(), code: DIVERGED }
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// How a command that did not fail ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Success {
    /// All done.
    Done,
    /// Stopped on request, to be gone on with: exit code 130, as after an interrupt.
    Interrupted,
    /// Carried out, and something is wrong with what was looked at: exit code 3.
    Unwell,
}

/// Says what went wrong, if anything did, and gives the exit code. That output was lost is an error, which never hides
/// another one; where its reader has gone away (`| head`), the code alone tells.
pub fn end(result: Result<Success, Failure>) -> ExitCode {
    let code = match result {
        Ok(Success::Done) => 0,
        Ok(Success::Interrupted) => INTERRUPTED,
        Ok(Success::Unwell) => FOUND,
        Err(failure) => {
            tell(format!("error: {}", failure.message));
            failure.code
        }
    };
    let of_output = match lost() {
        None => 0,
        Some(ErrorKind::BrokenPipe) => UNREAD,
        Some(kind) => {
            tell(format!("error: can't write to standard output: {kind}"));
            FAILED
        }
    };
    ExitCode::from(if code == 0 { of_output } else { code })
}
