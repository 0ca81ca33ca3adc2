//! `trainer compare`: from an experiment file to a verdict.

use std::path::{Path, PathBuf};

use ::report::TunedExperiment;
use burn::tensor::Device;
use clap::Args;
use runs::experiment::{Experiment, PlannedRun};
use runs::ledger::{self, Ledger, LedgerRun};
use runs::{Backend, Manifest, RunDirectory, State};

use super::files::refuse_linked;
use super::report;
use crate::cli::values::parse_backend;
use crate::machine::exit::{Failure, Success};
use crate::machine::stop::Stop;
use crate::machine::{backend, facts, memory};
use crate::screen::jobs::JobTable;
use crate::screen::output::{print, tell};
use crate::screen::text::{count, mib};
use crate::training::manifest::{manifest, program};
use crate::workers::job::{Job, JobEnd, Saved};
use crate::workers::pool;

/// Arguments of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    /// The experiment file, such as experiments/h1-vs-h8.toml.
    pub experiment: PathBuf,
    /// Folder that the experiment's folder is made in.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub out: PathBuf,
    /// Runs at once; as many as cores allow unless set. The results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// CPU threads of each run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Where to compute, for every arm.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// Take runs of other builds of this program, backends or vector instructions too, and say so in the result.
    #[arg(long)]
    pub mixed: bool,
    /// Show the arms, how they match and what they cost; train nothing.
    #[arg(long)]
    pub dry_run: bool,
}

pub fn run(arguments: &CompareArguments) -> Result<Success, Failure> {
    let mut experiment = Experiment::load(&arguments.experiment).map_err(Failure::usage)?;
    if let Some(backend) = arguments.backend {
        experiment.arms.iter_mut().for_each(|arm| arm.config.backend = backend);
    }
    for arm in &experiment.arms {
        memory::check(&arm.config).map_err(|error| Failure::failed(format!("arm {}: {error}", arm.name)))?;
    }
    let at_once = at_once(&experiment, arguments)?;
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(usize::from(arguments.threads)) };
    let ledger = planned_ledger(&experiment, arguments)?;
    tell(plan(&experiment, &ledger, arguments));
    if let Err(mismatches) = ledger.check(experiment.regime) {
        let (regime, why) = (experiment.regime.name(), ledger::explain(experiment.regime, &mismatches));
        return Err(Failure::usage(format!("the arms don't match in regime `{regime}`:\n{why}")));
    }
    if arguments.dry_run {
        return Ok(Success::Done);
    }

    let folder = experiment.folder(&arguments.out);
    refuse_linked(&folder)?;
    if let Some(change) = changed_since(&folder, &experiment) {
        tell(format!("{}: {change}; its results are replaced, its finished runs stay", folder.display()));
    }
    match experiment.save(&folder) {
        // What is done can be shown; a run that is not says by itself that it can't begin.
        Err(error) if error.is_unwritten() => tell(format!("what is done is shown, nothing is kept: {error}")),
        saved => saved.map_err(Failure::failed)?,
    }
    let stop = Stop::listen_for_workers().map_err(Failure::failed)?;
    refuse_other_programs(&experiment.tuning_runs(&arguments.out), arguments)?;
    let ends = train_all(&experiment.tuning_runs(&arguments.out), arguments, at_once, &stop)?;
    if stop.is_asked() {
        return Ok(stopped(&ends));
    }
    let tuned = TunedExperiment::read(experiment, &folder);
    if let Some(table) = tuned.tuning() {
        let missing = table.missing();
        if missing > 0 {
            return Err(Failure::failed(format!(
                "{missing} of the runs that choose learning rates failed; the same command tries them again"
            )));
        }
        for (arm, lr) in table.chosen() {
            tell(format!("{arm}: learning rate {lr}, by its validation results"));
        }
    }
    let runs = tuned.runs();
    refuse_other_programs(&runs, arguments)?;
    let ends = train_all(&runs, arguments, at_once, &stop)?;
    if stop.is_asked() {
        return Ok(stopped(&ends));
    }
    // Every run is on disk, and the report can be made again.
    stop.end_at_once();
    report::show(tuned, arguments.mixed)?;
    match ends.iter().filter(|end| !matches!(end, JobEnd::Done(_))).count() {
        0 => Ok(Success::Done),
        failed => {
            let all = runs.len();
            Err(Failure::failed(format!("{failed} of {all} runs failed; the same command tries them again")))
        }
    }
}

/// What is going to be done, in a few lines.
fn plan(experiment: &Experiment, ledger: &Ledger, arguments: &CompareArguments) -> String {
    let about = &experiment.about;
    let mut lines = vec![experiment.name.clone()];
    for (what, text) in [("Question", &about.question), ("Prediction", &about.prediction)] {
        lines.extend(text.as_ref().map(|text| format!("{what}: {text}")));
    }
    let (runs, tuning) = (experiment.runs(&arguments.out).len(), experiment.tuning_runs(&arguments.out).len());
    let tuning = if tuning > 0 { format!(", after {tuning} runs that choose learning rates") } else { String::new() };
    lines.push(format!("{} arms x {} seeds: {runs} runs{tuning}", experiment.arms.len(), experiment.seeds.len()));
    lines.extend(about.minutes.map(|minutes| format!("About {minutes} minutes on two cores, by its file")));
    lines.push(format!("\n{ledger}"));
    lines.join("\n")
}

/// How the experiment in `folder` differs from this one, if there is one: "seeds and arms changed since then".
fn changed_since(folder: &Path, experiment: &Experiment) -> Option<String> {
    let earlier = Experiment::of_folder(folder).ok()?;
    let differing = [
        ("seeds", earlier.seeds != experiment.seeds),
        ("arms", earlier.arms != experiment.arms),
        ("baseline", earlier.baseline != experiment.baseline),
        ("regime", earlier.regime != experiment.regime),
        ("metric", earlier.metric != experiment.metric),
        ("tuning", earlier.tuning != experiment.tuning),
        ("repetitions", earlier.repetitions != experiment.repetitions),
    ];
    let names: Vec<&str> = differing.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("the experiment there had other {}", names.join(", ")))
}

/// What is on disk of runs that were stopped, by what was found there.
fn stopped(ends: &[JobEnd]) -> Success {
    let is_lost =
        |end: &&JobEnd| matches!(end, JobEnd::Stopped(Saved::UpTo { .. } | Saved::Nothing) | JobEnd::Failed(_));
    print(match ends.iter().filter(is_lost).count() {
        0 if ends.iter().all(|end| matches!(end, JobEnd::Done(_))) => {
            "Stopped; every run of this part is done. The same command goes on from there.".to_string()
        }
        0 => "Stopped; every run has saved what it did. The same command goes on from there.".to_string(),
        lost => format!(
            "Stopped; {} could not save all that it did, see above. The same command goes on from what is saved.",
            count(lost, "run")
        ),
    });
    Success::Interrupted
}

/// What the arms cost and start from, from each arm's first seed, before anything is trained.
fn planned_ledger(experiment: &Experiment, arguments: &CompareArguments) -> Result<Ledger, Failure> {
    let threads = usize::from(arguments.threads);
    let Some(&seed) = experiment.seeds.first() else { return Err(Failure::usage("the experiment has no seeds")) };
    let mut manifests = Vec::new();
    for arm in &experiment.arms {
        let config = experiment.config(arm, seed);
        let device: Device = backend::open(config.backend).map_err(Failure::usage)?;
        if let Some(warning) = backend::warning(config.backend, &device).filter(|_| manifests.is_empty()) {
            tell(warning);
        }
        let manifest: Manifest = manifest(&config, &device, threads).map_err(Failure::usage)?;
        manifests.push((arm.name.clone(), config, manifest));
    }
    let runs: Vec<LedgerRun> =
        manifests.iter().map(|(arm, config, manifest)| LedgerRun { arm, pair: seed, config, manifest }).collect();
    Ok(Ledger::new(experiment, &runs, arguments.mixed))
}

/// How many runs train at once: as many as were asked for, or as cores allow and memory holds.
fn at_once(experiment: &Experiment, arguments: &CompareArguments) -> Result<usize, Failure> {
    let wanted = arguments.jobs.map_or_else(|| (facts::cores() / usize::from(arguments.threads)).max(1), usize::from);
    let runs = experiment.runs(&arguments.out);
    match memory::check_together(runs.iter().map(|run| &run.config), wanted) {
        Ok(()) => Ok(wanted),
        Err(error) if arguments.jobs.is_some() => Err(Failure::failed(error)),
        Err(error) => {
            tell(format!(
                "{} at once, not {}: they need about {} MiB of memory, and {} MiB are free",
                count(error.fitting, "run"),
                error.jobs,
                mib(error.needed),
                mib(error.available)
            ));
            Ok(error.fitting)
        }
    }
}

fn train_all(
    planned: &[PlannedRun],
    arguments: &CompareArguments,
    at_once: usize,
    stop: &Stop,
) -> Result<Vec<JobEnd>, Failure> {
    let jobs: Vec<Job> = planned
        .iter()
        .map(|run| Job {
            label: format!("{} seed {}", run.config.name, run.config.seed),
            config: run.config.clone(),
            directory: run.directory.clone(),
        })
        .collect();
    if jobs.is_empty() {
        return Ok(vec![]);
    }
    let threads = usize::from(arguments.threads);
    let mut table = JobTable::new(&jobs);
    pool::run(&jobs, at_once, threads, &mut table, stop).map_err(Failure::failed)
}

/// Runs of another build of this program, or on other vector instructions, are not taken for this one's, unless asked.
fn refuse_other_programs(planned: &[PlannedRun], arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.mixed {
        return Ok(());
    }
    let program = program();
    for run in planned {
        let directory: &RunDirectory = &run.directory;
        if directory.state().map_err(Failure::failed)? == State::Absent {
            continue;
        }
        let path = directory.manifest_path();
        if path.is_file() {
            let earlier = Manifest::read(&path).map_err(Failure::failed)?;
            if let Some(earlier) = earlier.programs().find(|earlier| **earlier != program) {
                return Err(Failure::failed(format!(
                    "{} was made by another version of this program ({earlier}; this is {program}): take another --out, remove it, or allow it with --mixed",
                    directory.path().display(),
                )));
            }
            let simd = backend::simd(run.config.backend);
            if let Some(level) = earlier.levels().find(|level| Some(*level) != simd.as_ref()) {
                return Err(Failure::failed(format!(
                    "{} was made with {level} vector instructions and this would use {}, which differ in last digits: set HEADCOUNT_SIMD={level} where the processor has them, take another --out, remove it, or allow it with --mixed",
                    directory.path().display(),
                    simd.as_deref().unwrap_or("none"),
                )));
            }
        }
    }
    Ok(())
}
