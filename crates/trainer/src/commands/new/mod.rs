//! `trainer new`: from a file of data to a config, a sweep over heads, and what is known before anything is trained.

mod guess;
mod shown;
mod written;

use std::path::{Path, PathBuf};

use clap::Args;
use runs::{Config, Experiment};

use self::guess::{Details, Kind};
use self::written::{Proposal, Source};
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
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if arguments.name.is_empty() || arguments.name.starts_with('.') || !arguments.name.chars().all(is_plain) {
        return Err(Failure::usage(
            "NAME becomes that of files: letters, digits, `_`, `-` and `.`, not beginning with `.`",
        ));
    }
    let beside_each_other = |ending: &str| {
        let file = PathBuf::from(format!("{}{ending}.toml", arguments.name));
        if arguments.out == Path::new(".") { file } else { arguments.out.join(file) }
    };
    let (config_path, sweep_path) = (beside_each_other(""), beside_each_other("-heads"));
    if let Some(there) = [&config_path, &sweep_path].into_iter().find(|path| path.exists() && !arguments.force) {
        return Err(Failure::usage(format!("{} is there already: --force writes it anew", there.display())));
    }
    let kind = match &arguments.kind {
        Some(kind) => Kind::named(kind),
        None => Kind::of(&arguments.from).map_err(Failure::usage)?,
    };
    let details = Details::of(&arguments.from, kind).map_err(Failure::usage)?;
    let vocab_file = (!details.names.is_empty()).then(|| format!("{}-vocab.txt", arguments.name));
    if let Some(file) = &vocab_file {
        write_output(&arguments.out.join(file), (details.names.join("\n") + "\n").as_bytes())?;
    }
    let source = Source { kind, files: beside(&arguments.from, &arguments.out), vocab_file, details };
    // Read once with the usual sizes, to see what is in it.
    let read = |text: &str| Config::parse(text, &config_path.display().to_string()).map_err(Failure::usage);
    let config = read(&source.to_look())?;
    let config = read(&Proposal::first(&source, &config).config())?;
    print(shown::data(&config));

    // As many steps as the time allows, measured on a few.
    tell("measuring how fast this machine takes a step ...");
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(1) }; // as runs beside one another have
    let device = backend::open(config.backend).map_err(Failure::usage)?;
    let times = Times::measure(&config, &device)?;
    let at_once = facts::cores();
    let proposal = Proposal::within(&source, &config, times, at_once, arguments.minutes);
    write_output(&config_path, proposal.config().as_bytes())?;
    write_output(&sweep_path, proposal.sweep(&arguments.name).as_bytes())?;
    // What was written is what is read.
    let config = Config::load(&config_path, &[]).map_err(Failure::usage)?;
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
