//! Files that are there whole or not at all.

use std::{
    fs::{self, File},
    io::{BufWriter, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use crate::{error::RunError, layout};

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

/// Replaces a file of a run: whoever reads it, and whatever is interrupted, sees the old or the new content.
///
/// # Errors
/// Where the disk is full or gone: then the old content is still there.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(layout::TEMPORARY);
    let temporary = Path::new(&temporary);
    write_synced(temporary, bytes)?;
    fs::rename(temporary, path).map_err(|error| {
        drop(fs::remove_file(temporary));
        RunError::io("write", path)(error)
    })?;
    sync_folder(path.parent())
}

/// Writes a file that somebody asked for, anywhere: an export, a report, a table. Every output of the program goes through
/// here. It is written to a temporary file beside its place, synced and renamed, so that whatever happens the old content or
/// the new is there, whole; it keeps the old file's permissions.
///
/// # Errors
/// [`check_output`]'s, and where the disk is full or gone.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    write_output_with(path, |file| file.write_all(bytes))
}

/// [`write_output`] for what is too large to be held as a whole: `write` is given the file, buffered.
///
/// # Errors
/// As [`write_output`], and what `write` answers.
pub fn write_output_with(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), RunError> {
    check_output(path)?;
    let io = || RunError::io("write", path);
    let folder = folder_of(path);
    let mut options = tempfile::Builder::new();
    options.prefix(".headcount-").suffix(layout::TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        options.permissions(fs::Permissions::from_mode(0o666)); // less what the user's mask takes away
    }
    // Removed when it is dropped before it has its name.
    let mut temporary = options.tempfile_in(folder).map_err(io())?;
    {
        let mut file = BufWriter::with_capacity(1 << 16, temporary.as_file_mut());
        write(&mut file).and_then(|()| file.flush()).map_err(io())?;
    }
    if let Ok(old) = fs::metadata(path) {
        temporary.as_file().set_permissions(old.permissions()).map_err(io())?;
    }
    temporary.as_file().sync_all().map_err(io())?;
    temporary.persist(path).map_err(|error| io()(error.error))?;
    sync_folder(Some(folder))
}

/// Whether [`write_output`] would write there; to be asked before what takes long.
///
/// # Errors
/// [`RunError::Link`] where the file or its folder is a link, [`RunError::Special`] for what is no regular file,
/// [`RunError::OfARun`] where it would go over a file of a run, such as a checkpoint, however the path is spelled, and where
/// there is no such folder.
pub fn check_output(path: &Path) -> Result<(), RunError> {
    let folder = folder_of(path);
    refuse_link(path)?;
    refuse_link(folder)?;
    let is_special = fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let Some(name) = path.file_name().filter(|_| !is_special) else {
        return Err(RunError::Special { path: path.into() });
    };
    let real = fs::canonicalize(folder).map_err(RunError::io("write", path))?;
    match layout::owner(&real, &name.to_string_lossy()) {
        Some(run) => Err(RunError::OfARun { path: path.into(), run }),
        None => Ok(()),
    }
}

/// Whether a folder may be made at `path`, or written into where it is there: to be asked before it is made.
///
/// # Errors
/// [`RunError::Link`] where it is a link, [`RunError::OfARun`] where it is, or would be, in a place of a run, such as its
/// `checkpoints/`, however the path is spelled.
pub fn check_folder(path: &Path) -> Result<(), RunError> {
    // Without a separator or a dot at the end, with which a link would not be seen as one.
    let whole: PathBuf = path.components().collect();
    refuse_link(&whole)?;
    let is_there = |folder: &&Path| folder.as_os_str().is_empty() || folder.exists();
    let there = whole.ancestors().find(is_there).unwrap_or(Path::new(""));
    let missing = whole.strip_prefix(there).unwrap_or(&whole);
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let real = fs::canonicalize(there).map_err(RunError::io("read", path))?.join(missing);
    let name = real.file_name().unwrap_or_default().to_string_lossy();
    match real.parent().and_then(|folder| layout::owner(folder, &name)) {
        Some(run) => Err(RunError::OfARun { path: path.into(), run }),
        None => Ok(()),
    }
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
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

/// Waits until the disk has the folder's list of names, where its file system does that for folders.
pub(crate) fn sync_folder(folder: Option<&Path>) -> Result<(), RunError> {
    // Only Unix opens folders as files.
    match folder.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder }) {
        Some(folder) if cfg!(unix) => {
            File::open(folder).and_then(|file| unless_refused(file.sync_all())).map_err(RunError::io("write", folder))
        }
        _ => Ok(()),
    }
}

/// A file system that does not know how to sync a folder has done what it can (rocksdb#2929); one that tried and failed has
/// not.
fn unless_refused(synced: std::io::Result<()>) -> std::io::Result<()> {
    synced.or_else(|error| if is_not_offered(&error, &[EINVAL]) { Ok(()) } else { Err(error) })
}

/// Whether a file system answers that it does not offer what it was asked for: ENOSYS, EOPNOTSUPP, ENOTSUP, or one of `others`.
pub(crate) fn is_not_offered(error: &std::io::Error, others: &[i32]) -> bool {
    error.kind() == ErrorKind::Unsupported
        || error.raw_os_error().is_some_and(|code| NOT_OFFERED.contains(&code) || others.contains(&code))
}

#[cfg(unix)]
pub(crate) use libc::{EINVAL, ENOLCK};
#[cfg(unix)]
const NOT_OFFERED: [i32; 3] = [libc::ENOSYS, libc::EOPNOTSUPP, libc::ENOTSUP];
// Elsewhere no folder is synced, and `ErrorKind` says the rest.
#[cfg(not(unix))]
pub(crate) const EINVAL: i32 = i32::MIN;
#[cfg(not(unix))]
pub(crate) const ENOLCK: i32 = i32::MIN;
#[cfg(not(unix))]
const NOT_OFFERED: [i32; 0] = [];

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_folder_is_made_in_a_place_of_a_run() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("checkpoints/step-5")).unwrap();
        fs::write(run.join(layout::MANIFEST), "").unwrap();
        for name in ["checkpoints", "checkpoints/new/x", "snapshots", "snapshots/x", "./checkpoints/../snapshots/x/."] {
            assert!(matches!(check_folder(&run.join(name)), Err(RunError::OfARun { .. })), "{name}");
        }
        for name in ["", "figures", "mine/checkpoints", "../other/checkpoints", "../run/"] {
            check_folder(&run.join(name)).unwrap();
        }
        check_folder(Path::new("not/there/yet")).unwrap();
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(&run, &link).unwrap();
            for name in ["", ".", "./"] {
                assert!(matches!(check_folder(&link.join(name)), Err(RunError::Link { .. })), "{name}");
            }
            assert!(matches!(check_folder(&link.join("snapshots")), Err(RunError::OfARun { .. })));
        }
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

    /// A folder that looks like a run's, with a checkpoint and a snapshot.
    #[cfg(unix)]
    fn run_in(folder: &Path) -> std::path::PathBuf {
        let run = folder.join("h8-seed0-0123abcd");
        for name in [
            "config.toml",
            ".lock",
            "manifest.json",
            "checkpoints/step-5/model.safetensors",
            "snapshots/step-5.safetensors",
        ] {
            let path = run.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "the run's").unwrap();
        }
        run
    }

    /// kakehashi#800, burn#5479: an output over a run's own file, by whatever spelling, through a link or into a device.
    #[cfg(unix)]
    #[test]
    fn kakehashi_800_an_output_never_goes_over_a_run_s_files() {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        fs::create_dir(run.join("figures")).unwrap();
        for name in [
            "config.toml",
            "manifest.json",
            "metrics.jsonl",
            "summary.json.tmp",
            ".lock",
            "checkpoints/step-5/model.safetensors",
            "checkpoints/new.safetensors",
            "checkpoints/step-5/../step-5/model.safetensors",
            "figures/../snapshots/step-5.safetensors",
            "./checkpoints/../../h8-seed0-0123abcd/snapshots/step-9.safetensors",
        ] {
            let before = fs::read(run.join(name)).ok();
            let error = write_output(&run.join(name), b"mine").unwrap_err();
            assert!(matches!(error, RunError::OfARun { .. }), "{name}: {error}");
            assert_eq!(fs::read(run.join(name)).ok(), before, "{name}");
        }
        // What else lies in its folder is anybody's.
        for name in ["report.html", "step-5.safetensors", "figures/curves.svg"] {
            write_output(&run.join(name), b"mine").unwrap();
            write_output(&run.join(name), b"mine again").unwrap();
            assert_eq!(fs::read(run.join(name)).unwrap(), b"mine again", "{name}");
        }
        // The checkpoints by another name.
        std::os::unix::fs::symlink(run.join("checkpoints/step-5"), folder.path().join("step")).unwrap();
        std::os::unix::fs::symlink(run.join("checkpoints/step-5/model.safetensors"), folder.path().join("out"))
            .unwrap();
        for name in ["step/model.safetensors", "step/new", "out"] {
            assert!(matches!(write_output(&folder.path().join(name), b"x"), Err(RunError::Link { .. })), "{name}");
        }
        assert!(matches!(write_output(&run, b"x"), Err(RunError::Special { .. })));
        assert!(matches!(write_output(Path::new("/dev/null"), b"x"), Err(RunError::Special { .. })));
        assert!(matches!(write_output(&folder.path().join("no/such"), b"x"), Err(RunError::Io { .. })));
        assert_eq!(fs::read(run.join("checkpoints/step-5/model.safetensors")).unwrap(), b"the run's");
    }

    /// rocksdb#2929: network file systems answer EINVAL, or ENOTSUP, to fsync of a folder; EIO is a disk that failed.
    #[cfg(unix)]
    #[test]
    fn rocksdb_2929_a_folder_that_cant_be_synced_is_no_failure() {
        let answer = |code| unless_refused(Err(std::io::Error::from_raw_os_error(code)));
        for code in [libc::EINVAL, libc::ENOTSUP, libc::EOPNOTSUPP, libc::ENOSYS] {
            assert!(answer(code).is_ok(), "{code}");
        }
        for code in [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EBADF] {
            assert_eq!(answer(code).unwrap_err().raw_os_error(), Some(code));
        }
    }

    /// Whatever goes wrong half-way, the old file is there and nothing else is.
    #[test]
    fn an_output_that_fails_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.safetensors");
        write_output(&path, b"old").unwrap();
        let failing = |file: &mut dyn Write| {
            file.write_all(&[7; 1 << 20])?;
            Err(ErrorKind::StorageFull.into())
        };
        let error = write_output_with(&path, failing).unwrap_err().to_string();
        assert!(error.contains("out.safetensors"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write_output_with(&path, |file| (0..1000u32).try_for_each(|i| file.write_all(&i.to_le_bytes()))).unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 4000);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn an_output_has_the_permissions_of_any_other_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (mine, other) = (folder.path().join("mine"), folder.path().join("other"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::write(&other, "").unwrap();
        write_output(&mine, b"1").unwrap();
        assert_eq!(mode(&mine), mode(&other));
        fs::set_permissions(&mine, fs::Permissions::from_mode(0o640)).unwrap();
        write_output(&mine, b"2").unwrap();
        assert_eq!(mode(&mine), 0o640);
    }
}
