//! Every line that the program prints goes through here: what it found to standard output, what it tells on the way to
//! standard error.
//!
//! A line that standard output did not take is remembered and decides the exit code where nothing worse does
//! ([`lost`]). What goes on to be printed then is dropped; the work goes on, since its outcome is worth an exit code. A
//! message that standard error does not take is dropped: there is nobody left to tell.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// Why standard output did not take a line.
static LOST: Mutex<Option<ErrorKind>> = Mutex::new(None);

/// Whether standard output was closed (`>&-`) when the program began.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// To be called before the standard library begins: it opens /dev/null in the place of a standard output that is closed, so
/// that what is printed would seem to be written.
#[cfg(unix)]
pub extern "C" fn look_at_standard_output() {
    // SAFETY: a call without memory.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Whether what the standard library has written went anywhere.
///
/// # Errors
/// [`ErrorKind::NotConnected`] where standard output was closed when the program began.
pub fn taken() -> io::Result<()> {
    if WAS_CLOSED.load(Ordering::Relaxed) { Err(ErrorKind::NotConnected.into()) } else { Ok(()) }
}

/// Prints a line to standard output.
pub fn print(text: impl Display) {
    if lost().is_none()
        && let Err(error) = writeln!(stdout(), "{text}").and_then(|()| stdout().flush()).and_then(|()| taken())
    {
        lose(&error);
    }
}

/// Prints one line of JSON to standard output.
pub fn print_json(value: &impl Serialize) {
    put_json(serde_json::to_string(value));
}

/// Prints JSON over several lines to standard output.
pub fn print_pretty_json(value: &impl Serialize) {
    put_json(serde_json::to_string_pretty(value));
}

fn put_json(text: serde_json::Result<String>) {
    match text {
        Ok(text) => print(text),
        // Only maps with other keys than text could fail, and there are none.
        Err(error) => lose(&error.into()),
    }
}

/// Prints a line to standard error.
pub fn tell(text: impl Display) {
    drop(writeln!(stderr(), "{text}"));
}

/// Remembers that standard output did not take something.
pub fn lose(error: &io::Error) {
    let mut lost = LOST.lock().unwrap_or_else(PoisonError::into_inner);
    lost.get_or_insert(error.kind());
}

/// Why something printed was lost, if anything was: [`ErrorKind::BrokenPipe`] where its reader has gone away.
pub fn lost() -> Option<ErrorKind> {
    *LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether standard error is a terminal, where lines may be drawn again.
pub fn is_live() -> bool {
    stderr().is_terminal()
}

/// Whether standard output is a terminal.
pub fn is_on_terminal() -> bool {
    stdout().is_terminal()
}

/// Sends control sequences to the terminal that standard output is.
pub fn control(sequences: &str) {
    let mut output = stdout();
    drop(output.write_all(sequences.as_bytes()).and_then(|()| output.flush()));
}

#[expect(clippy::disallowed_methods, reason = "the one place that prints")]
fn stdout() -> io::Stdout {
    io::stdout()
}

#[expect(clippy::disallowed_methods, reason = "the one place that prints")]
fn stderr() -> io::Stderr {
    io::stderr()
}
