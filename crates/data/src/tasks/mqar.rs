//! `mqar`: multi-query associative recall, as Zoology generates it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answers::Answers;
use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample};
use crate::urn::Urn;

/// Parameters of `mqar`: k key-value pairs in T tokens over a vocabulary of V.
///
/// The distribution is that of `multiquery_ar` in Zoology (Arora et al., arXiv 2312.04927;
/// `zoology/data/multiquery_ar.py`), in other random numbers. Positions `0..2k` hold k different keys of
/// `1..V/2`, each followed by its value; the values are different ones of `V/2..V`. The rest is cut into (T - 2k) / 2
/// slots of two positions. Pair after pair takes a slot among those left, slot i (from 1) with probability proportional
/// to i^(a-1), and repeats its key at the slot's first position: the query, whose target is the pair's value. Every
/// other position is filled and not scored. Zoology makes T + 1 tokens, drops the last and moves its labels by one
/// against them; what comes out is this: T tokens, the target at the query itself.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mqar {
    /// V, the size of the vocabulary, at most 2^20. It must be greater than `seq_len`.
    pub vocab: usize,
    /// T, the length of a sample in tokens: even, at most 65,536.
    pub seq_len: usize,
    /// k, the number of key-value pairs, and of queries; at least 1, and 4k at most T.
    pub pairs: usize,
    /// a, which shapes the gap between pairs and queries: 1e-6 to 10. 1 is uniform, less favours near slots.
    pub power_a: f64,
    /// What stands where there is neither pair nor query.
    pub fill: Fill,
}

/// What stands in `mqar` where there is neither pair nor query.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Uniform tokens of the whole vocabulary, keys and values among them; Zoology's default.
    Random,
    /// Token 0, which is neither key nor value.
    Zero,
}

impl Default for Mqar {
    fn default() -> Self {
        Self { vocab: 64, seq_len: 32, pairs: 4, power_a: 0.01, fill: Fill::Random }
    }
}

impl Mqar {
    /// Number of slots a query can stand in.
    fn slots(&self) -> usize {
        (self.seq_len - 2 * self.pairs) / 2
    }

    /// The slots, weighted in units of 2^-40 of the heaviest: integers make draws exact, the rounding hides what `powf`
    /// may differ by between machines, and it is far below what any number of samples could show.
    fn urn(&self) -> Urn {
        let weight = |slot: usize| (slot as f64).powf(self.power_a - 1.0);
        let heaviest = weight(1).max(weight(self.slots()));
        let units = |slot| ((weight(slot) / heaviest * (1u64 << 40) as f64).round() as u64).max(1);
        Urn::new((1..=self.slots()).map(units).collect())
    }
}

impl Definition for Mqar {
    fn kind(&self) -> &'static str {
        "mqar"
    }

    fn about(&self) -> &'static str {
        "Multi-query associative recall as in Zoology (arXiv 2312.04927): the sequence opens \
        with key-value pairs; later each key comes once more, among filler, and there the model must name its value. \
        Near queries are more likely than distant ones."
    }

    fn prediction(&self) -> &'static str {
        "Neutral: one head of full rank is enough, and two layers are needed; many heads of tiny width hurt."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { vocab, seq_len, pairs, power_a, fill } = *self;
        let fill = match fill {
            Fill::Random => "random",
            Fill::Zero => "zero",
        };
        vec![
            ("vocab", vocab.into()),
            ("seq_len", seq_len.into()),
            ("pairs", pairs.into()),
            ("power_a", power_a.into()),
            ("fill", fill.into()),
        ]
    }

    fn check(&self) -> Result<(), TaskError> {
        let Self { vocab, seq_len, pairs, power_a, fill: _ } = *self;
        in_range("seq_len", seq_len, 4, 65_536)?;
        in_range("vocab", vocab, 5, 1 << 20)?;
        in_range("pairs", pairs, 1, 65_536 / 4)?;
        in_range("power_a", power_a, 1e-6, 10.0)?;
        if !seq_len.is_multiple_of(2) {
            return Err(TaskError::OddLength { seq_len });
        }
        if vocab <= seq_len {
            return Err(TaskError::VocabTooSmall { vocab, seq_len });
        }
        if 4 * pairs > seq_len {
            return Err(TaskError::TooManyPairs { pairs, seq_len });
        }
        Ok(())
    }

    fn vocab(&self) -> usize {
        self.vocab
    }

    fn outputs(&self) -> usize {
        self.vocab
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    /// Ordered choices of keys, of values and of slots, times what the other positions can be filled with.
    fn distinct_samples(&self) -> Option<u128> {
        let Self { vocab, seq_len, pairs, power_a: _, fill } = *self;
        let choices =
            |of: usize| (of - pairs + 1..=of).fold(1, |product: u128, left| product.saturating_mul(left as u128));
        let fills = match fill {
            Fill::Random => (vocab as u128).saturating_pow((seq_len - 3 * pairs) as u32),
            Fill::Zero => 1,
        };
        let factors = [choices(vocab / 2 - 1), choices(vocab - vocab / 2), choices(self.slots()), fills];
        Some(factors.into_iter().fold(1, u128::saturating_mul))
    }

    fn prepare(&self) -> Draw {
        let (task, slots) = (*self, self.urn());
        Arc::new(move |stream| {
            let (vocab, first_value) = (task.vocab as u64, task.vocab as u64 / 2);
            let keys = stream.distinct(task.pairs, first_value - 1);
            let values = stream.distinct(task.pairs, vocab - first_value);
            let mut slots = slots.clone();
            let mut tokens = vec![None; task.seq_len];
            let mut targets = vec![IGNORE; task.seq_len];
            for (pair, (key, value)) in keys.into_iter().zip(values).enumerate() {
                let (key, value) = (key as u32 + 1, (value + first_value) as u32);
                let query = 2 * task.pairs + 2 * slots.draw(stream);
                tokens[2 * pair] = Some(key);
                tokens[2 * pair + 1] = Some(value);
                tokens[query] = Some(key);
                targets[query] = value as i32;
            }
            let mut fill = || match task.fill {
                Fill::Random => stream.below(vocab) as u32,
                Fill::Zero => 0,
            };
            let tokens = tokens.into_iter().map(|token| token.unwrap_or_else(&mut fill)).collect();
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let first_value = self.vocab / 2;
        let mut text = format!(
            "{} pairs; keys are 1 to {}, values {first_value} to {}; * = scored\n    t  token  what\n",
            self.pairs,
            first_value - 1,
            self.vocab - 1
        );
        for (position, (&token, &target)) in sample.tokens.iter().zip(&sample.targets).enumerate() {
            let what = match (position < 2 * self.pairs, position % 2, target) {
                (true, 0, _) => format!("key {token}"),
                (true, _, _) => format!("value {token}"),
                (false, _, IGNORE) => "fill".to_string(),
                (false, _, value) => format!("query {token}  * {value}"),
            };
            let _ = writeln!(text, "{position:>5}  {token:>5}  {what}");
        }
        text
    }

    fn answers(&self) -> Answers {
        Answers::Tokens
    }

    /// `key` and `value`: the pair that the query asks for.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let is_pair = |pair: &usize| sample.tokens[2 * pair] == sample.tokens[position];
        match (0..self.pairs).find(is_pair) {
            Some(pair) if sample.targets[position] != IGNORE => {
                vec![Needed::own("key", vec![2 * pair]), Needed::own("value", vec![2 * pair + 1])]
            }
            _ => vec![],
        }
    }

    fn token_name(&self, token: u32) -> String {
        match token as usize {
            0 => "0".to_string(),
            key if key < self.vocab / 2 => format!("key {key}"),
            value => format!("value {value}"),
        }
    }
}
