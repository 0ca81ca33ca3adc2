//! `trainer doctor`: the debugging chain on a config's model, or on a run.

use std::path::PathBuf;
use std::time::Instant;

use burn::tensor::Device;
use clap::Args;
use runs::config::Problem;
use runs::{Backend, Config, OpenRun, RunDirectory};

use super::files::{latest_checkpoint, open_run, run_directory};
use crate::cli::values::{overrides, parse_backend};
use crate::doctor::{
    CHECKS, Check, Diagnosis, Examination, Finding, Headcount, Setting, Subject, Trained, node_shapes,
};
use crate::machine::exit::{Failure, Success};
use crate::machine::{backend, facts};
use crate::screen::busy::Busy;
use crate::screen::output::{print, print_pretty_json, print_warning};

/// Arguments of `doctor`.
#[derive(Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["run", "config"]))]
pub struct DoctorArguments {
    /// The run directory: its weights are looked at too.
    pub run: Option<PathBuf>,
    /// The config file, such as configs/h8.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Override a key of the config, such as model.heads=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "run")]
    pub overrides: Vec<String>,
    /// Seed of the initial weights and the data.
    #[arg(long, value_name = "N", conflicts_with = "run")]
    pub seed: Option<u64>,
    /// Where to compute, instead of where the config says.
    #[arg(long, value_name = "NAME", value_parser = parse_backend)]
    pub backend: Option<Backend>,
    /// CPU threads; all cores unless set.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub json: bool,
}

pub fn run(arguments: &DoctorArguments) -> Result<Success, Failure> {
    let started = Instant::now();
    let threads = arguments.threads.map_or_else(facts::cores, usize::from);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };

    let (named, directory) = match (&arguments.run, &arguments.config) {
        (Some(run), _) => (run, Some(run_directory(run)?)),
        (None, Some(config)) => (config, None),
        (None, None) => return Err(Failure::usage("--config FILE or a run directory is missing")),
    };
    let path = directory.as_ref().map_or_else(|| named.clone(), RunDirectory::config_path);
    let config = Config::load(&path, &overrides(&arguments.overrides, arguments.seed, arguments.backend));
    if let Err(error) = &config {
        let problem = error.diagnostics().first().map(|diagnostic| &diagnostic.problem);
        if matches!(problem, Some(Problem::NotFound | Problem::Folder | Problem::Unreadable(_))) {
            return Err(Failure::usage(error));
        }
    }
    let mut listener = Listener::new(arguments.json, named.display().to_string());
    // A config that can't be read is a finding of the chain; of one that can, the files must belong together.
    let run = match (&config, &directory) {
        (Ok(_), Some(directory)) => Some(open_run(directory.path())?),
        _ => None,
    };
    examine(&Setting::new(config, threads), run.as_ref(), &mut listener)?;
    Ok(listener.end(started))
}

/// The chain: the setting, a run's weights, the model, up to a finding that makes the rest idle.
fn examine(setting: &Setting, run: Option<&OpenRun>, listener: &mut Listener) -> Result<(), Failure> {
    let are_well = listener.chain(|check| check.of_setting(setting));
    let (Some(config), Some(device), true) = (setting.config(), setting.device(), are_well) else { return Ok(()) };

    let untrained = Subject::new(config, &Headcount, device).map_err(Failure::usage)?;
    let mut subject = untrained.clone();
    if let Some(run) = run {
        let checkpoint = latest_checkpoint(run)?;
        let initial = untrained.weights();
        let trained = Trained { config, initial: &initial, trained: &checkpoint.model, step: checkpoint.step, device };
        if !listener.chain(|check| check.of_weights(&trained)) {
            return Ok(());
        }
        subject = subject.with_weights(&checkpoint.model).map_err(Failure::failed)?;
    }

    let examination = Examination::new(&subject, &untrained, flex(config.backend)).map_err(Failure::failed)?;
    listener.chain(|check| check.of_model(&examination));
    listener.diagnosis.bounds = examination.effort.bounds.clone();
    listener.diagnosis.nodes = node_shapes(&examination).map_err(Failure::failed)?;
    Ok(())
}

fn flex(backend: Backend) -> Result<Device, &'static str> {
    if backend == Backend::Flex {
        return Err("computes on flex itself; --backend names another to compare");
    }
    backend::open(Backend::Flex).map_err(|_| "flex is not in this build")
}

/// Collects the findings and, unless JSON is asked for, prints each as it comes.
struct Listener {
    is_json: bool,
    diagnosis: Diagnosis,
}

impl Listener {
    fn new(is_json: bool, subject: String) -> Self {
        Self { is_json, diagnosis: Diagnosis { subject, checks: vec![], bounds: vec![], nodes: vec![] } }
    }

    /// Carries out the checks that `look` does; false where one failed that ends the chain.
    fn chain(&mut self, look: impl Fn(&Check) -> Option<Finding>) -> bool {
        for check in CHECKS {
            // Some take long where the model is large.
            let busy = Busy::new(&format!("doctor: {}", check.name));
            let found = look(check);
            drop(busy);
            let Some(finding) = found else { continue };
            let has_failed = finding.outcome.is_failed();
            if !self.is_json {
                let show = if finding.outcome.is_warned() { print_warning } else { print };
                show(finding.to_text());
            }
            self.diagnosis.checks.push(finding);
            if has_failed && check.ends_the_chain {
                return false;
            }
        }
        true
    }

    fn end(self, started: Instant) -> Success {
        let diagnosis = &self.diagnosis;
        if self.is_json {
            print_pretty_json(diagnosis);
        } else {
            if !diagnosis.nodes.is_empty() {
                print("\nShapes of one pass over 2 samples");
                diagnosis.nodes.iter().for_each(|node| print(node.to_text()));
            }
            if !diagnosis.bounds.is_empty() {
                print(format!("\nBounded, to save time: {}", diagnosis.bounds.join("; ")));
            }
            let seconds = started.elapsed().as_secs_f64();
            print(format!("\n{}: {} ({seconds:.1} s)", diagnosis.subject, diagnosis.verdict()));
        }
        if diagnosis.failed().is_empty() { Success::Done } else { Success::Unwell }
    }
}
