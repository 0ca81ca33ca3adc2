//! `trainer compare`: from an experiment file to a verdict.

use std::path::Path;

use burn::tensor::Device;
use burn::train::Interrupter;
use report::TunedExperiment;
use runs::experiment::{Experiment, PlannedRun};
use runs::ledger::{Ledger, LedgerRun};
use runs::{Manifest, RunDirectory, State};

use super::{Failure, Success, print, tell};
use crate::board::Table;
use crate::cli::CompareArguments;
use crate::manifest::manifest;
use crate::workers::{self, Job, Outcome};
use crate::{backend, interrupt, memory};

pub fn run(arguments: &CompareArguments) -> Result<Success, Failure> {
    let mut experiment = Experiment::load(&arguments.experiment).map_err(Failure::usage)?;
    if let Some(backend) = arguments.backend {
        experiment.arms.iter_mut().for_each(|arm| arm.config.backend = backend);
    }
    for arm in &experiment.arms {
        memory::check(&arm.config).map_err(|error| Failure::failed(format!("arm {}: {error}", arm.name)))?;
    }
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(usize::from(arguments.threads)) };
    let ledger = ledger(&experiment, arguments)?;
    tell(plan(&experiment, &ledger, arguments));
    if let Err(mismatches) = ledger.check(experiment.regime) {
        let lines: Vec<String> = mismatches.iter().map(|mismatch| format!("  - {mismatch}")).collect();
        let regime = experiment.regime.name();
        return Err(Failure::usage(format!("the arms don't match in regime `{regime}`:\n{}", lines.join("\n"))));
    }
    if arguments.dry_run {
        return Ok(Success::Done);
    }

    let folder = experiment.folder(&arguments.out);
    if let Some(change) = changed_since(&folder, &experiment) {
        tell(format!("{}: {change}; its results are replaced, its finished runs stay", folder.display()));
    }
    experiment.save(&folder).map_err(Failure::failed)?;
    let interrupter = interrupt::on_signal().map_err(Failure::failed)?;
    train_all(&experiment.tuning_runs(&arguments.out), arguments, &interrupter)?;
    if interrupter.should_stop() {
        return Ok(interrupted());
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
    let outcomes = train_all(&runs, arguments, &interrupter)?;
    if interrupter.should_stop() && outcomes.contains(&Outcome::Interrupted) {
        return Ok(interrupted());
    }
    super::report::show(tuned, arguments.mixed)?;
    let failed = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Failed(_))).count();
    match failed {
        0 => Ok(Success::Done),
        _ => Err(Failure::failed(format!("{failed} of {} runs failed; the same command tries them again", runs.len()))),
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

fn interrupted() -> Success {
    print("Stopped; every run has saved what it did. The same command goes on from there.");
    Success::Interrupted
}

/// What the arms cost and start from, from each arm's first seed, before anything is trained.
fn ledger(experiment: &Experiment, arguments: &CompareArguments) -> Result<Ledger, Failure> {
    let threads = usize::from(arguments.threads);
    let Some(&seed) = experiment.seeds.first() else { return Err(Failure::usage("the experiment has no seeds")) };
    let mut manifests = Vec::new();
    for arm in &experiment.arms {
        let config = arm.config(seed);
        let device: Device = backend::open(config.backend).map_err(Failure::usage)?;
        let manifest: Manifest = manifest(&config, &device, threads).map_err(Failure::usage)?;
        manifests.push((arm.name.clone(), config, manifest));
    }
    let runs: Vec<LedgerRun> =
        manifests.iter().map(|(arm, config, manifest)| LedgerRun { arm, pair: seed, config, manifest }).collect();
    Ok(Ledger::new(experiment, &runs, arguments.mixed))
}

fn train_all(
    planned: &[PlannedRun],
    arguments: &CompareArguments,
    interrupter: &Interrupter,
) -> Result<Vec<Outcome>, Failure> {
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
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = usize::from(arguments.threads);
    let at_once = arguments.jobs.map_or_else(|| (cores / threads).max(1), usize::from);
    let mut table = Table::new(&jobs);
    workers::run(&jobs, at_once, threads, &mut table, interrupter).map_err(Failure::failed)
}

/// Finished runs of another version of this program are not taken for this one's, unless asked.
fn refuse_other_programs(planned: &[PlannedRun], arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.mixed {
        return Ok(());
    }
    let program = crate::manifest::program();
    for run in planned {
        let directory: &RunDirectory = &run.directory;
        if directory.state().map_err(Failure::failed)? == State::Absent {
            continue;
        }
        let path = directory.manifest_path();
        if path.is_file() {
            let earlier = Manifest::read(&path).map_err(Failure::failed)?.program;
            if earlier != program {
                return Err(Failure::failed(format!(
                    "{} was made by another version of this program ({}, this is {}): take another --out, remove it, or allow it with --mixed",
                    directory.path().display(),
                    version(&earlier),
                    version(&program),
                )));
            }
        }
    }
    Ok(())
}

fn version(program: &runs::Program) -> String {
    // By characters: it may come from a manifest that was made by hand.
    let commit = program.commit.as_deref().map(|commit| commit.chars().take(8).collect::<String>());
    let commit = commit.as_deref().unwrap_or("unknown commit");
    let changed = if program.dirty == Some(true) { " with changes" } else { "" };
    format!("{} {commit}{changed}", program.version)
}
