//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

use trainer::machine::allocator::{Allocator, keep_pages};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// What the system calls before anything of the standard library.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
static BEFORE_MAIN: extern "C" fn() = trainer::screen::output::look_at_standard_output;

fn main() -> ExitCode {
    keep_pages();
    trainer::cli::main()
}
