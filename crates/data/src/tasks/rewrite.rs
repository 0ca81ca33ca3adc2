//! What `reverse` and `sort` share: an encoder reads a sequence of varying length, a decoder writes it in another order.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::definition::{Answers, Draw};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample, Source, SourceSizes};

/// Parameters of a task that rewrites its source. A source holds n uniform tokens of `0..vocab`, n uniform in
/// `min_len..=max_len`, padded to `max_len`; the target is a rearrangement of them, so it is as long.
///
/// The decoder's tokens are a start token, then the target (teacher forcing), `max_len + 1` in all with padding. Position t
/// is scored if t <= n; its target is the target's token t, and the end at t = n. Start and end are one id, `vocab`: the one
/// is only ever read, the other only ever written. Padding is token 0 on both sides, which is a token like any other: what
/// is padding follows from n.
#[derive(Clone, Copy)]
pub(super) struct Rewrite {
    pub vocab: usize,
    pub min_len: usize,
    pub max_len: usize,
}

impl Rewrite {
    pub fn parameters(self) -> Vec<(&'static str, Parameter)> {
        let Self { vocab, min_len, max_len } = self;
        vec![("vocab", vocab.into()), ("min_len", min_len.into()), ("max_len", max_len.into())]
    }

    pub fn check(self) -> Result<(), TaskError> {
        let Self { vocab, min_len, max_len } = self;
        in_range("vocab", vocab, 2, (1 << 20) - 1)?;
        in_range("min_len", min_len, 1, 65_535)?;
        in_range("max_len", max_len, 1, 65_535)?;
        if min_len > max_len {
            return Err(TaskError::NoLength { min_len, max_len });
        }
        Ok(())
    }

    /// The id of start and end.
    pub fn boundary(self) -> usize {
        self.vocab
    }

    /// Content, and start on one side or end on the other.
    pub fn ids(self) -> usize {
        self.vocab + 1
    }

    pub fn seq_len(self) -> usize {
        self.max_len + 1
    }

    pub fn source(self) -> SourceSizes {
        SourceSizes { vocab: self.vocab, len: self.max_len }
    }

    /// `rearrange` turns the real tokens of a source into its target, in place.
    pub fn prepare(self, rearrange: fn(&mut [u32])) -> Draw {
        Arc::new(move |stream| {
            let Self { vocab, min_len, max_len } = self;
            let real = min_len + stream.below((max_len - min_len + 1) as u64) as usize;
            let mut source: Vec<u32> = (0..real).map(|_| stream.below(vocab as u64) as u32).collect();
            let mut targets = self.expected(&source, rearrange);
            let mut tokens = vec![self.boundary() as u32];
            tokens.extend(targets[..real].iter().map(|&token| token as u32));
            tokens.resize(self.seq_len(), 0);
            targets.resize(self.seq_len(), IGNORE);
            source.resize(max_len, 0);
            Sample { tokens, targets, source: Some(Source { tokens: source, real }) }
        })
    }

    /// The target of a source's real tokens, and the end.
    pub fn expected(self, source: &[u32], rearrange: fn(&mut [u32])) -> Vec<i32> {
        let mut target = source.to_vec();
        rearrange(&mut target);
        target.push(self.boundary() as u32);
        target.into_iter().map(|token| token as i32).collect()
    }

    pub fn answers(self) -> Answers {
        let boundary = self.boundary() as u32;
        Answers::Sequence { start: boundary, end: boundary }
    }

    pub fn token_name(self, token: u32) -> String {
        if token as usize == self.boundary() { "end".to_string() } else { token.to_string() }
    }

    /// A heading with the source, then a line for each position of the decoder.
    pub fn explain(self, sample: &Sample) -> String {
        let real = sample.source.as_ref().map_or(&[][..], |source| &source.tokens[..source.real]);
        let listed: Vec<String> = real.iter().map(u32::to_string).collect();
        let mut text = format!(
            "source, {} of at most {} tokens: {}; {} = start or end; * = scored\n    t  token  what\n",
            real.len(),
            self.max_len,
            listed.join(" "),
            self.boundary()
        );
        for (position, (&token, &target)) in sample.tokens.iter().zip(&sample.targets).enumerate() {
            let what = match position {
                0 => "start",
                _ if position <= real.len() => "target",
                _ => "padding",
            };
            let scored = match target {
                IGNORE => String::new(),
                end if end as usize == self.boundary() => "  * end".to_string(),
                next => format!("  * {next}"),
            };
            let _ = writeln!(text, "{position:>5}  {token:>5}  {}", format!("{what:<7}{scored}").trim_end());
        }
        text
    }
}
