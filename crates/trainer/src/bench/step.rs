//! Takes the time of steps.

use std::time::Instant;

use burn::module::Module;
use burn::tensor::Device;
use model::Decoder;
use runs::Backend;
use statistics::describe::{median, quantile};

use super::matmul;
use super::measurement::{BenchError, Measurement, PartTimes};
use super::workload::Workload;
use crate::machine::{backend, facts};
use crate::training::evaluate::score;
use crate::training::gradient::{StepPart, accumulate_watched};
use crate::training::manifest;
use crate::training::optimiser::{AdamW, FlatGradient};

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Optimiser steps; the first quarter of them, and one at least, warms up.
    pub steps: usize,
    /// Take fewer where they would need longer than this, in seconds: 4 at least, 2 where one alone needs longer.
    pub seconds: Option<f64>,
}

impl Budget {
    /// Steps to take where one takes `step_seconds`.
    fn planned(&self, step_seconds: f64) -> usize {
        let Some(seconds) = self.seconds else { return self.steps };
        let fewest = if step_seconds > seconds { 2 } else { 4 };
        self.steps.min(((seconds / step_seconds.max(1e-9)) as usize).max(fewest))
    }

    /// How many of `taken` steps warm up.
    fn warm_up(taken: usize) -> usize {
        (taken / 4).max(1)
    }
}

/// Measures `workload` on the device of `backend`, which computes with `threads` CPU threads.
///
/// # Errors
/// See [`BenchError`].
pub fn measure(
    workload: Workload,
    backend: Backend,
    device: &Device,
    threads: usize,
    budget: Budget,
) -> Result<Measurement, BenchError> {
    kernels::in_pool(|| measured(workload, backend, device, threads, budget))
}

fn measured(
    mut workload: Workload,
    backend: Backend,
    device: &Device,
    threads: usize,
    budget: Budget,
) -> Result<Measurement, BenchError> {
    let memory_before = facts::peak_memory();
    let waits = !matches!(backend, Backend::Flex | Backend::Ndarray);
    let mut bench = Bench::new(&mut workload, device, waits)?;

    // Steps: all of them watched where that costs nothing, else some more.
    let (begun, waited_before) = (Instant::now(), facts::waited());
    let mut steps = bench.series(budget, !waits)?;
    let waiting = facts::waited().zip(waited_before).map(|(now, before)| now - before);
    let share_waiting = waiting.map(|seconds| seconds / begun.elapsed().as_secs_f64());
    let warm_up_steps = Budget::warm_up(steps.len());
    steps.drain(..warm_up_steps);
    let watched = match waits {
        true => bench.series(Budget { steps: steps.len().div_ceil(4).max(2), ..budget }, true)?.split_off(1),
        false => steps.clone(),
    };
    let evaluations = bench.evaluations(budget)?;
    let evaluation_samples = bench.workload.evaluation().batch;
    drop(bench);
    let peak_memory = facts::peak_memory();
    let peak = matmul::peak(device, waits)?;

    let totals: Vec<f64> = steps.iter().map(|step| step.total).collect();
    let seconds = middle(&totals, 0.5);
    let of = |part: StepPart| middle(&watched.iter().map(|step| step.of(part)).collect::<Vec<_>>(), 0.5) * 1e3;
    let rest = |step: &Step| {
        let others =
            [StepPart::Data, StepPart::Forward, StepPart::Backward, StepPart::Optimiser].map(|part| step.of(part));
        step.total - others.iter().sum::<f64>()
    };
    let rest = middle(&watched.iter().map(rest).collect::<Vec<_>>(), 0.5) * 1e3;
    let gflops = workload.flops_per_step as f64 / seconds / 1e9;
    let program = manifest::program();
    Ok(Measurement {
        program: format!("headcount {}", program.version),
        commit: program.commit,
        backend,
        device: backend::describe(backend, device),
        cores: facts::cores(),
        vector_extensions: facts::vector_extensions().into_iter().map(str::to_string).collect(),
        threads,
        share_waiting,
        d_model: workload.model.d_model,
        layers: workload.model.layers,
        heads: workload.model.heads,
        batch: workload.samples_per_step,
        seq: workload.dims.length,
        vocab: workload.dims.vocab,
        parameters: workload.parameters,
        tokens_per_step: workload.tokens_per_step,
        flops_per_step: workload.flops_per_step,
        steps: totals.len(),
        warm_up_steps,
        ms_per_step: seconds * 1e3,
        ms_quartiles: [0.25, 0.75].map(|share| middle(&totals, share) * 1e3),
        ms_parts: PartTimes {
            data: of(StepPart::Data),
            forward: of(StepPart::Forward),
            backward: of(StepPart::Backward),
            optimiser: of(StepPart::Optimiser),
            rest,
        },
        ms_evaluation: middle(&evaluations, 0.5) * 1e3,
        evaluation_samples,
        tokens_per_s: workload.tokens_per_step as f64 / seconds,
        gflops,
        matmul_gflops: peak.gflops,
        matmul_size: peak.size,
        share_of_peak: gflops / peak.gflops,
        peak_memory,
        memory_before,
        name: workload.name,
    })
}

/// The quantile of finite numbers, of which there is one at least.
fn middle(values: &[f64], share: f64) -> f64 {
    let value = if share == 0.5 { median(values) } else { quantile(values, share) };
    value.unwrap_or(f64::NAN)
}

/// Seconds of one optimiser step.
#[derive(Clone, Debug)]
struct Step {
    total: f64,
    parts: [f64; StepPart::ALL.len()],
}

impl Step {
    fn of(&self, part: StepPart) -> f64 {
        self.parts[part as usize]
    }
}

/// A model in training.
struct Bench<'a> {
    workload: &'a mut Workload,
    device: &'a Device,
    training_device: Device,
    /// Whether the device computes behind the program's back, so that its clock has to wait for it.
    waits: bool,
    /// `None` only while a step replaces it.
    model: Option<Decoder>,
    optimiser: AdamW,
    step: u64,
}

impl<'a> Bench<'a> {
    fn new(workload: &'a mut Workload, device: &'a Device, waits: bool) -> Result<Self, BenchError> {
        let training_device = device.clone().autodiff();
        let model = Decoder::new(&workload.model, workload.dims, workload.seed, &training_device)?;
        let optimiser = AdamW::new(&workload.train, &model);
        Ok(Self { workload, device, training_device, waits, model: Some(model), optimiser, step: 0 })
    }

    /// Steps until `budget` is spent.
    fn series(&mut self, budget: Budget, watched: bool) -> Result<Vec<Step>, BenchError> {
        let mut steps = vec![];
        let mut planned = budget.planned(0.0);
        while steps.len() < planned {
            let step = self.step(watched)?;
            steps.push(step);
            if let [_, second] = &steps[..] {
                planned = budget.planned(second.total); // the first one may compile
            }
        }
        Ok(steps)
    }

    /// One optimiser step, as [`crate::training::train`] takes it.
    fn step(&mut self, watched: bool) -> Result<Step, BenchError> {
        let Some(model) = self.model.take() else { return Err(BenchError::Device("no model".into())) };
        let mut parts = [0.0; StepPart::ALL.len()];
        let mut failure = None;
        let started = Instant::now();
        let mut last = started;
        let (device, waits) = (self.device, self.waits);
        let mut watch = |part: StepPart| {
            if !watched {
                return;
            }
            if waits && let Err(error) = device.sync() {
                failure = Some(BenchError::Device(error.to_string()));
            }
            let now = Instant::now();
            parts[part as usize] += (now - last).as_secs_f64();
            last = now;
        };
        let (seed, step) = (self.workload.seed, self.step);
        let batches = self.workload.batches(step);
        watch(StepPart::Data);
        let (_, gradient) = accumulate_watched(&model, &batches, seed, step, &self.training_device, &mut watch)?;
        let norm = gradient.as_ref().map_or(0.0, FlatGradient::norm);
        let lr = self.workload.learning_rate(step + 1);
        self.model = Some(match gradient {
            Some(gradient) => self.optimiser.step(model, gradient, norm, lr, step + 1),
            None => model,
        });
        self.step += 1;
        watch(StepPart::Optimiser);
        if let Some(failure) = failure {
            return Err(failure);
        }
        if waits {
            self.device.sync().map_err(|error| BenchError::Device(error.to_string()))?;
        }
        Ok(Step { total: started.elapsed().as_secs_f64(), parts })
    }

    /// Seconds of evaluating one batch, again and again, without those that warm up.
    fn evaluations(&mut self, budget: Budget) -> Result<Vec<f64>, BenchError> {
        let Some(model) = &self.model else { return Err(BenchError::Device("no model".into())) };
        let model = model.valid();
        let mut seconds = vec![];
        let mut planned = budget.planned(0.0);
        while seconds.len() < planned {
            let started = Instant::now();
            score(&model, &self.workload.evaluation(), self.device)?;
            seconds.push(started.elapsed().as_secs_f64());
            if let [_, second] = seconds[..] {
                planned = budget.planned(second);
            }
        }
        seconds.drain(..Budget::warm_up(seconds.len()));
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effort_is_bounded_by_steps_and_by_time() {
        let budget = Budget { steps: 40, seconds: None };
        assert_eq!(budget.planned(0.0), 40);
        assert_eq!(budget.planned(1e6), 40);
        let budget = Budget { steps: 40, seconds: Some(2.0) };
        assert_eq!(budget.planned(0.0), 40);
        assert_eq!(budget.planned(0.1), 20);
        assert_eq!(budget.planned(1.0), 4);
        assert_eq!(budget.planned(100.0), 2);
        assert_eq!([2, 4, 12, 40].map(Budget::warm_up), [1, 1, 3, 10]);
    }
}
