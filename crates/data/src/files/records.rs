//! `records`: JSONL, one sample a line.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::packed::PackedLists;
use super::read::{self, Parts, Role};
use super::{Format, Paths, Read, Shares, locate, some_files};
use crate::answers::Answers;
use crate::error::{TaskError, in_range};
use crate::file_error::{FileError, FileProblem, short};
use crate::limits;
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample, Source, SourceSizes, Split};
use crate::stored::Contents;

/// Parameters of `records`. Each line is an object with `tokens`, and with one of these:
///
/// - `targets`: a class for each token, `null` where none is asked for;
/// - `label`: one class for the whole sample, a number or a word, read at the last position;
/// - `source`: tokens for an encoder, from which a decoder is to make `tokens`.
///
/// Tokens are whole numbers, or with a vocabulary the names in it. All lines answer in the same way.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// A file, several, or folders.
    #[serde(skip_serializing)]
    pub files: Paths,
    /// Files of the validation part; without them it is a share of `files`.
    #[serde(skip_serializing)]
    pub validation_files: Paths,
    /// Files of the test part; without them it is a share of `files`.
    #[serde(skip_serializing)]
    pub test_files: Paths,
    /// A file with a name of a token on each line, beginning with that of token 0; without it tokens are numbers.
    pub vocab_file: String,
    /// V, the number of tokens; 0 = as many as the vocabulary has, or one more than the largest.
    pub vocab: usize,
    /// What `targets` are.
    pub targets: TargetKind,
    /// L, the length that samples are padded to; 0 = that of the longest.
    pub seq_len: usize,
    /// The field that says which part a line is of: `train`, `validation` or `test`. Without it shares go by hash: a line stays in
    /// its part when others are added, and lines that say the same are in the same part.
    pub split_field: String,
    /// Share of the validation part.
    pub validation_share: f64,
    /// Share of the test part.
    pub test_share: f64,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            files: Paths::default(),
            validation_files: Paths::default(),
            test_files: Paths::default(),
            vocab_file: String::new(),
            vocab: 0,
            targets: TargetKind::Classes,
            seq_len: 0,
            split_field: String::new(),
            validation_share: 0.1,
            test_share: 0.1,
        }
    }
}

/// What the numbers in `targets` are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// Classes of their own.
    Classes,
    /// Tokens of the vocabulary, with its names.
    Tokens,
}

impl Records {
    fn shares(&self) -> Shares {
        Shares { validation: self.validation_share, test: self.test_share }
    }
}

impl Format for Records {
    const KIND: &'static str = "records";
    const ABOUT: &'static str = "Sequences of your own, a JSON object on each line of a file: tokens with a class for each \
        of them, or with one label for all, or with the source that they are to be made from. Lengths may vary.";

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let targets = match self.targets {
            TargetKind::Classes => "classes",
            TargetKind::Tokens => "tokens",
        };
        vec![
            ("files", (&self.files).into()),
            ("validation_files", (&self.validation_files).into()),
            ("test_files", (&self.test_files).into()),
            ("vocab_file", self.vocab_file.as_str().into()),
            ("vocab", self.vocab.into()),
            ("targets", targets.into()),
            ("seq_len", self.seq_len.into()),
            ("split_field", self.split_field.as_str().into()),
            ("validation_share", self.validation_share.into()),
            ("test_share", self.test_share.into()),
        ]
    }

    fn check(&self) -> Result<(), TaskError> {
        some_files(&self.files)?;
        in_range("vocab", self.vocab, 0, limits::IDS as usize)?;
        in_range("seq_len", self.seq_len, 0, limits::LENGTH)?;
        self.shares().check()
    }

    fn located(&self, folder: &Path) -> Self {
        let mut located = self.clone();
        let lists = [&mut located.files, &mut located.validation_files, &mut located.test_files];
        lists.into_iter().for_each(|paths| paths.locate(folder));
        locate(&mut located.vocab_file, folder);
        located
    }

    fn read(&self, folder: &Path) -> Result<Read, FileError> {
        let parts = Parts::find(folder, &self.files, &self.validation_files, &self.test_files, self.shares())?;
        parts.bytes(limits::SAMPLES)?;
        let mut files = vec![];
        let mut names = vec![];
        if !self.vocab_file.is_empty() {
            let path = folder.join(&self.vocab_file);
            let (found, file) = read::names(&path)?;
            if self.vocab > 0 && found.len() > self.vocab {
                return Err(FileProblem::wrong(
                    format!("{} names", found.len()),
                    format!("{}, as vocab says", self.vocab),
                )
                .of(&path));
            }
            (names, files) = (found, vec![file]);
        }
        let mut reader = Reader::new(self, &names);
        for (path, role) in &parts.files {
            let file = read::lines(path, role.name(), &mut |line, text| {
                reader.line(text, *role, parts.shares).map_err(|fault| {
                    let error = fault.problem.at(path, line);
                    if fault.field.is_empty() { error } else { error.field(fault.field) }
                })
            })?;
            files.push(file);
        }
        let contents = reader.finish();
        Ok(Read { contents: Box::new(RecordContents { names, ..contents }), files })
    }
}

/// What is wrong, and in which field.
struct Fault {
    field: String,
    problem: FileProblem,
}

fn fault(field: impl Into<String>, problem: FileProblem) -> Fault {
    Fault { field: field.into(), problem }
}

/// How the lines answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Way {
    Targets,
    Label,
    Source,
}

impl Way {
    fn field(self) -> &'static str {
        match self {
            Self::Targets => "targets",
            Self::Label => "label",
            Self::Source => "source",
        }
    }
}

/// What `label` of a line may be: all numbers, or all words.
enum Labels {
    Unknown,
    Numbers,
    Words(BTreeMap<String, u32>),
}

struct Reader<'a> {
    format: &'a Records,
    ids: HashMap<&'a str, u32>,
    vocab: Option<usize>,
    way: Option<Way>,
    labels: Labels,
    tokens: PackedLists,
    /// The source, or targets with 0 where none is asked for and 1 for class 0, or the label.
    others: PackedLists,
    parts: [Vec<u32>; 3],
    longest: usize,
    longest_source: usize,
    largest_token: u32,
    largest_class: u32,
}

impl<'a> Reader<'a> {
    fn new(format: &'a Records, names: &'a [String]) -> Self {
        let ids = names.iter().enumerate().map(|(id, name)| (name.as_str(), id as u32)).collect();
        let vocab = match (format.vocab, names.len()) {
            (0, 0) => None,
            (0, named) => Some(named),
            (asked, _) => Some(asked),
        };
        Self {
            format,
            ids,
            vocab,
            way: None,
            labels: Labels::Unknown,
            tokens: PackedLists::new(),
            others: PackedLists::new(),
            parts: [vec![], vec![], vec![]],
            longest: 0,
            longest_source: 0,
            largest_token: 0,
            largest_class: 0,
        }
    }

    fn line(&mut self, text: &[u8], role: Role, shares: Shares) -> Result<(), Fault> {
        let line: serde_json::Map<String, Value> = serde_json::from_slice(text)
            .map_err(|error| fault("", FileProblem::Malformed(format!("is no JSON object: {error}"))))?;
        let way = self.way(&line)?;
        let tokens = self.tokens_of(&line, "tokens")?;
        let most = if self.format.seq_len == 0 { limits::LENGTH } else { self.format.seq_len };
        let positions = tokens.len() + usize::from(way == Way::Source);
        if positions > most {
            return Err(fault("tokens", FileProblem::TooLong { found: positions, most }));
        }
        let others = match way {
            Way::Targets => self.targets_of(&line, tokens.len())?,
            Way::Label => vec![self.label_of(line.get("label").unwrap_or(&Value::Null))?],
            Way::Source => {
                let source = self.tokens_of(&line, "source")?;
                if source.len() > limits::LENGTH {
                    return Err(fault("source", FileProblem::TooLong { found: source.len(), most: limits::LENGTH }));
                }
                self.longest_source = self.longest_source.max(source.len());
                source
            }
        };
        let split = match role {
            Role::Whole(split) => split,
            Role::Shared if !self.format.split_field.is_empty() => split_of(&line, &self.format.split_field)?,
            Role::Shared => shares.by_hash(&hash(way, &tokens, &others, line.get("label"))),
        };
        self.parts[split as usize].push(self.tokens.len() as u32);
        self.longest = self.longest.max(positions);
        self.tokens.push(tokens);
        self.others.push(others);
        Ok(())
    }

    /// The one field that a line has beside `tokens`, the same in all lines.
    fn way(&mut self, line: &serde_json::Map<String, Value>) -> Result<Way, Fault> {
        let mut ways = [Way::Targets, Way::Label, Way::Source].into_iter().filter(|way| line.contains_key(way.field()));
        let way = match (ways.next(), ways.next()) {
            (Some(way), None) => way,
            (None, _) => {
                let there = line.keys().map(|key| format!("`{}`", short(key))).collect::<Vec<_>>().join(", ");
                return Err(fault("targets, label or source", FileProblem::Missing(there)));
            }
            (Some(one), Some(other)) => {
                let message = format!("has `{}` and `{}`: one of them says what is asked", one.field(), other.field());
                return Err(fault("", FileProblem::Malformed(message)));
            }
        };
        match self.way {
            None => self.way = Some(way),
            Some(before) if before != way => {
                let message = format!("has `{}`, and the lines before it `{}`", way.field(), before.field());
                return Err(fault("", FileProblem::Malformed(message)));
            }
            Some(_) => {}
        }
        Ok(way)
    }

    fn tokens_of(&mut self, line: &serde_json::Map<String, Value>, field: &str) -> Result<Vec<u32>, Fault> {
        let Some(value) = line.get(field) else {
            let there = line.keys().map(|key| format!("`{}`", short(key))).collect::<Vec<_>>().join(", ");
            return Err(fault(field, FileProblem::Missing(there)));
        };
        let Value::Array(items) = value else {
            return Err(fault(field, FileProblem::wrong(value, "a list of tokens")));
        };
        if items.is_empty() {
            return Err(fault(field, FileProblem::Empty));
        }
        let mut tokens = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            let token = self.token(item).map_err(|problem| fault(format!("{field}[{place}]"), problem))?;
            self.largest_token = self.largest_token.max(token);
            tokens.push(token);
        }
        Ok(tokens)
    }

    fn token(&self, item: &Value) -> Result<u32, FileProblem> {
        let number = match item {
            Value::String(name) if !self.ids.is_empty() => {
                return self.ids.get(name.as_str()).copied().ok_or_else(|| {
                    FileProblem::wrong(item, format!("one of the {} names in vocab_file", self.ids.len()))
                });
            }
            Value::String(_) => return Err(FileProblem::wrong(item, "a number; names of tokens need a vocab_file")),
            _ => whole(item, "a token, which is a whole number of 0 or more")?,
        };
        let vocab = self.vocab.unwrap_or(limits::IDS as usize - 1); // a decoder's start and end need one more
        if number >= vocab as u64 {
            return Err(FileProblem::BeyondVocabulary { token: number, vocab });
        }
        Ok(number as u32)
    }

    fn targets_of(&mut self, line: &serde_json::Map<String, Value>, positions: usize) -> Result<Vec<u32>, Fault> {
        let value = line.get("targets").unwrap_or(&Value::Null);
        let Value::Array(items) = value else {
            return Err(fault("targets", FileProblem::wrong(value, "a list of classes")));
        };
        if items.len() != positions {
            let expected = format!("as many as the {positions} tokens");
            return Err(fault("targets", FileProblem::wrong(format!("{} long", items.len()), expected)));
        }
        let mut targets = Vec::with_capacity(positions);
        for (place, item) in items.iter().enumerate() {
            let at = |problem| fault(format!("targets[{place}]"), problem);
            let class = match (item, self.format.targets) {
                (Value::Null, _) => {
                    targets.push(0);
                    continue;
                }
                (_, TargetKind::Tokens) => {
                    let token = self.token(item).map_err(at)?;
                    self.largest_token = self.largest_token.max(token);
                    token
                }
                (_, TargetKind::Classes) => {
                    class(item, "a class, which is a whole number of 0 or more, or null").map_err(at)?
                }
            };
            self.largest_class = self.largest_class.max(class);
            targets.push(class + 1);
        }
        Ok(targets)
    }

    fn label_of(&mut self, value: &Value) -> Result<u32, Fault> {
        let at = |problem| fault("label", problem);
        match (value, &mut self.labels) {
            (Value::String(word), Labels::Words(words)) => {
                let next = words.len() as u32;
                let label = *words.entry(word.clone()).or_insert(next);
                if label >= limits::IDS {
                    return Err(at(FileProblem::BeyondVocabulary { token: label.into(), vocab: limits::IDS as usize }));
                }
                Ok(label)
            }
            (Value::String(word), labels @ Labels::Unknown) => {
                *labels = Labels::Words(BTreeMap::from([(word.clone(), 0)]));
                Ok(0)
            }
            (Value::String(_), Labels::Numbers) => {
                Err(at(FileProblem::wrong(value, "a number, as in the lines before")))
            }
            (_, Labels::Words(_)) => Err(at(FileProblem::wrong(value, "a word, as in the lines before"))),
            (_, labels) => {
                *labels = Labels::Numbers;
                let label = class(value, "a class: a whole number of 0 or more, or a word").map_err(at)?;
                self.largest_class = self.largest_class.max(label);
                Ok(label)
            }
        }
    }

    /// All but the names.
    fn finish(self) -> RecordContents {
        // Without a line the parts are empty, which is said of them.
        let way = self.way.unwrap_or(Way::Label);
        let vocab = self.vocab.unwrap_or(self.largest_token as usize + 1);
        let (words, relabel) = match self.labels {
            // In the order of the alphabet, so that a class does not depend on which line comes first.
            Labels::Words(words) => {
                let mut relabel = vec![0; words.len()];
                words.values().enumerate().for_each(|(sorted, &met)| relabel[met as usize] = sorted as u32);
                (words.into_keys().collect(), relabel)
            }
            _ => (vec![], vec![]),
        };
        let boundary = usize::from(way == Way::Source);
        let outputs = match (way, self.format.targets) {
            (Way::Source, _) => vocab + 1,
            (Way::Targets, TargetKind::Tokens) => vocab,
            (Way::Label, _) if !words.is_empty() => words.len(),
            _ => self.largest_class as usize + 1,
        };
        RecordContents {
            way,
            targets: self.format.targets,
            names: vec![],
            words,
            relabel,
            tokens: self.tokens,
            others: self.others,
            parts: self.parts,
            seq_len: if self.format.seq_len == 0 { self.longest } else { self.format.seq_len },
            source: (way == Way::Source).then_some(SourceSizes { vocab, len: self.longest_source }),
            vocab: vocab + boundary,
            outputs,
        }
    }
}

/// # Errors
/// Another value than one of the three parts' names.
fn split_of(line: &serde_json::Map<String, Value>, field: &str) -> Result<Split, Fault> {
    let value = line.get(field).unwrap_or(&Value::Null);
    match value.as_str() {
        Some("train" | "training") => Ok(Split::Train),
        Some("validation" | "valid" | "val" | "dev") => Ok(Split::Validation),
        Some("test") => Ok(Split::Test),
        _ => Err(fault(field, FileProblem::wrong(value, "`train`, `validation` or `test`"))),
    }
}

fn whole(value: &Value, expected: &str) -> Result<u64, FileProblem> {
    value.as_u64().ok_or_else(|| FileProblem::wrong(value, expected))
}

fn class(value: &Value, expected: &str) -> Result<u32, FileProblem> {
    let class = whole(value, expected)?;
    if class >= limits::IDS.into() {
        return Err(FileProblem::wrong(class, format!("below {}", limits::IDS)));
    }
    Ok(class as u32)
}

/// Of what a line says, however it is written.
fn hash(way: Way, tokens: &[u32], others: &[u32], label: Option<&Value>) -> blake3::Hash {
    let mut bytes = (tokens.len() as u64).to_le_bytes().to_vec();
    bytes.extend(tokens.iter().flat_map(|token| token.to_le_bytes()));
    match way {
        // A word's number depends on the lines before.
        Way::Label => bytes.extend(label.map(Value::to_string).unwrap_or_default().bytes()),
        Way::Targets | Way::Source => bytes.extend(others.iter().flat_map(|other| other.to_le_bytes())),
    }
    blake3::hash(&bytes)
}

struct RecordContents {
    way: Way,
    targets: TargetKind,
    names: Vec<String>,
    words: Vec<String>,
    /// The class of each word, by the order in which they were met.
    relabel: Vec<u32>,
    tokens: PackedLists,
    others: PackedLists,
    /// The lines of each part.
    parts: [Vec<u32>; 3],
    seq_len: usize,
    source: Option<SourceSizes>,
    vocab: usize,
    outputs: usize,
}

impl RecordContents {
    /// Start and end of a decoder's sequence.
    fn boundary(&self) -> u32 {
        self.vocab as u32 - 1
    }
}

impl Contents for RecordContents {
    fn vocab(&self) -> usize {
        self.vocab
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    fn source(&self) -> Option<SourceSizes> {
        self.source
    }

    fn answers(&self) -> Answers {
        match (self.way, self.targets) {
            (Way::Source, _) => Answers::Sequence { start: self.boundary(), end: self.boundary() },
            (Way::Targets, TargetKind::Tokens) => Answers::Tokens,
            _ => Answers::Classes,
        }
    }

    fn one_answer(&self) -> bool {
        self.way == Way::Label
    }

    fn token_name(&self, token: u32) -> String {
        match self.names.get(token as usize) {
            Some(name) => short(name),
            None if self.way == Way::Source && token == self.boundary() => "start".into(),
            None => token.to_string(),
        }
    }

    fn answer_name(&self, class: u32) -> String {
        match self.answers() {
            Answers::Sequence { end, .. } if class == end => "end".into(),
            Answers::Sequence { .. } | Answers::Tokens => self.token_name(class),
            Answers::Classes => self.words.get(class as usize).map_or_else(|| class.to_string(), |word| short(word)),
        }
    }

    fn count(&self, split: Split) -> u64 {
        self.parts[split as usize].len() as u64
    }

    fn sample(&self, split: Split, place: u64) -> Sample {
        let line = self.parts[split as usize][place as usize] as usize;
        let (mut tokens, others) = (self.tokens.get(line), self.others.get(line));
        let mut source = None;
        let mut targets: Vec<i32> = match self.way {
            Way::Targets => {
                others.into_iter().map(|class| if class == 0 { IGNORE } else { class as i32 - 1 }).collect()
            }
            Way::Label => {
                let met = others.first().copied().unwrap_or(0);
                let label = self.relabel.get(met as usize).copied().unwrap_or(met);
                let mut targets = vec![IGNORE; tokens.len()];
                targets.iter_mut().last().into_iter().for_each(|last| *last = label as i32);
                targets
            }
            Way::Source => {
                let real = others.len();
                let mut padded = others;
                padded.resize(self.source.map_or(real, |sizes| sizes.len), 0);
                source = Some(Source { tokens: padded, real });
                let targets = tokens.iter().copied().chain([self.boundary()]).map(|token| token as i32).collect();
                tokens.insert(0, self.boundary());
                targets
            }
        };
        let real = tokens.len();
        tokens.resize(self.seq_len, 0);
        targets.resize(self.seq_len, IGNORE);
        Sample { real, source, ..Sample::new(tokens, targets) }
    }
}
