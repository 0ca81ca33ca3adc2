//! From paths in a config to bytes in memory: each file once, its hash on the way.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use super::{Paths, Shares};
use crate::file_error::{FileError, FileProblem};
use crate::limits;
use crate::sample::Split;
use crate::stored::ReadFile;

/// The files of each part, folders opened; those of `files` may be shared between parts.
pub(super) struct Parts {
    pub files: Vec<(PathBuf, Role)>,
    pub shares: Shares,
}

/// What a file of samples is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    /// Its samples are shared out between the parts without files of their own.
    Shared,
    /// All its samples are of one part.
    Whole(Split),
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "files",
            Self::Whole(split) => split.name(),
        }
    }
}

impl Parts {
    /// Of `files`, and of those that the other two parts have of their own.
    pub fn find(
        folder: &Path,
        files: &Paths,
        validation: &Paths,
        test: &Paths,
        shares: Shares,
    ) -> Result<Self, FileError> {
        let shares = shares.without(validation, test);
        let own =
            [(files, Role::Shared), (validation, Role::Whole(Split::Validation)), (test, Role::Whole(Split::Test))];
        let mut found = vec![];
        for (paths, role) in own {
            for path in &paths.0 {
                expand(&folder.join(path), limits::DEPTH, &mut |file| {
                    found.push((file, role));
                    found.len() <= limits::FILES
                })?;
            }
        }
        if found.len() > limits::FILES {
            let problem = FileProblem::Malformed(format!("more than {} files", limits::FILES));
            return Err(problem.everywhere());
        }
        Ok(Self { files: found, shares })
    }

    /// The sum of the sizes, which must be at most `most`.
    pub fn bytes(&self, most: u64) -> Result<u64, FileError> {
        self.files.iter().try_fold(0u64, |sum, (path, _)| {
            let sum = sum.saturating_add(size(path)?);
            if sum > most {
                return Err(FileProblem::TooLarge { found: sum, most }.of(path));
            }
            Ok(sum)
        })
    }
}

/// `path` itself, or every file in the folder that it is, in the order of their names; hidden ones are left out.
fn expand(path: &Path, depth: usize, found: &mut dyn FnMut(PathBuf) -> bool) -> Result<(), FileError> {
    let unreadable = |error: io::Error| unreadable(path, &error);
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        found(path.into());
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(unreadable)?;
    let mut paths = entries.map(|entry| Ok(entry.map_err(unreadable)?.path())).collect::<Result<Vec<_>, _>>()?;
    paths.retain(|path| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')));
    paths.sort();
    if paths.is_empty() {
        return Err(FileProblem::Empty.of(path));
    }
    for inner in paths {
        let is_folder = inner.is_dir();
        if is_folder && depth == 0 {
            return Err(FileProblem::Malformed(format!("lies deeper than {} folders", limits::DEPTH)).of(&inner));
        }
        if is_folder {
            expand(&inner, depth - 1, found)?;
        } else if !found(inner) {
            return Ok(());
        }
    }
    Ok(())
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> FileError {
    FileProblem::Unreadable(error.to_string()).of(path)
}

/// The size of a regular file with something in it.
fn size(path: &Path) -> Result<u64, FileError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(FileProblem::Unreadable("is no regular file".into()).of(path)); // a pipe would wait for ever
    }
    match metadata.len() {
        0 => Err(FileProblem::Empty.of(path)),
        bytes => Ok(bytes),
    }
}

/// Appends what the file holds, at most `most` bytes, to `bytes`, which has room for it.
pub(super) fn append(path: &Path, role: &'static str, most: u64, bytes: &mut Vec<u8>) -> Result<ReadFile, FileError> {
    let expected = size(path)?;
    if expected > most {
        return Err(FileProblem::TooLarge { found: expected, most }.of(path));
    }
    let start = bytes.len();
    bytes.reserve_exact(expected as usize);
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    // It may grow while it is read: what was its size is taken.
    file.take(expected).read_to_end(bytes).map_err(|error| unreadable(path, &error))?;
    let read = bytes.get(start..).unwrap_or_default();
    if read.is_empty() {
        return Err(FileProblem::Empty.of(path));
    }
    let blake3 = blake3::hash(read).to_hex().to_string();
    Ok(ReadFile { path: path.into(), role, bytes: read.len() as u64, blake3 })
}

/// Takes a line's number and what it holds.
type EachLine<'a> = dyn FnMut(u64, &[u8]) -> Result<(), FileError> + 'a;

/// Calls `each` with every line that is not blank and its number, from 1.
pub(super) fn lines(path: &Path, role: &'static str, each: &mut EachLine<'_>) -> Result<ReadFile, FileError> {
    size(path)?;
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let (mut hasher, mut bytes, mut number, mut line) = (blake3::Hasher::new(), 0, 0, vec![]);
    loop {
        line.clear();
        let read = reader.by_ref().take(limits::LINE as u64 + 1).read_until(b'\n', &mut line);
        let read = read.map_err(|error| unreadable(path, &error))?;
        if read == 0 {
            break;
        }
        number += 1;
        if read > limits::LINE {
            return Err(FileProblem::TooLarge { found: read as u64, most: limits::LINE as u64 }.at(path, number));
        }
        hasher.update(&line);
        if let Some(at) = line.iter().position(|&byte| byte == 0) {
            return Err(FileProblem::Binary(bytes + at as u64).at(path, number));
        }
        bytes += read as u64;
        if bytes > limits::SAMPLES {
            return Err(FileProblem::TooLarge { found: bytes, most: limits::SAMPLES }.of(path));
        }
        let text = line.trim_ascii();
        let text = if number == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        if !text.is_empty() {
            each(number, text)?;
        }
    }
    Ok(ReadFile { path: path.into(), role, bytes, blake3: hasher.finalize().to_hex().to_string() })
}

/// The hash of a file that something else reads.
pub(super) fn hashed(path: &Path, role: &'static str) -> Result<ReadFile, FileError> {
    let bytes = size(path)?;
    let mut hasher = blake3::Hasher::new();
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    io::copy(&mut BufReader::new(file), &mut hasher).map_err(|error| unreadable(path, &error))?;
    Ok(ReadFile { path: path.into(), role, bytes, blake3: hasher.finalize().to_hex().to_string() })
}

/// A file of names, one a line.
pub(super) fn names(path: &Path) -> Result<(Vec<String>, ReadFile), FileError> {
    let mut bytes = vec![];
    let file = append(path, "vocab", limits::NAMES, &mut bytes)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| FileProblem::NotUtf8(error.utf8_error().valid_up_to() as u64).of(path))?;
    let names: Vec<String> = text.lines().map(Into::into).collect();
    if names.len() > limits::IDS as usize {
        let problem = FileProblem::wrong(format!("{} names", names.len()), format!("at most {}", limits::IDS));
        return Err(problem.of(path));
    }
    let mut seen = std::collections::HashMap::new();
    for (line, name) in names.iter().enumerate() {
        if let Some(earlier) = seen.insert(name, line) {
            let problem = FileProblem::Malformed(format!(
                "the name `{}` is that of line {} too",
                crate::file_error::short(name),
                earlier + 1
            ));
            return Err(problem.at(path, line as u64 + 1));
        }
    }
    Ok((names, file))
}
