//! Append-only files of JSON objects, one a line, in the order of their steps.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{error::RunError, files, limits};

/// What a line says about its place in the file.
pub trait Line: Serialize + DeserializeOwned {
    /// Optimiser step, from 1; 0 is before the first.
    fn step(&self) -> u64;

    /// What was measured at that step. One step may have one line of each.
    fn what(&self) -> &'static str;
}

/// An open file of lines. Lines are buffered until [`Log::flush`], and safe from a crash of the machine after
/// [`Log::sync`].
///
/// Steps never go back, and no step has two lines of the same kind.
#[derive(Debug)]
pub struct Log<T> {
    path: PathBuf,
    file: BufWriter<File>,
    /// The lines of the last step: nothing may repeat them or go before them.
    last: Option<(u64, Vec<&'static str>)>,
    /// Of every line so far.
    hasher: blake3::Hasher,
    lines: PhantomData<T>,
}

impl<T: Line> Log<T> {
    /// Opens a file to append to, creating it if needed. A last line that was cut off is removed.
    ///
    /// # Errors
    /// Where the file can't be read or written, or a line before the last is damaged.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Self::open_until(path, u64::MAX)
    }

    /// [`Log::open`] without the lines of later steps than `step`, so that a resumed run writes each of them once. Whatever
    /// comes after the lines of `step` is removed, also where it is damaged.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_until(path: &Path, step: u64) -> Result<Self, RunError> {
        let io = || RunError::io("write", path);
        files::refuse_link(path)?;
        match files::open(path) {
            Err(error) if !error.is_absent() => return Err(error),
            _ => {}
        }
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = options.map_err(io())?;
        let mut last: Option<(u64, Vec<&'static str>)> = None;
        let mut end = 0;
        let read = for_each(path, &mut BufReader::new(&file), |line: T, line_end| {
            if line.step() > step {
                return false;
            }
            end = line_end;
            match &mut last {
                Some((at, whats)) if *at == line.step() => whats.push(line.what()),
                _ => last = Some((line.step(), vec![line.what()])),
            }
            true
        });
        // A crash of the machine may leave anything after the lines that the checkpoint of `step` counts on. Whether those
        // are all there is for the checkpoint to say.
        match read {
            Err(RunError::Json { .. } | RunError::LineTooLong { .. }) if step < u64::MAX => {}
            read => read?,
        }
        let mut hasher = blake3::Hasher::new();
        file.set_len(end).and_then(|()| file.rewind()).map_err(io())?;
        hasher.update_reader(&file).map_err(RunError::io("read", path))?;
        file.seek(SeekFrom::Start(end)).map_err(io())?;
        Ok(Self { path: path.into(), file: BufWriter::new(file), last, hasher, lines: PhantomData })
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`RunError::OutOfOrder`] for a step that is already there or lies before the last one.
    pub fn append(&mut self, line: &T) -> Result<(), RunError> {
        let (step, what) = (line.step(), line.what());
        match &mut self.last {
            Some((last, whats)) if *last > step || *last == step && whats.contains(&what) => {
                return Err(RunError::OutOfOrder { path: self.path.clone(), what, step, last: *last });
            }
            Some((last, whats)) if *last == step => whats.push(what),
            last => *last = Some((step, vec![what])),
        }
        let mut text = serde_json::to_vec(line).map_err(RunError::json(&self.path, 0))?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.file.write_all(&text).map_err(RunError::io("write", &self.path))
    }

    /// BLAKE3 of every line so far, 64 hex digits: of the file, after [`Log::flush`]. It is kept as lines come, so that a
    /// checkpoint of a long run reads nothing again.
    pub fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Hands all lines to the operating system: other programs see them, and a crash of this one keeps them.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn flush(&mut self) -> Result<(), RunError> {
        self.file.flush().map_err(RunError::io("write", &self.path))
    }

    /// [`Log::flush`], and waits until the disk has them; to be called before the checkpoint that counts on them.
    ///
    /// # Errors
    /// As [`Log::flush`].
    pub fn sync(&mut self) -> Result<(), RunError> {
        self.flush()?;
        self.file.get_ref().sync_data().map_err(RunError::io("write", &self.path))
    }

    /// The step of the last line.
    pub fn last_step(&self) -> Option<u64> {
        self.last.as_ref().map(|(step, _)| *step)
    }
}

/// The last line; one that was cut off is passed over.
pub(crate) fn last<T: Line>(path: &Path) -> Result<Option<T>, RunError> {
    let (file, _) = files::open(path)?;
    let mut last = None;
    for_each(path, &mut BufReader::new(file), |line, _| {
        last = Some(line);
        true
    })?;
    Ok(last)
}

/// BLAKE3 of a file up to the last line of `step`, 64 hex digits.
pub(crate) fn hash_until<T: Line>(path: &Path, step: u64) -> Result<String, RunError> {
    let (file, _) = files::open(path)?;
    let mut end = 0;
    for_each(path, &mut BufReader::new(&file), |line: T, line_end| {
        let is_before = line.step() <= step;
        end = if is_before { line_end } else { end };
        is_before
    })?;
    let mut hasher = blake3::Hasher::new();
    let start = File::open(path).map_err(RunError::io("read", path))?;
    hasher.update_reader(start.take(end)).map_err(RunError::io("read", path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Reads all lines. A last line that was cut off is left out.
pub(crate) fn read<T: Line>(path: &Path) -> Result<Vec<T>, RunError> {
    let (file, bytes) = files::open(path)?;
    if bytes > limits::LOG {
        return Err(RunError::TooLarge { path: path.into(), bytes, most: limits::LOG });
    }
    let mut lines = vec![];
    for_each(path, &mut BufReader::new(file), |line, _| {
        lines.push(line);
        true
    })?;
    Ok(lines)
}

/// Calls `each` with every complete line and the offset at which it ends, until it returns false.
fn for_each<T: Line>(
    path: &Path,
    reader: &mut impl BufRead,
    mut each: impl FnMut(T, u64) -> bool,
) -> Result<(), RunError> {
    let (mut end, mut text) = (0, vec![]);
    for number in 0.. {
        text.clear();
        let mut line = reader.by_ref().take(limits::LINE as u64);
        let bytes = line.read_until(b'\n', &mut text).map_err(RunError::io("read", path))?;
        if bytes == limits::LINE && text.last() != Some(&b'\n') {
            return Err(RunError::LineTooLong { path: path.into(), line: number + 1, most: limits::LINE });
        }
        // What ends without a newline was cut off; a resumed run writes that line again.
        if text.last() != Some(&b'\n') {
            return Ok(());
        }
        end += bytes as u64;
        let line = serde_json::from_slice(&text).map_err(RunError::json(path, number))?;
        if !each(line, end) {
            return Ok(());
        }
    }
    Ok(())
}
