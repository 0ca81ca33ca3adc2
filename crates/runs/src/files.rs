//! Files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{ErrorKind, Read, Write},
    path::Path,
};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::RunError;

/// Ending of a file that is not complete yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Writes a new file and waits until the disk has it. What was there is replaced, a link itself and never its target; what
/// a full disk takes only half of is removed.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    remove(path)?;
    let mut file = File::create_new(path).map_err(RunError::io("create", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        drop(fs::remove_file(path));
        RunError::io("write", path)(error)
    })
}

/// Replaces a file: whoever reads it, and whatever is interrupted, sees the old or the new content.
///
/// # Errors
/// Where the disk is full or gone: then the old content is still there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(TEMPORARY);
    let temporary = Path::new(&temporary);
    write_synced(temporary, bytes)?;
    fs::rename(temporary, path).map_err(|error| {
        drop(fs::remove_file(temporary));
        RunError::io("write", path)(error)
    })?;
    sync_folder(path.parent())
}

/// Removes a file, or a link to one, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), RunError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RunError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Refuses a link where something is going to be written: it may lead anywhere.
///
/// # Errors
/// [`RunError::Link`].
pub fn refuse_link(path: &Path) -> Result<(), RunError> {
    if is_link(path) { Err(RunError::Link { path: path.into() }) } else { Ok(()) }
}

/// Whether a path is a link, to whatever.
pub(crate) fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
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

/// Before the seal, and after it.
const SEAL: (&str, &str) = (",\n  \"blake3\": \"", "\"\n}\n");
/// Hex digits of a BLAKE3 hash.
const DIGITS: usize = 64;

/// Writes an object as JSON that people can read, atomically and sealed: its last key, `blake3`, is the hash of the text
/// without that line, so that any byte that changes later is noticed.
pub(crate) fn write_sealed(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string_pretty(value).map_err(RunError::json(path, 0))?;
    let open = text.strip_suffix("\n}").unwrap_or(&text);
    let hash = blake3::hash(text.as_bytes()).to_hex();
    write_atomically(path, format!("{open}{}{hash}{}", SEAL.0, SEAL.1).as_bytes())
}

/// Reads what [`write_sealed`] wrote. Files of earlier versions have no seal and are taken as they are.
pub(crate) fn read_sealed<T: DeserializeOwned>(path: &Path, most: u64) -> Result<T, RunError> {
    let mut text = read_at_most(path, most)?;
    if let Some(start) = text.len().checked_sub(SEAL.0.len() + DIGITS + SEAL.1.len())
        && text[start..].starts_with(SEAL.0.as_bytes())
        && text.ends_with(SEAL.1.as_bytes())
    {
        let hash = text.split_off(start)[SEAL.0.len()..][..DIGITS].to_vec();
        text.extend_from_slice(b"\n}");
        if blake3::hash(&text).to_hex().as_bytes() != hash {
            return Err(RunError::Seal { path: path.into() });
        }
    }
    serde_json::from_slice(&text).map_err(RunError::json(path, 0))
}

/// Reads a whole regular file, refusing one of more than `most` bytes before any memory is taken for it.
///
/// # Errors
/// Where there is no such file, or it is too large, or a pipe or a device, which may never end.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, RunError> {
    let (file, bytes) = open(path)?;
    if bytes > most {
        return Err(RunError::TooLarge { path: path.into(), bytes, most });
    }
    let mut content = Vec::new();
    content.try_reserve_exact(bytes as usize).map_err(|_| RunError::io("read", path)(ErrorKind::OutOfMemory.into()))?;
    // A file that grows meanwhile is not followed.
    file.take(bytes).read_to_end(&mut content).map_err(RunError::io("read", path))?;
    Ok(content)
}

/// Opens a regular file to read, and tells its size in bytes.
pub(crate) fn open(path: &Path) -> Result<(File, u64), RunError> {
    // Before it is opened: opening a pipe waits for its writer.
    let metadata = fs::metadata(path).map_err(RunError::io("read", path))?;
    if !metadata.is_file() {
        return Err(RunError::NoFile { path: path.into() });
    }
    Ok((File::open(path).map_err(RunError::io("read", path))?, metadata.len()))
}

/// Whether an answer says that there is no such file.
pub(crate) fn is_absent(error: &RunError) -> bool {
    matches!(error, RunError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        step: u64,
        loss: f64,
        notes: Vec<String>,
    }

    /// Every bit of a sealed file counts.
    #[test]
    fn a_seal_shows_any_changed_bit_and_any_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let record = Record { step: 120, loss: 1.0 / 3.0, notes: vec!["a \"b\"".into()] };
        write_sealed(&path, &record).unwrap();
        let text = fs::read(&path).unwrap();
        assert_eq!(read_sealed::<Record>(&path, 1000).unwrap(), record);
        // By hand: without the last key, the text hashes to that key.
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let without = serde_json::to_string_pretty(&record).unwrap();
        assert_eq!(value["blake3"], blake3::hash(without.as_bytes()).to_hex().as_str());
        for bit in 0..8 * text.len() {
            let mut changed = text.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, changed).unwrap();
            // A damaged seal itself leaves a file as earlier versions wrote them, with a key that nothing reads.
            assert!(read_sealed::<Record>(&path, 1000).is_err() || bit / 8 >= without.len() - 2, "bit {bit}");
            if let Ok(read) = read_sealed::<Record>(&path, 1000) {
                assert_eq!(read, record, "bit {bit}");
            }
        }
        for cut in 0..text.len() - 1 {
            fs::write(&path, &text[..cut]).unwrap();
            assert!(read_sealed::<Record>(&path, 1000).is_err(), "cut at {cut}");
        }
        fs::write(&path, without).unwrap();
        assert_eq!(read_sealed::<Record>(&path, 1000).unwrap(), record);
    }

    #[test]
    fn what_is_too_large_or_never_ends_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(read_at_most(&path, 1 << 30), Err(RunError::TooLarge { bytes, .. }) if bytes == 1 << 40));
        assert!(matches!(read_at_most(folder.path(), 10), Err(RunError::NoFile { .. })));
        #[cfg(target_os = "linux")]
        assert!(matches!(read_at_most(Path::new("/dev/zero"), 10), Err(RunError::NoFile { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("theirs"), "theirs").unwrap();
        for name in ["mine", "mine.tmp"] {
            std::os::unix::fs::symlink(at("theirs"), at(name)).unwrap();
        }
        write_atomically(&at("mine"), b"mine").unwrap();
        assert_eq!(
            (fs::read(at("theirs")).unwrap(), fs::read(at("mine")).unwrap()),
            (b"theirs".into(), b"mine".into())
        );
        assert!(!is_link(&at("mine")) && !is_link(&at("mine.tmp")));
    }
}
