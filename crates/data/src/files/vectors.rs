//! `vectors`: sequences of numbers with an answer, from NumPy or from JSON.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::npy::{self, Array};
use super::read::{self, Parts, Role};
use super::{Format, Paths, Read, Shares, some_files};
use crate::error::{TaskError, in_range};
use crate::file_error::{FileError, FileProblem, short};
use crate::limits;
use crate::parameter::Parameter;
use crate::sample::{IGNORE, NumberSizes, Numbers, Sample, Split};
use crate::stored::{Contents, ReadFile};

/// Parameters of `vectors`: x `[N, L, F]`, from which y is to be said.
///
/// | y | answer |
/// |---|---|
/// | `[N]` | a number or a class for each sample |
/// | `[N, O]` | O numbers for each sample; where O = L and y is classes, a class for each position, none where it is negative |
/// | `[N, L, O]` | O numbers for each position |
///
/// The files are `.npz` with both arrays, `.npy` with x (y is in `answer_files`), or JSONL, where a line is a sample with its `x`
/// `[L, F]` and its `y`, and L may vary.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vectors {
    /// A file, several, or folders.
    #[serde(skip_serializing)]
    pub files: Paths,
    /// Where `files` are `.npy`, as many with y, in the same order.
    #[serde(skip_serializing)]
    pub answer_files: Paths,
    /// Files of the validation part, `.npz` or JSONL; without them it is a share of `files`.
    #[serde(skip_serializing)]
    pub validation_files: Paths,
    /// Files of the test part.
    #[serde(skip_serializing)]
    pub test_files: Paths,
    /// The name of the array or field that is read.
    pub inputs: String,
    /// The name of the array or field that is to be said.
    pub targets: String,
    /// What y is.
    pub answers: VectorAnswers,
    /// L, the length that samples are padded to; 0 = that of the longest.
    pub seq_len: usize,
    /// Share of the validation part, by hash.
    pub validation_share: f64,
    /// Share of the test part.
    pub test_share: f64,
}

impl Default for Vectors {
    fn default() -> Self {
        Self {
            files: Paths::default(),
            answer_files: Paths::default(),
            validation_files: Paths::default(),
            test_files: Paths::default(),
            inputs: "x".into(),
            targets: "y".into(),
            answers: VectorAnswers::Auto,
            seq_len: 0,
            validation_share: 0.1,
            test_share: 0.1,
        }
    }
}

/// What the answers are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorAnswers {
    /// Classes where all of them are written as whole numbers, numbers where not.
    Auto,
    /// Classes.
    Classes,
    /// Numbers.
    Numbers,
}

impl Vectors {
    fn shares(&self) -> Shares {
        Shares { validation: self.validation_share, test: self.test_share }
    }
}

impl Format for Vectors {
    const KIND: &'static str = "vectors";
    const ABOUT: &'static str = "Sequences of numbers of your own, as NumPy or JSON has them: at each position or for the \
        whole the model must say numbers or a class.";

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let answers = match self.answers {
            VectorAnswers::Auto => "auto",
            VectorAnswers::Classes => "classes",
            VectorAnswers::Numbers => "numbers",
        };
        vec![
            ("files", (&self.files).into()),
            ("answer_files", (&self.answer_files).into()),
            ("validation_files", (&self.validation_files).into()),
            ("test_files", (&self.test_files).into()),
            ("inputs", self.inputs.as_str().into()),
            ("targets", self.targets.as_str().into()),
            ("answers", answers.into()),
            ("seq_len", self.seq_len.into()),
            ("validation_share", self.validation_share.into()),
            ("test_share", self.test_share.into()),
        ]
    }

    fn check(&self) -> Result<(), TaskError> {
        some_files(&self.files)?;
        in_range("seq_len", self.seq_len, 0, limits::LENGTH)?;
        self.shares().check()
    }

    fn located(&self, folder: &Path) -> Self {
        let mut located = self.clone();
        let lists =
            [&mut located.files, &mut located.validation_files, &mut located.test_files, &mut located.answer_files];
        lists.into_iter().for_each(|paths| paths.locate(folder));
        located
    }

    fn read(&self, folder: &Path) -> Result<Read, FileError> {
        let parts = Parts::find(folder, &self.files, &self.validation_files, &self.test_files, self.shares())?;
        parts.bytes(limits::SAMPLES)?;
        let none = Paths::default();
        let answers = Parts::find(folder, &self.answer_files, &none, &none, self.shares())?;
        answers.bytes(limits::SAMPLES)?;
        let mut answers = answers.files.into_iter().map(|(path, _)| path);
        let mut gathered = Gathered::new(self, parts.shares);
        for (path, role) in &parts.files {
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("npy") => gathered.arrays(path, *role, answers.next())?,
                Some("npz") => gathered.archive(path, *role)?,
                _ => gathered.lines(path, *role)?,
            }
        }
        if let Some(surplus) = answers.next() {
            return Err(FileProblem::Malformed("is one more than there are .npy files in `files`".into()).of(&surplus));
        }
        gathered.finish()
    }
}

/// The samples of all files.
struct Gathered<'a> {
    format: &'a Vectors,
    shares: Shares,
    files: Vec<ReadFile>,
    inputs: Vec<f32>,
    answers: Vec<f32>,
    /// Where each sample's inputs and answers end.
    ends: Vec<(usize, usize)>,
    parts: [Vec<u32>; 3],
    /// F, and the sides of each answer beyond a position.
    sizes: Option<(usize, Shape)>,
    is_whole: bool,
    longest: usize,
    /// Where the first answer that is no class stands.
    no_class: Option<FileError>,
}

/// What an answer is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    One,
    Row(usize),
    /// Numbers of each position.
    Rows(usize),
    /// A number of each position, where there are as many as there are positions.
    Positions,
}

/// Where a sample stands, for errors.
struct At<'a> {
    path: &'a Path,
    line: Option<u64>,
    sample: usize,
}

impl At<'_> {
    fn error(&self, field: String, problem: FileProblem) -> FileError {
        let error = match self.line {
            Some(line) => problem.at(self.path, line),
            None => problem.of(self.path),
        };
        error.field(field)
    }
}

impl<'a> Gathered<'a> {
    fn new(format: &'a Vectors, shares: Shares) -> Self {
        Self {
            format,
            shares,
            files: vec![],
            inputs: vec![],
            answers: vec![],
            ends: vec![],
            parts: [vec![], vec![], vec![]],
            sizes: None,
            is_whole: true,
            longest: 0,
            no_class: None,
        }
    }

    /// `.npy` with x, and another with y.
    fn arrays(&mut self, path: &Path, role: Role, answers: Option<PathBuf>) -> Result<(), FileError> {
        let Some(answers) = answers else {
            let message = "is .npy with x alone: name the file with y in `answer_files`, or save both by numpy.savez";
            return Err(FileProblem::Malformed(message.into()).of(path));
        };
        let inputs = self.array(path, role.name())?;
        let targets = self.array(&answers, "answers")?;
        self.all(path, role, &inputs, &targets)
    }

    fn array(&mut self, path: &Path, role: &'static str) -> Result<Array, FileError> {
        let mut bytes = vec![];
        let file = read::append(path, role, limits::SAMPLES, &mut bytes)?;
        self.files.push(file);
        npy::read(&*bytes, bytes.len() as u64).map_err(|problem| problem.of(path))
    }

    /// `.npz`, which is a zip archive of `.npy`.
    fn archive(&mut self, path: &Path, role: Role) -> Result<(), FileError> {
        let file = File::open(path).map_err(|error| read::unreadable(path, &error))?;
        let broken =
            |error: zip::result::ZipError| FileProblem::Malformed(format!("is no zip archive: {error}")).of(path);
        let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(broken)?;
        let there = archive.file_names().map(|name| format!("`{}`", short(name))).collect::<Vec<_>>().join(", ");
        let mut array = |name: &str| {
            let problem = |problem: FileProblem| problem.of(path).field(short(name));
            let entry = match archive.by_name(&format!("{name}.npy")) {
                Ok(entry) => entry,
                Err(zip::result::ZipError::FileNotFound) => return Err(problem(FileProblem::Missing(there.clone()))),
                Err(error) => return Err(broken(error)),
            };
            let size = entry.size();
            npy::read(entry, size).map_err(problem)
        };
        let (inputs, targets) = (array(&self.format.inputs)?, array(&self.format.targets)?);
        self.files.push(read::hashed(path, role.name())?);
        self.all(path, role, &inputs, &targets)
    }

    /// Every sample of two arrays.
    fn all(&mut self, path: &Path, role: Role, inputs: &Array, targets: &Array) -> Result<(), FileError> {
        let Vectors { inputs: x, targets: y, .. } = self.format;
        let of = |field: &str, problem: FileProblem| problem.of(path).field(short(field));
        let [count, length, width] = inputs.shape[..] else {
            return Err(of(x, FileProblem::wrong(format!("of shape {:?}", inputs.shape), "[N, L, F]")));
        };
        let shape = match targets.shape[..] {
            [answers] if answers == count => Shape::One,
            [answers, positions] if answers == count && targets.is_whole && positions == length => Shape::Positions,
            [answers, outputs] if answers == count => Shape::Row(outputs),
            [answers, positions, outputs] if answers == count && positions == length => Shape::Rows(outputs),
            _ => {
                let expected = format!("[{count}], [{count}, O] or [{count}, {length}, O]");
                return Err(of(y, FileProblem::wrong(format!("of shape {:?}", targets.shape), expected)));
            }
        };
        self.is_whole &= targets.is_whole;
        for sample in 0..count {
            let row = |array: &Array| {
                let width = array.numbers.len() / count;
                array.numbers[sample * width..(sample + 1) * width].to_vec()
            };
            self.push(&At { path, line: None, sample }, role, width, shape, &row(inputs), &row(targets))?;
        }
        Ok(())
    }

    fn lines(&mut self, path: &Path, role: Role) -> Result<(), FileError> {
        let mut sample = 0;
        let file = read::lines(path, role.name(), &mut |line, text| {
            let at = At { path, line: Some(line), sample };
            sample += 1;
            self.line(&at, role, text)
        })?;
        self.files.push(file);
        Ok(())
    }

    fn line(&mut self, at: &At<'_>, role: Role, text: &[u8]) -> Result<(), FileError> {
        let line: serde_json::Map<String, Value> = serde_json::from_slice(text).map_err(|error| {
            FileProblem::Malformed(format!("is no JSON object: {error}")).at(at.path, at.line.unwrap_or(1))
        })?;
        let Vectors { inputs: x, targets: y, .. } = self.format;
        let field = |name: &str| {
            let there = || line.keys().map(|key| format!("`{}`", short(key))).collect::<Vec<_>>().join(", ");
            line.get(name).ok_or_else(|| at.error(short(name), FileProblem::Missing(there())))
        };
        let (rows, inputs) = numbers(at, x, field(x)?, &mut true)?;
        let Some(Depth::Two(length, width)) = rows else {
            return Err(
                at.error(short(x), FileProblem::wrong(field(x)?, "a list of L lists of F numbers, all as long"))
            );
        };
        let mut is_whole = true;
        let (rows, targets) = numbers(at, y, field(y)?, &mut is_whole)?;
        self.is_whole &= is_whole;
        let shape = match rows {
            Some(Depth::Zero) => Shape::One,
            Some(Depth::One(positions)) if is_whole && positions == length => Shape::Positions,
            Some(Depth::One(outputs)) => Shape::Row(outputs),
            Some(Depth::Two(positions, outputs)) if positions == length => Shape::Rows(outputs),
            _ => {
                let expected = format!("a number, a list of them, or {length} lists of O numbers");
                return Err(at.error(short(y), FileProblem::wrong(field(y)?, expected)));
            }
        };
        self.push(at, role, width, shape, &inputs, &targets)
    }

    fn push(
        &mut self,
        at: &At<'_>,
        role: Role,
        width: usize,
        shape: Shape,
        inputs: &[f32],
        answers: &[f32],
    ) -> Result<(), FileError> {
        let Vectors { inputs: x, targets: y, .. } = self.format;
        let of_sample = |name: &str| match at.line {
            Some(_) => short(name),
            None => format!("{}[{}]", short(name), at.sample),
        };
        let length = inputs.len().checked_div(width).unwrap_or(0);
        if length == 0 {
            return Err(at.error(of_sample(x), FileProblem::Empty));
        }
        let most = if self.format.seq_len == 0 { limits::LENGTH } else { self.format.seq_len };
        if length > most {
            return Err(at.error(of_sample(x), FileProblem::TooLong { found: length, most }));
        }
        let (sizes, known) = ((width, shape), self.sizes);
        match known {
            None => self.sizes = Some(sizes),
            // A list of whole numbers as long as the sample looks like one class a position until another one is longer.
            Some(before) if self.same(before, sizes, answers.len()) => {}
            Some(before) => {
                let told = |(width, shape): (usize, Shape)| format!("{width} numbers a position and {shape:?} to say");
                let expected = format!("{}, as in the samples before", told(before));
                return Err(at.error(of_sample(x), FileProblem::wrong(told(sizes), expected)));
            }
        }
        for (name, numbers) in [(x, inputs), (y, answers)] {
            if let Some(place) = numbers.iter().position(|number| !number.is_finite()) {
                let problem = FileProblem::wrong(format!("{} at number {place}", numbers[place]), "a finite number");
                return Err(at.error(of_sample(name), problem));
            }
        }
        let is_class = |&answer: &f32| answer.fract() == 0.0 && answer < limits::IDS as f32;
        let lowest = if matches!(shape, Shape::Positions) { f32::NEG_INFINITY } else { 0.0 };
        let odd = answers.iter().find(|answer| !is_class(answer) || **answer < lowest);
        if let (Some(odd), None) = (odd, &self.no_class) {
            let expected = format!("a class, 0 to {}; `answers = \"numbers\"` reads numbers", limits::IDS - 1);
            self.no_class = Some(at.error(of_sample(y), FileProblem::wrong(odd, expected)));
        }
        let bytes: Vec<u8> = inputs.iter().chain(answers).flat_map(|number| number.to_le_bytes()).collect();
        let split = match role {
            Role::Whole(split) => split,
            Role::Shared => self.shares.by_hash(&blake3::hash(&bytes)),
        };
        self.parts[split as usize].push(self.ends.len() as u32);
        self.longest = self.longest.max(length);
        self.inputs.extend_from_slice(inputs);
        self.answers.extend_from_slice(answers);
        self.ends.push((self.inputs.len(), self.answers.len()));
        Ok(())
    }

    /// Whether a sample is of the sizes that the ones before have. Of `Row` and `Positions`, which look alike where a sample is as
    /// long as its answer, the first that can't be the other decides.
    fn same(&mut self, before: (usize, Shape), now: (usize, Shape), answers: usize) -> bool {
        if before == now {
            return true;
        }
        let all_rows_of = |outputs: usize| {
            let ends = self.ends.iter().map(|&(_, end)| end);
            ends.enumerate().all(|(sample, end)| end == (sample + 1) * outputs)
        };
        match (before, now) {
            _ if before.0 != now.0 => false,
            ((_, Shape::Row(outputs)), (_, Shape::Positions)) => answers == outputs,
            ((width, Shape::Positions), (_, Shape::Row(outputs))) if all_rows_of(outputs) => {
                self.sizes = Some((width, Shape::Row(outputs)));
                true
            }
            _ => false,
        }
    }

    fn finish(self) -> Result<Read, FileError> {
        let (width, mut shape) = self.sizes.unwrap_or((1, Shape::One));
        let says_classes = match self.format.answers {
            VectorAnswers::Auto => {
                self.is_whole && self.no_class.is_none() && matches!(shape, Shape::One | Shape::Positions)
            }
            VectorAnswers::Classes => match (self.no_class, shape) {
                (Some(error), _) => return Err(error),
                (None, Shape::Row(_) | Shape::Rows(_)) => {
                    let problem =
                        FileProblem::wrong(format!("{shape:?} a sample"), "one class for all or one a position");
                    return Err(problem.everywhere().field(short(&self.format.targets)));
                }
                (None, _) => true,
            },
            VectorAnswers::Numbers => false,
        };
        let mut outputs = 0;
        if says_classes {
            outputs = self.answers.iter().fold(0, |most, &class| most.max(class.max(0.0) as usize + 1));
        } else if shape == Shape::Positions {
            let ends = self.ends.iter().map(|&(_, end)| end);
            // Numbers with one row of L each: a row of outputs, where all samples are as long.
            let rows = ends.clone().enumerate().all(|(sample, end)| end == (sample + 1) * self.longest);
            shape = if rows { Shape::Row(self.longest) } else { Shape::Rows(1) };
        }
        let said = match shape {
            Shape::One => 1,
            Shape::Row(said) | Shape::Rows(said) => said,
            Shape::Positions => 0,
        };
        let most = limits::IDS as usize;
        if width == 0 || width > most || (!says_classes && (said == 0 || said > most)) {
            let message = format!("has {width} numbers a position and {said} to say: both must lie in 1..={most}");
            return Err(FileProblem::Malformed(message).everywhere());
        }
        let seq_len = if self.format.seq_len == 0 { self.longest } else { self.format.seq_len };
        let contents = VectorContents {
            inputs: self.inputs,
            answers: self.answers,
            ends: self.ends,
            parts: self.parts,
            seq_len,
            width,
            shape,
            outputs,
            said: if says_classes { 0 } else { said },
        };
        Ok(Read { contents: Box::new(contents), files: self.files })
    }
}

/// How deep lists of numbers lie within one another, and how long they are.
enum Depth {
    Zero,
    One(usize),
    Two(usize, usize),
}

/// The numbers of a value, and how they lie; `None` where lists of one depth differ in length or lie deeper. `is_whole` turns false
/// at the first number with a point.
fn numbers(
    at: &At<'_>,
    name: &str,
    value: &Value,
    is_whole: &mut bool,
) -> Result<(Option<Depth>, Vec<f32>), FileError> {
    let mut number = |value: &Value, place: String| {
        *is_whole &= value.is_i64() || value.is_u64();
        let wrong = || at.error(format!("{}{place}", short(name)), FileProblem::wrong(value, "a finite number"));
        value.as_f64().map(|number| number as f32).filter(|number| number.is_finite()).ok_or_else(wrong)
    };
    let Value::Array(items) = value else {
        return Ok((Some(Depth::Zero), vec![number(value, String::new())?]));
    };
    if !items.iter().any(Value::is_array) {
        let of = |(place, item)| number(item, format!("[{place}]"));
        let all = items.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
        return Ok((Some(Depth::One(all.len())), all));
    }
    let mut all = vec![];
    let mut width = None;
    for (row, item) in items.iter().enumerate() {
        match item {
            Value::Array(inner) if width.is_none_or(|width| width == inner.len()) => {
                width = Some(inner.len());
                for (place, item) in inner.iter().enumerate() {
                    all.push(number(item, format!("[{row}][{place}]"))?);
                }
            }
            _ => return Ok((None, vec![])),
        }
    }
    Ok((Some(Depth::Two(items.len(), width.unwrap_or(0))), all))
}

struct VectorContents {
    inputs: Vec<f32>,
    answers: Vec<f32>,
    ends: Vec<(usize, usize)>,
    parts: [Vec<u32>; 3],
    seq_len: usize,
    /// F.
    width: usize,
    shape: Shape,
    /// Classes; 0 where numbers are said.
    outputs: usize,
    /// O; 0 where classes are said.
    said: usize,
}

impl Contents for VectorContents {
    fn vocab(&self) -> usize {
        0
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    fn numbers(&self) -> Option<NumberSizes> {
        Some(NumberSizes { inputs: self.width, outputs: self.said })
    }

    fn one_answer(&self) -> bool {
        matches!(self.shape, Shape::One | Shape::Row(_))
    }

    fn count(&self, split: Split) -> u64 {
        self.parts[split as usize].len() as u64
    }

    fn sample(&self, split: Split, place: u64) -> Sample {
        let sample = self.parts[split as usize][place as usize] as usize;
        let (start, end) = (sample.checked_sub(1).map_or((0, 0), |before| self.ends[before]), self.ends[sample]);
        let mut inputs = self.inputs[start.0..end.0].to_vec();
        let answers = &self.answers[start.1..end.1];
        let real = inputs.len() / self.width;
        inputs.resize(self.seq_len * self.width, 0.0);
        let is_scored = |position: usize| position < real && (!self.one_answer() || position + 1 == real);
        let mut numbers = Numbers { inputs, ..Numbers::default() };
        let mut classes = vec![IGNORE; self.seq_len];
        if self.said > 0 {
            numbers.scored = (0..self.seq_len).map(is_scored).collect();
            numbers.targets = vec![0.0; self.seq_len * self.said];
            let first = if self.one_answer() { real - 1 } else { 0 } * self.said;
            numbers.targets[first..first + answers.len()].copy_from_slice(answers);
        } else {
            let first = if self.one_answer() { real - 1 } else { 0 };
            for (target, &class) in classes[first..].iter_mut().zip(answers).filter(|(_, class)| **class >= 0.0) {
                *target = class as i32;
            }
        }
        Sample { real, targets: classes, ..Sample::of_numbers(self.seq_len, numbers) }
    }
}
