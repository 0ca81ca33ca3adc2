//! The heads of one run, from its directory.

use burn::tensor::Device;
use runs::{Config, OpenRun, RunDirectory, Status, Tensors, weights_fingerprint};

use super::{
    HeadError, encode,
    record::{HeadAnalysis, Place, SCHEMA_VERSION},
    samples::Samples,
    step::{self, is_causal},
};

/// Raised whenever the same weights would give other numbers, so that no old file is taken for a new one.
const MEASURES_VERSION: u32 = 1;

/// Which steps of a run to analyse. The untrained model and the end of the run are always among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Every snapshot.
    All,
    /// The untrained model and the end alone.
    Ends,
}

/// Analyses a run that is done, at the steps for which its directory has weights. A run without snapshots has its last
/// checkpoint; one that diverged ends with the last weights that were still finite.
///
/// The result is a function of the run and `steps`, on one machine and CPU backend: the same bytes.
///
/// # Errors
/// A run that isn't done, files that are damaged or don't fit the config, and weights that give no finite number.
pub fn analyse(
    config: &Config,
    directory: &RunDirectory,
    steps: Steps,
    device: &Device,
) -> Result<HeadAnalysis, HeadError> {
    let run = Run::open(config, directory)?;
    run.analyse(&run.computed_from()?, steps, device)
}

/// [`analyse`], kept as `heads.json` in the run's directory: where that holds what is asked for, from the same weights,
/// nothing is computed. With `anew` it is computed in any case.
///
/// # Errors
/// As [`analyse`], and where the file can't be written.
pub fn analyse_or_read(
    config: &Config,
    directory: &RunDirectory,
    steps: Steps,
    device: &Device,
    anew: bool,
) -> Result<HeadAnalysis, HeadError> {
    let run = Run::open(config, directory)?;
    let computed_from = run.computed_from()?;
    if let (Some(kept), false) = (read(&run.open), anew)
        && kept.computed_from == computed_from
        && run.steps(steps).iter().all(|step| kept.steps.iter().any(|kept| kept.step == *step))
    {
        return Ok(kept);
    }
    let analysis = run.analyse(&computed_from, steps, device)?;
    run.open.write_heads(&analysis)?;
    Ok(analysis)
}

/// What was kept; `None` where there is nothing, nothing of this version, or what is damaged or another run's. Then it is made
/// anew.
fn read(run: &OpenRun) -> Option<HeadAnalysis> {
    let kept: HeadAnalysis = run.heads().ok()??;
    (kept.schema_version == SCHEMA_VERSION).then_some(kept)
}

/// A run that is done, and the steps at which it has weights.
struct Run<'a> {
    config: &'a Config,
    open: OpenRun,
    /// `summary.json` in one line.
    summary: String,
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
    fn open(config: &'a Config, directory: &'a RunDirectory) -> Result<Self, HeadError> {
        let open = directory.open_as(config)?;
        let Some(ended) = open.summary() else {
            return Err(HeadError::NotDone { path: directory.path().into() });
        };
        // Numbers, text and lists alone: nothing that JSON lacks.
        let summary = serde_json::to_string(ended).unwrap_or_default();
        let snapshots = open.snapshot_steps()?.into_iter();
        let mut kept: Vec<Kept> =
            snapshots.filter(|step| (1..=ended.steps).contains(step)).map(Kept::Snapshot).collect();
        let checkpoint = open.checkpoint_steps()?.into_iter().rfind(|step| *step <= ended.steps);
        let last = kept.last().map_or(0, |kept| kept.step());
        kept.extend(checkpoint.filter(|step| *step > last).map(Kept::Checkpoint));
        let last = kept.last().map_or(0, |kept| kept.step());
        if last < ended.steps && (ended.status == Status::Finished || last == 0) {
            return Err(HeadError::NoWeights { path: directory.path().into(), step: ended.steps });
        }
        Ok(Self { config, open, summary, kept })
    }

    /// The steps that `steps` means: 0 first.
    fn steps(&self, steps: Steps) -> Vec<u64> {
        let first = match steps {
            Steps::All => 0,
            Steps::Ends => self.kept.len().saturating_sub(1),
        };
        [0].into_iter().chain(self.kept.iter().skip(first).map(|kept| kept.step())).collect()
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
        add(self.config.to_toml().as_bytes());
        add(self.summary.as_bytes());
        for kept in &self.kept {
            let weights = self.weights(*kept)?.into_iter();
            add(&kept.step().to_le_bytes());
            add(weights_fingerprint(weights.map(|(path, tensor)| (path, tensor.shape, tensor.values))).all.as_bytes());
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn analyse(&self, computed_from: &str, steps: Steps, device: &Device) -> Result<HeadAnalysis, HeadError> {
        let (config, model) = (self.config, &self.config.model);
        let samples = Samples::new(config);
        let scored = samples.batch.scored();
        if scored == 0 {
            return Err(HeadError::NothingScored);
        }
        let steps = self.steps(steps);
        let plan = encode::Plan::new(steps.len(), samples.batch.batch, self.characters());
        let mut analysed = vec![];
        for (step, is_shown) in steps.into_iter().zip(&plan.is_shown) {
            let kept = self.kept.iter().find(|kept| kept.step() == step);
            let weights = kept.map(|kept| self.weights(*kept)).transpose()?;
            let shown = is_shown.then_some(plan.samples);
            analysed.push(step::analyse(config, step, weights, &samples, shown, device)?);
        }
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
            shown: samples.shown(&config.task.task, plan.samples),
            steps: analysed,
        })
    }

    /// Characters that the maps of one sample take at one step.
    fn characters(&self) -> usize {
        let (model, task) = (&self.config.model, &self.config.task.task);
        let of = |place, queries, keys| {
            model.layers * encode::characters(model.heads, queries, keys, is_causal(self.config, place))
        };
        let l = task.seq_len();
        let source = task
            .source()
            .map_or(0, |source| of(Place::Encoder, source.len, source.len) + of(Place::Cross, l, source.len));
        of(Place::Decoder, l, l) + source
    }
}
