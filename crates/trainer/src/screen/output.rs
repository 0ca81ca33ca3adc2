//! Every line that the program prints goes through here: what it found to standard output, what it tells on the way to
//! standard error.
//!
//! Text may hold parts of files that others wrote: questions, labels, names of files and tensors, a lock's holder. So no line
//! reaches a terminal but through [`shown`], which writes out what a terminal would obey and what reorders or hides text. Only
//! [`control`] sends sequences, which are this program's own. Live bars are told through [`above`] and [`beside`].
//!
//! A line that standard output did not take is remembered and decides the exit code where nothing worse does
//! ([`lost`]). What goes on to be printed then is dropped; the work goes on, since its outcome is worth an exit code. A
//! message that standard error does not take is dropped: there is nobody left to tell.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar};
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
    put(&shown(&text.to_string()));
}

/// Prints a line to standard output that its reader must not miss, in yellow where colours are wanted.
pub fn print_warning(text: impl Display) {
    put(&yellow(&shown(&text.to_string()), is_on_terminal()));
}

/// Puts a line of shown text to standard output.
fn put(line: &str) {
    if lost().is_none()
        && let Err(error) = writeln!(stdout(), "{line}").and_then(|()| stdout().flush()).and_then(|()| taken())
    {
        lose(&error);
    }
}

/// Shown text in yellow for a terminal, unless NO_COLOR is set (<https://no-color.org>); else as it is.
fn yellow(text: &str, is_terminal: bool) -> Cow<'_, str> {
    let is_coloured = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if is_coloured { Cow::Owned(format!("\u{1b}[33m{text}\u{1b}[0m")) } else { Cow::Borrowed(text) }
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
        Ok(text) => print(json_shown(&text)),
        // Only maps with other keys than text could fail, and there are none.
        Err(error) => lose(&error.into()),
    }
}

/// Prints a line to standard error.
pub fn tell(text: impl Display) {
    drop(writeln!(stderr(), "{}", shown(&text.to_string())));
}

/// Names the next step, as a command, on standard error: what was asked for stays as it is for programs that read it.
pub fn next(command: impl Display) {
    tell(format!("\nNext: {command}"));
}

/// Prints a line to standard error as a warning, in yellow where colours are wanted.
pub fn warn(text: impl Display) {
    let text = format!("warning: {text}");
    drop(writeln!(stderr(), "{}", yellow(&shown(&text), is_live())));
}

/// Prints a line above a live bar, or bars.
#[expect(clippy::disallowed_methods, reason = "the one place that prints")]
pub fn above(bar: &ProgressBar, text: impl Display) {
    bar.println(shown(&text.to_string()));
}

/// As [`above`], of several bars.
#[expect(clippy::disallowed_methods, reason = "the one place that prints")]
pub fn above_all(bars: &MultiProgress, text: impl Display) {
    drop(bars.println(shown(&text.to_string()))); // standard error: nobody left to tell
}

/// What stands beside a live bar from now on.
#[expect(clippy::disallowed_methods, reason = "the one place that prints")]
pub fn beside(bar: &ProgressBar, text: impl Display) {
    bar.set_message(one_line(&text.to_string()));
}

/// Text with everything written out (`\u{1b}`) that a terminal obeys, or that makes it show other text than there is: control
/// characters but for line ends and tabs, marks that reorder text, invisible ones.
pub fn shown(text: &str) -> Cow<'_, str> {
    written_out(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'), |c| c.escape_default().collect())
}

/// [`shown`], with line ends and tabs written out too: for a name or a label within a line.
pub fn one_line(text: &str) -> String {
    written_out(text, is_obeyed, |c| c.escape_default().collect()).into_owned()
}

/// JSON text that says the same, with the characters of [`shown`] written as JSON has them.
fn json_shown(text: &str) -> Cow<'_, str> {
    let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    written_out(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t'), escape)
}

fn written_out(text: &str, is_written_out: impl Fn(char) -> bool, escape: impl Fn(char) -> String) -> Cow<'_, str> {
    if !text.chars().any(&is_written_out) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_written_out(c) { shown.push_str(&escape(c)) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Control characters (C0, DEL, C1), and what Unicode has to reorder text (UAX #9), to end lines, or to stand in it unseen.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// click#3832: control characters of a file's text moved the cursor and coloured what followed; U+202E turns a line round.
    #[test]
    fn click_3832_what_a_terminal_obeys_is_written_out() {
        for (text, expected) in [
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", r"\u{1b}[2J\u{1b}]0;owned\u{7}"),
            ("a\rb\u{8}\u{7f}\u{9b}31m", r"a\rb\u{8}\u{7f}\u{9b}31m"),
            ("gnp.\u{202e}exe\u{2066}\u{200f}\u{feff}", r"gnp.\u{202e}exe\u{2066}\u{200f}\u{feff}"),
            ("unseen\u{200b}\u{e0041}\u{2028}", r"unseen\u{200b}\u{e0041}\u{2028}"),
            ("two\nlines\tand é · × → 头", "two\nlines\tand é · × → 头"),
        ] {
            assert_eq!(shown(text), expected);
        }
        assert_eq!(one_line("a\nerror: forged\t"), r"a\nerror: forged\t");
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_is_obeyed(text in any::<String>(), marks in prop::collection::vec(any::<char>(), 0..20)) {
            let text: String = text.chars().chain(marks).collect();
            prop_assert!(shown(&text).chars().all(|c| !is_obeyed(c) || matches!(c, '\n' | '\t')));
            prop_assert!(one_line(&text).chars().all(|c| !is_obeyed(c)));
            let json = serde_json::to_string(&text).unwrap();
            prop_assert!(json_shown(&json).chars().all(|c| !is_obeyed(c)));
            prop_assert_eq!(serde_json::from_str::<String>(&json_shown(&json)).unwrap(), text);
        }
    }
}
