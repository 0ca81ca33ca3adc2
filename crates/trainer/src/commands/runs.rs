//! `trainer runs`: how run directories stand, and whether they are intact.

use std::path::PathBuf;

use clap::Args;
use runs::{Condition, Inspection, inspection};
use serde::Serialize;

use crate::machine::exit::{Failure, Success};
use crate::screen::output::{one_line, print, print_pretty_json};
use crate::screen::text::{bytes, count};

/// Where runs are, unless told otherwise.
const DEFAULT: &str = "runs";

/// Arguments of `runs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "States:\n  \
        done     all steps were done\n  \
        partial  begun and stopped; the same command goes on with it\n  \
        running  a process writes to it at this moment\n  \
        failed   it diverged\n  \
        damaged  a file of it is missing, can't be read, or is not what was written\n\n\
        Exit code 3 where one is damaged.")]
pub struct RunsArguments {
    /// Folders with run directories, at any depth, or run directories themselves.
    #[arg(value_name = "DIR", default_value = DEFAULT)]
    pub folders: Vec<PathBuf>,
    /// Compare every checksum: of checkpoints, snapshots, manifests, configs and metrics.
    #[arg(long)]
    pub verify: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &RunsArguments) -> Result<Success, Failure> {
    let mut found = vec![];
    for folder in &arguments.folders {
        match inspection::find(folder) {
            Ok(runs) => found.extend(runs.iter().map(|run| inspection::inspect(run, arguments.verify))),
            // Nobody has trained anything here yet.
            Err(error) if error.is_absent() && arguments.folders == [PathBuf::from(DEFAULT)] => {}
            Err(error) if error.is_absent() => {
                return Err(Failure::usage(format!("{}: there is no such folder", folder.display())));
            }
            Err(error) => return Err(Failure::usage(error)),
        }
    }
    let totals = Totals::of(&found);
    if arguments.json {
        let list = List { verified: arguments.verify, totals: &totals, runs: &found };
        print_pretty_json(&list);
    } else {
        print(table(&found, &totals, arguments.verify));
    }
    if totals.damaged == 0 { Ok(Success::Done) } else { Ok(Success::Unwell) }
}

/// What `--json` prints.
#[derive(Serialize)]
struct List<'a> {
    /// Whether checksums were compared.
    verified: bool,
    totals: &'a Totals,
    runs: &'a [Inspection],
}

/// How many runs are in each state, and their bytes.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Totals {
    runs: usize,
    done: usize,
    partial: usize,
    running: usize,
    failed: usize,
    damaged: usize,
    bytes: u64,
}

impl Totals {
    fn of(found: &[Inspection]) -> Self {
        let in_state = |state| found.iter().filter(|run| run.state == state).count();
        Self {
            runs: found.len(),
            done: in_state(Condition::Done),
            partial: in_state(Condition::Partial),
            running: in_state(Condition::Running),
            failed: in_state(Condition::Failed),
            damaged: in_state(Condition::Damaged),
            bytes: found.iter().map(|run| run.bytes).sum(),
        }
    }

    /// Such as "3 runs: 2 done, 1 partial; 1.2 MiB".
    fn sentence(&self, verified: bool) -> String {
        let counts = [
            (self.done, Condition::Done),
            (self.partial, Condition::Partial),
            (self.running, Condition::Running),
            (self.failed, Condition::Failed),
            (self.damaged, Condition::Damaged),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, state)| format!("{count} {}", state.name()))
            .collect();
        let runs = count(self.runs, "run");
        let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
        let verified = if verified { "; checksums compared" } else { "" };
        format!("{runs}{counts}; {}{verified}", bytes(self.bytes))
    }
}

fn table(found: &[Inspection], totals: &Totals, verified: bool) -> String {
    let mut lines = vec![];
    if !found.is_empty() {
        lines.push(format!("{:<8} {:>15} {:>11}  run", "state", "step", "size"));
    }
    for run in found {
        let steps = run.steps.map_or("?".to_string(), |steps| steps.to_string());
        let progress = format!("{}/{steps}", run.step);
        let path = one_line(&run.path.display().to_string());
        lines.push(format!("{:<8} {progress:>15} {:>11}  {path}", run.state.name(), bytes(run.bytes)));
        lines.extend(run.problems.iter().map(|problem| format!("         {}", one_line(problem))));
    }
    if !found.is_empty() {
        lines.push(String::new());
    }
    lines.push(totals.sentence(verified));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection(state: Condition, step: u64, problems: &[&str]) -> Inspection {
        Inspection {
            path: format!("runs/{}-seed0-0123abcd", state.name()).into(),
            state,
            step,
            steps: (state != Condition::Damaged).then_some(800),
            bytes: 3_456_789,
            problems: problems.iter().map(|problem| problem.to_string()).collect(),
        }
    }

    #[test]
    fn runs_are_listed_with_what_is_wrong() {
        let found = [
            inspection(Condition::Done, 800, &[]),
            inspection(Condition::Partial, 120, &[]),
            inspection(Condition::Damaged, 0, &["config.toml: not \u{1b}[31m TOML"]),
        ];
        insta::assert_snapshot!(table(&found, &Totals::of(&found), true), @r"
        state               step        size  run
        done             800/800     3.3 MiB  runs/done-seed0-0123abcd
        partial          120/800     3.3 MiB  runs/partial-seed0-0123abcd
        damaged              0/?     3.3 MiB  runs/damaged-seed0-0123abcd
                 config.toml: not \u{1b}[31m TOML

        3 runs: 1 done, 1 partial, 1 damaged; 9.9 MiB; checksums compared
        ");
        assert_eq!(table(&[], &Totals::default(), false), "0 runs; 0 B");
    }
}
