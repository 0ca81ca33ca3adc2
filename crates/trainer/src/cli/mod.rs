//! The command line as a whole: from the process's arguments to its exit code.

pub mod names;
pub mod values;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::train::{self, TrainArguments};
use crate::machine::exit::{self, Failure, Success};
use crate::machine::stop;
use crate::screen::output::{lose, print, shown, taken, tell};

/// How many attention heads does a task need? Train matched arms and see.
#[derive(Debug, Parser)]
#[command(
    name = "trainer",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = format!(
        "{}\n\n\
        Examples:\n  \
        {FIRST}\n  \
        trainer --config configs/h8.toml --set model.heads=2 --seed 1\n  \
        trainer --config configs/h8.toml --dry-run          what it would cost\n  \
        trainer tasks registers --show 3                    look at samples",
        exit::CODES
    )
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub train: TrainArguments,
}

/// The commands, and what is about all of them.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(flatten)]
    One(Box<crate::commands::Command>),
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    stop::outlive_file_limits();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() < 2 {
        tell(first_steps());
        return ExitCode::from(exit::USAGE);
    }
    match Cli::try_parse_from(meant(arguments)) {
        Ok(cli) => exit::end(run(&cli)),
        Err(error) if error.use_stderr() => {
            complain(&error);
            ExitCode::from(exit::USAGE)
        }
        // The help or the version, which were asked for.
        Err(error) => {
            if let Err(error) = error.print().and_then(|()| taken()) {
                lose(&error);
            }
            exit::end(Ok(Success::Done))
        }
    }
}

/// What to begin with.
const FIRST: &str = "trainer --config h8                                 train 8 heads, 15 seconds\n  \
     trainer compare h1-vs-h8                            one head against eight, 2 minutes\n  \
     trainer report runs/h1-vs-h8 --open                 the same as a page";

/// The same for who gives no argument.
fn first_steps() -> String {
    format!(
        "How many attention heads does a task need? Train matched arms and see.\n\n  {FIRST}\n  \
         trainer tasks                                       what there is to learn\n  \
         trainer --help                                      everything else\n\n\
         Next: trainer --config h8"
    )
}

/// A file alone means what is done with such a file: a config is trained, an experiment compared.
fn meant(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = arguments.get(1).map(PathBuf::from) else { return arguments };
    if first.extension().is_none_or(|extension| extension != "toml") {
        return arguments;
    }
    let word = match names::kind_of(&first) {
        names::Kind::Config => "--config",
        names::Kind::Experiment => "compare",
    };
    arguments.insert(1, word.into());
    tell(format!("trainer {word} {}", first.display()));
    arguments
}

/// Says what is wrong with the arguments, in colours where they hold nothing that a terminal would obey.
fn complain(error: &clap::Error) {
    let text = error.to_string();
    match shown(&text) {
        // Nobody to tell where it fails: the exit code has to do.
        Cow::Borrowed(_) => drop(error.print()),
        Cow::Owned(text) => tell(text.trim_end()),
    }
}

fn run(cli: &Cli) -> Result<Success, Failure> {
    kernels::level().map_err(Failure::usage)?;
    match &cli.command {
        None => train::run(&cli.train),
        Some(Command::One(command)) => command.run(),
        Some(Command::Completions { shell }) => {
            let mut script = vec![]; // clap_complete panics where its reader has gone away
            clap_complete::generate(*shell, &mut Cli::command(), "trainer", &mut script);
            print(String::from_utf8_lossy(&script).trim_end());
            Ok(Success::Done)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn config_alone_means_train() {
        let cli =
            Cli::try_parse_from(["trainer", "--config", "a.toml", "--seed", "3", "--backend", "ndarray"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.train.config, Some("a.toml".into()));
        assert_eq!(
            values::overrides(&cli.train.overrides, cli.train.seed, cli.train.backend),
            ["seed=3", "backend=ndarray"]
        );
        let cli = Cli::try_parse_from(["trainer", "train", "--config", "a.toml"]).unwrap();
        assert!(matches!(cli.command, Some(Command::One(command)) if matches!(*command, commands::Command::Train(_))));
    }

    #[test]
    fn unknown_backend_names_the_known() {
        let error = Cli::try_parse_from(["trainer", "--config", "a.toml", "--backend", "wpgu"]).unwrap_err();
        assert!(error.to_string().contains("did you mean `wgpu`?"), "{error}");
    }
}
