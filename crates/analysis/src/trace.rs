//! One forward pass of a trained model, node by node, with its masks and without.

use base64::{Engine, prelude::BASE64_STANDARD};
use burn::module::Module;
use burn::tensor::Device;
use data::{Batch, Generator, IGNORE, Split};
use model::{Call, Decoder, Source, Trace, parameters};
use runs::{
    Config, OpenRun, RunError, Tensors,
    forward::{ForwardPass, MaskKind, MaskedPass, Numbers, TracedAttention},
    heads::{AttentionSite, SHOWN_POSITIONS, ShownSample},
};
use thiserror::Error;

use crate::{
    HeadError, answers::answer, batch::DeviceBatch, effects::host, limits::TRACED_NUMBERS, run::Run, samples::shown,
};

/// Why a pass can't be shown.
#[derive(Debug, Error)]
pub enum TraceError {
    /// What an analysis of heads can't do either.
    #[error(transparent)]
    Heads(#[from] HeadError),
    /// A sample that there isn't.
    #[error("there is no validation sample {sample}: the set has {samples}, from 0 on")]
    NoSample { sample: u64, samples: u64 },
    /// More than anyone would look at.
    #[error("a sequence of {length} positions is too long to be shown step by step: at most {most}")]
    TooLong { length: usize, most: usize },
    /// A task that reads or says numbers, not tokens.
    #[error(
        "the pass is shown for tasks whose inputs are tokens and whose answers are classes; in {task} they are numbers"
    )]
    Numbers { task: String },
}

impl From<RunError> for TraceError {
    fn from(error: RunError) -> Self {
        Self::Heads(error.into())
    }
}

/// Validation sample `sample` through the last model of a run that is done: every attention, or the first ones where all would be
/// too much. Once with the masks of the model, then with each choice of them left out: the same weights, computed anew.
///
/// # Errors
/// A run that isn't done, a sample that there isn't, one that is too long, and a task of numbers.
pub fn forward_pass(open: &OpenRun, sample: u64, device: &Device) -> Result<ForwardPass, TraceError> {
    let config = open.config();
    let (task, samples) = (&config.task.task, config.task.sets.validation_examples);
    if sample >= samples {
        return Err(TraceError::NoSample { sample, samples });
    }
    let length = task.seq_len().max(task.source().map_or(0, |source| source.len));
    if length > SHOWN_POSITIONS {
        return Err(TraceError::TooLong { length, most: SHOWN_POSITIONS });
    }
    let (step, weights) = Run::open(open)?.last_weights()?;
    let generator = Generator::new(task, Split::Validation, Split::Validation.data_seed(config.seed));
    let batch = generator.batch(&[sample]);
    if batch.numbers.is_some() {
        return Err(TraceError::Numbers { task: task.kind().into() });
    }
    let masks: Vec<MaskKind> = MaskKind::ALL.into_iter().filter(|&mask| has(config, &batch, mask)).collect();
    // A decoder beside an encoder is always causal.
    let can_go = |mask: &&MaskKind| **mask != MaskKind::Causal || !config.model.has_encoder();
    let removable: Vec<MaskKind> = masks.iter().filter(can_go).copied().collect();
    let choices = 0..1usize << removable.len();
    let mut passes = vec![];
    for choice in choices {
        let without: Vec<MaskKind> =
            removable.iter().enumerate().filter(|(place, _)| choice >> place & 1 == 1).map(|(_, mask)| *mask).collect();
        passes.push(masked(config, weights.as_ref(), step, &batch, without, device)?);
    }
    let ShownSample { tokens, source, .. } = shown(&batch, 0, task, sample);
    Ok(ForwardPass {
        name: config.name.clone(),
        task: task.kind().into(),
        step,
        sample,
        tokens,
        source,
        d_model: config.model.d_model,
        heads: config.model.heads,
        kv_heads: config.model.kv_heads(),
        d_head: config.model.d_head(),
        scale: config.model.attention().scale.factor(config.model.d_head()),
        masks,
        passes,
    })
}

/// Whether a mask forbids anything in this sample.
fn has(config: &Config, batch: &Batch, mask: MaskKind) -> bool {
    match mask {
        MaskKind::Causal => config.model.causal,
        MaskKind::Padding => batch.source.as_ref().is_some_and(|source| source.padding.contains(&true)),
    }
}

fn masked(
    config: &Config,
    weights: Option<&Tensors>,
    step: u64,
    batch: &Batch,
    without: Vec<MaskKind>,
    device: &Device,
) -> Result<MaskedPass, HeadError> {
    let mut model = config.model.clone();
    model.causal &= !without.contains(&MaskKind::Causal);
    let mut decoder = Decoder::new(&model, config.dims(), config.weights_seed(), device)?;
    if let Some(weights) = weights {
        decoder = parameters::from_host(decoder, weights).map_err(|error| HeadError::Weights { step, error })?;
    }
    let on_device = DeviceBatch::new(batch, device).ok_or(HeadError::NothingScored)?;
    let unpadded = batch.source.as_ref().map(|source| vec![false; source.padding.len()]);
    let (trace, mut call) = (Trace::new(), on_device.call());
    if let (Some(source), Some(padding), true) = (&mut call.source, &unpadded, without.contains(&MaskKind::Padding)) {
        *source = Source { padding, ..*source };
    }
    let call = Call { trace: Some(&trace), ..call };
    let logits = decoder.no_grad().forward(on_device.input.clone(), call)?.logits;
    let [_, outputs] = logits.dims();
    let logits: Vec<f32> = host(logits);
    let targets = batch.targets.iter().filter(|&&target| target != IGNORE);
    let answers = logits.chunks(outputs.max(1)).zip(targets).map(|(logits, &target)| answer(logits, target)).collect();
    Ok(MaskedPass { attentions: attentions(config, &trace), answers, without })
}

/// As many attentions as are shown.
fn attentions(config: &Config, trace: &Trace) -> Vec<TracedAttention> {
    let nodes = trace.nodes();
    let mut left = TRACED_NUMBERS;
    let mut shown = vec![];
    for (site, layer) in
        AttentionSite::ALL.into_iter().flat_map(|site| (0..config.model.layers).map(move |l| (site, l)))
    {
        let path = match site {
            AttentionSite::Decoder => format!("blocks.{layer}.attention"),
            AttentionSite::Encoder => format!("encoder.blocks.{layer}.attention"),
            AttentionSite::Cross => format!("blocks.{layer}.cross_attention"),
        };
        let node = |name: &str| {
            let name = format!("{path}.{name}");
            nodes.iter().find(|node| node.name == name).map(|node| numbers(&node.to_host()))
        };
        let all = ["query_input", "query_heads", "key_heads", "value_heads", "scores", "maps", "context", "output"];
        let Some(all) = all.into_iter().map(node).collect::<Option<Vec<Numbers>>>() else { continue };
        let size: usize = all.iter().map(|numbers| numbers.shape.iter().product::<usize>()).sum();
        if size > left {
            break;
        }
        left -= size;
        if let Ok([input, query, key, value, scores, maps, context, output]) = <[Numbers; 8]>::try_from(all) {
            shown.push(TracedAttention { site, layer, input, query, key, value, scores, maps, context, output });
        }
    }
    shown
}

/// A node of one sample, without its first dimension.
fn numbers(tensor: &architecture::HostTensor) -> Numbers {
    let bytes: Vec<u8> = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Numbers { shape: tensor.shape[1..].to_vec(), values: BASE64_STANDARD.encode(bytes) }
}
