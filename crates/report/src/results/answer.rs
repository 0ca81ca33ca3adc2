//! The answer in words: what a reader wants first.

use serde::{Deserialize, Serialize};
use statistics::{Statement, sweep::SweepAnswer};

use super::{
    question::{ArmVerdict, Decision, Findings, Question, SweepAtLevel},
    repetitions::Repetitions,
};
use crate::text::{capital, counted, listed};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// In a sentence or two, with all that it rests on.
    pub sentence: String,
    /// As a title: the same without what it rests on.
    pub title: String,
}

impl Answer {
    fn new(question: &Question, title: &str, sentence: &str) -> Self {
        // A name stays as it is: "h8 beat h1".
        let is_name = |text: &str| question.arms.iter().any(|arm| text.starts_with(&arm.scores.name));
        let begun = |text: &str| if is_name(text) { text.to_string() } else { capital(text) };
        let (title, sentence) = (begun(title), begun(sentence));
        let sentence = if sentence.ends_with(['.', '?']) { sentence } else { sentence + "." };
        Self { sentence, title }
    }
}

/// Of what the looks showed.
pub(crate) fn answer(
    question: &Question,
    decision: Decision,
    findings: &Findings,
    repetitions: Option<&Repetitions>,
) -> Answer {
    if let Decision::NotBefore { pairs, complete } = decision {
        let pairs = counted(pairs, "pair");
        let sentence = format!(
            "No answer yet: the first look is at {pairs}, and {complete} are complete in every arm, in their order"
        );
        return Answer::new(question, &format!("No answer yet: {complete} of {pairs} complete"), &sentence);
    }
    if let Some(repetitions) = repetitions {
        return Answer::new(question, &repetitions.words(), &repetitions.words());
    }
    match (&findings.sweeps[..], &findings.verdicts[..]) {
        ([only], _) => Answer::new(question, &only.title, &only.sentence),
        ([], [only]) => Answer::new(question, &only.title, &only.sentence),
        ([], verdicts) => {
            let told = told_against(question, verdicts);
            Answer::new(question, &told, &told)
        }
        (several, _) => {
            let told = told_map(question, several);
            let margin = question.metric.margin;
            let rests = format!("{told} (in {}, at a margin of {margin})", question.metric.words());
            Answer::new(question, &told, &rests)
        }
    }
}

/// "this task needs 4 heads with one layer, 1 to 2 heads with two layers".
fn told_map(question: &Question, sweeps: &[SweepAtLevel]) -> String {
    let Some(swept) = &question.sweep else { return String::new() };
    let needs = |sweep: &SweepAtLevel| {
        let at = sweep.at.as_deref().unwrap_or_default();
        match sweep.found.answer {
            SweepAnswer::Number { value } => format!("{} {at}", swept.unit.counted(value)),
            SweepAnswer::Range { low, high } => format!("{low} to {} {at}", swept.unit.counted(high)),
            SweepAnswer::NoneShown { at_least } => format!("{} or more {at}", swept.unit.counted(at_least)),
            SweepAnswer::TooFewPairs { .. } => format!("not known how many {} {at}", swept.unit.many),
        }
    };
    let parts: Vec<String> = sweeps.iter().map(needs).collect();
    format!("this task needs {}", parts.join(", "))
}

/// "against 1 head in test accuracy: 4 heads and 8 heads better, 2 heads undecided".
fn told_against(question: &Question, verdicts: &[ArmVerdict]) -> String {
    const WORDS: [&str; 5] = ["better", "worse", "equivalent", "no difference seen", "undecided"];
    let of = |statement: Statement| match statement {
        Statement::Better => 0,
        Statement::Worse => 1,
        Statement::Equivalent => 2,
        Statement::NoDifferenceSeen => 3,
        Statement::Undecided { .. } => 4,
    };
    let names = |kind: usize| {
        let alike = verdicts.iter().filter(|verdict| of(verdict.found.statement) == kind);
        alike.map(|verdict| verdict.found.arm.name.clone()).collect::<Vec<_>>()
    };
    let told = |(kind, word): (usize, &&str)| {
        let names = names(kind);
        (!names.is_empty()).then(|| format!("{} {word}", listed(&names)))
    };
    let parts: Vec<String> = WORDS.iter().enumerate().filter_map(told).collect();
    let baseline = question.arms.get(question.baseline).map_or("the baseline", |arm| arm.scores.name.as_str());
    format!("against {baseline} in {}: {}", question.metric.words(), parts.join(", "))
}
