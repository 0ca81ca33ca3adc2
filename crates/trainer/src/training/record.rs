//! What a run writes on its way: its logs and its checkpoints.

use std::time::Instant;

use data::metrics::Scores;
use model::{Decoder, parameters};
use runs::tensorboard::EventLog;
use runs::{
    Best, Checkpoint, MetricLine, MetricsLog, Origin, RunDirectory, RunError, TimingLine, TimingLog, TrainConfig,
};

use super::optimiser::AdamW;

/// Who writes checkpoints.
pub(super) struct Saver<'a> {
    pub directory: &'a RunDirectory,
    pub settings: &'a TrainConfig,
    pub origin: Origin,
}

impl Saver<'_> {
    /// A complete checkpoint of `step`, after everything that led to it is on disk; then [`Saver::tidy`].
    pub fn save(
        &self,
        log: &mut Logs,
        model: &Decoder,
        optimiser: &AdamW,
        step: u64,
        validation: Option<Scores>,
        best: Option<Best>,
    ) -> Result<(), RunError> {
        log.sync()?;
        let (model, optimiser) = (parameters::to_host(model), optimiser.to_host());
        let (metrics, origin) = (log.metrics.hash(), self.origin.clone());
        let checkpoint = Checkpoint { step, validation, best, metrics, origin, model, optimiser };
        self.directory.checkpoints().save(&checkpoint)?;
        self.tidy(step, best)
    }

    /// Keeps the checkpoint of `step`, the best one, and the last that belong to the run however it comes about; where an
    /// interruption left one, it goes with the next.
    pub fn tidy(&self, step: u64, best: Option<Best>) -> Result<(), RunError> {
        let checkpoints = self.directory.checkpoints();
        let planned = |then: &u64| *then <= step && self.settings.is_checkpoint(*then);
        let last =
            checkpoints.steps()?.into_iter().rev().filter(planned).take(self.settings.keep_checkpoints() as usize);
        let kept: Vec<u64> = last.chain(best.map(|best| best.step)).chain([step]).collect();
        checkpoints.keep_only(&kept)
    }
}

/// The two logs of a run, the clock of the second, and what follows the first for TensorBoard.
pub(super) struct Logs {
    metrics: MetricsLog,
    timing: TimingLog,
    /// For TensorBoard, where that is wanted.
    events: Option<EventLog>,
    /// [`Origin::id`].
    run: String,
    /// Seconds that earlier calls took.
    seconds_before: f64,
    started: Instant,
    /// Seconds and tokens at the last line.
    last: (f64, u64),
}

impl Logs {
    /// Opens both so that they go on after `step`, by which `tokens` had been read, or anew; with `events` an event file for
    /// TensorBoard, too.
    pub fn open(
        directory: &RunDirectory,
        origin: &Origin,
        step: Option<u64>,
        tokens: u64,
        events: bool,
    ) -> Result<Self, RunError> {
        let (metrics, timing) = directory.logs_after(step)?;
        let seconds_before = match step {
            Some(_) => {
                let lines = runs::read_timings_of(&directory.timing_path(), origin)?;
                lines.last().map_or(0.0, |line| line.seconds)
            }
            None => 0.0,
        };
        let events = if events { Some(EventLog::open(directory)?) } else { None };
        let run = origin.id();
        let (started, last) = (Instant::now(), (seconds_before, tokens));
        Ok(Self { metrics, timing, events, run, seconds_before, started, last })
    }

    pub fn metric(&mut self, metric: &MetricLine) -> Result<(), RunError> {
        self.metrics.append(metric)?;
        self.events.as_mut().map_or(Ok(()), |events| events.append(metric))
    }

    /// The clock at `step`, unless that is there already.
    pub fn timing(&mut self, step: u64, tokens: u64) -> Result<(), RunError> {
        if self.timing.last_step() == Some(step) {
            return Ok(());
        }
        let seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        let (last_seconds, last_tokens) = std::mem::replace(&mut self.last, (seconds, tokens));
        let tokens_per_second = (tokens - last_tokens) as f64 / (seconds - last_seconds).max(1e-9);
        self.timing.append(&TimingLine { step, seconds, tokens_per_second, run: self.run.clone() })
    }

    pub fn sync(&mut self) -> Result<(), RunError> {
        self.metrics.sync()?;
        self.timing.sync()
    }
}
