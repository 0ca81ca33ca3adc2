//! What the checks found, for people and for programs.

use serde::Serialize;

use super::shapes::Row;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// All well.
    Ok {
        /// What was measured.
        seen: String,
    },
    /// Something is wrong.
    Failed {
        /// What was measured, and what it should be.
        seen: String,
        /// What usually makes it so.
        cause: String,
        /// What to do.
        fix: String,
    },
    /// Nothing to be checked here.
    Skipped {
        /// The reason.
        why: String,
    },
}

impl Outcome {
    /// All well.
    pub fn ok(seen: impl Into<String>) -> Self {
        Self::Ok { seen: seen.into() }
    }

    /// Something is wrong.
    pub fn failed(seen: impl Into<String>, cause: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Failed { seen: seen.into(), cause: cause.into(), fix: fix.into() }
    }

    /// Nothing to be checked here.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }

    /// Whether something is wrong.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

/// A check and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name.
    pub check: &'static str,
    /// What holds where it is ok.
    pub meaning: &'static str,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Finding {
    /// The finding as lines for a terminal.
    pub fn to_text(&self) -> String {
        let name = self.check;
        match &self.outcome {
            Outcome::Ok { seen } => wrapped(&format!("ok      {name:15} "), seen),
            Outcome::Skipped { why } => wrapped(&format!("skipped {name:15} "), why),
            Outcome::Failed { seen, cause, fix } => {
                let lines = [
                    wrapped(&format!("FAILED  {name:15} "), seen),
                    wrapped("          should be     ", self.meaning),
                    wrapped("          likely cause  ", cause),
                    wrapped("          fix           ", fix),
                ];
                lines.join("\n")
            }
        }
    }
}

/// Everything that an examination found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was examined: a config file or a run directory, as its user named it.
    pub subject: String,
    /// In the order in which they are to be read: what comes later may follow from what comes earlier.
    pub checks: Vec<Finding>,
    /// What was checked on a part only, to keep the time within bounds.
    pub bounds: Vec<String>,
    /// The shape at every node of one forward pass.
    pub nodes: Vec<Row>,
}

impl Report {
    /// The checks that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|finding| finding.outcome.is_failed()).map(|finding| finding.check).collect()
    }

    /// The last line: how many checks ended how, and where to begin.
    pub fn verdict(&self) -> String {
        let count = |which: fn(&Outcome) -> bool| self.checks.iter().filter(|finding| which(&finding.outcome)).count();
        let (ok, skipped) =
            (count(|outcome| matches!(outcome, Outcome::Ok { .. })), count(|o| matches!(o, Outcome::Skipped { .. })));
        let failed = self.failed();
        let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        match failed[..] {
            [] => format!("{ok} checks ok{skipped}: nothing wrong found"),
            [one] => format!("{ok} checks ok{skipped}, 1 failed: {one}"),
            [first, ..] => format!(
                "{ok} checks ok{skipped}, {} failed: begin with the first, {first}; the others may follow from it",
                failed.len()
            ),
        }
    }
}

/// `text` in lines of at most 120 characters, the first after `first`, the others below it.
fn wrapped(first: &str, text: &str) -> String {
    const WIDTH: usize = 120;
    let indent = first.chars().count();
    let (mut lines, mut line) = (vec![], first.to_string());
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + word.chars().count() >= WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)).trim_end().to_string());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line.trim_end().to_string());
    lines.join("\n")
}
