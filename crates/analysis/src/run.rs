//! The heads of one run, from its directory.

use burn::tensor::Device;
use runs::{
    OpenRun, RunError, Status, Summary, Tensors,
    heads::{AttentionSite, HeadAnalysis, Pruning, SCHEMA_VERSION, StepAnalysis, Tolerance},
    weights_fingerprint,
};

use crate::{
    encode,
    error::HeadError,
    measures::described,
    pruning, roles,
    samples::Samples,
    similarity::alike,
    snapshot::{self, is_causal},
};

/// Raised whenever the same weights would give other numbers, so that no old file is taken for a new one.
const MEASURES_VERSION: u32 = 4;

/// Which steps of a run to analyse. The untrained model and the end of the run are always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Every snapshot.
    All,
    /// The untrained model and the end alone.
    Ends,
}

/// Analyses a run that is done, at the steps for which its directory has weights. A run without snapshots has its last
/// checkpoint; one that diverged ends with the last weights that were still finite. With a tolerance it is pruned at its end.
///
/// The result is a function of the run and `steps`, on one machine and CPU backend: the same bytes.
///
/// # Errors
/// A run that isn't done, files that are damaged or don't fit the config, and weights that give no finite number.
pub fn analyse(
    open: &OpenRun,
    steps: Steps,
    pruned: Option<Tolerance>,
    device: &Device,
) -> Result<HeadAnalysis, HeadError> {
    let run = Run::open(open)?;
    let analysis = run.analyse(&run.computed_from()?, steps, device)?;
    run.with_pruning(analysis, pruned, device)
}

/// [`analyse`], kept as `heads.json` in the run's directory: where that holds what is asked for, from the same weights,
/// nothing is computed. With `anew` it is computed in any case.
///
/// # Errors
/// As [`analyse`]. That there is no room or no permission to write the file is told beside the analysis.
pub fn analyse_or_read(
    open: &OpenRun,
    steps: Steps,
    pruned: Option<Tolerance>,
    device: &Device,
    anew: bool,
) -> Result<Analysed, HeadError> {
    // What is damaged, another run's or of another version is made anew.
    let kept = if anew { None } else { open.heads().unwrap_or_default() };
    kept_or_made(open, kept.as_ref(), steps, pruned, device)
}

/// An analysis, and why it could not be kept in the run directory, if that is so.
#[derive(Debug)]
pub struct Analysed {
    /// What the heads do.
    pub analysis: HeadAnalysis,
    /// [`RunError::is_unwritten`].
    pub not_kept: Option<RunError>,
}

/// `kept`, if it is what is asked for, made from the same; else the analysis made anew, and written.
pub(crate) fn kept_or_made(
    open: &OpenRun,
    kept: Option<&HeadAnalysis>,
    steps: Steps,
    pruned: Option<Tolerance>,
    device: &Device,
) -> Result<Analysed, HeadError> {
    let run = Run::open(open)?;
    let computed_from = run.computed_from()?;
    let kept = kept.filter(|kept| kept.computed_from == computed_from);
    let has_steps =
        |kept: &&HeadAnalysis| run.steps(steps).iter().all(|step| kept.steps.iter().any(|kept| kept.step == *step));
    let analysis = match kept.filter(has_steps) {
        Some(kept) => kept.clone(),
        None => {
            let pruning = kept.and_then(|kept| kept.pruning.clone());
            HeadAnalysis { pruning, ..run.analyse(&computed_from, steps, device)? }
        }
    };
    let analysis = run.with_pruning(analysis, pruned, device)?;
    if kept == Some(&analysis) {
        return Ok(Analysed { analysis, not_kept: None });
    }
    let not_kept = match run.open.write_heads(&analysis) {
        Ok(()) => None,
        Err(error) if error.is_unwritten() => Some(error),
        Err(error) => return Err(error.into()),
    };
    Ok(Analysed { analysis, not_kept })
}

/// A run that is done, and the steps at which it has weights.
pub(crate) struct Run<'a> {
    open: &'a OpenRun,
    ended: &'a Summary,
    /// After step 0, rising.
    kept: Vec<Kept>,
}

/// Weights on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    Snapshot(u64),
    Checkpoint(u64),
}

impl Kept {
    fn step(self) -> u64 {
        match self {
            Self::Snapshot(step) | Self::Checkpoint(step) => step,
        }
    }
}

impl<'a> Run<'a> {
    pub(crate) fn open(open: &'a OpenRun) -> Result<Self, HeadError> {
        let path = open.directory().path();
        let Some(ended) = open.summary() else { return Err(HeadError::NotDone { path: path.into() }) };
        let snapshots = open.snapshot_steps()?.into_iter();
        let mut kept: Vec<Kept> =
            snapshots.filter(|step| (1..=ended.steps).contains(step)).map(Kept::Snapshot).collect();
        let checkpoint = open.checkpoint_steps()?.into_iter().rfind(|step| *step <= ended.steps);
        let last = kept.last().map_or(0, |kept| kept.step());
        kept.extend(checkpoint.filter(|step| *step > last).map(Kept::Checkpoint));
        let last = kept.last().map_or(0, |kept| kept.step());
        if last < ended.steps && (ended.status == Status::Finished || last == 0) {
            return Err(HeadError::NoWeights { path: path.into(), step: ended.steps });
        }
        Ok(Self { open, ended, kept })
    }

    /// The steps that `steps` means: 0 first.
    fn steps(&self, steps: Steps) -> Vec<u64> {
        let first = match steps {
            Steps::All => 0,
            Steps::Ends => self.kept.len().saturating_sub(1),
        };
        [0].into_iter().chain(self.kept.iter().skip(first).map(|kept| kept.step())).collect()
    }

    /// The last weights with their step; those before the first step where there are none.
    pub(crate) fn last_weights(&self) -> Result<(u64, Option<Tensors>), HeadError> {
        let last = self.kept.last();
        Ok((last.map_or(0, |kept| kept.step()), last.map(|kept| self.weights(*kept)).transpose()?))
    }

    fn weights(&self, kept: Kept) -> Result<Tensors, HeadError> {
        Ok(match kept {
            Kept::Snapshot(step) => self.open.snapshot(step)?.model,
            Kept::Checkpoint(step) => self.open.checkpoint(step)?.model,
        })
    }

    /// See [`HeadAnalysis::computed_from`].
    fn computed_from(&self) -> Result<String, HeadError> {
        let mut hasher = blake3::Hasher::new();
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(&MEASURES_VERSION.to_le_bytes());
        add(self.open.config().to_toml().as_bytes());
        // Numbers and text alone: nothing that JSON lacks.
        add(&serde_json::to_vec(self.ended).unwrap_or_default());
        for kept in &self.kept {
            let weights = self.weights(*kept)?.into_iter();
            add(&kept.step().to_le_bytes());
            add(weights_fingerprint(weights.map(|(path, tensor)| (path, tensor.shape, tensor.values))).all.as_bytes());
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn analyse(&self, computed_from: &str, steps: Steps, device: &Device) -> Result<HeadAnalysis, HeadError> {
        let config = self.open.config();
        let model = &config.model;
        let samples = Samples::new(config);
        let scored = samples.batch.scored();
        if scored == 0 {
            return Err(HeadError::NothingScored);
        }
        let steps = self.steps(steps);
        let plan = encode::Plan::new(steps.len(), samples.batch.batch, self.characters());
        let mut analysed: Vec<StepAnalysis> = vec![];
        for (step, is_shown) in steps.into_iter().zip(&plan.is_shown) {
            let kept = self.kept.iter().find(|kept| kept.step() == step);
            let weights = kept.map(|kept| self.weights(*kept)).transpose()?;
            let shown = is_shown.then_some(plan.samples);
            let untrained = analysed.first();
            let next = snapshot::analyse(config, step, weights, &samples, shown, untrained, device)?;
            analysed.push(next);
        }
        let measures = described(&samples.needs, &analysed);
        let alike = match (analysed.first(), analysed.last()) {
            (Some(untrained), Some(last)) if last.step > 0 => alike(&last.attentions, &untrained.attentions),
            _ => vec![],
        };
        Ok(HeadAnalysis {
            schema_version: SCHEMA_VERSION,
            computed_from: computed_from.into(),
            name: config.name.clone(),
            seed: config.seed,
            task: config.task.task.kind().into(),
            layers: model.layers,
            heads: model.heads,
            kv_heads: model.kv_heads(),
            d_head: model.d_head(),
            causal: model.causal,
            samples: samples.batch.batch,
            scored,
            roles: roles::described(&measures),
            measures,
            alike,
            shown: samples.shown(&config.task.task, plan.samples),
            steps: analysed,
            pruning: None,
        })
    }

    /// `analysis`, pruned with this tolerance if there is one. What was pruned already is only judged by it.
    fn with_pruning(
        &self,
        analysis: HeadAnalysis,
        tolerance: Option<Tolerance>,
        device: &Device,
    ) -> Result<HeadAnalysis, HeadError> {
        let Some(tolerance) = tolerance else { return Ok(analysis) };
        let pruning = match analysis.pruning {
            Some(pruning) => pruning.within(tolerance),
            None => self.prune(tolerance, device)?,
        };
        Ok(HeadAnalysis { pruning: Some(pruning), ..analysis })
    }

    fn prune(&self, tolerance: Tolerance, device: &Device) -> Result<Pruning, HeadError> {
        let last = self.kept.last();
        let weights = last.map(|kept| self.weights(*kept)).transpose()?;
        let step = last.map_or(0, |kept| kept.step());
        let config = self.open.config();
        pruning::prune(config, step, weights.as_ref(), &Samples::new(config).batch, tolerance, device)
    }

    /// Characters that the maps of one sample take at one step.
    fn characters(&self) -> usize {
        let config = self.open.config();
        let (model, task) = (&config.model, &config.task.task);
        let of = |site, queries, keys| {
            model.layers * encode::characters(model.heads, queries, keys, is_causal(config, site))
        };
        let l = task.seq_len();
        let source = task.source().map_or(0, |source| {
            of(AttentionSite::Encoder, source.len, source.len) + of(AttentionSite::Cross, l, source.len)
        });
        of(AttentionSite::Decoder, l, l) + source
    }
}
