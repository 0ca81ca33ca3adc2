//! What no file of samples goes beyond. Sizes are asked before any memory is taken for what is in a file.

/// All the text of a task, in bytes: places in it are 32 bits wide.
pub(crate) const TEXT: u64 = 1 << 31;
/// All the files of numbers or records of a task, in bytes.
pub(crate) const SAMPLES: u64 = 4 << 30;
/// A line of records, in bytes.
pub(crate) const LINE: usize = 64 << 20;
/// A file of names.
pub(crate) const NAMES: u64 = 64 << 20;
/// Files of a task, and how deep a folder is looked into.
pub(crate) const FILES: usize = 100_000;
pub(crate) const DEPTH: usize = 16;
/// Token ids, classes, and numbers at a position.
pub(crate) const IDS: u32 = 1 << 20;
/// L, the length of a sample.
pub(crate) const LENGTH: usize = 65_536;
/// Positions that are drawn to find out which samples training shows: about two seconds.
pub(crate) const DRAWN_POSITIONS: u64 = 1 << 24;
