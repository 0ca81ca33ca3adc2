//! Which sizes grow, and over which values.

use std::str::FromStr;

use serde::Serialize;

use crate::bench::workload::Sizes;

/// A size that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Tokens of a sample.
    Length,
    /// Width of the residual stream.
    DModel,
    /// Heads, at the same width together.
    Heads,
    /// Different tokens.
    Vocabulary,
    /// Samples of a step.
    Batch,
}

impl Axis {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Length, Self::DModel, Self::Heads, Self::Vocabulary, Self::Batch];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::DModel => "d_model",
            Self::Heads => "heads",
            Self::Vocabulary => "vocabulary",
            Self::Batch => "batch",
        }
    }

    /// The doublings that are measured unless others are asked for.
    pub(super) fn usual(self) -> Vec<usize> {
        let (first, last) = match self {
            Self::Length => (32, 1024),
            Self::DModel => (32, 512),
            Self::Heads => (1, 32),
            Self::Vocabulary => (64, 8192),
            Self::Batch => (1, 256),
        };
        std::iter::successors(Some(first), |value| Some(value * 2)).take_while(|value| *value <= last).collect()
    }

    /// `base` with this size at `value`.
    pub(super) fn at(self, base: Sizes, value: usize) -> Sizes {
        match self {
            Self::Length => Sizes { seq: value, ..base },
            Self::DModel => Sizes { d_model: value, ..base },
            Self::Heads => Sizes { heads: value, ..base },
            Self::Vocabulary => Sizes { vocab: value, ..base },
            Self::Batch => Sizes { batch: value, ..base },
        }
    }

    /// Its figure's file name without the ending.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::Length => "growth-length",
            Self::DModel => "growth-d_model",
            Self::Heads => "growth-heads",
            Self::Vocabulary => "growth-vocabulary",
            Self::Batch => "growth-batch",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Length => "length of a sample (tokens)",
            Self::DModel => "d_model",
            Self::Heads => "attention heads",
            Self::Vocabulary => "vocabulary (tokens and outputs)",
            Self::Batch => "batch (samples)",
        }
    }
}

/// One size at several values, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// The size.
    pub axis: Axis,
    /// Its values, ascending.
    pub values: Vec<usize>,
}

impl Sweep {
    /// Every size over its usual values.
    pub fn usual() -> Vec<Self> {
        Axis::ALL.into_iter().map(|axis| Self { axis, values: axis.usual() }).collect()
    }
}

/// From `heads` or `heads=1,2,4`.
impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, list) = text.split_once('=').map_or((text, None), |(name, list)| (name, Some(list)));
        let axis = Axis::ALL.into_iter().find(|axis| axis.name() == name).ok_or_else(|| {
            format!("`{name}` is no size to sweep: there are {}", Axis::ALL.map(Axis::name).join(", "))
        })?;
        let Some(list) = list else { return Ok(Self { axis, values: axis.usual() }) };
        let value = |word: &str| match word.trim().parse::<usize>() {
            Ok(value) if (1..=1 << 20).contains(&value) => Ok(value),
            _ => Err(format!("`{word}` is no size: sizes are whole numbers from 1 to {}", 1 << 20)),
        };
        let mut values = list.split(',').map(value).collect::<Result<Vec<_>, _>>()?;
        values.sort_unstable();
        values.dedup();
        Ok(Self { axis, values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read_in_any_order() {
        let sweep: Sweep = "heads=8,1, 2,8".parse().unwrap();
        assert_eq!(sweep, Sweep { axis: Axis::Heads, values: vec![1, 2, 8] });
        assert_eq!("length".parse::<Sweep>().unwrap().values, [32, 64, 128, 256, 512, 1024]);
        for text in ["", "depth", "heads=", "heads=0", "heads=-1", "heads=1.5"] {
            assert!(text.parse::<Sweep>().is_err(), "{text}");
        }
    }
}
