//! `induction`: what came after this token the last time.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::answers::Answers;
use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::parameter::Parameter;
use crate::sample::{IGNORE, Sample};

/// Parameters of `induction`: uniform tokens. A position is scored where its token has come before; its target is the token behind
/// the latest of these earlier ones (Olsson et al., arXiv 2209.11895).
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Induction {
    /// V, the number of tokens, 2 to 2^20.
    pub vocab: usize,
    /// Length of a sample in tokens, 2 to 65,536.
    pub seq_len: usize,
}

impl Default for Induction {
    fn default() -> Self {
        Self { vocab: 16, seq_len: 32 }
    }
}

impl Induction {
    fn targets(&self, tokens: &[u32]) -> Vec<i32> {
        let mut after = vec![IGNORE; self.vocab];
        let mut before = None;
        let target = |&token: &u32| {
            if let Some(before) = before.replace(token) {
                after[before as usize] = token as i32;
            }
            after[token as usize]
        };
        tokens.iter().map(target).collect()
    }
}

impl Definition for Induction {
    fn kind(&self) -> &'static str {
        "induction"
    }

    fn about(&self) -> &'static str {
        "Random tokens. Where a token has come before, the model must name the one that followed it the last time, as the \
        induction heads of language models do (arXiv 2209.11895)."
    }

    fn prediction(&self) -> &'static str {
        "Depth rather than heads: two layers of one head are enough, the first to tell each token what stood before it, the \
        second to find the earlier copy. One layer would have to be exponentially larger (arXiv 2408.14332)."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { vocab, seq_len } = *self;
        vec![("vocab", vocab.into()), ("seq_len", seq_len.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        in_range("vocab", self.vocab, 2, 1 << 20)?;
        in_range("seq_len", self.seq_len, 2, 65_536)
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

    /// Every sequence of tokens: vocab^seq_len.
    fn distinct_samples(&self) -> Option<u128> {
        Some((self.vocab as u128).saturating_pow(self.seq_len as u32))
    }

    fn prepare(&self) -> Draw {
        let task = *self;
        Arc::new(move |stream| {
            let tokens: Vec<u32> = (0..task.seq_len).map(|_| stream.below(task.vocab as u64) as u32).collect();
            let targets = task.targets(&tokens);
            Sample::new(tokens, targets)
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        let mut text = "what followed the token the last time; * = scored\n    t  token\n".to_string();
        for (position, (&token, &target)) in sample.tokens.iter().zip(&sample.targets).enumerate() {
            let _ = match target {
                IGNORE => writeln!(text, "{position:>5}  {token:>5}"),
                next => writeln!(text, "{position:>5}  {token:>5}  * {next}"),
            };
        }
        text
    }

    fn answers(&self) -> Answers {
        Answers::Tokens
    }

    /// `earlier copy`, and the `token after it`, which may be the position itself.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let is_copy = |token: &u32| *token == sample.tokens[position];
        match sample.tokens[..position].iter().rposition(is_copy) {
            Some(copy) => {
                vec![Needed::own("earlier copy", vec![copy]), Needed::own("token after it", vec![copy + 1])]
            }
            None => vec![],
        }
    }

    fn expected(&self, read: &[u32]) -> Option<Vec<i32>> {
        Some(self.targets(read))
    }
}
