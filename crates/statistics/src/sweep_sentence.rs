//! The answer of a sweep as one plain sentence.

use crate::context::{Context, Unit};
use crate::outcome::Direction;
use crate::sweep::{Enough, StepResult, Sweep, SweepAnswer};
use crate::words::{capitalised, count, decimals_of, fixed, listed, whole_percent};

impl SweepAnswer {
    /// In a few words: "4", "2 to 8", "none of those tried is shown to be enough".
    pub fn words(&self) -> String {
        match self {
            Self::Number { value } => value.to_string(),
            Self::Range { low, high } => format!("{low} to {high}"),
            Self::NoneShown { .. } => "none of those tried is shown to be enough".into(),
            Self::TooFewPairs { pairs, needed } => format!("{pairs} of the {needed} pairs that an answer needs"),
        }
    }
}

impl Sweep {
    /// The answer in a sentence:
    /// "With one layer, this task needs 4 heads: 2 reach 0.770, 4 reach 0.993, more add nothing above the margin of 0.02
    /// (10 pairs over 10 instances, at one learning rate)."
    ///
    /// A metric that is better when lower is named, as "reach" alone would mislead.
    pub fn sentence(&self, unit: &Unit, context: &Context) -> String {
        let told = format!("{}{}", context.opening(), self.told(unit));
        capitalised(&format!("{told} ({}{}).", context.told(self.pairs), self.told_failures()))
    }

    /// The sentence without what stands behind it, as a title.
    pub fn headline(&self, unit: &Unit, context: &Context) -> String {
        capitalised(&format!("{}{}", context.opening(), self.told(unit)))
    }

    fn told(&self, unit: &Unit) -> String {
        match self.answer {
            SweepAnswer::Number { value } => {
                let beyond = self.told_too_many();
                format!("this task needs {}{beyond}: {}", unit.counted(value), self.evidence(value))
            }
            SweepAnswer::Range { low, high } => {
                let beyond = self.told_too_many();
                format!(
                    "this task needs {low} to {}{beyond}: {}; {} not decided",
                    unit.counted(high),
                    self.evidence(high),
                    self.told_open(low, high)
                )
            }
            SweepAnswer::NoneShown { at_least } => {
                let needs = if self.steps.first().is_some_and(|step| step.value < at_least) {
                    format!("this task needs at least {}, and ", unit.counted(at_least))
                } else {
                    String::new()
                };
                format!("{needs}none of the numbers of {} tried is shown to be enough: {}", unit.many, self.told_all())
            }
            SweepAnswer::TooFewPairs { pairs, needed } => {
                format!("undecided how many {} this task needs: only {pairs} of the {needed} pairs needed", unit.many)
            }
        }
    }

    /// What speaks for a sufficient number: the next smaller one, itself, and what lies above.
    fn evidence(&self, value: f64) -> String {
        let Some(index) = self.steps.iter().position(|step| step.value == value) else { return String::new() };
        let mut parts = Vec::new();
        if index > 0 {
            parts.push(self.reaches(&self.steps[index - 1]));
        }
        parts.push(self.reaches(&self.steps[index]));
        if index == 0 && value > 1.0 {
            parts.push(format!("fewer than {value} were not tried"));
        }
        for value in &self.too_many {
            parts.extend(self.steps.iter().find(|step| step.value == *value).map(|step| self.reaches(step)));
        }
        if index + 1 == self.steps.len() {
            parts.push(format!("more than {value} were not tried"));
        } else if self.too_many.is_empty() {
            parts.push(format!("more add nothing above the margin of {}", self.rules.margin));
        } else {
            parts.push(format!("no other adds more than the margin of {}", self.rules.margin));
        }
        let metric = match self.scale.direction {
            Direction::HigherIsBetter => String::new(),
            Direction::LowerIsBetter => format!("in {}, ", self.scale.name),
        };
        format!("{metric}{}", parts.join(", "))
    }

    /// " (enough are 4 and 8), and 16 are too many" where the sweep is not monotone; else nothing.
    fn told_too_many(&self) -> String {
        if self.too_many.is_empty() {
            return String::new();
        }
        let too_many: Vec<String> = self.too_many.iter().map(f64::to_string).collect();
        let enough: Vec<String> = self.sufficient.iter().map(f64::to_string).collect();
        let also = if enough.len() > 1 { format!(" (enough are {})", listed(&enough)) } else { String::new() };
        let verb = if self.too_many == [1.0] { "is" } else { "are" };
        let what = if self.is_tail(&self.too_many) { "too many" } else { "not enough" };
        format!("{also}, and {} {verb} {what}", listed(&too_many))
    }

    /// Whether these numbers are the largest tried.
    fn is_tail(&self, values: &[f64]) -> bool {
        self.steps.iter().rev().zip(values.iter().rev()).all(|(step, value)| step.value == *value)
    }

    /// "2 (0.970) and 4 (0.980) are", of the open numbers from `low` to below `high`.
    fn told_open(&self, low: f64, high: f64) -> String {
        let is_open =
            |step: &&StepResult| step.value >= low && step.value < high && step.enough != Enough::Insufficient;
        let open: Vec<String> = self.steps.iter().filter(is_open).map(|step| self.with_value(step)).collect();
        format!("{} {}", listed(&open), if open.len() == 1 { "is" } else { "are" })
    }

    /// "1 reaches 0.593, 2 reach 0.770".
    fn told_all(&self) -> String {
        let all: Vec<String> = self.steps.iter().map(|step| self.reaches(step)).collect();
        match self.scale.direction {
            Direction::HigherIsBetter => all.join(", "),
            Direction::LowerIsBetter => format!("in {}, {}", self.scale.name, all.join(", ")),
        }
    }

    fn reaches(&self, step: &StepResult) -> String {
        let verb = if step.value == 1.0 { "reaches" } else { "reach" };
        format!("{} {verb} {}", step.value, self.mean(step))
    }

    fn with_value(&self, step: &StepResult) -> String {
        format!("{} ({})", step.value, self.mean(step))
    }

    fn mean(&self, step: &StepResult) -> String {
        let digits = if self.rules.margin > 0.0 { decimals_of(self.rules.margin) } else { 3 };
        step.description.as_ref().map_or("nothing".into(), |described| fixed(described.mean, digits))
    }

    /// Why arms that no other beats are not called enough, and how many runs diverged.
    fn told_failures(&self) -> String {
        let held_back = self.steps.iter().filter(|step| step.enough == Enough::FailuresOpen);
        let bound = held_back.map(|step| step.failures.bound).reduce(f64::min);
        let open = bound.map_or(String::new(), |bound| {
            format!("; pairs like these do not exclude failures in up to {} % of runs", whole_percent(bound))
        });
        let diverged: usize = self.steps.iter().map(|step| step.diverged).sum();
        let diverged = if diverged == 0 {
            String::new()
        } else {
            format!("; {} diverged, entered as {}", count(diverged, "run"), self.scale.penalty)
        };
        format!("{open}{diverged}")
    }
}
