//! The heads of the runs of an experiment.

use std::collections::HashSet;

use burn::tensor::Device;
use runs::{
    RunError, RunRecord,
    heads::{HeadAnalysis, RunHeads, Tolerance},
};

use crate::run::{Analysed, Steps, kept_or_made};

/// Analyses every run of an experiment, in their order: the first finished run of each arm at every snapshot, the others
/// untrained and at the end. With a tolerance the former is pruned, too. What a run's own `heads.json` holds already is taken from there, unless `anew`. `progress` is told
/// how many runs of how many are done.
///
/// A run that can't be analysed is no error: its [`RunHeads::problem`] says why. Beside the runs stands why an analysis could
/// not be kept, the first time that there was no room or no permission.
pub fn of_runs(
    records: &[RunRecord],
    pruned: Option<Tolerance>,
    device: &Device,
    anew: bool,
    mut progress: impl FnMut(usize, usize),
) -> (Vec<RunHeads>, Option<RunError>) {
    let mut has_timeline = HashSet::new();
    let (mut runs, mut unkept) = (vec![], None);
    for (index, record) in records.iter().enumerate() {
        progress(index, records.len());
        let arm = record.plan.arm.as_str();
        let (run, not_kept) = of_run(record, !has_timeline.contains(arm), pruned, device, anew);
        unkept = unkept.or(not_kept);
        if run.analysis.is_some() {
            has_timeline.insert(arm);
        }
        runs.push(run);
    }
    progress(records.len(), records.len());
    (runs, unkept)
}

fn of_run(
    record: &RunRecord,
    with_timeline: bool,
    pruned: Option<Tolerance>,
    device: &Device,
    anew: bool,
) -> (RunHeads, Option<RunError>) {
    let steps = if with_timeline { Steps::All } else { Steps::Ends };
    let pruned = pruned.filter(|_| with_timeline);
    let kept = record.heads().filter(|_| !anew);
    let result = match (record.problem(), record.open()) {
        (Some(problem), _) => Err(problem),
        (None, Some(open)) => kept_or_made(open, kept, steps, pruned, device).map_err(|error| error.to_string()),
        (None, None) => Err("not run".into()),
    };
    let (analysis, not_kept, problem) = match result {
        Ok(Analysed { mut analysis, not_kept }) if with_timeline => {
            analysis.pruning = analysis.pruning.filter(|_| pruned.is_some());
            (Some(analysis), not_kept, None)
        }
        Ok(Analysed { analysis, not_kept }) => (Some(ends(analysis)), not_kept, None),
        Err(problem) => (None, None, Some(problem)),
    };
    (RunHeads { pair: record.plan.pair, directory: record.directory_name(), analysis, problem }, not_kept)
}

/// The untrained model and the end, without maps, not pruned.
fn ends(mut analysis: HeadAnalysis) -> HeadAnalysis {
    let last = analysis.steps.len().saturating_sub(1);
    let mut index = 0;
    analysis.steps.retain(|_| {
        index += 1;
        index == 1 || index == last + 1
    });
    analysis.shown.clear();
    analysis.pruning = None;
    for step in &mut analysis.steps {
        step.attentions.iter_mut().for_each(|attention| attention.maps = None);
    }
    analysis
}
