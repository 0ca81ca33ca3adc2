//! What of an experiment stood before its first run, and what was changed since.

use runs::registration::Amendment;
use serde::{Deserialize, Serialize};

use crate::reading::ExperimentRuns;

/// The state of the registration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Registered {
    /// When, in UTC; `None` where nothing is registered, or that can't be read.
    pub time: Option<String>,
    /// BLAKE3 of what was registered.
    pub hash: Option<String>,
    /// How many runs had ended by then, of how many.
    pub ended: usize,
    pub runs: usize,
    /// What was changed since, the first change first.
    pub changes: Vec<Change>,
    /// Why it can't be read.
    pub damage: Option<String>,
}

/// A change of what was registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When it was noticed, in UTC; `None` for what is not recorded yet.
    pub time: Option<String>,
    /// Such as `metric.margin: 0.02, now 0.01`.
    pub changed: Vec<String>,
    /// How many runs had ended by then, of how many.
    pub ended: usize,
    pub runs: usize,
}

impl Registered {
    /// What is to be said beside the verdict in the colour of a warning: every change once runs had ended.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = vec![];
        if let Some(damage) = &self.damage {
            warnings.push(format!("the registration can't be read: {damage}"));
        }
        if let Some(time) = self.time.as_ref().filter(|_| self.ended > 0) {
            warnings.push(format!("registered on {}, when {} of {} runs had ended", day(time), self.ended, self.runs));
        }
        let after = self.changes.iter().filter(|change| change.ended > 0);
        warnings.extend(after.map(Change::words));
        warnings
    }

    /// How it stands, in a sentence without a full stop.
    pub fn words(&self) -> String {
        let Some(time) = &self.time else { return "not registered".into() };
        let hash: String = self.hash.iter().flat_map(|hash| hash.chars().take(10)).collect();
        let before = if self.ended == 0 { "before the first run" } else { "after runs had ended" };
        let changes: Vec<String> = self.changes.iter().filter(|change| change.ended == 0).map(Change::words).collect();
        let changes = if changes.is_empty() { String::new() } else { format!("; {}", changes.join("; ")) };
        format!("registered on {} {before} ({hash}){changes}", day(time))
    }
}

impl Change {
    /// "changed on 2026-12-01, when 20 of 20 runs had ended: metric.margin: 0.02, now 0.01".
    pub fn words(&self) -> String {
        let on = self.time.as_deref().map(|time| format!(" on {}", day(time))).unwrap_or_default();
        format!("changed{on}, when {} of {} runs had ended: {}", self.ended, self.runs, self.changed.join("; "))
    }
}

/// The date of a time such as `2026-11-30T23:51:58Z`.
fn day(time: &str) -> &str {
    time.split_once('T').map_or(time, |(day, _)| day)
}

/// Of an experiment's folder; `None` where nothing was registered.
pub(super) fn of(runs: &ExperimentRuns) -> Option<Registered> {
    let registration = match &runs.registration {
        Ok(found) => found.as_ref()?,
        Err(damage) => {
            let (ended, runs) = (0, 0);
            let damage = Some(damage.clone());
            return Some(Registered { time: None, hash: None, ended, runs, changes: vec![], damage });
        }
    };
    let change = |amendment: &Amendment| Change {
        time: Some(amendment.time.clone()),
        changed: amendment.changed.clone(),
        ended: amendment.ended,
        runs: amendment.runs,
    };
    let mut changes: Vec<Change> = registration.amendments.iter().map(change).collect();
    let unrecorded = registration.changes(&runs.declared);
    if !unrecorded.is_empty() {
        let (ended, runs) = runs.ended();
        changes.push(Change { time: None, changed: unrecorded, ended, runs });
    }
    let (time, hash) = (Some(registration.registered.clone()), Some(registration.hash.clone()));
    Some(Registered { time, hash, ended: registration.ended, runs: registration.runs, changes, damage: None })
}
