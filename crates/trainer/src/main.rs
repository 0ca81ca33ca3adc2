//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

/// A training step allocates and frees the same large tensors again and again. The system's allocator hands each back to
/// the kernel and faults its pages in anew, which took a quarter of the step.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    trainer::commands::main()
}
