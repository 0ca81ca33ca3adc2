//! Which experiment, on what, by how many workers: the same for every command that trains one.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use runs::experiment::{Experiment, Variant};
use runs::{Backend, PlannedRun};

use crate::cli::names::{self, Kind};
use crate::cli::values::parse_backend;
use crate::machine::exit::Failure;
use crate::machine::stop::Stop;
use crate::machine::{facts, memory};
use crate::screen::jobs::JobTable;
use crate::screen::output::tell;
use crate::screen::text::{count, mib};
use crate::workers::job::{Job, JobEnd};
use crate::workers::pool;

/// Arguments that `compare` and `plan` have in common.
#[derive(Args, Clone, Debug)]
pub struct ExperimentArguments {
    /// The experiment file, such as experiments/h1-vs-h8.toml.
    pub experiment: PathBuf,
    /// Other seeds than the file's: how many, or several between commas. Another experiment, in a folder of its own.
    #[arg(long, value_name = "N|LIST")]
    pub seeds: Option<String>,
    /// Set a key of the experiment, such as metric.margin=0.05, or of every arm's config, such as train.steps=400; may be
    /// repeated. Another experiment, in a folder of its own.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder that the experiment's folder is made in.
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub out: PathBuf,
    /// Runs at once; as many as cores allow unless set. The results do not depend on it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// CPU threads of each run.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Seconds after which a run is taken over whose process shows no sign of life, where several share the folder.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub patience: u32,
    /// Where to compute, for every arm.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
}

impl ExperimentArguments {
    /// The experiment, whose arms fit into memory.
    pub fn load(&self) -> Result<Experiment, Failure> {
        let variant = Variant { seeds: self.seeds.clone(), set: self.set.clone() };
        let mut experiment = Experiment::load_variant(&names::file(Kind::Experiment, &self.experiment)?, &variant)
            .map_err(Failure::usage)?;
        if let Some(backend) = self.backend {
            experiment.arms.iter_mut().for_each(|arm| arm.config.backend = backend);
        }
        for arm in &experiment.arms {
            memory::check(&arm.config).map_err(|error| Failure::failed(format!("arm {}: {error}", arm.name)))?;
        }
        Ok(experiment)
    }

    /// How many runs train at once: as many as were asked for, or as cores allow and memory holds.
    pub fn workers(&self, experiment: &Experiment) -> Result<Workers, Failure> {
        let threads = usize::from(self.threads);
        let wanted = self.jobs.map_or_else(|| (facts::cores() / threads).max(1), usize::from);
        let runs = experiment.runs(&self.out);
        let at_once = match memory::check_together(runs.iter().map(|run| &run.config), wanted) {
            Ok(()) => wanted,
            Err(error) if self.jobs.is_some() => return Err(Failure::failed(error)),
            Err(error) => {
                tell(format!(
                    "{} at once, not {}: they need about {} MiB of memory, and {} MiB are free",
                    count(error.fitting, "run"),
                    error.jobs,
                    mib(error.needed),
                    mib(error.available)
                ));
                error.fitting
            }
        };
        Ok(Workers { at_once, threads, patience: Duration::from_secs(self.patience.into()) })
    }
}

/// Who trains: so many runs at once, of so many threads each.
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    pub at_once: usize,
    pub threads: usize,
    /// After which a run is taken over whose process shows no sign of life.
    pub patience: Duration,
}

impl Workers {
    /// Trains what is not done yet; says how each ended.
    pub fn train(self, planned: &[PlannedRun], stop: &Stop) -> Result<Vec<JobEnd>, Failure> {
        let job = |run: &PlannedRun| Job {
            label: format!("{} seed {}", run.config.name, run.config.seed),
            config: run.config.clone(),
            directory: run.directory.clone(),
        };
        let jobs: Vec<Job> = planned.iter().map(job).collect();
        if jobs.is_empty() {
            return Ok(vec![]);
        }
        let mut table = JobTable::new(&jobs);
        pool::run(&jobs, self.at_once, self.threads, self.patience, &mut table, stop).map_err(Failure::failed)
    }
}
