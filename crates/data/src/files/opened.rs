//! What was read and is still in use, so that whoever reads the same files again gets the same samples without reading them: a
//! comparison has a config for each of its runs, and all of them name the same files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use crate::file_error::FileError;
use crate::order::Sets;
use crate::parameter::Parameter;
use crate::stored::{PATHS, Stored};

/// A file or a folder as it was.
#[derive(Clone, Debug, PartialEq)]
struct Stamp {
    path: PathBuf,
    /// Nothing where it is gone, or the system does not tell.
    found: Option<(u64, SystemTime)>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let found = fs::metadata(path).ok().and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
        Self { path: path.into(), found }
    }

    fn is_current(&self) -> bool {
        self.found.is_some() && *self == Self::of(&self.path)
    }
}

struct Opened {
    /// Format, parameters and sets.
    key: String,
    stamps: Vec<Stamp>,
    stored: Weak<Stored>,
}

static OPENED: Mutex<Vec<Opened>> = Mutex::new(vec![]);

/// What `read` gives, or what it gave when it was asked with the same parameters, while that is in use somewhere and no file or
/// folder of it has another size or time.
///
/// # Errors
/// Those of `read`.
pub(super) fn shared(
    kind: &str,
    parameters: &[(&'static str, Parameter)],
    sets: &Sets,
    read: impl FnOnce() -> Result<Stored, FileError>,
) -> Result<Arc<Stored>, FileError> {
    let key = format!("{kind}\n{parameters:?}\n{sets:?}");
    // Nothing panics while the lock is held, and the list is whole between any two of its operations.
    let held = || OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = held().iter().find(|opened| opened.key == key).and_then(|opened| {
        let is_current = opened.stamps.iter().all(Stamp::is_current);
        opened.stored.upgrade().filter(|_| is_current)
    });
    if let Some(stored) = known {
        return Ok(stored);
    }
    let named: Vec<Stamp> = paths(parameters).iter().map(|path| Stamp::of(path)).collect();
    let stored = Arc::new(read()?);
    let read = stored.files().iter().map(|file| Stamp::of(&file.path));
    let opened = Opened { stamps: named.into_iter().chain(read).collect(), stored: Arc::downgrade(&stored), key };
    let mut list = held();
    list.retain(|other| other.key != opened.key && other.stored.strong_count() > 0);
    list.push(opened);
    Ok(stored)
}

/// The files and folders that parameters name.
fn paths(parameters: &[(&'static str, Parameter)]) -> Vec<PathBuf> {
    let mut paths = vec![];
    for (_, value) in parameters.iter().filter(|(key, _)| PATHS.contains(key)) {
        let items = if let Parameter::List(items) = value { items.as_slice() } else { std::slice::from_ref(value) };
        paths.extend(items.iter().filter_map(|item| match item {
            Parameter::Text(path) if !path.is_empty() => Some(PathBuf::from(path)),
            _ => None,
        }));
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{OfFiles, Text};
    use crate::{Definition, Task};

    #[test]
    fn what_is_in_use_and_unchanged_is_not_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        fs::write(&path, "some text ".repeat(100)).unwrap();
        let task = OfFiles::new(Text { files: "data.txt".into(), seq_len: 8, ..Text::default() });
        let open = || -> Task { task.open(folder.path(), &Sets::default()).unwrap().unwrap() };
        let first = open();
        let same = |a: &Task, b: &Task| Arc::ptr_eq(a.stored().unwrap(), b.stored().unwrap());
        assert!(same(&first, &open()) && first == open());
        // Another size of the sets is another reading; another content is one too, and another task.
        let fewer = Sets { test_examples: 1, ..Sets::default() };
        assert!(!same(&first, &task.open(folder.path(), &fewer).unwrap().unwrap()));
        fs::write(&path, "other texts".repeat(100)).unwrap();
        let second = open();
        assert!(!same(&first, &second) && first != second);
        // From elsewhere it is the same file: its path was made complete.
        let again = first.open(Path::new("/nowhere"), &Sets::default()).unwrap().unwrap();
        assert!(same(&again, &second) && again == second);
        // The same text elsewhere is the same task.
        let other = tempfile::tempdir().unwrap();
        fs::copy(&path, other.path().join("data.txt")).unwrap();
        assert_eq!(second, task.open(other.path(), &Sets::default()).unwrap().unwrap());
    }
}
