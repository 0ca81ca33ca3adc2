//! `series`: columns of numbers over time.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::read::{self, Parts, Role};
use super::repeats::Wanted;
use super::{Format, Paths, Read, Shares, some_files};
use crate::error::{TaskError, in_range};
use crate::file_error::{FileError, FileProblem, short};
use crate::limits;
use crate::parameter::Parameter;
use crate::sample::{NumberSizes, Numbers, Sample, Split};
use crate::stored::{Contents, ReadFile, Repeated};

/// Parameters of `series`: from `window` rows in a row of a CSV file, the `horizon` rows that follow.
///
/// Every column is shifted and scaled so that the training part has mean 0 and deviation 1 in it; nothing of the other parts goes
/// into that. Scores are in these units. Training windows lie anywhere in the training part; those of the other parts are `horizon`
/// rows apart, so that no row is an answer twice.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Series {
    /// A file, or several that follow one another.
    #[serde(skip_serializing)]
    pub files: Paths,
    /// Files of the validation part; without them it is a share of the rows of `files`.
    #[serde(skip_serializing)]
    pub validation_files: Paths,
    /// Files of the test part; without them it is a share of the rows of `files`.
    #[serde(skip_serializing)]
    pub test_files: Paths,
    /// The columns that are read, by their names in the first line, or by their numbers from 0 where it has none; all without any.
    pub columns: Vec<String>,
    /// Those of them that are to be said; all without any.
    pub targets: Vec<String>,
    /// L, the rows that are read, 1 to 65,536.
    pub window: usize,
    /// The rows that are said, 1 to 65,536.
    pub horizon: usize,
    /// Share of the validation part, of the rows.
    pub validation_share: f64,
    /// Share of the test part, which comes last.
    pub test_share: f64,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            files: Paths::default(),
            validation_files: Paths::default(),
            test_files: Paths::default(),
            columns: vec![],
            targets: vec![],
            window: 64,
            horizon: 1,
            validation_share: 0.1,
            test_share: 0.1,
        }
    }
}

impl Series {
    fn shares(&self) -> Shares {
        Shares { validation: self.validation_share, test: self.test_share }
    }
}

impl Format for Series {
    const KIND: &'static str = "series";
    const ABOUT: &'static str = "A time series of your own, columns of numbers in a CSV file: from a window of rows the model \
        must say the rows that follow. Columns are scaled by what the training part says of them.";

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let words = |words: &[String]| Parameter::List(words.iter().map(|word| word.as_str().into()).collect());
        vec![
            ("files", (&self.files).into()),
            ("validation_files", (&self.validation_files).into()),
            ("test_files", (&self.test_files).into()),
            ("columns", words(&self.columns)),
            ("targets", words(&self.targets)),
            ("window", self.window.into()),
            ("horizon", self.horizon.into()),
            ("validation_share", self.validation_share.into()),
            ("test_share", self.test_share.into()),
        ]
    }

    fn check(&self) -> Result<(), TaskError> {
        some_files(&self.files)?;
        in_range("window", self.window, 1, limits::LENGTH)?;
        in_range("horizon", self.horizon, 1, limits::LENGTH)?;
        self.shares().check()
    }

    fn located(&self, folder: &Path) -> Self {
        let mut located = self.clone();
        let lists = [&mut located.files, &mut located.validation_files, &mut located.test_files];
        lists.into_iter().for_each(|paths| paths.locate(folder));
        located
    }

    fn read(&self, folder: &Path) -> Result<Read, FileError> {
        let parts = Parts::find(folder, &self.files, &self.validation_files, &self.test_files, self.shares())?;
        parts.bytes(limits::SAMPLES)?;
        let mut table = Table { format: self, names: None, numbers: vec![] };
        let (mut files, mut rows) = (vec![], vec![]);
        for (path, role) in &parts.files {
            let start = table.rows();
            files.push(table.read(path, *role)?);
            rows.push((start..table.rows(), *role));
        }
        let Table { names, mut numbers, .. } = table;
        let names = names.unwrap_or_default();
        let width = names.len().max(1);
        let targets = self.target_columns(&names)?;
        let of = |role: Role| {
            let mut ranges = rows.iter().filter(|(_, other)| *other == role).map(|(range, _)| range.clone());
            let first = ranges.next().unwrap_or(0..0);
            first.start..ranges.next_back().map_or(first.end, |last| last.end)
        };
        let shared = of(Role::Shared);
        let cuts = parts.shares.cuts(shared.len() as u64).map(|cut| shared.start + cut as usize);
        let or_own = |own: std::ops::Range<usize>, share| if own.is_empty() { share } else { own };
        let ranges = [
            shared.start..cuts[0],
            or_own(of(Role::Whole(Split::Validation)), cuts[0]..cuts[1]),
            or_own(of(Role::Whole(Split::Test)), cuts[1]..shared.end),
        ];
        let needed = (self.window + self.horizon) as u64;
        for (split, range) in Split::ALL.into_iter().zip(&ranges) {
            let found = range.len() as u64;
            if found < needed {
                return Err(FileProblem::TooShort { split, what: "rows", found, needed }.everywhere());
            }
        }
        scale(&mut numbers, width, &ranges[0]);
        let outputs = self.horizon.saturating_mul(targets.len());
        if width > limits::IDS as usize || outputs > limits::IDS as usize {
            let message = format!("{width} columns and {outputs} numbers to say are more than {}", limits::IDS);
            return Err(FileProblem::Malformed(message).everywhere());
        }
        let contents = SeriesContents { numbers, width, targets, ranges, window: self.window, horizon: self.horizon };
        Ok(Read { contents: Box::new(contents), files })
    }
}

impl Series {
    /// The places of the columns that are said, among those that are read.
    fn target_columns(&self, names: &[String]) -> Result<Vec<usize>, FileError> {
        if self.targets.is_empty() {
            return Ok((0..names.len()).collect());
        }
        let place = |target: &String| {
            let missing = || FileProblem::Missing(listed(names)).everywhere().field(short(target));
            names.iter().position(|name| name == target).ok_or_else(missing)
        };
        self.targets.iter().map(place).collect()
    }
}

fn listed(names: &[String]) -> String {
    let shown = names.iter().take(20).map(|name| format!("`{}`", short(name))).collect::<Vec<_>>().join(", ");
    if names.len() > 20 { format!("{shown} and {} more", names.len() - 20) } else { shown }
}

/// A column of a CSV file, by its first rows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Column {
    /// Its name in the first line, or its number from 0.
    pub name: String,
    /// Every value is a finite number.
    pub is_numeric: bool,
    /// Every value is larger than the one before, as those of a time are.
    pub rises: bool,
}

/// What the columns of a CSV file hold, as far as its first 10,000 rows tell.
///
/// # Errors
/// A file that can't be read.
pub fn columns(path: &Path) -> Result<Vec<Column>, FileError> {
    const ROWS: usize = 10_000;
    let file = File::open(path).map_err(|error| read::unreadable(path, &error))?;
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).trim(csv::Trim::All).from_reader(BufReader::new(file));
    let mut records = reader.into_byte_records().take(ROWS);
    let text = |field: &[u8]| String::from_utf8_lossy(field).trim_start_matches('\u{feff}').to_string();
    let number = |field: &[u8]| text(field).parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(first) = records.next().transpose().map_err(|error| broken(path, &error))? else { return Ok(vec![]) };
    let is_header = first.iter().any(|field| number(field).is_none());
    let name = |(place, field): (usize, &[u8])| if is_header { text(field) } else { place.to_string() };
    let mut columns: Vec<Column> =
        first.iter().enumerate().map(|field| Column { name: name(field), is_numeric: true, rises: true }).collect();
    let mut last: Vec<Option<f64>> = first.iter().map(number).collect();
    for record in records {
        let record = record.map_err(|error| broken(path, &error))?;
        for ((column, last), field) in columns.iter_mut().zip(&mut last).zip(&record) {
            let found = number(field);
            column.is_numeric &= found.is_some();
            column.rises &= found.zip(*last).is_none_or(|(found, last)| found > last);
            *last = found;
        }
    }
    Ok(columns)
}

/// The columns that were asked for, `[rows, columns]`.
struct Table<'a> {
    format: &'a Series,
    names: Option<Vec<String>>,
    numbers: Vec<f32>,
}

impl Table<'_> {
    fn rows(&self) -> usize {
        self.numbers.len() / self.names.as_ref().map_or(1, |names| names.len().max(1))
    }

    fn read(&mut self, path: &Path, role: Role) -> Result<ReadFile, FileError> {
        let file = File::open(path).map_err(|error| read::unreadable(path, &error))?;
        let mut hashed = Hashed { inner: file, hasher: blake3::Hasher::new(), bytes: 0 };
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .from_reader(BufReader::new(&mut hashed));
        let mut record = csv::ByteRecord::new();
        let mut columns: Option<Vec<(usize, String)>> = None;
        let mut fields = 0;
        let mut any = false;
        while reader.read_byte_record(&mut record).map_err(|error| broken(path, &error))? {
            let line = record.position().map_or(0, csv::Position::line);
            if record.iter().any(|field| field.contains(&0)) {
                return Err(FileProblem::Binary(record.position().map_or(0, csv::Position::byte)).at(path, line));
            }
            let Some(columns) = &columns else {
                fields = record.len();
                let header: Vec<String> = record
                    .iter()
                    .map(|field| String::from_utf8_lossy(field).trim_start_matches('\u{feff}').into())
                    .collect();
                let is_header = header.iter().any(|field| field.parse::<f64>().is_err());
                let names = if is_header { header } else { (0..fields).map(|place| place.to_string()).collect() };
                let chosen = self.choose(path, &names)?;
                if !is_header {
                    self.row(path, line, &record, &chosen)?;
                    any = true;
                }
                columns = Some(chosen);
                continue;
            };
            if record.len() != fields {
                let expected = format!("{fields}, as in the first line");
                return Err(FileProblem::wrong(format!("{} fields", record.len()), expected)
                    .at(path, line)
                    .field("the row"));
            }
            self.row(path, line, &record, columns)?;
            any = true;
        }
        drop(reader);
        if !any {
            return Err(FileProblem::Empty.of(path));
        }
        let blake3 = hashed.hasher.finalize().to_hex().to_string();
        Ok(ReadFile { path: path.into(), role: role.name(), bytes: hashed.bytes, blake3 })
    }

    /// Which fields of a row are read: the same in every file.
    fn choose(&mut self, path: &Path, names: &[String]) -> Result<Vec<(usize, String)>, FileError> {
        let asked = if self.format.columns.is_empty() { names } else { &self.format.columns };
        let place = |name: &String| {
            let missing = || FileProblem::Missing(listed(names)).of(path).field(short(name));
            Ok((names.iter().position(|other| other == name).ok_or_else(missing)?, name.clone()))
        };
        let chosen = asked.iter().map(place).collect::<Result<Vec<_>, FileError>>()?;
        let found: Vec<String> = chosen.iter().map(|(_, name)| name.clone()).collect();
        match &self.names {
            Some(before) if *before != found => {
                let expected = format!("{}, as in the file before", listed(before));
                return Err(FileProblem::wrong(listed(&found), expected).of(path).field("the columns"));
            }
            _ => self.names = Some(found),
        }
        Ok(chosen)
    }

    fn row(
        &mut self,
        path: &Path,
        line: u64,
        record: &csv::ByteRecord,
        columns: &[(usize, String)],
    ) -> Result<(), FileError> {
        for (place, name) in columns {
            let text = String::from_utf8_lossy(record.get(*place).unwrap_or_default());
            let number = text.parse::<f32>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
                let found = if text.is_empty() { "empty".to_string() } else { format!("`{}`", short(&text)) };
                FileProblem::wrong(found, "a finite number").at(path, line).field(short(name))
            })?;
            self.numbers.push(number);
        }
        Ok(())
    }
}

/// Hashes what is read of it.
struct Hashed {
    inner: File,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl io::Read for Hashed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.hasher.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

fn broken(path: &Path, error: &csv::Error) -> FileError {
    let problem = FileProblem::Malformed(error.to_string());
    match error.position() {
        Some(position) => problem.at(path, position.line()),
        None => problem.of(path),
    }
}

/// Takes the training rows' mean from each column and divides by their deviation, where there is one.
fn scale(numbers: &mut [f32], width: usize, training: &std::ops::Range<usize>) {
    for column in 0..width {
        let of = |row: usize| f64::from(numbers[row * width + column]);
        let rows = training.len().max(1) as f64;
        let mean = training.clone().map(of).sum::<f64>() / rows;
        let variance = training.clone().map(|row| (of(row) - mean).powi(2)).sum::<f64>() / rows;
        let deviation = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        for number in numbers.iter_mut().skip(column).step_by(width) {
            *number = ((f64::from(*number) - mean) / deviation) as f32;
        }
    }
}

struct SeriesContents {
    /// `[rows, columns]`.
    numbers: Vec<f32>,
    width: usize,
    targets: Vec<usize>,
    /// The rows of each part.
    ranges: [std::ops::Range<usize>; 3],
    window: usize,
    horizon: usize,
}

impl Contents for SeriesContents {
    fn vocab(&self) -> usize {
        0
    }

    fn outputs(&self) -> usize {
        0
    }

    fn seq_len(&self) -> usize {
        self.window
    }

    fn numbers(&self) -> Option<NumberSizes> {
        Some(NumberSizes { inputs: self.width, outputs: self.horizon * self.targets.len() })
    }

    fn one_answer(&self) -> bool {
        true
    }

    fn count(&self, split: Split) -> u64 {
        let places = (self.ranges[split as usize].len() + 1).saturating_sub(self.window + self.horizon);
        (if split == Split::Train { places } else { places.div_ceil(self.horizon) }) as u64
    }

    fn is_windows(&self) -> bool {
        true
    }

    fn sample(&self, split: Split, place: u64) -> Sample {
        let stride = if split == Split::Train { 1 } else { self.horizon };
        let start = self.ranges[split as usize].start + place as usize * stride;
        let end = start + self.window;
        let inputs = self.numbers[start * self.width..end * self.width].to_vec();
        let outputs = self.horizon * self.targets.len();
        let mut targets = vec![0.0; (self.window - 1) * outputs];
        for row in end..end + self.horizon {
            targets.extend(self.targets.iter().map(|&column| self.numbers[row * self.width + column]));
        }
        let scored = (1..=self.window).map(|position| position == self.window).collect();
        Sample::of_numbers(self.window, Numbers { inputs, targets, scored })
    }

    /// Windows that are read, anywhere in the training part.
    fn repeated(&self, split: Split, places: &[u64]) -> Option<Repeated> {
        let first = self.ranges[split as usize].start;
        let starts: Vec<usize> = places.iter().map(|&place| first + place as usize * self.horizon).collect();
        let row = |row: usize| &self.numbers[row * self.width..(row + 1) * self.width];
        let item = |place: usize| {
            let bits = |hash: u64, number: &f32| hash.rotate_left(7) ^ u64::from(number.to_bits());
            row(place).iter().fold(0u64, bits)
        };
        let mut wanted = Wanted::new(self.window, starts.iter().map(|&start| (start..start + self.window).map(item)));
        let training = self.ranges[Split::Train as usize].clone();
        let is_same = |wanted: usize, at: usize| {
            (0..self.window).all(|place| row(starts[wanted] + place) == row(training.start + at + place))
        };
        wanted.look_through(training.clone().map(item), training.clone().map(item), is_same);
        let (seen, distinct) = wanted.counts();
        Some(Repeated { samples: starts.len() as u64, distinct, seen })
    }

    /// A stretch as long as a sample: within it, samples share rows.
    fn unit(&self, _split: Split, place: u64) -> u64 {
        place * self.horizon as u64 / (self.window + self.horizon) as u64
    }

    fn last_value(&self, sample: &Sample) -> Option<Vec<f32>> {
        let inputs = &sample.numbers.as_ref()?.inputs;
        let last = inputs.get(inputs.len().checked_sub(self.width)?..)?;
        Some((0..self.horizon).flat_map(|_| self.targets.iter().map(|&column| last[column])).collect())
    }
}
