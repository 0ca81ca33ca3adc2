//! The text of a config or an experiment file, or why there is none.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read},
    path::Path,
};

use super::error::{ConfigError, Diagnostic, Problem, Shown};
use crate::{
    limits,
    nearest::{list, nearest},
};

/// Reads a whole config file.
pub(crate) fn read(path: &Path) -> Result<String, ConfigError> {
    let refuse = |problem, help: Option<String>| {
        let (origin, place) = (path.display().to_string(), Shown::File);
        ConfigError::from(Diagnostic { problem, origin, place, help: help.into_iter().collect() })
    };
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => refuse(Problem::NotFound, suggestion(path)),
        _ => refuse(Problem::Unreadable(error.to_string()), None),
    };
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        let configs = configs_in(path);
        let help = (!configs.is_empty()).then(|| format!("it holds {}", list(configs.iter().map(String::as_str))));
        return Err(refuse(Problem::Folder, help));
    }
    let mut bytes = Vec::new();
    // Whatever the size that the file claims to have, at most this much is read.
    let file = File::open(path).map_err(unreadable)?;
    file.take(limits::CONFIG + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limits::CONFIG {
        return Err(refuse(Problem::TooLarge { most: limits::CONFIG }, None));
    }
    let not_text = |bytes: &[u8], offset: usize| {
        let line = bytes.iter().take(offset).filter(|byte| **byte == b'\n').count() + 1;
        let byte = bytes.get(offset).copied().unwrap_or_default();
        refuse(Problem::NotText { byte, offset, line }, None)
    };
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(not_text(&bytes, offset));
    }
    String::from_utf8(bytes).map_err(|error| not_text(error.as_bytes(), error.utf8_error().valid_up_to()))
}

/// The file in the same folder that was probably meant, or what there is.
fn suggestion(path: &Path) -> Option<String> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Some(format!("there is no folder `{}` either", folder.display()));
    }
    let configs = configs_in(folder);
    let name = path.file_name()?.to_str()?;
    let names = || configs.iter().map(String::as_str);
    match nearest(name, names()).or_else(|| nearest(&format!("{name}.toml"), names())) {
        Some(near) => Some(format!("did you mean `{}`?", path.with_file_name(near).display())),
        None if configs.is_empty() => None,
        None => Some(format!("the folder holds {}", list(names().take(12)))),
    }
}

/// Names of the TOML files in a folder, sorted.
fn configs_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(1000);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut configs: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    configs.sort();
    configs
}
