//! `trainer slurm`: an experiment as an array of workers on a cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use runs::{Experiment, RunError};

use super::compare::arguments::ExperimentArguments;
use super::files::refuse_linked;
use crate::machine::exit::{Failure, INTERRUPTED, Success};
use crate::machine::memory::needed_bytes;
use crate::screen::output::print;
use crate::screen::text::{count, mib};

/// Arguments of `slurm`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Every worker of the array is a `trainer compare` of the whole experiment on the shared folder: they divide \
    the runs among them and go on with those of a worker that died. What it was preempted from, or ran out of time for, a worker \
    saves, and is queued again.\n\nWhat follows `--` is passed to sbatch as it is: trainer slurm exp.toml -- --partition=long --account=me"
)]
pub struct SlurmArguments {
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Workers: tasks of the array.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub workers: u32,
    /// Time limit of a worker, as sbatch reads it, such as 4:00:00.
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Partition to run in.
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Account that it is charged to.
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// The program on the nodes.
    #[arg(long, value_name = "PATH", default_value_os_t = this_program())]
    pub program: PathBuf,
    /// Submit it, and a job that makes the report once the workers have ended.
    #[arg(long)]
    pub submit: bool,
    /// Options for sbatch.
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<String>,
}

fn this_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "trainer".into())
}

/// The script's name in the experiment's folder.
const SCRIPT: &str = "slurm.sh";
/// Seconds ahead of its end that a worker is told.
const AHEAD: u32 = 60;

pub fn run(arguments: &SlurmArguments) -> Result<Success, Failure> {
    let experiment = arguments.experiment.load()?;
    let folder = experiment.folder(&arguments.experiment.out);
    refuse_linked(&folder)?;
    let script = script(arguments, &experiment, &folder)?;
    std::fs::create_dir_all(&folder).map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
    let path = folder.join(SCRIPT);
    runs::files::write_output(&path, script.as_bytes()).map_err(|error: RunError| Failure::failed(error))?;
    let report = report(arguments, &folder)?;
    if !arguments.submit {
        print(&script);
        print(format!(
            "# In {path}. To submit it, and a report for when it has ended:\n#   job=$(sbatch --parsable {path})\n#   sbatch \
             --dependency=afterany:$job --wrap {wrapped}",
            path = quoted(&path.display().to_string())?,
            wrapped = quoted(&report)?,
        ));
        return Ok(Success::Done);
    }
    let job = sbatch(&["--parsable".into(), path.display().to_string()])?;
    // A cluster's name may follow.
    let job = job.split(';').next().unwrap_or_default().trim().to_string();
    let mut options =
        vec!["--parsable".into(), format!("--dependency=afterany:{job}"), "--job-name=headcount-report".into()];
    options.push(format!("--output={}", folder.join("slurm-report.log").display()));
    options.extend(shared_options(arguments));
    options.extend(["--wrap".into(), report]);
    let after = sbatch(&options)?;
    print(format!(
        "Submitted as job {job} ({}), and the report as job {}.\n  trainer runs {}  shows how far each run is",
        count(arguments.workers as usize, "worker"),
        after.trim(),
        folder.display()
    ));
    Ok(Success::Done)
}

fn sbatch(arguments: &[String]) -> Result<String, Failure> {
    let output = Command::new("sbatch").args(arguments).output();
    let output = output.map_err(|error| Failure::failed(format!("can't run sbatch: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Failure::failed(format!("sbatch refused: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// Options of sbatch that workers and report have in common.
fn shared_options(arguments: &SlurmArguments) -> Vec<String> {
    let named = [("partition", &arguments.partition), ("account", &arguments.account)];
    let named = named.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?)));
    named.chain(arguments.options.iter().cloned()).collect()
}

/// The command that makes the report.
fn report(arguments: &SlurmArguments, folder: &Path) -> Result<String, Failure> {
    let words = [arguments.program.display().to_string(), "report".into(), folder.display().to_string()];
    command_line(&words)
}

/// The whole script.
fn script(arguments: &SlurmArguments, experiment: &Experiment, folder: &Path) -> Result<String, Failure> {
    let own = &arguments.experiment;
    let (jobs, threads) = (own.jobs.unwrap_or(1), own.threads);
    let needed = experiment.arms.iter().map(|arm| needed_bytes(&arm.config)).max().unwrap_or_default();
    // A process of its own watches over the runs, and the estimate may be a third off.
    let memory = mib(needed.saturating_mul(u64::from(jobs)) / 3 * 4 + (128 << 20));
    let mut options = vec![
        format!("--job-name=headcount-{}", experiment.name),
        format!("--array=1-{}", arguments.workers),
        format!("--cpus-per-task={}", u32::from(jobs) * u32::from(threads)),
        format!("--mem={memory}M"),
    ];
    options.extend(arguments.time.as_ref().map(|time| format!("--time={time}")));
    options.extend([
        "--requeue".into(),
        "--open-mode=append".into(),
        format!("--signal=B:USR1@{AHEAD}"),
        format!("--output={}", folder.join("slurm-%A_%a.log").display()),
    ]);
    options.extend(shared_options(arguments));
    let lines: Result<Vec<String>, Failure> =
        options.iter().map(|option| Ok(format!("#SBATCH {}", quoted(option)?))).collect();

    let mut words =
        vec![arguments.program.display().to_string(), "compare".into(), own.experiment.display().to_string()];
    words.extend(["--out".into(), own.out.display().to_string()]);
    words.extend(own.seeds.iter().flat_map(|seeds| ["--seeds".to_string(), seeds.clone()]));
    words.extend(own.set.iter().flat_map(|set| ["--set".to_string(), set.clone()]));
    words.extend(own.backend.iter().flat_map(|backend| ["--backend".to_string(), backend.to_string()]));
    words.extend(["--jobs".into(), jobs.to_string(), "--threads".into(), threads.to_string()]);
    words.extend(["--patience".into(), own.patience.to_string()]);
    let command = command_line(&words)?;

    Ok(format!(
        r#"#!/usr/bin/env bash
{options}

# A worker: it does runs of the experiment that no other does. {AHEAD} s ahead of its time limit, and where it is preempted, it saves
# what it did and is put back into the queue; a worker that dies leaves its runs to the others.
{command} &
worker=$!
trap 'kill -USR1 "$worker" 2>/dev/null' USR1 TERM
code=0
wait "$worker" || code=$?
while kill -0 "$worker" 2>/dev/null; do # `wait` ends where a signal comes
  code=0
  wait "$worker" || code=$?
done
if [ "$code" = {INTERRUPTED} ]; then
  scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
"#,
        options = lines?.join("\n"),
    ))
}

/// A shell's command line of these words.
fn command_line(words: &[String]) -> Result<String, Failure> {
    Ok(words.iter().map(|word| quoted(word)).collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// A word of a shell's command line.
fn quoted(word: &str) -> Result<String, Failure> {
    if word.contains(['\n', '\0']) {
        return Err(Failure::usage(format!("{word:?} holds a line break, which no script can")));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,%@+".contains(c);
    Ok(if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_shell_as_they_are() {
        for word in ["plain", "with space", "it's", "$HOME `x` \"y\" \\", "", "ü;rm -rf x", "--time=1:00:00"] {
            let echoed = Command::new("bash").args(["-c", &format!("printf %s {}", quoted(word).unwrap())]).output();
            assert_eq!(String::from_utf8(echoed.unwrap().stdout).unwrap(), word);
        }
        assert!(quoted("a\nb").is_err());
    }
}
