//! Requests to stop: Ctrl-C, and the signals by which systems and schedulers ask.
//!
//! The first one asks the run to save and end after its current step. Those that come within a second belong to it: `timeout`
//! sends two, a terminal that closes sends several. Only another Ctrl-C later than that, of a person at a terminal, ends the
//! program at once. A signal that was ignored when the program started (`nohup`, a shell's background job) stays ignored.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use burn::train::Interrupter;

use crate::screen::dashboard;
use crate::screen::output::tell;

/// What this process has been asked, and what it does about it.
#[derive(Clone)]
pub struct Stop {
    interrupter: Interrupter,
    /// Whether nothing is left to save, so that a request ends the program as if nobody listened.
    at_once: Arc<AtomicBool>,
    workers: Workers,
}

impl Stop {
    /// Begins to listen, for a process that trains itself.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn listen() -> io::Result<Self> {
        let stop = Self::new();
        system::listen(&stop, false)?;
        Ok(stop)
    }

    /// Begins to listen, for a process that has others train: when it is paused (Ctrl-Z) and goes on, so do they.
    ///
    /// # Errors
    /// Where the system refuses a handler.
    pub fn listen_for_workers() -> io::Result<Self> {
        let stop = Self::new();
        system::listen(&stop, true)?;
        Ok(stop)
    }

    fn new() -> Self {
        Self { interrupter: Interrupter::new(), at_once: Arc::default(), workers: Workers::default() }
    }

    /// What a request sets off.
    pub fn interrupter(&self) -> &Interrupter {
        &self.interrupter
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.interrupter.should_stop()
    }

    /// From here on nothing is left to save: a request ends the program at once, as where nobody listens.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::SeqCst);
    }

    /// The processes that train.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}

/// From here on a file that grows beyond a limit (`ulimit -f`) is an error of its writer, which is told, and not the end of the
/// program by a signal.
pub fn outlive_file_limits() {
    system::outlive_file_limits();
}

/// Ids of processes that are to pause and go on with this one.
#[derive(Clone, Default)]
pub struct Workers(Arc<Mutex<Vec<u32>>>);

impl Workers {
    /// The ids. Held while a process is started or asked for its end, so that nothing is sent to an id that is not known yet
    /// or no longer its own.
    pub fn ids(&self) -> MutexGuard<'_, Vec<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests that are one.
const TOGETHER: Duration = Duration::from_secs(1);

/// What has been asked so far.
#[derive(Default)]
struct Requests {
    is_asked: bool,
    /// The first Ctrl-C.
    ctrl_c: Option<Instant>,
}

/// What is done about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Save and end after this step.
    Stop,
    /// A person's first Ctrl-C after another request: tell what a second one does.
    Remind,
    /// It belongs to what was asked before.
    Nothing,
    /// End the program now.
    Quit,
}

impl Requests {
    /// The answer to a request at `now`; `by_person` where it came from a terminal.
    fn answer(&mut self, is_ctrl_c: bool, by_person: bool, now: Instant) -> Answer {
        let is_first = !std::mem::replace(&mut self.is_asked, true);
        let earlier = self.ctrl_c;
        if is_ctrl_c {
            self.ctrl_c.get_or_insert(now);
        }
        match (is_first, earlier) {
            (true, _) => Answer::Stop,
            (false, Some(then)) if is_ctrl_c && by_person && now.duration_since(then) > TOGETHER => Answer::Quit,
            (false, None) if is_ctrl_c && by_person => Answer::Remind,
            _ => Answer::Nothing,
        }
    }
}

/// Acts on a request called `name`.
fn act(stop: &Stop, answer: Answer, name: &str, by_person: bool) {
    let again = "Ctrl-C once more, a second from now: at once, what came after the last checkpoint is lost";
    match answer {
        Answer::Stop => {
            // Before anything is said: whoever should read it may be gone, or slow.
            stop.interrupter.stop(Some("signal"));
            match by_person {
                true => tell(format!("\nStopping after this step ({again}).")),
                false => tell(format!("\nStopping after this step ({name}).")),
            }
        }
        Answer::Remind => tell(format!("\nStill stopping after this step ({again}).")),
        Answer::Nothing => {}
        Answer::Quit => {
            dashboard::restore_terminal();
            std::process::exit(130);
        }
    }
}

#[cfg(unix)]
mod system {
    use std::ffi::c_int;
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGXCPU};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::{emulate_default_handler, signal_name};

    use super::{Requests, Stop, act};
    use crate::screen::dashboard;

    /// Requests: of persons, systems and schedulers, the last one ahead of a limit of processor time.
    const STOPS: [c_int; 6] = [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU];
    /// What pauses a program, and lets it go on.
    const PAUSES: [c_int; 2] = [SIGTSTP, SIGCONT];

    pub fn listen(stop: &Stop, pauses: bool) -> io::Result<()> {
        let pauses: &[c_int] = if pauses { &PAUSES } else { &[] };
        let wanted = STOPS.iter().chain(pauses).filter(|&&signal| !is_ignored(signal));
        let mut signals = Signals::new(wanted)?;
        let stop = stop.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut requests = Requests::default();
            for signal in signals.forever() {
                match signal {
                    SIGTSTP => pause(&stop),
                    SIGCONT => send(&stop.workers().ids(), SIGCONT),
                    _ if stop.at_once.load(Ordering::SeqCst) => {
                        dashboard::restore_terminal();
                        drop(emulate_default_handler(signal)); // it does not come back
                    }
                    _ => {
                        let (is_ctrl_c, by_person) = (signal == SIGINT, signal == SIGINT && is_in_foreground());
                        let answer = requests.answer(is_ctrl_c, by_person, Instant::now());
                        act(&stop, answer, signal_name(signal).unwrap_or("a signal"), by_person);
                    }
                }
            }
        })?;
        Ok(())
    }

    pub fn outlive_file_limits() {
        // A handler that does nothing but be there; where it is refused, the signal ends the program as before.
        drop(signal_hook::flag::register(libc::SIGXFSZ, Arc::default()));
    }

    /// Pauses the workers, then this process; it comes back when it is let go on.
    fn pause(stop: &Stop) {
        let ids = stop.workers().ids();
        send(&ids, libc::SIGSTOP);
        drop(emulate_default_handler(SIGTSTP)); // a process that can't be paused goes on
    }

    fn send(ids: &[u32], signal: c_int) {
        for &id in ids {
            if let Ok(id) = libc::pid_t::try_from(id) {
                // SAFETY: a call without memory. The process is a child that nobody has waited for yet, so the id is its own.
                unsafe { libc::kill(id, signal) };
            }
        }
    }

    /// Whether a signal is ignored already, by the wish of whoever started this program.
    fn is_ignored(signal: c_int) -> bool {
        let mut before = std::mem::MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: nothing is set, and what is there is written to memory of its type.
        let known = unsafe { libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr()) } == 0;
        // SAFETY: written where the call succeeded.
        known && unsafe { before.assume_init() }.sa_sigaction == libc::SIG_IGN
    }

    /// Whether this process is what its terminal's keys act on.
    fn is_in_foreground() -> bool {
        let Ok(terminal) = File::open("/dev/tty") else { return false };
        // SAFETY: calls without memory, on a file that is open.
        unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    use super::{Requests, Stop, act};
    use crate::screen::output::is_live;

    pub fn listen(stop: &Stop, _pauses: bool) -> io::Result<()> {
        let stop = stop.clone();
        let requests = Mutex::new(Requests::default());
        let handler = move || {
            if stop.at_once.load(Ordering::SeqCst) {
                std::process::exit(130);
            }
            let by_person = is_live();
            let answer = requests.lock().map(|mut requests| requests.answer(true, by_person, Instant::now()));
            if let Ok(answer) = answer {
                act(&stop, answer, "Ctrl-C", by_person);
            }
        };
        ctrlc::set_handler(handler).map_err(io::Error::other)
    }

    pub fn outlive_file_limits() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests at so many milliseconds, and what is done about each.
    fn answers(requests: &[(u64, bool, bool)]) -> Vec<Answer> {
        let (mut asked, begin) = (Requests::default(), Instant::now());
        let one = |&(at, is_ctrl_c, by_person): &(u64, bool, bool)| {
            asked.answer(is_ctrl_c, by_person, begin + Duration::from_millis(at))
        };
        requests.iter().map(one).collect()
    }

    #[test]
    fn only_a_second_ctrl_c_of_a_person_quits() {
        use Answer::{Nothing, Quit, Remind, Stop};
        let person = |at| (at, true, true);
        let interrupt = |at| (at, true, false);
        let other = |at| (at, false, false);
        assert_eq!(answers(&[person(0), person(2), person(900), person(1100)]), [Stop, Nothing, Nothing, Quit]);
        assert_eq!(answers(&[interrupt(0), interrupt(5000), interrupt(9000)]), [Stop, Nothing, Nothing]);
        assert_eq!(answers(&[other(0), other(2), other(60_000)]), [Stop, Nothing, Nothing]);
        // What a scheduler asked before is no Ctrl-C.
        assert_eq!(answers(&[other(0), person(3000), person(3500), person(4100)]), [Stop, Remind, Nothing, Quit]);
        assert_eq!(answers(&[person(0), other(2000), person(2100)]), [Stop, Nothing, Quit]);
    }
}
