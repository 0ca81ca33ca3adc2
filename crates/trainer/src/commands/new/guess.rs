//! What a file holds, from its name and its first line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Records,
    Series,
    Vectors,
}

/// The longest first line that is looked at.
const FIRST_LINE: u64 = 1 << 20;

impl Kind {
    /// The name in a config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Records => "records",
            Self::Series => "series",
            Self::Vectors => "vectors",
        }
    }

    /// By its name; text where it is none.
    pub fn named(name: &str) -> Self {
        let all = [Self::Records, Self::Series, Self::Vectors];
        all.into_iter().find(|kind| kind.name() == name).unwrap_or(Self::Text)
    }

    /// Of a file or folder.
    ///
    /// # Errors
    /// A file that can't be read, and JSON lines of neither kind: what they lack.
    pub fn of(path: &Path) -> Result<Self, String> {
        let unreadable = |error: std::io::Error| format!("{} can't be read: {error}", path.display());
        if path.is_dir() {
            return Ok(Self::Text);
        }
        let mut line = String::new();
        let file = File::open(path).map_err(unreadable)?;
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "npy" | "npz" => return Ok(Self::Vectors),
            "csv" => return Ok(Self::Series),
            "jsonl" | "json" | "ndjson" => {}
            _ => return Ok(Self::Text),
        }
        let mut bytes = vec![];
        BufReader::new(file.take(FIRST_LINE)).read_until(b'\n', &mut bytes).map_err(unreadable)?;
        line.push_str(&String::from_utf8_lossy(&bytes));
        let first: serde_json::Value = serde_json::from_str(line.trim_start_matches('\u{feff}'))
            .map_err(|error| format!("{}:1: each line must be a JSON object: {error}", path.display()))?;
        if first.get("tokens").is_some() {
            Ok(Self::Records)
        } else if first.get("x").is_some() {
            Ok(Self::Vectors)
        } else {
            Err(format!(
                "{}:1: neither `tokens`, of which sequences are made, nor `x`, the numbers of a vector, is in the first line; \
                 docs/your-data.md shows what a line can be",
                path.display()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            Kind::of(&path)
        };
        assert_eq!(of("a.jsonl", "{\"tokens\": [1], \"label\": 0}\n"), Ok(Kind::Records));
        assert_eq!(of("b.jsonl", "{\"x\": [[1]], \"y\": 0}\n"), Ok(Kind::Vectors));
        assert_eq!(
            (of("c.CSV", "a,b\n"), of("d.npz", "x"), of("e.md", "x")),
            (Ok(Kind::Series), Ok(Kind::Vectors), Ok(Kind::Text))
        );
        assert_eq!(Kind::of(folder.path()), Ok(Kind::Text));
        assert!(of("f.jsonl", "{\"text\": \"a\"}\n").unwrap_err().contains("f.jsonl:1: neither `tokens`"));
        assert!(of("g.jsonl", "[1\n").unwrap_err().contains("must be a JSON object"));
        assert!(Kind::of(&folder.path().join("absent")).unwrap_err().contains("can't be read"));
        for kind in [Kind::Text, Kind::Records, Kind::Series, Kind::Vectors] {
            assert_eq!(Kind::named(kind.name()), kind);
        }
    }
}
