//! What only one of the processes that share an experiment's folder does at a time.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use runs::Claims;

/// Waits until no other process does what goes by `name` in `folder`, and does it, beating meanwhile.
pub fn alone<T>(folder: &Path, name: &str, patience: Duration, act: impl FnOnce() -> T) -> T {
    let mut claims = Claims::new(patience);
    let token = loop {
        match claims.token(folder, name) {
            Ok(Some(token)) => break Some(token),
            Ok(None) => thread::sleep(Duration::from_millis(200)),
            // In a folder that can only be read there is nothing to be kept from others.
            Err(_) => break None,
        }
    };
    let (sender, receiver) = channel::<()>();
    thread::scope(|scope| {
        let beating = token.map(|mut token| {
            scope.spawn(move || {
                while receiver.recv_timeout(patience / 24) == Err(RecvTimeoutError::Timeout) {
                    // One that can't be written may be taken over: then two write the same.
                    drop(token.beat());
                }
                drop(token.give_back());
            })
        });
        let done = act();
        drop(sender);
        drop(beating.map(|beating| beating.join()));
        done
    })
}
