//! Ctrl-C: the first asks the run to stop after its current step, the second ends the program at once.

use burn::train::Interrupter;

use crate::commands::tell;
use crate::dashboard;

/// An interrupter that SIGINT, SIGTERM and SIGHUP set off.
///
/// # Errors
/// Where the system refuses a handler.
pub fn on_signal() -> Result<Interrupter, ctrlc::Error> {
    let interrupter = Interrupter::new();
    let handler = interrupter.clone();
    ctrlc::set_handler(move || {
        if handler.should_stop() {
            dashboard::restore_terminal();
            std::process::exit(130);
        }
        tell("\nStopping after this step (once more: at once, what came after the last checkpoint is lost).");
        handler.stop(Some("signal"));
    })?;
    Ok(interrupter)
}
