//! JSON files that end with the hash of their own text.
//!
//! The last key of the object, `blake3`, is the hash of the text without that key, so that any byte that changes later is
//! noticed. A file without it is damaged.

use std::path::Path;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{error::RunError, files};

/// A file of a run that is not sealed by its own type.
#[derive(Serialize, Deserialize)]
pub(crate) struct Named<O, T> {
    pub origin: O,
    #[serde(flatten)]
    pub content: T,
}

/// How an object is laid out.
struct Layout {
    /// The end of an object's text.
    end: &'static str,
    /// What stands before its hash, in the place of that end.
    before: &'static str,
    /// What stands after.
    after: &'static str,
}

/// For people: a line a key.
const PRETTY: Layout = Layout { end: "\n}", before: ",\n  \"blake3\": \"", after: "\"\n}\n" };
/// For what has millions of numbers.
const COMPACT: Layout = Layout { end: "}", before: ",\"blake3\":\"", after: "\"}\n" };

/// Hex digits of a BLAKE3 hash.
const DIGITS: usize = 64;

/// Writes an object as JSON that people can read, atomically and sealed.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string_pretty(value).map_err(RunError::json(path, 0))?;
    files::write_atomically(path, PRETTY.seal(&text).as_bytes())
}

/// [`write`] in one line.
pub(crate) fn write_compact(path: &Path, value: &impl Serialize) -> Result<(), RunError> {
    let text = serde_json::to_string(value).map_err(RunError::json(path, 0))?;
    files::write_atomically(path, COMPACT.seal(&text).as_bytes())
}

/// Reads what [`write`] or [`write_compact`] wrote, at most `most` bytes.
pub(crate) fn read<T: DeserializeOwned>(path: &Path, most: u64) -> Result<T, RunError> {
    let text = files::read_at_most(path, most)?;
    let open = [PRETTY, COMPACT].iter().find_map(|layout| layout.open(&text));
    let Some(text) = open else { return Err(RunError::Seal { path: path.into() }) };
    serde_json::from_slice(&text).map_err(RunError::json(path, 0))
}

impl Layout {
    fn seal(&self, text: &str) -> String {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        let open = text.strip_suffix(self.end).unwrap_or(text);
        format!("{open}{}{hash}{}", self.before, self.after)
    }

    /// The text that was sealed; `None` where it isn't the one that the seal is of.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (open, hash) = sealed.strip_suffix(self.after.as_bytes())?.split_last_chunk::<DIGITS>()?;
        let text = [open.strip_suffix(self.before.as_bytes())?, self.end.as_bytes()].concat();
        (blake3::hash(&text).to_hex().as_bytes() == hash).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        step: u64,
        loss: f64,
        notes: Vec<String>,
    }

    /// Every bit of a sealed file counts, those of the seal too: a damaged seal is damage, not a file without one.
    #[test]
    fn a_seal_shows_any_changed_bit_and_any_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        let record = Record { step: 120, loss: 1.0 / 3.0, notes: vec!["a \"b\"".into()] };
        let pretty = serde_json::to_string_pretty(&record).unwrap();
        let compact = serde_json::to_string(&record).unwrap();
        for (is_compact, without) in [(false, pretty), (true, compact)] {
            if is_compact {
                write_compact(&path, &record).unwrap()
            } else {
                write(&path, &record).unwrap()
            }
            let text = fs::read(&path).unwrap();
            assert_eq!(read::<Record>(&path, 1000).unwrap(), record);
            // By hand: without the last key, the text hashes to that key.
            let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(value["blake3"], blake3::hash(without.as_bytes()).to_hex().as_str());
            for bit in 0..8 * text.len() {
                let mut changed = text.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, changed).unwrap();
                assert!(matches!(read::<Record>(&path, 1000), Err(RunError::Seal { .. })), "bit {bit}");
            }
            for cut in 0..text.len() {
                fs::write(&path, &text[..cut]).unwrap();
                assert!(read::<Record>(&path, 1000).is_err(), "cut at {cut}");
            }
            fs::write(&path, without).unwrap();
            assert!(matches!(read::<Record>(&path, 1000), Err(RunError::Seal { .. })), "without a seal");
        }
    }
}
