//! `trainer tasks`: what there is to learn, and samples that a person can follow.

use clap::Args;
use data::{Generator, Split, Task};
use runs::Config;

use crate::machine::exit::{Failure, Success};
use crate::screen::output::{lost, print};
use crate::screen::text::{task_sizes, wrapped};

/// Arguments of `tasks`.
#[derive(Args, Debug)]
pub struct TasksArguments {
    /// The task to explain; all are listed without it.
    pub task: Option<String>,
    /// Print this many samples.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub show: u64,
    /// A parameter of the task, such as seq_len=16; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The split that the samples are taken from.
    #[arg(long, default_value = "train", value_parser = ["train", "validation", "test"])]
    pub split: String,
    /// Seed of the run whose training samples are shown.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
}

pub fn run(arguments: &TasksArguments) -> Result<Success, Failure> {
    let Some(kind) = &arguments.task else {
        if arguments.show > 0 || !arguments.overrides.is_empty() {
            return Err(Failure::usage(format!(
                "--show and --set need a task, such as: trainer tasks {} --show 3",
                Task::kinds().first().copied().unwrap_or_default()
            )));
        }
        for kind in Task::kinds() {
            print(heading(kind));
            print("");
        }
        print("Samples from files of your own: `trainer new NAME --from FILE` writes a config for them.\n");
        for kind in Task::file_kinds() {
            print(heading(kind));
            print("");
        }
        print("`trainer tasks NAME --show 3` shows samples.");
        return Ok(Success::Done);
    };
    let kinds = [Task::kinds(), Task::file_kinds()].concat();
    if !kinds.contains(&kind.as_str()) {
        return Err(Failure::usage(format!("there is no task `{kind}`: there are {}", kinds.join(", "))));
    }
    let in_section = |pair: &String| if pair.starts_with("task.") { pair.clone() } else { format!("task.{pair}") };
    let overrides: Vec<String> = arguments.overrides.iter().map(in_section).collect();
    // A config is checked as a whole, and only an encoder reads a source.
    let model = match Task::default_of(kind).and_then(|task| task.source()) {
        Some(_) => "[model]\narchitecture = \"encoder_decoder\"\n",
        None => "",
    };
    let text = format!("[task]\nkind = \"{kind}\"\n{model}");
    let config = Config::parse_with(&text, "defaults", &overrides).map_err(Failure::usage)?;
    let task = &config.task.task;
    print(heading(kind));
    print("\nParameters (key = value):");
    for (key, value) in task.parameters() {
        print(format!("  {key} = {value}"));
    }
    print(format!("\n{}", task_sizes(task)));
    if let Some(source) = task.source() {
        print(format!("Source: {} tokens, length {}", source.vocab, source.len));
    }
    let split = match arguments.split.as_str() {
        "validation" => Split::Validation,
        "test" => Split::Test,
        _ => Split::Train,
    };
    let generator = Generator::new(task, split, split.data_seed(arguments.seed));
    for index in 0..arguments.show {
        if lost().is_some() {
            break; // nobody reads the rest
        }
        print(format!("\nSample {index} of the {split} split (scored positions are marked *):"));
        print(task.explain(&generator.sample(index)));
    }
    Ok(Success::Done)
}

fn heading(kind: &str) -> String {
    let task = Task::default_of(kind);
    let (about, prediction) = task.map_or(("", ""), |task| (task.about(), task.prediction()));
    let lines = |text: &str| wrapped("  ", text, 100);
    format!("{kind}\n{}\n{}", lines(about), lines(&format!("Prediction: {prediction}")))
}
