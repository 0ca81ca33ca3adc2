//! `trainer new`: from a file of data to a config, a sweep over heads, and what is known before anything is trained.

mod guess;
mod shown;
mod written;

use std::path::{Path, PathBuf};

use clap::Args;
use runs::{Config, Experiment};

use self::guess::Kind;
use self::written::Proposal;
use super::dry_run::Times;
use super::files::write_output;
use crate::machine::exit::{Failure, Success};
use crate::machine::{backend, facts};
use crate::screen::output::{print, tell};

/// Arguments of `new`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
        trainer new reviews --from reviews.jsonl     sequences of tokens with a label each\n  \
        trainer new novel --from novel.txt           the next byte of a text\n  \
        trainer new load --from load.csv             the next row of a time series")]
pub struct NewArguments {
    /// What it is called: NAME.toml and NAME-heads.toml are written.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The data: a text, a folder of texts, JSON lines, a CSV file, or NumPy arrays.
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
    /// What is in it, where the file does not tell.
    #[arg(long, value_name = "KIND", value_parser = ["text", "records", "series", "vectors"])]
    pub kind: Option<String>,
    /// A key of the config, such as task.horizon=12; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// How long the sweep over heads may take on this machine; steps follow from it.
    #[arg(long, value_name = "MINUTES", default_value_t = 20.0, value_parser = parse_minutes)]
    pub minutes: f64,
    /// Folder that the two files are written to.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// Write them although they are there.
    #[arg(long)]
    pub force: bool,
}

fn parse_minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes.is_finite() => Ok(minutes),
        _ => Err("minutes are a finite number above 0".to_string()),
    }
}

pub fn run(arguments: &NewArguments) -> Result<Success, Failure> {
    let config_path = arguments.out.join(format!("{}.toml", arguments.name));
    let sweep_path = arguments.out.join(format!("{}-heads.toml", arguments.name));
    if let Some(there) = [&config_path, &sweep_path].into_iter().find(|path| path.exists() && !arguments.force) {
        return Err(Failure::usage(format!("{} is there already: --force writes it anew", there.display())));
    }
    let kind = match &arguments.kind {
        Some(kind) => Kind::named(kind),
        None => Kind::of(&arguments.from).map_err(Failure::usage)?,
    };
    // Read once with the usual sizes, to see what is in it.
    let files = beside(&arguments.from, &arguments.out);
    let read = |text: &str| {
        let origin = config_path.display().to_string();
        Config::parse_with(text, &origin, &arguments.overrides).map_err(Failure::usage)
    };
    let config = read(&written::to_look(kind, &files))?;
    let config = read(&Proposal::first(kind, &files, &config).config())?;
    backend::warning(config.backend, &backend::open(config.backend).map_err(Failure::usage)?)
        .into_iter()
        .for_each(tell);
    print(shown::data(&config));

    // As many steps as the time allows, measured on a few.
    tell("measuring how fast this machine takes a step ...");
    let device = backend::open(config.backend).map_err(Failure::usage)?;
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(1) }; // as runs beside one another have
    let times = Times::measure(&config, &device)?;
    let at_once = facts::cores();
    let proposal = Proposal::within(kind, &files, &config, times, at_once, arguments.minutes);
    write_output(&config_path, proposal.config().as_bytes())?;
    write_output(&sweep_path, proposal.sweep(&arguments.name).as_bytes())?;
    // What was written is what is read.
    let config = Config::load(&config_path, &arguments.overrides).map_err(Failure::usage)?;
    Experiment::load(&sweep_path).map_err(Failure::usage)?;
    print(shown::next(&config, &proposal, &config_path, &sweep_path));
    Ok(Success::Done)
}

/// A path as a config in `folder` has it: as it was given where the config lies in the working directory, complete where not.
fn beside(path: &Path, folder: &Path) -> String {
    let complete = || std::path::absolute(path).unwrap_or_else(|_| path.into());
    let path = if folder == Path::new(".") || path.is_absolute() { path.to_path_buf() } else { complete() };
    path.to_string_lossy().into_owned()
}
