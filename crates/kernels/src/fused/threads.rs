//! Work in pieces whose number depends on the problem alone, so that sums are the same whatever number of threads did them.

use rayon::prelude::*;

/// Fewer operations than this are done by the calling thread: to wake another costs about as much.
const WORTH_SHARING: usize = 400_000;

/// Calls `each` on every piece. `operations` is about how many there are in all.
pub(crate) fn for_each<T: Send>(operations: usize, pieces: Vec<T>, each: impl Fn(T) + Sync + Send) {
    if operations < WORTH_SHARING || pieces.len() < 2 || rayon::current_num_threads() == 1 {
        pieces.into_iter().for_each(each);
    } else {
        pieces.into_par_iter().with_max_len(1).for_each(each);
    }
}
