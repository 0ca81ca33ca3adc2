//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

use trainer::machine::allocator::{Allocator, keep_pages};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    keep_pages();
    trainer::cli::main()
}
