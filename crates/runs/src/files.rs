//! Files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::RunError;

/// Ending of a file that is not complete yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Largest JSON file that is read whole, in bytes.
const MOST_JSON: u64 = 64 << 20;

/// Writes a new file and waits until the disk has it.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut file = File::create(path).map_err(RunError::io("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(RunError::io("write", path))
}

/// Replaces a file: whoever reads it, and whatever is interrupted, sees the old or the new content.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    let temporary = Path::new(&temporary);
    write_synced(temporary, bytes)?;
    fs::rename(temporary, path).map_err(RunError::io("write", path))?;
    sync_folder(path.parent())
}

/// Waits until the disk has the folder's list of names.
pub(crate) fn sync_folder(folder: Option<&Path>) -> Result<(), RunError> {
    // Only Unix opens folders as files.
    match folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder }) {
        Some(folder) if cfg!(unix) => {
            File::open(folder).and_then(|file| file.sync_all()).map_err(RunError::io("write", folder))
        }
        _ => Ok(()),
    }
}

/// Writes JSON that people can read, atomically.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let mut text = serde_json::to_string_pretty(value).map_err(RunError::json(path, 0))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

/// Reads a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RunError> {
    serde_json::from_slice(&read_at_most(path, MOST_JSON)?).map_err(RunError::json(path, 0))
}

/// Reads a whole file, refusing one of more than `most` bytes.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, RunError> {
    let file = File::open(path).map_err(RunError::io("read", path))?;
    let bytes = file.metadata().map_err(RunError::io("read", path))?.len();
    if bytes > most {
        return Err(RunError::TooLarge { path: path.into(), bytes, most });
    }
    let mut content = Vec::new();
    file.take(most).read_to_end(&mut content).map_err(RunError::io("read", path))?;
    Ok(content)
}

/// Whether an answer says that there is no such file.
pub(crate) fn is_absent(error: &RunError) -> bool {
    matches!(error, RunError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}
