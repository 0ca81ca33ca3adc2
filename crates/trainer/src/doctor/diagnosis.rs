//! Everything that was found, and the last word.

use serde::Serialize;

use super::finding::{Checked, Finding};
use super::shapes::NodeShape;

/// Everything that an examination found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// What was examined: a config file or a run directory, as its user named it.
    pub subject: String,
    /// In the order in which they are to be read: what comes later may follow from what comes earlier.
    pub checks: Vec<Finding>,
    /// What was checked on a part only, to keep the time within bounds.
    pub bounds: Vec<String>,
    /// The shape at every node of one forward pass.
    pub nodes: Vec<NodeShape>,
}

impl Diagnosis {
    /// The checks that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.checks.iter().filter(|finding| finding.outcome.is_failed()).map(|finding| finding.check).collect()
    }

    /// The last line: how many checks ended how, and where to begin.
    pub fn verdict(&self) -> String {
        let count = |which: fn(&Checked) -> bool| self.checks.iter().filter(|finding| which(&finding.outcome)).count();
        let (ok, skipped) =
            (count(|outcome| matches!(outcome, Checked::Ok { .. })), count(|o| matches!(o, Checked::Skipped { .. })));
        let failed = self.failed();
        let skipped = if skipped == 0 { String::new() } else { format!(", {skipped} skipped") };
        let warned: Vec<&str> =
            self.checks.iter().filter(|finding| finding.outcome.is_warned()).map(|finding| finding.check).collect();
        let warned =
            if warned.is_empty() { String::new() } else { format!(", but see the warning on {}", warned.join(", ")) };
        match failed[..] {
            [] => format!("{ok} checks ok{skipped}: nothing wrong found{warned}"),
            [one] => format!("{ok} checks ok{skipped}, 1 failed: {one}"),
            [first, ..] => format!(
                "{ok} checks ok{skipped}, {} failed: begin with the first, {first}; the others may follow from it",
                failed.len()
            ),
        }
    }
}
