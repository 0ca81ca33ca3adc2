//! What `trainer bench --json` prints, or why it can't.

use architecture::ModelError;
use model::CallError;
use runs::Backend;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A model that can't be measured.
#[derive(Debug, Error)]
pub enum BenchError {
    /// It can't be built.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It can't take its batches.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The device failed.
    #[error("the device failed: {0}")]
    Device(String),
}

/// Milliseconds of an optimiser step by part, each the median over steps (so that they need not add up to the step's).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartTimes {
    /// Samples drawn on the host and put on the device.
    pub data: f64,
    /// From tokens to losses.
    pub forward: f64,
    /// From losses to the flat gradient.
    pub backward: f64,
    /// From the gradient's norm to new parameters.
    pub optimiser: f64,
    /// Loss and accuracy read back to the host, and whatever else is in the step.
    pub rest: f64,
}

/// One model's step on one machine. Written as one line of JSON by `trainer bench --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// `headcount` and its version.
    pub program: String,
    /// The commit that it was built from, where that is known.
    pub commit: Option<String>,
    /// Where it computed.
    pub backend: Backend,
    /// What the device is.
    pub device: String,
    /// Processor cores that the process may use.
    pub cores: usize,
    /// Vector extensions of the processor.
    pub vector_extensions: Vec<String>,
    /// CPU threads that it was given.
    pub threads: usize,
    /// Share of the steps' time that the thread that runs them was ready and waited for a core: above 0 where other
    /// programs run. What its other threads waited isn't counted, since idle ones look for work. `None` where the system
    /// doesn't tell.
    pub share_waiting: Option<f64>,
    /// The config's name; `decoder` where only sizes were given.
    pub name: String,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Samples of an optimiser step.
    pub batch: u64,
    /// Tokens of a sample.
    pub seq: usize,
    /// Different tokens.
    pub vocab: usize,
    /// Trainable parameters.
    pub parameters: u64,
    /// Tokens read in an optimiser step, those of sources and padding included.
    pub tokens_per_step: u64,
    /// Analytic FLOPs of an optimiser step, see [`architecture::cost`].
    pub flops_per_step: u64,
    /// Optimiser steps that count.
    pub steps: usize,
    /// Optimiser steps before them.
    pub warm_up_steps: usize,
    /// Median milliseconds of an optimiser step.
    pub ms_per_step: f64,
    /// Lower and upper quartile of it.
    pub ms_quartiles: [f64; 2],
    /// The same by part. On a GPU they are from steps that wait for the device after each part.
    pub ms_parts: PartTimes,
    /// Median milliseconds of a forward pass over one evaluation batch, loss and accuracy.
    pub ms_evaluation: f64,
    /// Samples of that batch.
    pub evaluation_samples: usize,
    /// Training tokens a second.
    pub tokens_per_s: f64,
    /// FLOPs of a step over its time, in 10⁹ a second.
    pub gflops: f64,
    /// The fastest large matrix product of f32 on the same device with the same threads, in 10⁹ FLOPs a second.
    pub matmul_gflops: f64,
    /// Rows and columns of its square matrices.
    pub matmul_size: usize,
    /// `gflops / matmul_gflops`.
    pub share_of_peak: f64,
    /// Largest memory that the process held up to the end of the steps, in bytes, on the host; `None` where the system
    /// doesn't tell.
    pub peak_memory: Option<u64>,
    /// The same before there was a model.
    pub memory_before: Option<u64>,
}
