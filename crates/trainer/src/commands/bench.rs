//! `trainer bench`: what a training step takes, of [`crate::bench`].

mod growth;

use burn::tensor::Device;
use runs::ledger::thousands;
use runs::{Backend, Config};

use super::{Failure, Success, print};
use crate::bench::{Effort, Measurement, Subject, measure};
use crate::cli::BenchArguments;
use crate::{backend, machine};

/// What is measured unless something else is asked for.
const DEFAULT: (&str, &str) = ("configs/h8.toml", include_str!("../../../../configs/h8.toml"));

pub fn run(arguments: &BenchArguments) -> Result<Success, Failure> {
    let threads = arguments.threads.map_or_else(machine::cores, usize::from);
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(threads) };
    if let Some(folder) = &arguments.growth {
        return growth::run(arguments, folder, threads);
    }
    let (subject, backend) = subject(arguments)?;
    let device: Device = backend::open(backend).map_err(Failure::usage)?;
    let effort = Effort { steps: arguments.steps as usize, seconds: arguments.seconds };
    let measured = measure(subject, backend, &device, threads, effort).map_err(Failure::failed)?;
    match arguments.json {
        // No type of it could fail to be written.
        true => print(serde_json::to_string(&measured).unwrap_or_default()),
        false => print(text(&measured)),
    }
    Ok(Success::Done)
}

fn subject(arguments: &BenchArguments) -> Result<(Subject, Backend), Failure> {
    if let Some(sizes) = arguments.sizes.given() {
        let subject = Subject::of_sizes(sizes).map_err(Failure::usage)?;
        return Ok((subject, arguments.backend.unwrap_or_default()));
    }
    let mut overrides = arguments.overrides.clone();
    overrides.extend(arguments.backend.map(|backend| format!("backend={backend}")));
    let config = match &arguments.config {
        Some(path) => Config::load(path, &overrides),
        None => Config::parse_with(DEFAULT.1, DEFAULT.0, &overrides),
    };
    let config = config.map_err(Failure::usage)?;
    Ok((Subject::of_config(&config), config.backend))
}

/// For people.
fn text(measured: &Measurement) -> String {
    let Measurement { ms_parts: parts, ms_quartiles: [lower, upper], .. } = measured;
    let mut lines = vec![
        format!(
            "{}: d_model {}, {}, {}, batch {}, length {}, vocabulary {}; {} parameters",
            measured.name,
            measured.d_model,
            count(measured.layers, "layer"),
            count(measured.heads, "head"),
            measured.batch,
            measured.seq,
            measured.vocab,
            thousands(measured.parameters)
        ),
        conditions(measured),
        String::new(),
        format!(
            "step        {}  quartiles {} to {}; median of {} steps after {} to warm up",
            ms(measured.ms_per_step),
            short(*lower),
            short(*upper),
            measured.steps,
            measured.warm_up_steps
        ),
        format!("  data      {}  drawn on the host, put on the device", ms(parts.data)),
        format!("  forward   {}", ms(parts.forward)),
        format!("  backward  {}", ms(parts.backward)),
        format!("  optimiser {}  gradient norm and update", ms(parts.optimiser)),
        format!("  the rest  {}  loss and accuracy read back", ms(parts.rest)),
        format!(
            "evaluation  {}  a batch of {}",
            ms(measured.ms_evaluation),
            count(measured.evaluation_samples, "sample")
        ),
        String::new(),
        format!("tokens      {:>9} a second", thousands(measured.tokens_per_s.round() as u64)),
        format!(
            "arithmetic  {:>9} GFLOP/s  {} GFLOP a step, {} % of the fastest matrix product: {} GFLOP/s at {size} x {size}",
            short(measured.gflops),
            short(measured.flops_per_step as f64 / 1e9),
            short(measured.share_of_peak * 100.0),
            short(measured.matmul_gflops),
            size = measured.matmul_size
        ),
    ];
    lines.push(match (measured.peak_memory, measured.memory_before) {
        (Some(peak), Some(before)) => {
            format!("memory      {:>9} MiB at most, {} MiB of them before the model", peak >> 20, before >> 20)
        }
        _ => "memory      this system doesn't tell".into(),
    });
    lines.extend(busy(measured.share_waiting));
    lines.join("\n")
}

/// Backend, threads, machine, program.
fn conditions(measured: &Measurement) -> String {
    let commit = measured.commit.as_ref().map_or(String::new(), |commit| format!(" ({})", short_commit(commit)));
    format!(
        "{} on {} of {}: {} ({}); {}{commit}",
        measured.backend,
        count(measured.threads, "thread"),
        count(measured.cores, "core"),
        measured.device,
        measured.vector_extensions.join(", "),
        measured.program
    )
}

fn short_commit(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

/// A warning where other programs had the cores.
fn busy(share_waiting: Option<f64>) -> Option<String> {
    let share = share_waiting.filter(|share| *share > 0.02)?;
    Some(format!(
        "note: {:.0} % of the time it waited for a core that something else had: the times are too long",
        share * 100.0
    ))
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn ms(milliseconds: f64) -> String {
    format!("{:>9} ms", short(milliseconds))
}

/// Three digits that count.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
