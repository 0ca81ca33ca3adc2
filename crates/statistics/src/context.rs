//! Over what a verdict speaks, in words: instances and seeds, learning rates, what else was held fixed.

use serde::{Deserialize, Serialize};

use crate::words::count;

/// What the pairs vary over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Scope {
    /// Every pair has its own task instance, or the pairs share so many: "10 pairs over 10 instances".
    Instances { instances: usize },
    /// All pairs are seeds of one instance: "10 pairs, over 10 seeds of one task instance".
    OneInstance,
    /// All pairs were measured on one test set of so many samples.
    OneTestSet { samples: usize },
    /// Not known, as with results of others.
    Unknown,
}

/// How learning rates were chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rates {
    /// One for all arms, not tuned: "at one learning rate".
    One,
    /// Each arm its own, tuned: "each at its best learning rate".
    Tuned,
    /// Not known.
    Unknown,
}

/// The noun of what is swept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// "head".
    pub one: String,
    /// "heads".
    pub many: String,
}

impl Unit {
    pub fn new(one: impl Into<String>, many: impl Into<String>) -> Self {
        Self { one: one.into(), many: many.into() }
    }

    /// "1 head", "4 heads".
    pub fn counted(&self, value: f64) -> String {
        format!("{value} {}", if value == 1.0 { &self.one } else { &self.many })
    }
}

/// What a sentence says beside the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// What was held fixed, as it begins a sentence: "with one layer".
    pub condition: Option<String>,
    /// Optimiser steps of every run; `None` where arms differ in it.
    pub steps: Option<u64>,
    pub scope: Scope,
    pub rates: Rates,
}

impl Context {
    /// Nothing known.
    pub fn unknown() -> Self {
        Self { condition: None, steps: None, scope: Scope::Unknown, rates: Rates::Unknown }
    }

    /// "10 pairs over 10 instances, at one learning rate".
    pub(crate) fn told(&self, pairs: usize) -> String {
        let of = count(pairs, "pair");
        let pairs = match self.scope {
            Scope::Instances { instances } => format!("{of} over {}", count(instances, "instance")),
            Scope::OneInstance => format!("{of}, over {} of one task instance", count(pairs, "seed")),
            Scope::OneTestSet { samples } => format!("{of} on one test set of {}", count(samples, "sample")),
            Scope::Unknown => of,
        };
        let rates = match self.rates {
            Rates::One => ", at one learning rate",
            Rates::Tuned => ", each at its best learning rate",
            Rates::Unknown => "",
        };
        format!("{pairs}{rates}")
    }

    /// "with one layer, after 800 steps, ", or nothing.
    pub(crate) fn opening(&self) -> String {
        let condition = self.condition.as_ref().map(|condition| format!("{condition}, ")).unwrap_or_default();
        let steps = self.steps.map(|steps| format!("after {}, ", counted_steps(steps))).unwrap_or_default();
        format!("{condition}{steps}")
    }
}

fn counted_steps(steps: u64) -> String {
    if steps == 1 { "1 step".into() } else { format!("{steps} steps") }
}
