//! The program's allocator: mimalloc, and a plain last word where there is no memory left.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// A training step allocates and frees the same large tensors again and again. The system's allocator hands each back to
/// the kernel and faults its pages in anew, which took a quarter of the step; mimalloc keeps them, once
/// [`keep_pages`] has told it to.
///
/// Rust ends a program that gets no memory by a signal and a core dump. This one says what happened and what to do, and
/// ends it with exit code 1; checkpoints are complete or absent, whenever that is. It can only speak where the system refuses
/// memory, as with limits: where the system promises more than it has, it kills the program instead.
pub struct Allocator;

// SAFETY: every call goes to mimalloc as it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.alloc(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        given(unsafe { MiMalloc.realloc(pointer, layout, size) }, size)
    }
}

/// Lets the allocator keep the pages that are free instead of giving them back after a moment, only to fault them in
/// anew in the next step: that took a third of a step of a model of 3 million parameters.
pub fn keep_pages() {
    /// `mi_option_purge_delay`, which the bindings do not name: milliseconds until free pages go back, −1 for never.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: an option that exists is set to a value that it may have.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
}

fn given(pointer: *mut u8, bytes: usize) -> *mut u8 {
    if pointer.is_null() {
        end(bytes);
    }
    pointer
}

/// Says that `bytes` were not to be had, and ends the program; where it can't speak, Rust's own handler does.
#[cold]
fn end(bytes: usize) {
    #[cfg(unix)]
    {
        use std::sync::atomic::{AtomicBool, Ordering};
        static SPOKEN: AtomicBool = AtomicBool::new(false);
        if SPOKEN.swap(true, Ordering::SeqCst) {
            // Another thread is ending the program, or this one is and has no memory for that either.
            return;
        }
        let mut digits = [0; 20];
        for part in [
            b"error: out of memory: the system refuses ".as_slice(),
            decimal(bytes, &mut digits),
            b" more bytes. What was saved is intact, and the same command goes on from it once there is room; a smaller \
              train.batch_size, train.eval_batch or model needs less.\n",
        ] {
            // Past every lock and buffer. Nobody to tell: the exit code has to do.
            let _ = rustix::io::write(rustix::stdio::stderr(), part);
        }
        std::process::exit(1);
    }
    #[cfg(not(unix))]
    let _ = bytes;
}

/// A number's digits, without any memory but `digits`.
#[cfg(unix)]
fn decimal(mut number: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[start..];
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::decimal;

    #[test]
    fn numbers_are_written_without_memory() {
        for number in [0, 7, 10, 4_398_046_511_104, usize::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string().as_bytes());
        }
    }
}
