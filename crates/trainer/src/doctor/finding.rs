//! What a check found, for people and for programs.

use serde::Serialize;

use crate::screen::text::wrapped;

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Checked {
    /// All well.
    Ok {
        /// What was measured.
        seen: String,
    },
    /// Nothing is wrong, but it is worth knowing.
    Noted {
        /// What was seen, and what to do.
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

impl Checked {
    /// All well.
    pub fn ok(seen: impl Into<String>) -> Self {
        Self::Ok { seen: seen.into() }
    }

    /// Nothing is wrong, but it is worth knowing.
    pub fn noted(seen: impl Into<String>) -> Self {
        Self::Noted { seen: seen.into() }
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
    pub outcome: Checked,
}

impl Finding {
    /// The finding as lines for a terminal.
    pub fn to_text(&self) -> String {
        let wrapped = |first: &str, text: &str| wrapped(first, text, 120);
        let name = self.check;
        match &self.outcome {
            Checked::Ok { seen } => wrapped(&format!("ok      {name:15} "), seen),
            Checked::Noted { seen } => wrapped(&format!("note    {name:15} "), seen),
            Checked::Skipped { why } => wrapped(&format!("skipped {name:15} "), why),
            Checked::Failed { seen, cause, fix } => {
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
