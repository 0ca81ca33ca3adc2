//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

/// A training step allocates and frees the same large tensors again and again. The system's allocator hands each back to
/// the kernel and faults its pages in anew, which took a quarter of the step; so does this one unless told not to.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`, which the bindings do not name: milliseconds until free pages go back to the kernel, −1 for never.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

fn main() -> ExitCode {
    // SAFETY: an option that exists is set to a value that it may have.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, -1) };
    trainer::commands::main()
}
