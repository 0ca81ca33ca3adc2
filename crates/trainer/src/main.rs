//! `trainer`: see [`trainer::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    trainer::commands::main()
}
