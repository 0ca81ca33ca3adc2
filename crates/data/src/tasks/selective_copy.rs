//! `selective_copy`: pick tokens out of blanks, in order.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample};

/// Parameters of `selective_copy`: the selective copying of Mamba (Gu and Dao, arXiv 2312.00752) and MAD (Poli et al., arXiv
/// 2403.17844).
///
/// The first `seq_len - copies` positions are blank (token `vocab`) but for `copies` uniform tokens of `0..vocab` at places
/// that are all equally likely. The other `copies` positions are marks (token `vocab + 1`); the target of mark i is token i.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectiveCopy {
    /// Number of tokens that are not blank, and of classes, 2 to 2^20 - 2.
    pub vocab: usize,
    /// Length of a sample in tokens, marks included, at most 65,536.
    pub seq_len: usize,
    /// Tokens to copy, at least 1; three times as many fit into `seq_len`.
    pub copies: usize,
}

impl Default for SelectiveCopy {
    fn default() -> Self {
        Self { vocab: 16, seq_len: 64, copies: 8 }
    }
}

impl SelectiveCopy {
    fn blank(&self) -> u32 {
        self.vocab as u32
    }

    fn mark(&self) -> u32 {
        self.vocab as u32 + 1
    }

    /// Where tokens to copy stand.
    fn places(&self, tokens: &[u32]) -> impl Iterator<Item = usize> {
        let blank = self.blank();
        tokens.iter().enumerate().filter(move |&(_, &token)| token < blank).map(|(place, _)| place)
    }
}

impl Definition for SelectiveCopy {
    fn kind(&self) -> &'static str {
        "selective_copy"
    }

    fn about(&self) -> &'static str {
        "Tokens at random places among blanks, then marks: at the first mark the model must name the first token, at the \
        second the second, and so on (selective copying, arXiv 2312.00752 and 2403.17844)."
    }

    fn prediction(&self) -> &'static str {
        "Depth rather than heads: a first layer can count the tokens so far and a second look one up by its number, one \
        head in each, so head counts should end alike with two layers."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { vocab, seq_len, copies } = *self;
        vec![("vocab", vocab.into()), ("seq_len", seq_len.into()), ("copies", copies.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        let Self { vocab, seq_len, copies } = *self;
        in_range("vocab", vocab, 2, (1 << 20) - 2)?;
        in_range("seq_len", seq_len, 3, 65_536)?;
        in_range("copies", copies, 1, 65_536 / 3)?;
        if 3 * copies > seq_len {
            let message =
                format!("copies = {copies} do not fit into seq_len = {seq_len}: 3 * copies must be at most seq_len");
            return Err(TaskError::Impossible { keys: &["copies", "seq_len"], message });
        }
        Ok(())
    }

    /// Content, blank and mark.
    fn vocab(&self) -> usize {
        self.vocab + 2
    }

    fn outputs(&self) -> usize {
        self.vocab
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    /// Choices of places, times those of tokens.
    fn distinct_samples(&self) -> Option<u128> {
        let Self { vocab, seq_len, copies } = *self;
        let places = (seq_len - copies) as u128;
        // Each product of the first k factors is a binomial coefficient, so the division leaves no rest.
        let choices = (0..copies as u128).try_fold(1u128, |sum, k| Some(sum.checked_mul(places - k)? / (k + 1)));
        let tokens = (vocab as u128).saturating_pow(copies as u32);
        Some(choices.map_or(u128::MAX, |choices| choices.saturating_mul(tokens)))
    }

    fn prepare(&self) -> Draw {
        let task = *self;
        Arc::new(move |stream| {
            let Self { vocab, seq_len, copies } = task;
            let read = seq_len - copies;
            let mut places = stream.distinct(copies, read as u64);
            places.sort_unstable();
            let mut tokens = vec![task.blank(); read];
            tokens.resize(seq_len, task.mark());
            let mut targets = vec![IGNORE; seq_len];
            for (copy, place) in places.into_iter().enumerate() {
                let token = stream.below(vocab as u64) as u32;
                tokens[place as usize] = token;
                targets[read + copy] = token as i32;
            }
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let mut text = format!(
            "{} tokens among blanks, to be said in order at the marks; * = scored\n    t  token\n",
            self.copies
        );
        for (position, (&token, &target)) in sample.tokens.iter().zip(&sample.targets).enumerate() {
            let name = self.token_name(token);
            let _ = match target {
                IGNORE => writeln!(text, "{position:>5}  {name:>5}"),
                copy => writeln!(text, "{position:>5}  {name:>5}  * {copy}"),
            };
        }
        text
    }

    fn token_name(&self, token: u32) -> String {
        match token {
            blank if blank == self.blank() => "-".into(),
            mark if mark == self.mark() => "?".into(),
            token => token.to_string(),
        }
    }

    /// `token to copy`: the one with the mark's number.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let number = position.checked_sub(self.seq_len - self.copies);
        let place = number.and_then(|number| self.places(&sample.tokens).nth(number));
        place.map(|place| Needed::own("token to copy", vec![place])).into_iter().collect()
    }

    /// At each mark the next of the tokens before it, as long as there are any.
    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        let mut said = 0;
        let target = |(position, &token): (usize, &u32)| {
            if token != self.mark() {
                return IGNORE;
            }
            let place = self.places(&read[..position]).nth(said);
            said += 1;
            place.map_or(IGNORE, |place| read[place] as i32)
        };
        Some(read.iter().enumerate().map(target).collect())
    }
}
