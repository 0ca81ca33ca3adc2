//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: trainer::allocator::Allocator = trainer::allocator::Allocator;

fn main() -> ExitCode {
    trainer::allocator::keep_pages();
    trainer::commands::main()
}
