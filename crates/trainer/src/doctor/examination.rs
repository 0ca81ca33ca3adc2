//! A subject with the passes that several checks look at.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use architecture::{Architecture, HostTensor, ModelConfig, Norm};
use burn::tensor::Device;
use model::parameters;

use super::effort::Effort;
use super::subject::{Inputs, Pass, Subject, SubjectError, set_dropout};

/// Parameters on the host by path.
pub type Weights = BTreeMap<String, HostTensor>;

/// A subject under examination.
pub struct Examination<'a> {
    /// The model without dropout, with the weights that are examined.
    pub subject: Subject<'a>,
    /// The same, untrained.
    pub untrained: Subject<'a>,
    /// How much is computed.
    pub effort: Effort,
    /// Flex for comparison, or why there is none.
    pub flex: Result<Device, &'static str>,
    probe: OnceCell<Probe>,
    weights: OnceCell<Weights>,
    dropped: OnceCell<Subject<'a>>,
}

/// The pass whose nodes are compared.
pub struct Probe {
    /// Two samples with padding made up within them.
    pub inputs: Inputs,
    /// Its nodes and logits.
    pub pass: Pass,
}

/// An attention of the model, as far as the checks need to know it.
#[derive(Clone, Debug)]
pub struct AttentionPlace {
    /// Such as `blocks.0.attention`.
    pub path: String,
    /// The stream that it reads, such as `embedding` or `blocks.0.output`; unknown for cross-attention.
    pub stream: Option<String>,
    /// Path of the norm before it, where the stream is known.
    pub norm: String,
    /// What its keys come from.
    pub reads: Reads,
}

/// What an attention's keys come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The decoder's own positions.
    Itself,
    /// The encoder's own positions, in the encoder.
    Source,
    /// The encoder's output, in the decoder.
    Memory,
}

impl<'a> Examination<'a> {
    /// Examines `subject`; `untrained` is the same model with its initial weights.
    ///
    /// # Errors
    /// None that the model did not have before.
    pub fn new(
        subject: &Subject<'a>,
        untrained: &Subject<'a>,
        flex: Result<Device, &'static str>,
    ) -> Result<Self, SubjectError> {
        let (subject, untrained) = (subject.without_dropout()?, untrained.without_dropout()?);
        let effort = Effort::new(&subject.config, parameters::of(subject.model()).len());
        let (probe, weights, dropped) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Self { subject, untrained, effort, flex, probe, weights, dropped })
    }

    /// The config of the model.
    pub fn model(&self) -> &ModelConfig {
        &self.subject.config.model
    }

    /// The weights that are examined.
    pub fn weights(&self) -> &Weights {
        self.weights.get_or_init(|| self.subject.weights())
    }

    /// Why no output may depend on the input, where the config says so.
    pub fn blindness(&self) -> Option<&'static str> {
        match (self.model().norm, self.model().d_model) {
            (Norm::Pre, 1) => Some("a layer norm over d_model = 1 number is its shift: nothing of the input is left"),
            (Norm::Pre, 2) => Some("a layer norm over d_model = 2 numbers leaves only which of them is larger"),
            _ => None,
        }
    }

    /// The subject with every dropout at 0.5.
    ///
    /// # Errors
    /// None that the model did not have before.
    pub fn dropped(&self) -> Result<&Subject<'a>, SubjectError> {
        if let Some(dropped) = self.dropped.get() {
            return Ok(dropped);
        }
        let dropped = self.subject.with_model(|model| set_dropout(model, 0.5))?;
        Ok(self.dropped.get_or_init(|| dropped))
    }

    /// The first `count` training samples in which something is scored, shortened to what the effort allows, but not so far
    /// that nothing is scored any more.
    pub fn scored_batch(&self, count: usize) -> data::Batch {
        let is_scored = |&index: &u64| self.subject.batch(&[index]).scored() > 0;
        let indices: Vec<u64> = (0..10_000).filter(is_scored).take(count).collect();
        let batch = self.subject.batch(&indices);
        let first = |b: usize| (0..batch.len).find(|&t| is_scored_at(&batch, b * batch.len + t)).unwrap_or(0);
        let needed = (0..batch.batch).map(first).max().unwrap_or(0) + 1;
        self.shortened(batch, self.effort.length.max(needed))
    }

    /// Two samples, shortened to what the effort allows.
    pub fn two_samples(&self) -> data::Batch {
        self.shortened(self.subject.batch(&[0, 1]), self.effort.length)
    }

    fn shortened(&self, batch: data::Batch, length: usize) -> data::Batch {
        let source_length = self.effort.source_length;
        let source = batch.source.map(|source| data::SourceBatch {
            len: source_length,
            tokens: shortened(&source.tokens, source.len, source_length),
            padding: shortened(&source.padding, source.len, source_length),
        });
        data::Batch {
            batch: batch.batch,
            len: length,
            tokens: shortened(&batch.tokens, batch.len, length),
            targets: shortened(&batch.targets, batch.len, length),
            padding: shortened(&batch.padding, batch.len, length),
            source,
            numbers: batch.numbers.map(|numbers| {
                let rows = |values: &[f32]| {
                    let width = values.len() / (batch.batch * batch.len).max(1);
                    shortened(values, batch.len * width, length * width)
                };
                data::Numbers {
                    inputs: rows(&numbers.inputs),
                    targets: rows(&numbers.targets),
                    scored: shortened(&numbers.scored, batch.len, length),
                }
            }),
        }
    }

    /// The pass whose nodes are compared: one sample that holds as many different tokens as fit, beginning with the last
    /// of the vocabulary, and one of the task. In each some positions are padding, not the same ones, and never the first:
    /// so a mask that is applied to the wrong sample, head or axis shows.
    ///
    /// # Errors
    /// An input that the model can't take.
    pub fn probe(&self) -> Result<&Probe, SubjectError> {
        if let Some(probe) = self.probe.get() {
            return Ok(probe);
        }
        let mut batch = self.two_samples();
        let dims = self.subject.config.dims();
        if dims.vocab > 0 {
            countdown(&mut batch.tokens[..batch.len], dims.vocab);
        }
        if let (Some(source), Some(sizes)) = (&mut batch.source, dims.source) {
            countdown(&mut source.tokens[..source.len], sizes.vocab);
        }
        let padding = (0..2 * batch.len).map(|at| is_probe_padding(at / batch.len, at % batch.len)).collect();
        let inputs = Inputs { batch, padding: Some(padding) };
        let pass = self.subject.trace(&inputs)?;
        Ok(self.probe.get_or_init(|| Probe { inputs, pass }))
    }

    /// Every attention in the order in which a pass meets them.
    pub fn attentions(&self) -> Vec<AttentionPlace> {
        let layers = self.model().layers;
        let itself = |stack: &str, layer: usize, reads| AttentionPlace {
            path: format!("{stack}blocks.{layer}.attention"),
            stream: Some(match layer {
                0 => format!("{stack}embedding"),
                _ => format!("{stack}blocks.{}.output", layer - 1),
            }),
            norm: format!("{stack}blocks.{layer}.norm1"),
            reads,
        };
        let mut places = vec![];
        let has_encoder = self.model().architecture == Architecture::EncoderDecoder;
        if has_encoder {
            places.extend((0..layers).map(|layer| itself("encoder.", layer, Reads::Source)));
        }
        for layer in 0..layers {
            places.push(itself("", layer, Reads::Itself));
            if has_encoder {
                places.push(AttentionPlace {
                    path: format!("blocks.{layer}.cross_attention"),
                    stream: None,
                    norm: format!("blocks.{layer}.norm_cross"),
                    reads: Reads::Memory,
                });
            }
        }
        places
    }
}

impl Probe {
    /// A node of the pass on the host; None where the pass has none of this name.
    pub fn node(&self, name: &str) -> Option<HostTensor> {
        self.pass.nodes.iter().find(|node| node.name == name).map(model::trace::Node::to_host)
    }

    /// Whether a query at `i` of sample `b` may not read the key at `j`.
    pub fn forbids(&self, causal: bool, reads: Reads, b: usize, i: usize, j: usize) -> bool {
        forbids(&self.inputs, causal, reads, b, i, j)
    }
}

/// Whether a query at `i` of sample `b` may not read the key at `j`.
pub fn forbids(inputs: &Inputs, causal: bool, reads: Reads, b: usize, i: usize, j: usize) -> bool {
    match reads {
        Reads::Itself => {
            (causal && j > i) || inputs.padding.as_ref().is_some_and(|padding| padding[b * inputs.batch.len + j])
        }
        Reads::Source | Reads::Memory => {
            inputs.batch.source.as_ref().is_some_and(|source| source.padding[b * source.len + j])
        }
    }
}

/// Padding of the probe: the third and the last but one of each eight in the first sample, the fourth in the second.
fn is_probe_padding(sample: usize, position: usize) -> bool {
    match sample {
        0 => matches!(position % 8, 2 | 6),
        _ => position % 8 == 3,
    }
}

/// As many different tokens as fit, from the last of the vocabulary down.
fn countdown(tokens: &mut [i32], vocab: usize) {
    for (position, token) in tokens.iter_mut().enumerate() {
        *token = (vocab - 1 - position % vocab) as i32;
    }
}

/// Whether flat position `at` of a batch is scored, by its class or its numbers.
pub fn is_scored_at(batch: &data::Batch, at: usize) -> bool {
    let numbers = batch.numbers.as_ref().and_then(|numbers| numbers.scored.get(at)).copied().unwrap_or(false);
    numbers || batch.targets.get(at).is_some_and(|&target| target != data::IGNORE)
}

/// Leaves flat positions of a batch unscored.
pub fn leave_unscored(batch: &mut data::Batch, positions: impl Iterator<Item = usize>) {
    for at in positions {
        if let Some(target) = batch.targets.get_mut(at) {
            *target = data::IGNORE;
        }
        if let Some(scored) = batch.numbers.as_mut().and_then(|numbers| numbers.scored.get_mut(at)) {
            *scored = false;
        }
    }
}

/// Gives flat positions of a batch something else to read: another token, or numbers that are larger by one.
pub fn change_read(batch: &mut data::Batch, vocab: usize, positions: impl Iterator<Item = usize>) {
    let (rows, numbers) =
        (batch.batch * batch.len, batch.numbers.as_mut().filter(|numbers| !numbers.inputs.is_empty()));
    match numbers {
        Some(numbers) => {
            let width = numbers.inputs.len() / rows.max(1);
            for at in positions {
                numbers.inputs[at * width..(at + 1) * width].iter_mut().for_each(|number| *number += 1.0);
            }
        }
        None => positions.for_each(|at| batch.tokens[at] = (batch.tokens[at] + 1) % vocab as i32),
    }
}

/// The first `to` entries of each row of `from`.
fn shortened<T: Clone>(values: &[T], from: usize, to: usize) -> Vec<T> {
    if from == 0 {
        return vec![];
    }
    values.chunks(from).flat_map(|row| row[..to].to_vec()).collect()
}
