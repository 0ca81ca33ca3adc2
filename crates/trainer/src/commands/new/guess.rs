//! What a file holds, from its name and its first line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use data::files::Column;

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

/// What a config says of a file besides its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Names of tokens, where the lines have names instead of numbers.
    pub names: Vec<String>,
    /// Columns of numbers that are no time, where that is not all of them.
    pub columns: Vec<String>,
    /// JSON lines have a source.
    pub has_source: bool,
    /// Rows or bytes of a sample, so that each part has room for some: 64, or fewer of a short file.
    pub length: usize,
}

/// A twentieth of what there is, since a tenth is the test part; 4 to 64.
fn length_of(rows: u64) -> usize {
    (rows / 20).clamp(4, 64) as usize
}

impl Details {
    /// Of a file that is of `kind`.
    ///
    /// # Errors
    /// A file that can't be read, and a CSV file without a column of numbers.
    pub fn of(path: &Path, kind: Kind) -> Result<Self, String> {
        match kind {
            Kind::Records if path.is_file() => Self::of_records(path),
            Kind::Series if path.is_file() => Self::of_series(path),
            Kind::Text => {
                let bytes = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map(|found| found.len());
                Ok(Self { length: length_of(bytes.unwrap_or(u64::MAX)), ..Self::default() })
            }
            _ => Ok(Self { length: length_of(u64::MAX), ..Self::default() }),
        }
    }

    fn of_records(path: &Path) -> Result<Self, String> {
        let unreadable = |error: std::io::Error| format!("{} can't be read: {error}", path.display());
        let (mut names, mut has_source) = (BTreeSet::new(), false);
        for line in BufReader::new(File::open(path).map_err(unreadable)?).lines() {
            // What is no line of ours is refused by whoever reads all of it, with its place.
            let Ok(object) = serde_json::from_str::<serde_json::Value>(&line.map_err(unreadable)?) else { continue };
            has_source |= object.get("source").is_some();
            let tokens = ["tokens", "source"].into_iter().filter_map(|field| object.get(field)?.as_array());
            names.extend(tokens.flatten().filter_map(|token| token.as_str()).map(String::from));
        }
        Ok(Self { names: names.into_iter().collect(), has_source, ..Self::default() })
    }

    fn of_series(path: &Path) -> Result<Self, String> {
        let all = data::files::columns(path).map_err(|error| error.to_string())?;
        let is_value = |column: &&Column| column.is_numeric && !column.rises;
        let columns: Vec<String> = all.iter().filter(is_value).map(|column| column.name.clone()).collect();
        if columns.is_empty() {
            let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
            return Err(format!(
                "{}: no column holds numbers that go up and down; there are {}",
                path.display(),
                names.join(", ")
            ));
        }
        let unreadable = |error: std::io::Error| format!("{} can't be read: {error}", path.display());
        let lines = BufReader::new(File::open(path).map_err(unreadable)?).split(b'\n').count() as u64;
        let columns = if columns.len() == all.len() { vec![] } else { columns };
        Ok(Self { columns, length: length_of(lines), ..Self::default() })
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

    #[test]
    fn names_columns_and_sources_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let path = write("a.jsonl", "{\"tokens\": [\"b\", \"a\"]}\n{\"tokens\": [\"a\"], \"source\": [\"c\"]}\n");
        let details = Details::of(&path, Kind::Records).unwrap();
        assert_eq!((details.names, details.has_source), (vec!["a".into(), "b".into(), "c".into()], true));
        let path = write("b.csv", "time,load\n0,1\n1,3\n2,2\n");
        assert_eq!(Details::of(&path, Kind::Series).unwrap().columns, ["load"]);
        let path = write("c.csv", "heat,load\n2,1\n1,3\n2,2\n");
        let details = Details::of(&path, Kind::Series).unwrap();
        assert_eq!((details.columns, details.length), (vec![], 4));
        let path = write("d.csv", "day,name\nx,1\ny,2\n");
        assert!(Details::of(&path, Kind::Series).unwrap_err().contains("day, name"));
    }
}
