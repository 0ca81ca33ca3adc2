//! A measurement in words.

use crate::bench::Measurement;
use crate::screen::text::{count, short, thousands};

/// For people.
pub fn text(measured: &Measurement) -> String {
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
pub fn conditions(measured: &Measurement) -> String {
    let commit = measured
        .commit
        .as_ref()
        .map_or(String::new(), |commit| format!(" ({})", commit.chars().take(10).collect::<String>()));
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

/// A warning where other programs had the cores.
pub fn busy(share_waiting: Option<f64>) -> Option<String> {
    let share = share_waiting.filter(|share| *share > 0.02)?;
    Some(format!(
        "note: {:.0} % of the time it waited for a core that something else had: the times are too long",
        share * 100.0
    ))
}

fn ms(milliseconds: f64) -> String {
    format!("{:>9} ms", short(milliseconds))
}
