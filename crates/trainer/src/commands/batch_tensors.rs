//! A batch as named tensors of a file that other programs read.

use architecture::HostTensor;

/// What a model reads, in the order in which it is written.
///
/// | tensor | shape |
/// |---|---|
/// | `tokens` or `numbers` | `[B, L]`, `[B, L, F]` |
/// | `padding`, where the model is told of any; 1 = padding | `[B, L]` |
/// | `source`, `source_padding`, in sequence-to-sequence tasks | `[B, Ls]` |
pub fn read(batch: &data::Batch) -> Vec<(&'static str, HostTensor)> {
    let mut all = vec![match batch.numbers_read() {
        Some(numbers) => ("numbers", wide(batch, numbers)),
        None => ("tokens", table(batch, integers(&batch.tokens))),
    }];
    all.extend(batch.padding_told().map(|padding| ("padding", table(batch, flags(padding)))));
    if let Some(source) = &batch.source {
        all.push(("source", table(batch, integers(&source.tokens))));
        all.push(("source_padding", table(batch, flags(&source.padding))));
    }
    all
}

/// What it should say.
///
/// | tensor | shape |
/// |---|---|
/// | `targets`, where classes are said; -100 where not scored | `[B, L]` |
/// | `wanted`, `scored`, where numbers are | `[B, L, O]`, `[B, L]` |
pub fn asked(batch: &data::Batch) -> Vec<(&'static str, HostTensor)> {
    match batch.numbers_asked() {
        Some(numbers) => {
            vec![("wanted", wide(batch, &numbers.targets)), ("scored", table(batch, flags(&numbers.scored)))]
        }
        None => vec![("targets", table(batch, integers(&batch.targets)))],
    }
}

/// A value for each position of each sample.
fn table(batch: &data::Batch, values: Vec<f32>) -> HostTensor {
    HostTensor { shape: vec![batch.batch, values.len() / batch.batch.max(1)], values }
}

/// Several values for each.
fn wide(batch: &data::Batch, values: &[f32]) -> HostTensor {
    let (b, l) = (batch.batch, batch.len);
    HostTensor { shape: vec![b, l, values.len() / (b * l).max(1)], values: values.to_vec() }
}

fn integers(integers: &[i32]) -> Vec<f32> {
    integers.iter().map(|&integer| integer as f32).collect()
}

fn flags(flags: &[bool]) -> Vec<f32> {
    flags.iter().map(|&flag| f32::from(u8::from(flag))).collect()
}
