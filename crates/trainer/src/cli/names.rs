//! What a name on the command line means: a file, one of the repository's configs and experiments, a run.
//!
//! Those of the repository are in the program too: where there is no such file, they are laid out in a temporary folder and
//! read from there.

use std::fs;
use std::path::{Path, PathBuf};

use runs::RunDirectory;

use crate::machine::exit::Failure;
use crate::screen::output::tell;
use crate::training::manifest::BUILD;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// What a file on the command line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Config,
    Experiment,
}

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Config => "configs",
            Self::Experiment => "experiments",
        }
    }
}

/// The file that is meant by `given`: that file, else `given.toml`, else the one of this name in `configs/` or `experiments/`, here
/// or of the program's own. What was taken instead is said. A name that means nothing stays, and whoever reads it says so.
///
/// # Errors
/// A temporary folder that can't be written.
pub fn file(kind: Kind, given: &Path) -> Result<PathBuf, Failure> {
    if given.exists() {
        return Ok(given.into());
    }
    let name = given.with_extension("toml");
    let folder = Path::new(kind.folder());
    if let Some(found) = [name.clone(), folder.join(&name)].into_iter().find(|path| path.is_file()) {
        tell(format!("{} is {}", given.display(), found.display()));
        return Ok(found);
    }
    let Some(own) = own(kind, &name) else { return Ok(given.into()) };
    let root = lay_out()?;
    tell(format!("{} is {own}, as this program has it", given.display()));
    Ok(root.join(own))
}

/// The path of an embedded file with this name, with its folder or without.
fn own(kind: Kind, name: &Path) -> Option<&'static str> {
    let of_kind =
        embedded::FILES.iter().map(|(path, _)| *path).filter(|path| Path::new(path).starts_with(kind.folder()));
    of_kind.into_iter().find(|path| Path::new(path).ends_with(name))
}

/// Writes every embedded file below a folder of this build, where experiments find the configs that they name.
fn lay_out() -> Result<PathBuf, Failure> {
    let root = std::env::temp_dir().join(format!("headcount-{BUILD}"));
    for (path, text) in embedded::FILES {
        let path = root.join(path);
        if fs::read_to_string(&path).is_ok_and(|there| there == *text) {
            continue;
        }
        let unwritten = |error: &dyn std::fmt::Display| {
            Failure::failed(format!("the program's own files can't be laid out: {}: {error}", path.display()))
        };
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| unwritten(&error))?;
        runs::files::write_output(&path, text.as_bytes()).map_err(|error| unwritten(&error))?;
    }
    Ok(root)
}

/// What a TOML file is; of one that can't be read its folder tells.
pub fn kind_of(path: &Path) -> Kind {
    let is_experiment = runs::experiment::is_one(path).unwrap_or_else(|| path.starts_with(Kind::Experiment.folder()));
    if is_experiment { Kind::Experiment } else { Kind::Config }
}

/// The run directory that is meant by `given`: that folder, else the only one below `runs/` that begins so, such as `h8`.
///
/// # Errors
/// A folder that holds runs instead of being one, a name that several runs begin with, and one that none does.
pub fn run(given: &Path) -> Result<PathBuf, Failure> {
    let is_run = |path: &Path| RunDirectory::at(path).config_path().is_file();
    if is_run(given) {
        return Ok(given.into());
    }
    let shown = given.display();
    if given.is_dir() {
        let within = runs_in(given, "");
        return Err(Failure::usage(match within.first() {
            Some(first) => format!(
                "{shown} is no run directory, it holds {} of them: name one, such as {}",
                within.len(),
                first.display()
            ),
            None => format!("{shown} is no run directory: it holds no config.toml"),
        }));
    }
    let found = match given.file_name().and_then(|name| name.to_str()) {
        Some(name) if !name.is_empty() => {
            let beside = given.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("runs"));
            runs_in(beside, name)
        }
        _ => vec![],
    };
    match &found[..] {
        [] => Err(Failure::usage(format!("{shown} is no run directory: it holds no config.toml"))),
        [only] => {
            tell(format!("{shown} is {}", only.display()));
            Ok(only.clone())
        }
        [first, ..] => Err(Failure::usage(format!(
            "{shown} is no run directory, and {} begin so: name one, such as {}",
            found.len(),
            first.display()
        ))),
    }
}

/// The run directories in a folder whose names begin with `start`, sorted.
fn runs_in(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let begins = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    let mut found: Vec<PathBuf> =
        entries.filter(begins).filter(|path| RunDirectory::at(path).config_path().is_file()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_repository_is_in_the_program_and_read_from_there() {
        let root = lay_out().unwrap();
        for (path, text) in embedded::FILES {
            let kind = if path.starts_with("configs") { Kind::Config } else { Kind::Experiment };
            assert_eq!(kind_of(&root.join(path)), kind, "{path}");
            match kind {
                Kind::Config => drop(runs::Config::load(&root.join(path), &[]).unwrap()),
                // A text that is fetched first is not in the program, and its absence is told as such.
                Kind::Experiment => match runs::Experiment::load(&root.join(path)) {
                    Err(error) if text.contains("get_text.py") => {
                        let said = error.to_string();
                        assert!(said.contains("task.files") && said.contains("can't be read"), "{said}");
                    }
                    experiment => drop(experiment.unwrap()),
                },
            }
        }
        assert!(own(Kind::Experiment, Path::new("h1-vs-h8.toml")).is_some());
    }

    #[test]
    fn a_name_is_found_with_its_folder_and_ending_or_without() {
        for name in ["h8", "h8.toml", "configs/h8", "configs/h8.toml"] {
            assert_eq!(own(Kind::Config, &Path::new(name).with_extension("toml")), Some("configs/h8.toml"), "{name}");
        }
        assert_eq!(own(Kind::Config, Path::new("h1-vs-h8.toml")), None);
        assert_eq!(own(Kind::Experiment, Path::new("h1-vs-h8.toml")), Some("experiments/h1-vs-h8.toml"));
    }
}
