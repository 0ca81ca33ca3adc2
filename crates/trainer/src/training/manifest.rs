//! What a run is, before it is run: the numbers by which arms are shown to match.

use architecture::ModelError;
use burn::tensor::Device;
use model::parameters;
use runs::{Config, DataFile, Fingerprints, Manifest, Program};

use super::arm::Arm;
use crate::machine::backend;

/// The manifest of a run of `config` on `device` with `threads` CPU threads.
///
/// # Errors
/// A model that can't be built.
pub fn manifest(config: &Config, device: &Device, threads: usize) -> Result<Manifest, ModelError> {
    let arm = Arm::new(config);
    let weights = runs::weights_fingerprint(
        parameters::to_host(&arm.model(device)?).into_iter().map(|(path, tensor)| (path, tensor.shape, tensor.values)),
    );
    Ok(Manifest {
        config: config.to_toml(),
        program: program(),
        backend: config.backend.to_string(),
        device: backend::describe(config.backend, device),
        threads,
        parameters: arm.parameters(),
        flops_per_step: arm.flops_per_step(),
        tokens_per_step: arm.tokens_after(1),
        fingerprints: Fingerprints { data: arm.data_fingerprint(), weights: weights.all, tensors: weights.tensors },
        resumed: vec![],
        files: DataFile::of(&config.task.task),
        simd: backend::simd(config.backend),
    })
}

/// A hash of what this program was built from: see `build.rs`.
pub const BUILD: &str = env!("HEADCOUNT_BUILD");

/// What this program is: its version, and the commit that it was built from where that is known.
pub fn program() -> Program {
    Program {
        version: env!("CARGO_PKG_VERSION").to_string(),
        commit: option_env!("HEADCOUNT_COMMIT").map(str::to_string),
        dirty: option_env!("HEADCOUNT_DIRTY").map(|dirty| dirty == "true"),
        build: Some(BUILD.to_string()),
    }
}
