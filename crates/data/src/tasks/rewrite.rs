//! `reverse` and `sort`: an encoder reads a sequence of varying length, a decoder writes it in another order.

use std::fmt::{Debug, Write as _};
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;

use crate::answers::Answers;
use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample, Source, SourceSizes};

/// Parameters of `reverse`: the target is the source, last token first.
pub type Reverse = Rewrite<Backwards>;

/// Parameters of `sort`: the target is the source in ascending order of token id, equal ones as often as they come.
pub type Sort = Rewrite<Ascending>;

/// Parameters of a task that writes its source in the order `O`.
///
/// A source holds n uniform tokens of `0..vocab`, n uniform in `min_len..=max_len`, padded to `max_len`; the target is a
/// rearrangement of them, so it is as long. The decoder reads a start token, then the target (teacher forcing), `max_len + 1`
/// tokens in all with padding. Position t is scored if t <= n; its target is the target's token t, and the end at t = n. Start
/// and end are one id, `vocab`: the one is only ever read, the other only ever written. Padding is token 0 on both sides, which
/// is a token like any other: what is padding follows from n.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields, bound = "O: Order")]
pub struct Rewrite<O> {
    /// Number of tokens that a source is made of, 2 to 2^20 - 1.
    pub vocab: usize,
    /// Shortest source, at least 1.
    pub min_len: usize,
    /// Longest source, at most 65,535.
    pub max_len: usize,
    /// The order, which is no parameter.
    #[serde(skip)]
    pub order: PhantomData<O>,
}

/// The order in which a source is written, and all that follows from it.
pub trait Order: Copy + Debug + Send + Sync + 'static {
    /// See [`Definition::kind`].
    const KIND: &'static str;
    /// See [`Definition::about`].
    const ABOUT: &'static str;
    /// See [`Definition::prediction`].
    const PREDICTION: &'static str;

    /// Turns the real tokens of a source into its target, in place.
    fn rearrange(tokens: &mut [u32]);

    /// Where a source has the token `position` of its target: several where the order does not say which of equal ones it is.
    /// Nowhere behind the target's last token.
    fn origins(source: &[u32], position: usize) -> Vec<usize>;
}

/// Last token first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Backwards;

impl Order for Backwards {
    const KIND: &'static str = "reverse";
    const ABOUT: &'static str = "Sequence to sequence: the encoder reads tokens, the decoder writes them backwards \
        and then says that it is done. Lengths vary, so sources and targets are padded.";
    const PREDICTION: &'static str = "A check of cross-attention and padding rather than of heads: one head that \
        reads the mirrored place is enough, so head counts should end alike.";

    fn rearrange(tokens: &mut [u32]) {
        tokens.reverse();
    }

    fn origins(source: &[u32], position: usize) -> Vec<usize> {
        source.len().checked_sub(position + 1).into_iter().collect()
    }
}

/// Smallest token first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ascending;

impl Order for Ascending {
    const KIND: &'static str = "sort";
    const ABOUT: &'static str = "Sequence to sequence: the encoder reads tokens, the decoder writes them in \
        ascending order, equal ones as often as they come, and then says that it is done. Lengths vary, so sources \
        and targets are padded.";
    const PREDICTION: &'static str = "A check of cross-attention and padding rather than of heads: the next token \
        follows from how often each one was read, which one head can count, so head counts should end alike.";

    fn rearrange(tokens: &mut [u32]) {
        tokens.sort_unstable();
    }

    fn origins(source: &[u32], position: usize) -> Vec<usize> {
        let mut sorted = source.to_vec();
        Self::rearrange(&mut sorted);
        let holds = |&place: &usize| Some(&source[place]) == sorted.get(position);
        (0..source.len()).filter(holds).collect()
    }
}

impl<O> Default for Rewrite<O> {
    fn default() -> Self {
        Self::new(16, 4, 12)
    }
}

impl<O> Rewrite<O> {
    /// Sources of `min_len` to `max_len` of the tokens `0..vocab`.
    pub fn new(vocab: usize, min_len: usize, max_len: usize) -> Self {
        Self { vocab, min_len, max_len, order: PhantomData }
    }

    /// The id of start and end.
    fn boundary(&self) -> u32 {
        self.vocab as u32
    }
}

impl<O: Order> Rewrite<O> {
    /// The target of a source's real tokens, and the end.
    fn target(&self, source: &[u32]) -> Vec<i32> {
        let mut target = source.to_vec();
        O::rearrange(&mut target);
        target.push(self.boundary());
        target.into_iter().map(|token| token as i32).collect()
    }
}

impl<O: Order> Definition for Rewrite<O> {
    fn kind(&self) -> &'static str {
        O::KIND
    }

    fn about(&self) -> &'static str {
        O::ABOUT
    }

    fn prediction(&self) -> &'static str {
        O::PREDICTION
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { vocab, min_len, max_len, order: _ } = *self;
        vec![("vocab", vocab.into()), ("min_len", min_len.into()), ("max_len", max_len.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        let Self { vocab, min_len, max_len, order: _ } = *self;
        in_range("vocab", vocab, 2, (1 << 20) - 1)?;
        in_range("min_len", min_len, 1, 65_535)?;
        in_range("max_len", max_len, 1, 65_535)?;
        if min_len > max_len {
            return Err(TaskError::NoLength { min_len, max_len });
        }
        Ok(())
    }

    /// Content, and the start.
    fn vocab(&self) -> usize {
        self.vocab + 1
    }

    /// Content, and the end.
    fn outputs(&self) -> usize {
        self.vocab + 1
    }

    fn seq_len(&self) -> usize {
        self.max_len + 1
    }

    fn source(&self) -> Option<SourceSizes> {
        Some(SourceSizes { vocab: self.vocab, len: self.max_len })
    }

    /// The sources of each length: vocab^min_len + ... + vocab^max_len.
    fn distinct_samples(&self) -> Option<u128> {
        let of_length = |length: usize| (self.vocab as u128).saturating_pow(length as u32);
        Some((self.min_len..=self.max_len).map(of_length).fold(0, u128::saturating_add))
    }

    fn prepare(&self) -> Draw {
        let task = *self;
        Arc::new(move |stream| {
            let Self { vocab, min_len, max_len, order: _ } = task;
            let real = min_len + stream.below((max_len - min_len + 1) as u64) as usize;
            let mut source: Vec<u32> = (0..real).map(|_| stream.below(vocab as u64) as u32).collect();
            let mut targets = task.target(&source);
            let mut tokens = vec![task.boundary()];
            tokens.extend(targets[..real].iter().map(|&token| token as u32));
            tokens.resize(task.seq_len(), 0);
            targets.resize(task.seq_len(), IGNORE);
            source.resize(max_len, 0);
            let source = Some(Source { tokens: source, real });
            Sample { real: real + 1, source, ..Sample::new(tokens, targets) }
        })
    }

    /// A heading with the source, then a line for each position of the decoder.
    fn explain(&self, sample: &Sample) -> String {
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
                end if end as u32 == self.boundary() => "  * end".to_string(),
                next => format!("  * {next}"),
            };
            let _ = writeln!(text, "{position:>5}  {token:>5}  {}", format!("{what:<7}{scored}").trim_end());
        }
        text
    }

    fn answers(&self) -> Answers {
        Answers::Sequence { start: self.boundary(), end: self.boundary() }
    }

    fn token_name(&self, token: u32) -> String {
        if token == self.boundary() { "start".to_string() } else { token.to_string() }
    }

    fn answer_name(&self, class: u32) -> String {
        if class == self.boundary() { "end".to_string() } else { class.to_string() }
    }

    /// `source token`: where the source has the token that is the answer; none for the end.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let source = sample.source.as_ref().map_or(&[][..], |source| &source.tokens[..source.real]);
        match O::origins(source, position) {
            positions if positions.is_empty() => vec![],
            positions => vec![Needed::of_source("source token", positions)],
        }
    }

    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        Some(self.target(read))
    }
}
