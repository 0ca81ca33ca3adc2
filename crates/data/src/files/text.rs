//! `text`: the next byte or character of a text.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::str::Utf8Error;

use serde::{Deserialize, Serialize};

use super::read::{self, Parts, Role};
use super::repeats::Wanted;
use super::{Format, Paths, Read, Shares, some_files};
use crate::answers::Answers;
use crate::error::{TaskError, in_range};
use crate::file_error::{FileError, FileProblem, short};
use crate::limits;
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample, Split};
use crate::stored::{Contents, Repeated};

/// Parameters of `text`: from `seq_len` bytes or characters in a row, at each the next.
///
/// Training samples lie anywhere in the training part. Those of the other parts are blocks that do not overlap: they begin where
/// the part or document does, and every byte or character but the first is an answer once. The last may be shorter, and is padded.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Text {
    /// A file, several, or folders.
    #[serde(skip_serializing)]
    pub files: Paths,
    /// Files of the validation part; without them it is a share of `files`.
    #[serde(skip_serializing)]
    pub validation_files: Paths,
    /// Files of the test part; without them it is a share of `files`.
    #[serde(skip_serializing)]
    pub test_files: Paths,
    /// What a token is.
    pub unit: TextUnit,
    /// L, the length of a sample, 1 to 65,536.
    pub seq_len: usize,
    /// How `files` are shared out.
    pub split: TextSplit,
    /// What stands between documents. A file's end ends one too.
    pub separator: String,
    /// Share of the validation part, of bytes and characters or of documents.
    pub validation_share: f64,
    /// Share of the test part.
    pub test_share: f64,
}

impl Default for Text {
    fn default() -> Self {
        Self {
            files: Paths::default(),
            validation_files: Paths::default(),
            test_files: Paths::default(),
            unit: TextUnit::Bytes,
            seq_len: 64,
            split: TextSplit::Position,
            separator: "\n\n".into(),
            validation_share: 0.1,
            test_share: 0.1,
        }
    }
}

/// What a token of a text is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextUnit {
    /// One of 256, whatever the encoding.
    Bytes,
    /// One of those that the files have, in UTF-8.
    Characters,
}

/// How a text is shared out between the parts.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextSplit {
    /// The files in a row: first the training part, then the validation part, last the test part.
    Position,
    /// Document by document, by the hash of each, so that one stays where it is when others come. Samples keep within documents.
    Document,
}

impl Text {
    fn shares(&self) -> Shares {
        Shares { validation: self.validation_share, test: self.test_share }
    }
}

impl Format for Text {
    const KIND: &'static str = "text";
    const ABOUT: &'static str = "A text of your own, in files: at every byte, or every character, the model must name the \
        next. The loss is in nats, and in bits per byte, in which texts and units compare.";

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let unit = match self.unit {
            TextUnit::Bytes => "bytes",
            TextUnit::Characters => "characters",
        };
        let split = match self.split {
            TextSplit::Position => "position",
            TextSplit::Document => "document",
        };
        vec![
            ("files", (&self.files).into()),
            ("validation_files", (&self.validation_files).into()),
            ("test_files", (&self.test_files).into()),
            ("unit", unit.into()),
            ("seq_len", self.seq_len.into()),
            ("split", split.into()),
            ("separator", self.separator.as_str().into()),
            ("validation_share", self.validation_share.into()),
            ("test_share", self.test_share.into()),
        ]
    }

    fn check(&self) -> Result<(), TaskError> {
        some_files(&self.files)?;
        in_range("seq_len", self.seq_len, 1, limits::LENGTH)?;
        if self.split == TextSplit::Document && self.separator.is_empty() {
            let message = "separator is empty, and split = \"document\" needs to know where a document ends".into();
            return Err(TaskError::Impossible { keys: &["separator", "split"], message });
        }
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
        // One allocation, so that a text takes its size in memory and no more.
        let mut bytes = Vec::with_capacity(parts.bytes(limits::TEXT)? as usize);
        let mut files = vec![];
        let mut pieces = vec![];
        for (path, role) in &parts.files {
            let start = bytes.len();
            let most = limits::TEXT - start as u64;
            files.push(read::append(path, role.name(), most, &mut bytes)?);
            let piece = bytes.get(start..).unwrap_or_default();
            refuse_what_is_no_text(path, piece, self.unit)?;
            pieces.push((start..bytes.len(), *role));
        }
        let tokens = Tokens::new(bytes, self.unit);
        if tokens.vocab() > limits::IDS as usize {
            let problem = FileProblem::BeyondVocabulary { token: tokens.vocab() as u64, vocab: limits::IDS as usize };
            return Err(problem.everywhere());
        }
        let parts = self.segments(&tokens, &pieces, parts.shares);
        if self.split == TextSplit::Position {
            self.refuse_short(&parts)?;
        }
        let is_one_text = self.split == TextSplit::Position;
        Ok(Read { contents: Box::new(TextContents { tokens, parts, seq_len: self.seq_len, is_one_text }), files })
    }
}

/// # Errors
/// A byte 0; where characters are read, bytes that are none.
fn refuse_what_is_no_text(path: &Path, bytes: &[u8], unit: TextUnit) -> Result<(), FileError> {
    let line = |at: usize| 1 + bytes.iter().take(at).filter(|&&byte| byte == b'\n').count() as u64;
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(FileProblem::Binary(at as u64).at(path, line(at)));
    }
    match unit {
        TextUnit::Bytes => Ok(()),
        TextUnit::Characters => std::str::from_utf8(bytes).map(drop).map_err(|error: Utf8Error| {
            let at = error.valid_up_to();
            FileProblem::NotUtf8(at as u64).at(path, line(at))
        }),
    }
}

impl Text {
    /// What each part is made of. `pieces` are the files, in bytes.
    fn segments(&self, tokens: &Tokens, pieces: &[(Range<usize>, Role)], shares: Shares) -> [Segments; 3] {
        let mut parts = [(); 3].map(|()| Segments::new(self.seq_len));
        match self.split {
            TextSplit::Position => {
                for split in [Split::Validation, Split::Test] {
                    let own = pieces.iter().filter(|(_, role)| *role == Role::Whole(split));
                    parts[split as usize].push(own.fold(0..0, |all, (piece, _)| join(all, &tokens.of_bytes(piece))));
                }
                let shared = pieces.iter().filter(|(_, role)| *role == Role::Shared);
                let shared = shared.fold(0..0, |all, (piece, _)| join(all, &tokens.of_bytes(piece)));
                let [first, second] = shares.cuts((shared.end - shared.start) as u64).map(|cut| cut as usize);
                let (first, second) = (shared.start + first, shared.start + second);
                for (split, range) in [
                    (Split::Train, shared.start..first),
                    (Split::Validation, first..second),
                    (Split::Test, second..shared.end),
                ] {
                    parts[split as usize].push(range);
                }
            }
            TextSplit::Document => {
                let mut cursor = Cursor::default();
                for (piece, role) in pieces {
                    for document in documents(&tokens.bytes, piece.clone(), self.separator.as_bytes()) {
                        let split = match role {
                            Role::Whole(split) => *split,
                            Role::Shared => shares.by_hash(&blake3::hash(&tokens.bytes[document.clone()])),
                        };
                        parts[split as usize].push(cursor.tokens(tokens, &document));
                    }
                }
            }
        }
        parts
    }

    fn refuse_short(&self, parts: &[Segments; 3]) -> Result<(), FileError> {
        let needed = self.seq_len as u64 + 1;
        for split in Split::ALL {
            let found = parts[split as usize].tokens();
            if found < needed {
                let what = match self.unit {
                    TextUnit::Bytes => "bytes",
                    TextUnit::Characters => "characters",
                };
                return Err(FileProblem::TooShort { split, what, found, needed }.everywhere());
            }
        }
        Ok(())
    }
}

/// Both in one, the second behind the first.
fn join(all: Range<usize>, next: &Range<usize>) -> Range<usize> {
    if all.is_empty() { next.clone() } else { all.start..next.end }
}

/// The parts of `piece` between separators that are not blank.
fn documents<'a>(bytes: &'a [u8], piece: Range<usize>, separator: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    let mut start = piece.start;
    std::iter::from_fn(move || {
        if start >= piece.end {
            return None;
        }
        let rest = &bytes[start..piece.end];
        let length = find(rest, separator);
        let document = start..start + length.unwrap_or(rest.len());
        start = document.end + separator.len();
        Some(document)
    })
    .filter(|document| !bytes[document.clone()].trim_ascii().is_empty())
}

/// Where `needle` begins.
fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|&byte| byte == first)?;
        if bytes[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// Characters between two marks.
const MARK: usize = 256;

/// The text as it lies in its files, and how to find a token in it.
struct Tokens {
    bytes: Vec<u8>,
    characters: Option<Characters>,
}

/// Where characters begin, and their names.
struct Characters {
    /// The byte at which every 256th begins.
    marks: Vec<u32>,
    count: usize,
    names: Vec<char>,
    ids: HashMap<char, u32>,
}

impl Tokens {
    fn new(bytes: Vec<u8>, unit: TextUnit) -> Self {
        if unit == TextUnit::Bytes {
            return Self { bytes, characters: None };
        }
        let (mut marks, mut count) = (vec![], 0);
        let mut ids = HashMap::new();
        for (at, character) in characters(&bytes, 0) {
            if count % MARK == 0 {
                marks.push(at as u32);
            }
            count += 1;
            ids.entry(character).or_insert(0);
        }
        let mut names: Vec<char> = ids.keys().copied().collect();
        names.sort_unstable();
        let ids = names.iter().enumerate().map(|(id, &name)| (name, id as u32)).collect();
        Self { bytes, characters: Some(Characters { marks, count, names, ids }) }
    }

    fn vocab(&self) -> usize {
        self.characters.as_ref().map_or(256, |characters| characters.names.len())
    }

    /// The tokens that the bytes of a whole file are.
    fn of_bytes(&self, bytes: &Range<usize>) -> Range<usize> {
        Cursor::default().tokens(self, bytes)
    }

    /// The byte at which token `token` begins, the end behind the last.
    fn byte(&self, token: usize) -> usize {
        let Some(Characters { marks, count, .. }) = &self.characters else { return token };
        if token >= *count {
            return self.bytes.len();
        }
        let mark = marks[token / MARK] as usize;
        characters(&self.bytes, mark).nth(token % MARK).map_or(self.bytes.len(), |(at, _)| at)
    }

    /// Tokens one after another, without a list of them all.
    fn iter(&self, tokens: Range<usize>) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.characters {
            None => Box::new(self.bytes[tokens].iter().map(|&byte| byte.into())),
            Some(found) => {
                let start = self.byte(tokens.start);
                let id = |(_, character)| found.ids.get(&character).copied().unwrap_or(0).into();
                Box::new(characters(&self.bytes, start).take(tokens.len()).map(id))
            }
        }
    }

    fn read(&self, tokens: Range<usize>) -> Vec<u32> {
        match &self.characters {
            None => self.bytes[tokens].iter().map(|&byte| byte.into()).collect(),
            Some(found) => {
                let start = self.byte(tokens.start);
                let id = |(_, character)| found.ids.get(&character).copied().unwrap_or(0);
                characters(&self.bytes, start).take(tokens.len()).map(id).collect()
            }
        }
    }
}

/// The characters from byte `from` on, each with the byte at which it begins. The bytes are UTF-8, and `from` begins one.
fn characters(bytes: &[u8], from: usize) -> impl Iterator<Item = (usize, char)> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        let first = *bytes.get(at)?;
        let length = match first {
            0..0x80 => 1,
            0x80..0xe0 => 2,
            0xe0..0xf0 => 3,
            0xf0.. => 4,
        };
        let character = std::str::from_utf8(bytes.get(at..at + length)?).ok()?.chars().next()?;
        at += length;
        Some((at - length, character))
    })
}

/// Counts the tokens before a byte, going forward.
#[derive(Default)]
struct Cursor {
    byte: usize,
    token: usize,
}

impl Cursor {
    /// The tokens of `bytes`, which begin no earlier than those that were asked for before.
    fn tokens(&mut self, tokens: &Tokens, bytes: &Range<usize>) -> Range<usize> {
        self.forward(tokens, bytes.start)..self.forward(tokens, bytes.end)
    }

    fn forward(&mut self, tokens: &Tokens, byte: usize) -> usize {
        let Some(Characters { marks, count, .. }) = &tokens.characters else { return byte };
        if byte >= tokens.bytes.len() {
            return *count;
        }
        let mark = marks.partition_point(|&mark| mark as usize <= byte).saturating_sub(1);
        if mark * MARK > self.token {
            (self.token, self.byte) = (mark * MARK, marks[mark] as usize);
        }
        let begins = |byte: &&u8| (**byte & 0xc0) != 0x80;
        self.token += tokens.bytes[self.byte..byte].iter().filter(begins).count();
        self.byte = byte;
        self.token
    }
}

/// Stretches of tokens that samples keep within.
struct Segments {
    seq_len: usize,
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// Blocks up to the end of each, and places at which a window can begin.
    blocks: Vec<u32>,
    windows: Vec<u32>,
}

impl Segments {
    fn new(seq_len: usize) -> Self {
        Self { seq_len, starts: vec![], ends: vec![], blocks: vec![], windows: vec![] }
    }

    /// One token alone has no next.
    fn push(&mut self, tokens: Range<usize>) {
        let answers = tokens.len().saturating_sub(1);
        if answers == 0 {
            return;
        }
        let add = |sums: &mut Vec<u32>, more: usize| sums.push(sums.last().copied().unwrap_or(0) + more as u32);
        add(&mut self.blocks, answers.div_ceil(self.seq_len));
        add(&mut self.windows, (answers + 1).saturating_sub(self.seq_len).max(1));
        self.starts.push(tokens.start as u32);
        self.ends.push(tokens.end as u32);
    }

    fn tokens(&self) -> u64 {
        self.starts.iter().zip(&self.ends).map(|(&start, &end)| u64::from(end - start)).sum()
    }

    fn count(&self, windows: bool) -> u64 {
        let sums = if windows { &self.windows } else { &self.blocks };
        sums.last().copied().unwrap_or(0).into()
    }

    /// The segment of a place, and the place within it.
    fn segment(sums: &[u32], place: u64) -> (usize, usize) {
        let segment = sums.partition_point(|&sum| u64::from(sum) <= place);
        let before = segment.checked_sub(1).map_or(0, |before| sums[before]);
        (segment, place as usize - before as usize)
    }

    /// What is read and what is answered: one token more than is read.
    fn range(&self, place: u64, windows: bool) -> Range<usize> {
        let (sums, stride) = if windows { (&self.windows, 1) } else { (&self.blocks, self.seq_len) };
        let (segment, within) = Self::segment(sums, place);
        let start = self.starts[segment] as usize + within * stride;
        start..(start + self.seq_len + 1).min(self.ends[segment] as usize)
    }
}

struct TextContents {
    tokens: Tokens,
    parts: [Segments; 3],
    seq_len: usize,
    is_one_text: bool,
}

impl TextContents {
    fn range(&self, split: Split, place: u64) -> Range<usize> {
        self.parts[split as usize].range(place, split == Split::Train)
    }
}

impl Contents for TextContents {
    fn vocab(&self) -> usize {
        self.tokens.vocab()
    }

    fn outputs(&self) -> usize {
        self.tokens.vocab()
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    fn answers(&self) -> Answers {
        Answers::Tokens
    }

    fn token_name(&self, token: u32) -> String {
        let character = match &self.tokens.characters {
            None => u8::try_from(token).ok().filter(u8::is_ascii).map(char::from),
            Some(characters) => characters.names.get(token as usize).copied(),
        };
        match character {
            Some(' ') => "␣".into(),
            Some(character) => short(&character.to_string()),
            None => format!("\\x{token:02x}"),
        }
    }

    fn count(&self, split: Split) -> u64 {
        self.parts[split as usize].count(split == Split::Train)
    }

    fn is_windows(&self) -> bool {
        true
    }

    fn sample(&self, split: Split, place: u64) -> Sample {
        let mut tokens = self.tokens.read(self.range(split, place));
        let mut targets: Vec<i32> = tokens.iter().skip(1).map(|&token| token as i32).collect();
        let real = targets.len();
        tokens.truncate(real);
        tokens.resize(self.seq_len, 0);
        targets.resize(self.seq_len, IGNORE);
        Sample { real, ..Sample::new(tokens, targets) }
    }

    /// A document; a block, where the text is one.
    fn unit(&self, split: Split, place: u64) -> u64 {
        if self.is_one_text { place } else { Segments::segment(&self.parts[split as usize].blocks, place).0 as u64 }
    }

    /// Blocks of full length, anywhere in a stretch of the training part.
    fn repeated(&self, split: Split, places: &[u64]) -> Option<Repeated> {
        let width = self.seq_len;
        let starts: Vec<usize> = places
            .iter()
            .map(|&place| self.range(split, place))
            .filter(|range| range.len() > width)
            .map(|range| range.start)
            .collect();
        let window = |start: usize| self.tokens.read(start..start + width);
        let mut wanted = Wanted::new(width, starts.iter().map(|&start| window(start).into_iter().map(u64::from)));
        let training = &self.parts[Split::Train as usize];
        for (&start, &end) in training.starts.iter().zip(&training.ends) {
            let (start, end) = (start as usize, end as usize);
            let is_same = |wanted: usize, at: usize| window(starts[wanted]) == window(start + at);
            wanted.look_through(self.tokens.iter(start..end), self.tokens.iter(start..end), is_same);
        }
        let (seen, distinct) = wanted.counts();
        Some(Repeated { samples: starts.len() as u64, distinct, seen })
    }

    fn answer_bytes(&self, split: Split, place: u64) -> Option<(u64, u64)> {
        let range = self.range(split, place);
        let answers = range.start + 1..range.end;
        Some((answers.len() as u64, (self.tokens.byte(answers.end) - self.tokens.byte(answers.start)) as u64))
    }
}
