//! What was said, as lines for a person and as JSON.

use std::fmt::Write as _;

use data::{IGNORE, Task};
use serde::Serialize;

use crate::generate::Said;

/// One line of JSON.
pub fn json(value: &impl Serialize) -> String {
    // Maps with keys of another type than text could fail, and there are none.
    serde_json::to_string(value).unwrap_or_default()
}

/// A source and its target.
#[derive(Serialize)]
pub struct Rewritten<'a> {
    /// Real tokens.
    pub source: &'a [u32],
    /// The beginning of the target that was given.
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    pub given: &'a [u32],
    /// What followed, with the end where it was said.
    pub generated: Vec<u32>,
    /// The whole target, with the end.
    pub expected: Vec<u32>,
}

impl Rewritten<'_> {
    pub fn lines(&self, task: &Task) -> String {
        let mut text = format!("source     {}\n", names(task, self.source));
        if !self.given.is_empty() {
            let _ = writeln!(text, "given      {}", names(task, self.given));
        }
        let said = |classes: &[u32]| listed(classes.iter().map(|&class| task.answer_name(class)));
        let _ = write!(text, "generated  {}\nexpected   {}\n", said(&self.generated), said(&self.expected));
        let whole = [self.given, &self.generated].concat();
        let differs = whole.iter().zip(&self.expected).position(|(found, expected)| found != expected);
        text += &match differs {
            None if whole.len() < self.expected.len() => format!("right so far, stopped after {} tokens", whole.len()),
            None if whole.len() > self.expected.len() => "right, and then it goes on".to_string(),
            None => "right to the end".to_string(),
            Some(place) => format!("wrong from token {place} on"),
        };
        text
    }
}

/// A prompt and what followed.
#[derive(Serialize)]
pub struct Continued<'a> {
    pub prompt: &'a [u32],
    pub generated: Vec<u32>,
    /// The right first token, where the prompt's last position is scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u32>,
}

impl Continued<'_> {
    pub fn lines(&self, task: &Task) -> String {
        let mut text = format!("prompt     {}\ngenerated  {}", names(task, self.prompt), names(task, &self.generated));
        if let Some(expected) = self.expected {
            let _ = write!(text, "\nexpected   {}", task.token_name(expected));
        }
        let kind = task.kind();
        text + &format!(
            "\nTraining asks for an answer at scored positions only (`trainer tasks {kind} --show 1` marks them): what is said \
             elsewhere, and what follows from it, was never trained."
        )
    }
}

/// A prompt with the answer at each position.
#[derive(Serialize)]
pub struct Read {
    pub positions: Vec<Position>,
}

/// One token and what was said at it.
#[derive(Serialize)]
pub struct Position {
    pub token: u32,
    pub answer: u32,
    pub probability: f64,
    /// None where no answer is asked for, or the right one isn't known.
    pub expected: Option<u32>,
}

impl Read {
    pub fn new(prompt: &[u32], said: &[Said], expected: Option<&[i32]>) -> Self {
        let position = |(t, (&token, said)): (usize, (&u32, &Said))| Position {
            token,
            answer: said.answer,
            probability: said.probability,
            expected: expected.map(|targets| targets[t]).filter(|&target| target != IGNORE).map(|target| target as u32),
        };
        Self { positions: prompt.iter().zip(said).enumerate().map(position).collect() }
    }

    pub fn lines(&self, task: &Task) -> String {
        let answers_are_tokens = task.answers() == data::Answers::Tokens;
        let name = |answer: u32| if answers_are_tokens { task.token_name(answer) } else { answer.to_string() };
        let mut text = "    t  token  name      says      probability  expected\n".to_string();
        let (mut right, mut asked) = (0, 0);
        for (t, position) in self.positions.iter().enumerate() {
            let verdict = match position.expected {
                None => String::new(),
                Some(expected) => {
                    asked += 1;
                    right += usize::from(expected == position.answer);
                    format!("{}{}", name(expected), if expected == position.answer { "" } else { "  wrong" })
                }
            };
            let line = format!(
                "{t:>5}  {:>5}  {:<8}  {:<8}  {:>11.3}  {verdict}",
                position.token,
                task.token_name(position.token),
                name(position.answer),
                position.probability
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text += &match asked {
            0 => "no answer is asked for here".to_string(),
            _ => format!("{right} of {asked} right"),
        };
        text
    }
}

fn names(task: &Task, tokens: &[u32]) -> String {
    listed(tokens.iter().map(|&token| task.token_name(token)))
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    // Names of several words need more than a space between them.
    names.join(if names.iter().any(|name| name.contains(' ')) { ", " } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(kind: &str) -> Task {
        Task::default_of(kind).unwrap()
    }

    #[test]
    fn a_target_is_judged_token_by_token() {
        let judged = |given: &[u32], generated: &[u32]| {
            let expected = vec![1, 3, 16];
            let lines =
                Rewritten { source: &[3, 1], given, generated: generated.to_vec(), expected }.lines(&task("sort"));
            lines.lines().last().unwrap().to_string()
        };
        assert_eq!(judged(&[], &[1, 3, 16]), "right to the end");
        assert_eq!(judged(&[1], &[3, 16]), "right to the end");
        assert_eq!(judged(&[], &[1, 3]), "right so far, stopped after 2 tokens");
        assert_eq!(judged(&[], &[1, 3, 16, 2]), "right, and then it goes on");
        assert_eq!(judged(&[], &[1, 16]), "wrong from token 1 on");
        let whole = Rewritten { source: &[3, 1], given: &[1], generated: vec![3, 16], expected: vec![1, 3, 16] };
        let expected = "source     3 1\ngiven      1\ngenerated  3 end\nexpected   1 3 end\nright to the end";
        assert_eq!(whole.lines(&task("sort")), expected);
    }

    #[test]
    fn answers_stand_beside_what_is_expected() {
        let said = |answer| Said { answer, probability: 0.75 };
        let read = Read::new(&[0, 5, 10, 15], &[said(1), said(2), said(3), said(4)], Some(&[IGNORE, IGNORE, 3, 7]));
        let expected = [
            "    t  token  name      says      probability  expected",
            "    0      0  r0=0      1               0.750",
            "    1      5  r1=1      2               0.750",
            "    2     10  r2=2      3               0.750  3",
            "    3     15  r3=3      4               0.750  7  wrong",
            "1 of 2 right",
        ];
        assert_eq!(read.lines(&task("registers")), expected.join("\n"));
        let unasked = Read::new(&[40], &[said(5)], None).lines(&task("mqar"));
        assert!(unasked.contains("value 40  key 5") && unasked.ends_with("no answer is asked for here"), "{unasked}");
    }
}
