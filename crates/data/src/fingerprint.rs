//! Proof that two runs saw the same data.

use crate::GENERATOR_VERSION;
use crate::definition::Task;
use crate::generator::Generator;
use crate::order::Sets;
use crate::sample::Split;

/// Training samples that go into the fingerprint; all later ones follow from the same key.
const TRAINING_SAMPLES: u64 = 256;

/// BLAKE3, in hex, over the generator version, the task's parameters, the sizes of the sets, the run's seed, the first
/// 256 training samples (all, if the set has fewer) and the whole validation and test sets.
///
/// Task and sets must have passed their checks. Costs as much as making those samples: milliseconds for the usual ones.
pub fn fingerprint(task: &Task, sets: &Sets, seed: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    let header = format!(
        "headcount data, generator {GENERATOR_VERSION}\n{}train_examples={:?}\nseed={seed}\n",
        task.canonical(),
        sets.train_examples
    );
    hasher.update(header.as_bytes());
    let training_samples = sets.train_examples.unwrap_or(TRAINING_SAMPLES).min(TRAINING_SAMPLES);
    for (split, examples) in [
        (Split::Train, training_samples),
        (Split::Validation, sets.validation_examples),
        (Split::Test, sets.test_examples),
    ] {
        hasher.update(format!("{split} {examples}\n").as_bytes());
        let generator = Generator::new(task, split, split.data_seed(seed));
        let mut bytes = Vec::new();
        for index in 0..examples {
            let sample = generator.sample(index);
            bytes.clear();
            bytes.extend(sample.tokens.iter().flat_map(|token| token.to_le_bytes()));
            bytes.extend(sample.targets.iter().flat_map(|target| target.to_le_bytes()));
            if let Some(source) = &sample.source {
                bytes.extend(source.tokens.iter().flat_map(|token| token.to_le_bytes()));
                bytes.extend((source.real as u64).to_le_bytes());
            } else if sample.real < task.seq_len() {
                bytes.extend((sample.real as u64).to_le_bytes()); // with a source, the targets tell
            }
            if let Some(numbers) = &sample.numbers {
                bytes.extend(numbers.inputs.iter().chain(&numbers.targets).flat_map(|number| number.to_le_bytes()));
                bytes.extend(numbers.scored.iter().map(|&scored| u8::from(scored)));
            }
            hasher.update(&bytes);
        }
    }
    hasher.finalize().to_hex().to_string()
}
