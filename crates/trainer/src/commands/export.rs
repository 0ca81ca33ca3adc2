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
use super::{batch_tensors, trajectory};
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

/// `example.` with what [`batch_tensors::read`] has of some samples, and the model's `example.logits` `[B, L, outputs]`.
fn example(config: &Config, model: &Decoder, device: &Device) -> Result<Tensors, Failure> {
    let split = Split::Validation;
    let generator = Generator::new(&config.task.task, split, split.data_seed(config.seed));
    let batch = generator.batch(&(0..EXAMPLES).collect::<Vec<_>>());
    let source = DeviceSource::new(&batch, device);
    let source = source.as_ref().map(DeviceSource::call);
    let call = Call { source, padding: batch.padding_told(), ..Default::default() };
    let logits = model.forward(input(&batch, device), call).map_err(Failure::failed)?.logits;
    let logits = HostTensor {
        shape: vec![batch.batch, batch.len, config.dims().outputs],
        values: parameters::host_values(logits.flatten(0, 1)),
    };
    let example = batch_tensors::read(&batch).into_iter().chain([("logits", logits)]);
    Ok(example.map(|(name, tensor)| (format!("example.{name}"), tensor)).collect())
}
