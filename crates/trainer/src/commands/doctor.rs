//! `trainer doctor`: the debugging chain on a config's model, or on a run.

use std::time::Instant;

use burn::tensor::Device;
use runs::config::Problem;
use runs::{Backend, Config, OpenRun, RunDirectory};

use super::{Failure, Success, open_run, print};
use crate::backend;
use crate::cli::DoctorArguments;
use crate::doctor::{self, CHECKS, Examination, Finding, Headcount, Report, Subject};

pub fn run(arguments: &DoctorArguments) -> Result<Success, Failure> {
    let started = Instant::now();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.map_or_else(cores, usize::from);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };

    let (path, directory) = match (&arguments.run, &arguments.config) {
        (Some(run), _) => (RunDirectory::at(run).config_path(), Some(RunDirectory::at(run))),
        (None, Some(config)) => (config.clone(), None),
        (None, None) => return Err(Failure::usage("--config FILE or a run directory is missing")),
    };
    if let Some(directory) = directory.as_ref().filter(|_| !path.is_file()) {
        return Err(Failure::usage(format!(
            "{} is no run directory: it holds no config.toml",
            directory.path().display()
        )));
    }
    let named = arguments.run.as_ref().unwrap_or(&path).display().to_string();
    let mut listener = Listener::new(arguments.json, named);
    let config = match Config::load(&path, &overrides(arguments)) {
        Ok(config) => config,
        Err(error) => {
            let problem = error.diagnostics().first().map(|diagnostic| &diagnostic.problem);
            if matches!(problem, Some(Problem::NotFound | Problem::Folder | Problem::Unreadable(_))) {
                return Err(Failure::usage(error));
            }
            listener.found(doctor::config_refused(&error));
            return Ok(listener.end(started));
        }
    };
    let run = directory.map(|directory| open_run(directory.path())).transpose()?;
    let (findings, device) = doctor::before(&config, threads);
    findings.into_iter().for_each(|finding| listener.found(finding));
    if let (Some(device), []) = (device, &listener.report.failed()[..]) {
        examine(&config, run.as_ref(), &device, &mut listener)?;
    }
    Ok(listener.end(started))
}

fn overrides(arguments: &DoctorArguments) -> Vec<String> {
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.seed.map(|seed| format!("seed={seed}")));
    overrides.extend(arguments.backend.map(|backend| format!("backend={backend}")));
    overrides
}

/// The checks of the model, and of a run's weights.
fn examine(config: &Config, run: Option<&OpenRun>, device: &Device, listener: &mut Listener) -> Result<(), Failure> {
    let untrained = Subject::new(config, &Headcount, device).map_err(Failure::usage)?;
    let mut subject = untrained.clone();
    if let Some(run) = run {
        let checkpoint = latest(run)?;
        let findings = doctor::check_weights(config, &untrained.weights(), &checkpoint.model, checkpoint.step);
        let are_finite =
            findings.iter().all(|finding| finding.check != "finite weights" || !finding.outcome.is_failed());
        findings.into_iter().for_each(|finding| listener.found(finding));
        if !are_finite {
            return Ok(()); // everything else would follow from it
        }
        subject = subject.with_weights(&checkpoint.model).map_err(Failure::failed)?;
    }
    let examination = Examination::new(&subject, &untrained, flex(config.backend)).map_err(Failure::failed)?;
    for check in CHECKS {
        listener.found(check.run(&examination));
    }
    listener.report.bounds = examination.effort.bounds.clone();
    listener.report.nodes = examination.table().map_err(Failure::failed)?;
    Ok(())
}

/// The checkpoint of the final step, or of where the run stopped.
fn latest(run: &OpenRun) -> Result<runs::Checkpoint, Failure> {
    let latest = run.latest_checkpoint().map_err(Failure::failed)?;
    let none = || Failure::failed(format!("{} holds no checkpoint yet", run.directory().path().display()));
    Ok(latest.ok_or_else(none)?.checkpoint)
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
    report: Report,
}

impl Listener {
    fn new(is_json: bool, subject: String) -> Self {
        let report = Report { subject, checks: vec![], bounds: vec![], nodes: vec![] };
        Self { is_json, report }
    }

    fn found(&mut self, finding: Finding) {
        if !self.is_json {
            print(finding.to_text());
        }
        self.report.checks.push(finding);
    }

    fn end(self, started: Instant) -> Success {
        let report = &self.report;
        if self.is_json {
            // Only types that JSON lacks could fail, and there are none.
            print(serde_json::to_string_pretty(report).unwrap_or_default());
        } else {
            if !report.nodes.is_empty() {
                print("\nShapes of one pass over 2 samples");
                report.nodes.iter().for_each(|row| print(row.to_text()));
            }
            if !report.bounds.is_empty() {
                print(format!("\nBounded, to save time: {}", report.bounds.join("; ")));
            }
            print(format!("\n{}: {} ({:.1} s)", report.subject, report.verdict(), started.elapsed().as_secs_f64()));
        }
        if report.failed().is_empty() { Success::Done } else { Success::Unwell }
    }
}
