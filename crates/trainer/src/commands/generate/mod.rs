//! `trainer generate`: what a trained model says, and how fast it decodes.

mod answers;
pub mod arguments;
mod speed;

use burn::tensor::{Device, Int, Tensor, TensorData};
use data::{Answers, Generator, IGNORE, Split, Task};
use model::{Decoder, Source, parameters};
use runs::{Checkpoint, Config, OpenRun};

use self::answers::{Continued, Read, Rewritten};
use super::files::{best_checkpoint, latest_checkpoint, open_run};
use crate::generate::{GenerateError, Request, Sampling, generate, predictions};
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::screen::output::print;
use crate::screen::text::task_sizes;
use crate::training::arm::Arm;

pub use arguments::GenerateArguments;

pub fn run(arguments: &GenerateArguments) -> Result<Success, Failure> {
    let (config, run) = match (&arguments.config, &arguments.run) {
        (Some(_), _) if !arguments.bench => {
            return Err(Failure::usage("--config is for --bench: what a model says needs a run, trainer generate RUN"));
        }
        (Some(file), _) => (Config::load(file, &arguments.overrides).map_err(Failure::usage)?, None),
        (None, Some(run)) => {
            let run = open_run(run)?;
            (run.config().clone(), Some(run))
        }
        (None, None) => return Err(Failure::usage("a run directory is missing")),
    };
    let device = backend::open(arguments.backend.unwrap_or(config.backend)).map_err(Failure::usage)?;
    if arguments.bench {
        return speed::run(arguments, &config, &device);
    }
    let asked = Asked::new(arguments, &config)?;
    let Some(run) = run else { return Err(Failure::usage("a run directory is missing")) };
    let checkpoint = checkpoint(arguments, &run)?;
    let title = format!("{}, step {}", Arm::new(&config).title(), checkpoint.step);
    let model = Decoder::new(&config.model, config.dims(), config.weights_seed(), &device).map_err(Failure::usage)?;
    let model = parameters::from_host(model, &checkpoint.model).map_err(Failure::failed)?;
    let text = match (config.task.task.answers(), arguments.tokens) {
        (Answers::Sequence { start, end }, _) => rewrite(arguments, &config, &asked, &model, (start, end), &device)?,
        (_, None) => read(&config, &asked, &model, &device)?,
        (_, Some(limit)) => go_on(arguments, &config, &asked, &model, limit as usize, &device)?,
    };
    print(if arguments.json { text.json } else { format!("{title}: {}\n{}", asked.origin, text.lines) });
    Ok(Success::Done)
}

/// What is shown, for a person and for a program.
struct Shown {
    lines: String,
    json: String,
}

/// What the command line asks about, checked against the task.
struct Asked {
    /// Such as `validation sample 3`.
    origin: String,
    prompt: Vec<u32>,
    /// The real tokens of a source, in sequence-to-sequence tasks.
    source: Vec<u32>,
    /// What a perfect model says, as far as it is known.
    expected: Option<Vec<i32>>,
}

impl Asked {
    /// # Errors
    /// Nothing to read, tokens that the task doesn't have, options that mean nothing for it.
    fn new(arguments: &GenerateArguments, config: &Config) -> Result<Self, Failure> {
        let task = &config.task.task;
        let kind = task.kind();
        let is_sequence = matches!(task.answers(), Answers::Sequence { .. });
        if task.numbers().is_some() {
            return Err(Failure::usage(format!(
                "`{kind}` is a task in numbers ({}): there is no prompt of tokens to read and no token to go on with. What its \
                 model says is in `trainer report` and in the file that `trainer export` writes",
                task_sizes(task)
            )));
        }
        if task.answers() == Answers::Classes && arguments.tokens.is_some() {
            return Err(Failure::usage(format!(
                "a model of `{kind}` names one of {} classes at each position, and a class is no token that could be read \
                 next: --tokens does not apply. Without it the class at each position of the prompt is shown",
                task.outputs()
            )));
        }
        let draws = arguments.temperature > 0.0 || arguments.top_k.is_some();
        if !is_sequence && arguments.tokens.is_none() && (draws || arguments.window) {
            return Err(Failure::usage(
                "--temperature, --top-k and --window act on tokens that are generated: say how many with --tokens N",
            ));
        }
        if arguments.top_k.is_some() && arguments.temperature == 0.0 {
            return Err(Failure::usage("--top-k acts on tokens that are drawn: add --temperature 1, for instance"));
        }
        if !is_sequence && arguments.source.is_some() {
            return Err(Failure::usage(format!("`{kind}` has no source to read: give its tokens with --prompt")));
        }
        let asked = match (arguments.sample, is_sequence) {
            (Some(index), _) => Self::sample(config, index),
            (None, true) => {
                let Some(source) = &arguments.source else { return Err(nothing_to_read(kind, "--source \"3 1 2\"")) };
                Self {
                    origin: "a source of your own".to_string(),
                    prompt: arguments.prompt.clone().map_or(vec![], |ids| ids.0),
                    source: source.0.clone(),
                    expected: None,
                }
            }
            (None, false) => {
                let Some(prompt) = &arguments.prompt else { return Err(nothing_to_read(kind, "--prompt \"3 1 2\"")) };
                let origin = "a prompt of your own".to_string();
                let readout = task.readout().then_some(task.vocab() as u32);
                let prompt = readout.into_iter().chain(prompt.0.iter().copied()).collect();
                Self { origin, prompt, source: vec![], expected: None }
            }
        };
        asked.check(task)?;
        let read = if is_sequence { &asked.source } else { &asked.prompt };
        let expected = asked.expected.or_else(|| task.expected(read));
        Ok(Self { expected, ..asked })
    }

    fn sample(config: &Config, index: u64) -> Self {
        let split = Split::Validation;
        let sample = Generator::new(&config.task.task, split, split.data_seed(config.seed)).sample(index);
        let origin = format!("validation sample {index}");
        match sample.source {
            // The decoder's tokens hold the answer; it begins with nothing of it.
            Some(source) => {
                let source = source.tokens[..source.real].to_vec();
                Self { origin, prompt: vec![], source, expected: None }
            }
            None => {
                let real = |mut values: Vec<i32>| {
                    values.truncate(sample.real);
                    values
                };
                let prompt = sample.tokens.iter().copied().take(sample.real).collect();
                Self { origin, prompt, source: vec![], expected: Some(real(sample.targets)) }
            }
        }
    }

    fn check(&self, task: &Task) -> Result<(), Failure> {
        let known = |what: &str, tokens: &[u32], vocab: usize| match tokens.iter().find(|&&id| id as usize >= vocab) {
            Some(id) => Err(Failure::usage(format!(
                "there is no token {id} in {what}: `{}` has 0 to {} there (see `trainer tasks {0} --show 1`)",
                task.kind(),
                vocab - 1
            ))),
            None => Ok(()),
        };
        // A read-out's token is one more.
        known("the prompt", &self.prompt, task.vocab() + usize::from(task.readout()))?;
        if let Some(sizes) = task.source() {
            known("the source", &self.source, sizes.vocab)?;
            if self.source.is_empty() || self.source.len() > sizes.len {
                return Err(Failure::usage(format!(
                    "a source of {} tokens: `{}` was trained on 1 to {}",
                    self.source.len(),
                    task.kind(),
                    sizes.len
                )));
            }
        }
        Ok(())
    }
}

fn nothing_to_read(kind: &str, example: &str) -> Failure {
    Failure::usage(format!(
        "nothing to read: --sample 0 takes the first validation sample, {example} tokens of your own (`trainer tasks {kind} \
         --show 1` shows what they mean)"
    ))
}

/// # Errors
/// A run without the checkpoint asked for; the message names those that are there.
fn checkpoint(arguments: &GenerateArguments, run: &OpenRun) -> Result<Checkpoint, Failure> {
    let shown = run.directory().path().display();
    match arguments.step {
        Some(step) => {
            let steps = run.checkpoint_steps().map_err(Failure::failed)?;
            if !steps.contains(&step) {
                let kept: Vec<String> = steps.iter().map(u64::to_string).collect();
                return Err(Failure::usage(format!(
                    "{shown} keeps no checkpoint of step {step}: there are {}",
                    if kept.is_empty() { "none".to_string() } else { kept.join(", ") }
                )));
            }
            run.checkpoint(step).map_err(Failure::failed)
        }
        None if arguments.best => best_checkpoint(run),
        None => latest_checkpoint(run),
    }
}

/// A source to its target.
fn rewrite(
    arguments: &GenerateArguments,
    config: &Config,
    asked: &Asked,
    model: &Decoder,
    (start, end): (u32, u32),
    device: &Device,
) -> Result<Shown, Failure> {
    let task = &config.task.task;
    let prompt = [&[start], &asked.prompt[..]].concat();
    let room = (task.seq_len() + 1).saturating_sub(prompt.len());
    let limit = arguments.tokens.map_or(room, |tokens| tokens as usize);
    let (tokens, padding) = padded(&asked.source, config.dims().source.map_or(0, |source| source.length), device);
    let source = Some(Source { tokens: &tokens, padding: &padding });
    let generated = carry_out(arguments, config, model, source, &prompt, limit, Some(end), device)?;
    let expected = asked.expected.clone().unwrap_or_default().into_iter().map(|token| token as u32).collect();
    let rewritten = Rewritten { source: &asked.source, given: &asked.prompt, generated, expected };
    Ok(Shown { lines: rewritten.lines(task), json: answers::json(&rewritten) })
}

/// A prompt, and what follows.
fn go_on(
    arguments: &GenerateArguments,
    config: &Config,
    asked: &Asked,
    model: &Decoder,
    limit: usize,
    device: &Device,
) -> Result<Shown, Failure> {
    let generated = carry_out(arguments, config, model, None, &asked.prompt, limit, None, device)?;
    let expected = asked.expected.as_ref().and_then(|targets| targets.last()).filter(|&&target| target != IGNORE);
    let continued = Continued { prompt: &asked.prompt, generated, expected: expected.map(|&target| target as u32) };
    Ok(Shown { lines: continued.lines(&config.task.task), json: answers::json(&continued) })
}

/// The answer at each position of a prompt.
fn read(config: &Config, asked: &Asked, model: &Decoder, device: &Device) -> Result<Shown, Failure> {
    let (length, context) = (asked.prompt.len(), config.dims().length);
    if length > context {
        return Err(Failure::usage(format!(
            "a prompt of {length} tokens is longer than the {context} that the model was trained on"
        )));
    }
    let said = predictions(model, &asked.prompt, device).map_err(failure)?;
    let read = Read::new(&asked.prompt, &said, asked.expected.as_deref());
    Ok(Shown { lines: read.lines(&config.task.task), json: answers::json(&read) })
}

#[allow(clippy::too_many_arguments)]
fn carry_out(
    arguments: &GenerateArguments,
    config: &Config,
    model: &Decoder,
    source: Option<Source>,
    prompt: &[u32],
    limit: usize,
    end: Option<u32>,
    device: &Device,
) -> Result<Vec<u32>, Failure> {
    let sampling = Sampling {
        temperature: arguments.temperature,
        top_k: arguments.top_k.map(|k| k as usize),
        seed: arguments.seed,
    };
    let context = config.dims().length;
    let request = Request { source, prompt, limit, end, context, window: arguments.window, sampling };
    generate(model, request, device).map_err(failure)
}

fn failure(error: GenerateError) -> Failure {
    match error {
        GenerateError::NotFinite => Failure::failed(error),
        _ => Failure::usage(error),
    }
}

/// A source on a device, padded to the length that the model was trained with.
fn padded(source: &[u32], length: usize, device: &Device) -> (Tensor<2, Int>, Vec<bool>) {
    let mut tokens: Vec<i32> = source.iter().map(|&token| token as i32).collect();
    tokens.resize(length, 0);
    let padding = (0..length).map(|t| t >= source.len()).collect();
    (Tensor::from_data(TensorData::new(tokens, [1, length]), device), padding)
}
