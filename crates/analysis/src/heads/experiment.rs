//! The heads of an experiment, from its folder.

use std::{collections::HashSet, path::Path};

use burn::tensor::Device;
use runs::Experiment;

use super::{
    HeadError, Steps,
    across::{AcrossRuns, ArmHeads, ExperimentHeads, RunHeads},
    analyse_or_read,
    record::{HeadAnalysis, SCHEMA_VERSION, StepAnalysis},
};
use crate::results::{Record, TuningTable, records};

/// Analyses every run of the experiment in `folder` and writes its `heads.json`: the first finished run of each arm at every
/// snapshot, the others untrained and at the end. What a run's own `heads.json` holds already is taken from there, unless
/// `anew`. `progress` is told how many runs of how many are done.
///
/// A run that can't be analysed is no error: its [`RunHeads::problem`] says why.
///
/// # Errors
/// Where the experiment's file is missing or refused, or the result can't be written.
pub fn of_experiment(
    folder: &Path,
    device: &Device,
    anew: bool,
    mut progress: impl FnMut(usize, usize),
) -> Result<ExperimentHeads, HeadError> {
    let experiment = Experiment::of_folder(folder)?;
    let experiment = match TuningTable::read(&experiment, folder) {
        Some(table) => experiment.tuned(&table.chosen()),
        None => experiment,
    };
    let records = records(&experiment.runs_in(folder));
    let mut has_timeline = HashSet::new();
    let mut runs = vec![];
    for (index, record) in records.iter().enumerate() {
        progress(index, records.len());
        let arm = &record.plan.arm;
        let run = run_heads(record, !has_timeline.contains(arm), device, anew);
        if run.analysis.is_some() {
            has_timeline.insert(arm.clone());
        }
        runs.push((arm, run));
    }
    progress(records.len(), records.len());
    let arms = experiment.arms.iter().map(|arm| {
        let runs: Vec<RunHeads> =
            runs.iter().filter(|(name, _)| **name == arm.name).map(|(_, run)| run.clone()).collect();
        let at = |step: fn(&HeadAnalysis) -> Option<&StepAnalysis>| {
            let steps: Vec<&StepAnalysis> = runs.iter().filter_map(|run| step(run.analysis.as_ref()?)).collect();
            AcrossRuns::of(&steps)
        };
        ArmHeads {
            name: arm.name.clone(),
            label: arm.label.clone(),
            untrained: at(HeadAnalysis::untrained),
            last: at(HeadAnalysis::last),
            runs,
        }
    });
    let heads = ExperimentHeads { schema_version: SCHEMA_VERSION, name: experiment.name.clone(), arms: arms.collect() };
    // Numbers, text and lists alone: nothing that JSON lacks.
    let text = serde_json::to_string(&heads).unwrap_or_default() + "\n";
    crate::results::write_whole(&folder.join("heads.json"), text.as_bytes())?;
    Ok(heads)
}

fn run_heads(record: &Record, with_timeline: bool, device: &Device, anew: bool) -> RunHeads {
    let steps = if with_timeline { Steps::All } else { Steps::Ends };
    let config = &record.plan.config;
    let result = match record.problem() {
        Some(problem) => Err(problem),
        None => {
            let analysis = analyse_or_read(config, &record.plan.directory, steps, device, anew);
            analysis.map_err(|error| error.to_string())
        }
    };
    let (analysis, problem) = match result {
        Ok(analysis) if with_timeline => (Some(analysis), None),
        Ok(analysis) => (Some(ends(analysis)), None),
        Err(problem) => (None, Some(problem)),
    };
    RunHeads { pair: record.plan.pair, directory: record.directory(), analysis, problem }
}

/// The untrained model and the end, without maps.
fn ends(mut analysis: HeadAnalysis) -> HeadAnalysis {
    let last = analysis.steps.len().saturating_sub(1);
    let mut index = 0;
    analysis.steps.retain(|_| {
        index += 1;
        index == 1 || index == last + 1
    });
    analysis.shown.clear();
    for step in &mut analysis.steps {
        step.attentions.iter_mut().for_each(|attention| attention.maps = None);
    }
    analysis
}
