//! Reading a run: the one place where its files are asked whether they belong together.
//!
//! `config.toml` says what the run is and `manifest.json` what it was begun as; the two must agree. Every other file names the
//! run it is of (its [`Origin`]), or is hashed in one that does, and is refused where that is another one. The folder's name
//! is not asked: a run may be renamed, moved, or looked at through a link.

use std::{collections::BTreeSet, path::Path};

use serde::de::DeserializeOwned;

use crate::{
    checkpoint::{Checkpoint, Checkpoints, Latest},
    config::Config,
    directory::{RunDirectory, State},
    error::RunError,
    files,
    heads::{self, HeadAnalysis},
    layout::MANIFEST,
    limits,
    log::hash_until,
    manifest::Manifest,
    metrics::{MetricLine, TimingLine, read_metrics, read_timings_of},
    origin::Origin,
    sealed::{self, Named},
    snapshots::Snapshot,
    summary::{Status, Summary},
    test_scores::TestScores,
};

/// A run whose files belong together, done or not.
#[derive(Clone, Debug)]
pub struct OpenRun {
    directory: RunDirectory,
    config: Config,
    manifest: Manifest,
    origin: Origin,
    state: State,
}

impl RunDirectory {
    /// Opens the run to be read.
    ///
    /// # Errors
    /// Where its config, manifest, summary, or metrics are absent, damaged, or of different runs: [`RunError::OtherRun`] says
    /// in what, with both values.
    pub fn open(&self) -> Result<OpenRun, RunError> {
        let config = self.config()?;
        let manifest = Manifest::read(&self.manifest_path())?;
        manifest.check_files(&config, self.path())?;
        let origin = manifest.origin();
        let resolved = config.to_toml();
        if resolved != manifest.config {
            let differences = Origin { config: resolved, ..origin.clone() }.differences(&origin);
            return Err(RunError::OtherRun { path: self.config_path(), beside: MANIFEST, differences });
        }
        let state = self.state()?;
        let run = OpenRun { directory: self.clone(), config, manifest, origin, state };
        if let Some(summary) = run.summary() {
            run.check(&self.summary_path(), &summary.origin)?;
            if self.metrics_hash()? != summary.metrics {
                return Err(RunError::MetricsChanged { path: self.metrics_path() });
            }
        }
        Ok(run)
    }

    /// [`RunDirectory::open`], where the run must be that of `config`.
    ///
    /// # Errors
    /// As [`RunDirectory::open`], and [`RunError::OtherConfig`].
    pub fn open_as(&self, config: &Config) -> Result<OpenRun, RunError> {
        match self.config() {
            Ok(present) if present == *config => self.open(),
            _ => Err(self.other_config(config)),
        }
    }
}

impl OpenRun {
    /// Where it is.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// The resolved config.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it was.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What all of its files name.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// How far it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How it ended, if it has.
    pub fn summary(&self) -> Option<&Summary> {
        match &self.state {
            State::Finished(summary) => Some(summary),
            State::Started { .. } | State::Absent => None,
        }
    }

    /// The metrics; those of a run that is done were compared with its summary, those of another are with the newest
    /// checkpoint, as far as it goes.
    ///
    /// # Errors
    /// Where the file is absent, damaged, or another run's.
    pub fn metrics(&self) -> Result<Vec<MetricLine>, RunError> {
        if self.summary().is_none() {
            self.check_metrics()?;
        }
        read_metrics(&self.directory.metrics_path())
    }

    /// Whether the metrics of a run that isn't done are those that its newest checkpoint counts on.
    fn check_metrics(&self) -> Result<(), RunError> {
        let Some(Latest { checkpoint, .. }) = self.latest_checkpoint()? else { return Ok(()) };
        let path = self.directory.metrics_path();
        if hash_until::<MetricLine>(&path, checkpoint.step)? == checkpoint.metrics {
            Ok(())
        } else {
            Err(RunError::MetricsChanged { path })
        }
    }

    /// The wall-clock figures.
    ///
    /// # Errors
    /// As [`OpenRun::metrics`].
    pub fn timings(&self) -> Result<Vec<TimingLine>, RunError> {
        read_timings_of(&self.directory.timing_path(), &self.origin)
    }

    /// Steps that have a checkpoint, rising.
    ///
    /// # Errors
    /// Where the folder can't be read.
    pub fn checkpoint_steps(&self) -> Result<Vec<u64>, RunError> {
        self.checkpoints().steps()
    }

    /// The checkpoint of a step.
    ///
    /// # Errors
    /// Where it is absent, damaged, or another run's.
    pub fn checkpoint(&self, step: u64) -> Result<Checkpoint, RunError> {
        self.own(self.checkpoints().load(step)?)
    }

    /// The newest complete checkpoint, and what was passed over, absent or damaged; `None` where the run never had one.
    ///
    /// # Errors
    /// The newest one's where none can be used, and where the one found is another run's.
    pub fn latest_checkpoint(&self) -> Result<Option<Latest>, RunError> {
        let latest = self.checkpoints().latest_of(&self.origin)?;
        let newest =
            latest.as_ref().map(|latest| latest.damaged.first().map_or(latest.checkpoint.step, |(step, _)| *step));
        let Some(step) = self.kept_checkpoints().into_iter().max().filter(|step| newest < Some(*step)) else {
            return Ok(latest);
        };
        let absent = RunError::absent(&self.checkpoints().path(step));
        match latest {
            Some(mut latest) => {
                latest.damaged.insert(0, (step, absent));
                Ok(Some(latest))
            }
            None => Err(absent),
        }
    }

    /// The checkpoint with the smallest validation loss; `None` where nothing was measured.
    ///
    /// # Errors
    /// As [`OpenRun::latest_checkpoint`], and where the best one is absent or damaged.
    pub fn best_checkpoint(&self) -> Result<Option<Checkpoint>, RunError> {
        let Some(Latest { checkpoint, .. }) = self.latest_checkpoint()? else { return Ok(None) };
        let best = self.summary().map_or(checkpoint.best, |summary| summary.best);
        best.map(|best| self.checkpoint(best.step)).transpose()
    }

    /// Steps whose checkpoints a run that is done has kept. None of one that isn't: it goes on from whatever is there.
    fn kept_checkpoints(&self) -> Vec<u64> {
        let Some(summary) = self.summary() else { return vec![] };
        let settings = &self.config.train;
        // A run that diverged did so before the checkpoint of that step.
        let last = match summary.status {
            Status::Finished => settings.last_checkpoints(summary.steps),
            Status::Diverged { step } => settings.last_checkpoints(step.saturating_sub(1)),
        };
        last.into_iter().chain(summary.best.map(|best| best.step)).collect()
    }

    /// Steps whose snapshots the run has made by now, as far as its summary or its newest checkpoint says.
    fn made_snapshots(&self) -> Vec<u64> {
        let until = match self.summary().map(|summary| (summary.status, summary.steps)) {
            Some((Status::Finished, steps)) => steps,
            Some((Status::Diverged { step }, _)) => step.saturating_sub(1),
            None => self.latest_checkpoint().ok().flatten().map_or(0, |latest| latest.checkpoint.step),
        };
        self.config.train.snapshot_steps().into_iter().filter(|step| *step <= until).collect()
    }

    /// Steps that have a snapshot, rising.
    ///
    /// # Errors
    /// Where the folder can't be read.
    pub fn snapshot_steps(&self) -> Result<Vec<u64>, RunError> {
        self.directory.snapshots().steps()
    }

    /// The snapshot of a step.
    ///
    /// # Errors
    /// Where it is absent, damaged, or another run's.
    pub fn snapshot(&self, step: u64) -> Result<Snapshot, RunError> {
        let snapshot = self.directory.snapshots().load(step)?;
        self.check(&self.directory.snapshots().path(step), &snapshot.origin)?;
        Ok(snapshot)
    }

    /// What [`OpenRun::write_heads`] kept; `None` where there is nothing, or nothing of this version.
    ///
    /// # Errors
    /// Where the file is damaged, or another run's.
    pub fn heads(&self) -> Result<Option<HeadAnalysis>, RunError> {
        let kept = self.heads_as::<HeadAnalysis>()?;
        Ok(kept.filter(|kept| kept.schema_version == heads::SCHEMA_VERSION))
    }

    fn heads_as<T: DeserializeOwned>(&self) -> Result<Option<T>, RunError> {
        let path = self.directory.heads_path();
        match sealed::read::<Named<Origin, T>>(&path, limits::HEADS) {
            Ok(Named { origin, content }) => self.check(&path, &origin).map(|()| Some(content)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What it scored on each part of the test set; `None` where each run has a test set of its own, and before its end.
    ///
    /// # Errors
    /// Where the file is damaged, or another run's.
    pub fn test_scores(&self) -> Result<Option<TestScores>, RunError> {
        let path = self.directory.test_scores_path();
        match sealed::read::<Named<Origin, TestScores>>(&path, limits::TEST_SCORES) {
            Ok(Named { origin, content }) => self.check(&path, &origin).map(|()| Some(content)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes `heads.json`, with the run's origin and a seal.
    ///
    /// # Errors
    /// Where the disk is full or gone.
    pub fn write_heads(&self, content: &HeadAnalysis) -> Result<(), RunError> {
        files::refuse_link(self.directory.path())?;
        sealed::write_compact(&self.directory.heads_path(), &Named { origin: &self.origin, content })
    }

    /// Everything of the run that can be compared is: the errors, one for each file at fault.
    pub(crate) fn verify(&self) -> Vec<RunError> {
        let mut found = vec![];
        match self.checkpoint_steps() {
            Ok(steps) => {
                let absent = self.kept_checkpoints().into_iter().filter(|step| !steps.contains(step));
                let absent: BTreeSet<u64> = absent.collect();
                found.extend(absent.into_iter().map(|step| RunError::absent(&self.checkpoints().path(step))));
                found.extend(steps.into_iter().filter_map(|step| self.checkpoint(step).err()));
            }
            Err(error) => found.push(error),
        }
        match self.snapshot_steps() {
            Ok(steps) => {
                let absent = self.made_snapshots().into_iter().filter(|step| !steps.contains(step));
                found.extend(absent.map(|step| RunError::absent(&self.directory.snapshots().path(step))));
                found.extend(steps.into_iter().filter_map(|step| self.snapshot(step).err()));
            }
            Err(error) => found.push(error),
        }
        if self.summary().is_none() && found.is_empty() {
            found.extend(self.check_metrics().err());
        }
        found.extend(self.timings().err().filter(|error| !error.is_absent()));
        found.extend(self.heads_as::<serde::de::IgnoredAny>().err());
        found.extend(self.test_scores().err());
        found
    }

    fn checkpoints(&self) -> Checkpoints {
        self.directory.checkpoints()
    }

    fn own(&self, checkpoint: Checkpoint) -> Result<Checkpoint, RunError> {
        self.check(&self.checkpoints().path(checkpoint.step), &checkpoint.origin)?;
        Ok(checkpoint)
    }

    fn check(&self, path: &Path, origin: &Origin) -> Result<(), RunError> {
        origin.check(&self.origin, path)
    }
}

#[cfg(test)]
pub(crate) mod tests;
