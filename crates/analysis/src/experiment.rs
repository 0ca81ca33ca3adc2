//! The heads of the runs of an experiment.

use std::collections::HashSet;

use burn::tensor::Device;
use runs::{
    RunError, RunRecord,
    heads::{HeadAnalysis, RunHeads, ShownMaps, StepAnalysis, Tolerance},
};

use crate::encode;
use crate::limits::OTHER_MAP_CHARACTERS;
use crate::run::{Analysed, Steps, kept_or_made};

/// Analyses every run of an experiment, in their order: the first finished run of each arm at every snapshot, the others
/// untrained and at the end, where they have maps as far as these fit. With a tolerance the former is pruned, too. What a run's own `heads.json` holds already is taken from there, unless `anew`. `progress` is told
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
    let characters = OTHER_MAP_CHARACTERS / records.len().max(1);
    let (mut runs, mut unkept) = (vec![], None);
    for (index, record) in records.iter().enumerate() {
        progress(index, records.len());
        let arm = record.plan.arm.as_str();
        let (run, not_kept) = of_run(record, !has_timeline.contains(arm), characters, pruned, device, anew);
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
    characters: usize,
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
        Ok(Analysed { analysis, not_kept }) => (Some(ends(analysis, characters)), not_kept, None),
        Err(problem) => (None, None, Some(problem)),
    };
    (RunHeads { pair: record.plan.pair, directory: record.directory_name(), analysis, problem }, not_kept)
}

/// The untrained model and the end, not pruned, with as many samples' maps of the end as fit into so many characters.
fn ends(mut analysis: HeadAnalysis, characters: usize) -> HeadAnalysis {
    let last = analysis.steps.len().saturating_sub(1);
    let mut index = 0;
    analysis.steps.retain(|_| {
        index += 1;
        index == 1 || index == last + 1
    });
    analysis.pruning = None;
    let of_sample = |step: &StepAnalysis| -> usize {
        step.attentions.iter().filter_map(|attention| attention.maps.as_ref()).map(ShownMaps::characters).sum()
    };
    let fit = analysis.last().map_or(0, |last| characters / of_sample(last).max(1)).min(analysis.shown.len());
    analysis.shown.truncate(fit);
    let end = analysis.steps.len().saturating_sub(1);
    for (place, step) in analysis.steps.iter_mut().enumerate() {
        let kept = if place == end { fit } else { 0 };
        let answers = step.answers.take().filter(|_| kept > 0);
        step.answers = answers.map(|answers| answers.into_iter().take(kept).collect());
        for attention in &mut step.attentions {
            let maps = attention.maps.take().filter(|_| kept > 0);
            attention.maps = maps.and_then(|maps| encode::cut(&maps, kept.min(maps.samples)));
        }
    }
    analysis
}
