//! Work in pieces whose number depends on the problem alone, so that sums are the same whatever number of threads did them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

/// Fewer operations than this are done by the calling thread: to wake another costs about as much.
const WORTH_SHARING: usize = 400_000;

/// Calls `each` on every piece. `operations` is about how many there are in all.
pub(crate) fn for_each<T: Send>(operations: usize, pieces: Vec<T>, each: impl Fn(T) + Sync + Send) {
    if operations < WORTH_SHARING || pieces.len() < 2 || rayon::current_num_threads() == 1 {
        pieces.into_iter().for_each(each);
    } else {
        keep_others_awake();
        pieces.into_par_iter().with_max_len(1).for_each(each);
    }
}

/// How long a thread looks out for more work before it sleeps. Kernels follow each other more closely than that, and to wake
/// a thread takes longer than many of them.
const AWAKE: Duration = Duration::from_micros(300);

/// Has the other threads look out for work for a while, unless they do already.
fn keep_others_awake() {
    static AWAKE_NOW: AtomicUsize = AtomicUsize::new(0);
    let Some(own) = rayon::current_thread_index() else { return };
    let others = rayon::current_num_threads() - 1;
    if AWAKE_NOW.compare_exchange(0, others, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    rayon::spawn_broadcast(move |context| {
        // The thread that asks has work of its own, and waits for its end by doing what else there is.
        if context.index() == own {
            return;
        }
        let mut last = Instant::now();
        while last.elapsed() < AWAKE {
            match rayon::yield_now() {
                Some(rayon::Yield::Executed) => last = Instant::now(),
                _ => std::thread::yield_now(),
            }
        }
        AWAKE_NOW.fetch_sub(1, Ordering::Relaxed);
    });
}
