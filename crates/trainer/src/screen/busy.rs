//! What goes on while something takes long without steps of its own: a line on a terminal, and elsewhere one now and then.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::output::{beside, is_live, tell};
use super::text::duration;

/// Before a plain line says that something is going on; what is quicker says nothing.
const FIRST: Duration = Duration::from_secs(5);
/// Between two plain lines.
const EVERY: Duration = Duration::from_secs(30);

/// Shows on standard error what is being done, until it is dropped.
pub struct Busy {
    live: Option<ProgressBar>,
    plain: Option<Plain>,
}

impl Busy {
    /// `what` is being done, such as "heads".
    pub fn new(what: &str) -> Self {
        if !is_live() {
            return Self { live: None, plain: Some(Plain::new(what, FIRST, EVERY, tell)) };
        }
        let bar = ProgressBar::new_spinner();
        beside(&bar, what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { live: Some(bar), plain: None }
    }

    /// By now it is `what`, such as "heads of run 3 of 20".
    pub fn now(&self, what: &str) {
        if let Some(bar) = &self.live {
            beside(bar, what);
        }
        if let Some(Plain { sender: Some(sender), .. }) = &self.plain {
            drop(sender.send(what.into())); // the thread only ends with it
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
    }
}

/// A thread that says lines.
struct Plain {
    /// What is being done by now; its end ends the thread.
    sender: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Plain {
    fn new(what: &str, first: Duration, every: Duration, say: impl Fn(String) + Send + 'static) -> Self {
        let (sender, receiver) = channel::<String>();
        let mut what = what.to_string();
        let thread = std::thread::spawn(move || {
            let started = Instant::now();
            let mut next = first;
            loop {
                match receiver.recv_timeout(next.saturating_sub(started.elapsed())) {
                    Ok(now) => what = now,
                    Err(RecvTimeoutError::Timeout) => {
                        say(format!("{what}, since {}", duration(Some(started.elapsed()))));
                        next = started.elapsed() + every;
                    }
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        });
        Self { sender: Some(sender), thread: Some(thread) }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.sender = None;
        // A thread that panicked has nothing more to say.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_told_and_what_is_quick_is_not() {
        let (sender, told) = channel();
        let say = move |line| drop(sender.send(line));
        let plain = Plain::new("heads", Duration::from_millis(20), Duration::from_millis(20), say);
        assert!(told.recv().unwrap().starts_with("heads, since 0:00"));
        plain.sender.as_ref().unwrap().send("heads of run 3 of 20".into()).unwrap();
        let mut lines = std::iter::from_fn(|| told.recv().ok());
        assert!(lines.any(|line| line.starts_with("heads of run 3 of 20")));
        drop(plain);
        let (sender, told) = channel();
        let say = move |line: String| drop(sender.send(line));
        drop(Plain::new("heads", Duration::from_secs(60), Duration::from_secs(60), say));
        assert!(told.recv().is_err(), "it is over before there is anything to say");
    }
}
