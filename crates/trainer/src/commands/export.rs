//! `trainer export`: a run's weights in one file that other programs read, with an example to check them by; or its curves and maps
//! for TensorBoard.

use std::collections::HashMap;
use std::path::PathBuf;

use architecture::HostTensor;
use burn::tensor::Device;
use clap::Args;
use data::{Generator, Split};
use model::{Call, Decoder, parameters};
use runs::{Backend, Config, OpenRun, Tensors};

use super::files::{best_checkpoint, latest_checkpoint, open_run, write_output};
use super::trajectory;
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::screen::output::print;
use crate::training::batch::{DeviceSource, input};

/// Samples of the validation set that go into the file with their logits.
const EXAMPLES: u64 = 4;

/// Arguments of `export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The run directory.
    pub run: PathBuf,
    /// The file to write; step-N.safetensors in the run directory unless set. With --tensorboard the folder, tensorboard/ there.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Which checkpoint.
    #[arg(long, value_enum, default_value_t = Which::Last)]
    pub which: Which,
    /// Write an event file for TensorBoard instead: curves, settings with the final scores, and the maps of heads, where `trainer heads`
    /// has looked.
    #[arg(long, conflicts_with_all = ["which", "format"])]
    pub tensorboard: bool,
    /// The checkpoint of this step, if the run keeps it (train.keep_checkpoints).
    #[arg(long, value_name = "N", conflicts_with = "which")]
    pub step: Option<u64>,
    /// Also the optimiser's moments, and the samples, learning rates and losses of the N steps after the checkpoint, for
    /// scripts/train_in_pytorch.py.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub training: u64,
    /// The file's format.
    #[arg(long, default_value = "safetensors", value_parser = ["safetensors"])]
    pub format: String,
}

/// A checkpoint that a run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Which {
    /// The final step, or where the run stopped.
    Last,
    /// The smallest validation loss.
    Best,
}

pub fn run(arguments: &ExportArguments) -> Result<Success, Failure> {
    let run = open_run(&arguments.run)?;
    if arguments.tensorboard {
        return tensorboard(arguments, &run);
    }
    let config = run.config();
    let checkpoint = match (arguments.step, arguments.which) {
        (Some(step), _) => run.checkpoint(step).map_err(Failure::failed)?,
        (None, Which::Last) => latest_checkpoint(&run)?,
        (None, Which::Best) => best_checkpoint(&run)?,
    };
    let path = arguments.output.clone().unwrap_or_else(|| default_output(arguments, checkpoint.step));
    if path.extension().is_none_or(|extension| extension != "safetensors") {
        let shown = path.display();
        return Err(Failure::usage(format!("{shown}: an export is a file whose name ends with .safetensors")));
    }
    let device = backend::open(Backend::Flex).map_err(Failure::failed)?;
    let model = Decoder::new(&config.model, config.dims(), config.weights_seed(), &device).map_err(Failure::usage)?;
    let model = parameters::from_host(model, &checkpoint.model).map_err(Failure::failed)?;

    let mut metadata = HashMap::from([("config".to_string(), config.to_toml())]);
    let mut exported = checkpoint.model.clone();
    let parameters = exported.len();
    exported.extend(example(config, &model, &device)?);
    if arguments.training > 0 {
        let (training, steps) = trajectory::after(&run, &checkpoint, arguments.training)?;
        exported.extend(training);
        metadata.insert("steps".into(), steps);
    }
    let bytes = runs::tensors::to_bytes_with(&exported, Some(metadata), &path).map_err(Failure::failed)?;
    write_output(&path, &bytes)?;
    print(format!("{}: {parameters} tensors of step {}, and an example", path.display(), checkpoint.step));
    print("The config is in the metadata; scripts/load_in_pytorch.py reads the file and checks the example.");
    Ok(Success::Done)
}

fn tensorboard(arguments: &ExportArguments, run: &OpenRun) -> Result<Success, Failure> {
    let folder = arguments.output.clone().unwrap_or_else(|| arguments.run.join(runs::tensorboard::FOLDER));
    // What is damaged or of another version says nothing of the curves.
    let heads = run.heads().unwrap_or_default();
    let path = runs::tensorboard::export(run, heads.as_ref(), &folder).map_err(Failure::failed)?;
    let maps = if heads.is_some() { "maps" } else { "no maps: `trainer heads` makes them" };
    print(format!("{}: curves, settings and {maps}\n  tensorboard --logdir {}", path.display(), folder.display()));
    Ok(Success::Done)
}

fn default_output(arguments: &ExportArguments, step: u64) -> PathBuf {
    arguments.run.join(format!("step-{step}.safetensors"))
}

/// `example.tokens` `[B, L]` or `example.numbers` `[B, L, I]`, where samples have padding `example.padding` `[B, L]`, in sequence-to-sequence tasks `example.source` and `example.source_padding` (1 = padding), both
/// `[B, Ls]`, and the model's `example.logits` `[B, L, outputs]`.
fn example(config: &Config, model: &Decoder, device: &Device) -> Result<Tensors, Failure> {
    let split = Split::Validation;
    let generator = Generator::new(&config.task.task, split, split.data_seed(config.seed));
    let batch = generator.batch(&(0..EXAMPLES).collect::<Vec<_>>());
    let shape = [batch.batch, batch.len];
    let source = DeviceSource::new(&batch, device);
    // Beside a source, a causal decoder reads nothing of its padding, which comes last.
    let padding = (source.is_none() && batch.padding.contains(&true)).then_some(&*batch.padding);
    let call = Call { source: source.as_ref().map(DeviceSource::call), padding, ..Default::default() };
    let logits = model.forward(input(&batch, device), call).map_err(Failure::failed)?.logits;
    let logits = HostTensor {
        shape: vec![shape[0], shape[1], config.dims().outputs],
        values: parameters::host_values(logits.flatten(0, 1)),
    };
    let numbers = |shape: [usize; 2], values: Vec<f32>| HostTensor { shape: shape.to_vec(), values };
    let as_numbers = |tokens: &[i32]| tokens.iter().map(|&token| token as f32).collect::<Vec<f32>>();
    let as_flags = |padding: &[bool]| padding.iter().map(|&padded| f32::from(u8::from(padded))).collect::<Vec<f32>>();
    let read = match batch.numbers.as_ref().map(|numbers| &numbers.inputs).filter(|inputs| !inputs.is_empty()) {
        Some(inputs) => {
            let shape = vec![shape[0], shape[1], config.dims().inputs];
            ("numbers", HostTensor { shape, values: inputs.clone() })
        }
        None => ("tokens", numbers(shape, as_numbers(&batch.tokens))),
    };
    let mut example = vec![read, ("logits", logits)];
    example.extend(padding.map(|padding| ("padding", numbers(shape, as_flags(padding)))));
    if let Some(source) = &batch.source {
        let shape = [batch.batch, source.len];
        let padding = as_flags(&source.padding);
        example.push(("source", numbers(shape, as_numbers(&source.tokens))));
        example.push(("source_padding", numbers(shape, padding)));
    }
    Ok(example.into_iter().map(|(name, tensor)| (format!("example.{name}"), tensor)).collect())
}
