//! `trainer compare`: from an experiment file to a verdict.

mod alone;
pub mod arguments;
mod programs;
mod recorded;
mod share;
mod stages;
mod vectors;

use std::path::PathBuf;

use burn::tensor::Device;
use clap::Args;
use runs::experiment::Experiment;
use runs::ledger::{self, Ledger, LedgerRun};
use runs::{Amendment, Manifest, Registration, RunError};

use super::files::refuse_linked;
use super::report;
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::machine::stop::Stop;
use crate::screen::output::{next, print, tell, warn};
use crate::screen::text::count;
use crate::training::manifest::manifest;
use alone::alone;
use arguments::ExperimentArguments;
pub use share::Share;
use share::{Only, Shard};
pub use stages::{Stages, Trained};

/// Arguments of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArguments {
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Take runs of other builds of this program, backends or vector instructions too, and say so in the result.
    #[arg(long)]
    pub mixed: bool,
    /// Show the arms, how they match and what they cost; train nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Train this part of the runs alone, such as 2/8: every eighth, beginning with the second.
    #[arg(long, value_name = "I/N", conflicts_with = "only")]
    pub shard: Option<Shard>,
    /// Train this run alone, such as h8:3.
    #[arg(long, value_name = "ARM:SEED")]
    pub only: Option<Only>,
    /// Say whether the result agrees with a recorded one, a results.json of the same experiment; code 3 where it does not.
    #[arg(long, value_name = "FILE")]
    pub check: Option<PathBuf>,
}

pub fn run(arguments: &CompareArguments) -> Result<Success, Failure> {
    let experiment = arguments.experiment.load()?;
    // What can't be read is said before hours of training.
    let recorded = arguments.check.as_deref().map(recorded::read).transpose()?;
    let workers = arguments.experiment.workers(&experiment)?;
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(workers.threads) };
    let share = match (arguments.shard, &arguments.only) {
        (Some(shard), _) => Share::Shard(shard),
        (None, Some(only)) => Share::Only(only.clone()),
        (None, None) => Share::All,
    };
    share.check(&experiment)?;
    let folder = experiment.folder(&arguments.experiment.out);
    if !arguments.mixed {
        // SAFETY: as above.
        unsafe { vectors::take_over(&experiment, &folder)? };
    }
    let ledger = planned_ledger(&experiment, workers.threads, arguments.mixed)?;
    tell(planned(&experiment, &ledger, arguments));
    if let Err(mismatches) = ledger.check(experiment.regime) {
        let (regime, why) = (experiment.regime.name(), ledger::explain(experiment.regime, &mismatches));
        return Err(Failure::usage(format!("the arms don't match in regime `{regime}`:\n{why}")));
    }
    if arguments.dry_run {
        return Ok(Success::Done);
    }

    refuse_linked(&folder)?;
    let patience = workers.patience;
    alone(&folder, "experiment", patience, || {
        vectors::keep(&experiment, &folder);
        keep(&experiment, &folder)
    })?;
    let stop = Stop::listen_for_workers().map_err(Failure::failed)?;
    let stages = Stages { folder: &folder, workers, mixed: arguments.mixed, share, stop: &stop };
    let (tuned, failed, runs) = match stages.train(experiment)? {
        Trained::Ended { experiment, failed, runs } => (*experiment, failed, runs),
        Trained::Stopped(success) => return Ok(success),
        Trained::Shared { stage, missing, runs } => {
            print(format!(
                "This share is done; of the stage `{stage}` {missing} of {} are not. Once they are, the same command goes on with the \
                 next stage, and `trainer report {}` shows what there is.",
                count(runs, "run"),
                folder.display()
            ));
            return Ok(Success::Done);
        }
    };
    // Every run is on disk, and the report can be made again.
    stop.end_at_once();
    let shown = alone(&folder, "results", patience, || report::show(tuned, arguments.mixed))?;
    if failed > 0 {
        return Err(Failure::failed(format!("{failed} of {runs} runs failed; the same command tries them again")));
    }
    next(format!("trainer report {} --open", folder.display()));
    recorded.map_or(Ok(Success::Done), |recorded| recorded.agrees_with(&shown.results))
}

/// Writes the experiment and its registration to its folder, before anything of it is trained. What changed since it was
/// registered is said; a folder that can only be read is shown as it is.
fn keep(experiment: &Experiment, folder: &std::path::Path) -> Result<(), Failure> {
    let unwritten = |error: &RunError| tell(format!("what is done is shown, nothing is kept: {error}"));
    match experiment.save(folder) {
        // What is done can be shown; a run that is not says by itself that it can't begin.
        Err(error) if error.is_unwritten() => {
            unwritten(&error);
            let registered = Registration::read(folder).map_err(Failure::failed)?;
            registered.iter().flat_map(|registered| registered.changes(experiment)).for_each(|change| {
                warn(format!("{}: not as it was registered: {change}", folder.display()));
            });
            return Ok(());
        }
        saved => saved.map_err(Failure::failed)?,
    }
    let registered = match Registration::keep(folder, experiment) {
        Err(error) if error.is_unwritten() => {
            unwritten(&error);
            return Ok(());
        }
        registered => registered.map_err(Failure::failed)?,
    };
    if registered.ended > 0 {
        warn(format!(
            "{}: registered on {}, when {} of {} runs had ended",
            folder.display(),
            registered.registered,
            registered.ended,
            registered.runs
        ));
    }
    for amendment in &registered.amendments {
        let Amendment { time, changed, ended, runs, .. } = amendment;
        let changed = changed.join("; ");
        let said = format!("{}: changed on {time}, when {ended} of {runs} runs had ended: {changed}", folder.display());
        // Who changes a plan before anything has come out is free to.
        if *ended > 0 { warn(said) } else { tell(said) }
    }
    Ok(())
}

/// What is going to be done, in a few lines.
fn planned(experiment: &Experiment, ledger: &Ledger, arguments: &CompareArguments) -> String {
    let about = &experiment.about;
    let mut lines = vec![experiment.name.clone()];
    for (what, text) in [("Question", &about.question), ("Prediction", &about.prediction)] {
        lines.extend(text.as_ref().map(|text| format!("{what}: {text}")));
    }
    let out = &arguments.experiment.out;
    let (runs, tuning) = (experiment.runs(out).len(), experiment.tuning_runs(out).len());
    let tuning = if tuning > 0 { format!(", after {tuning} runs that choose learning rates") } else { String::new() };
    let looks = match &experiment.looks[..] {
        [first, .., _] => format!(", fewer where a look decides, the first after {}", count(*first, "pair")),
        _ => String::new(),
    };
    lines.push(format!(
        "{} arms x {} seeds: {runs} runs{looks}{tuning}",
        experiment.arms.len(),
        experiment.seeds.len()
    ));
    lines.extend(experiment.check.map(|check| {
        format!(
            "Then {} of {} times the steps, to see whether the answer holds",
            count(check.pairs, "pair"),
            check.steps
        )
    }));
    lines.extend(about.minutes.map(|minutes| format!("About {minutes} minutes on two cores, by its file")));
    lines.push(format!("\n{ledger}"));
    lines.join("\n")
}

/// What the arms cost and start from, from each arm's first seed, before anything is trained.
pub fn planned_ledger(experiment: &Experiment, threads: usize, mixed: bool) -> Result<Ledger, Failure> {
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
    Ok(Ledger::new(experiment, &runs, mixed))
}
