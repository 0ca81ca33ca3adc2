//! What is checked before a model exists: its config, the backend, memory.

use burn::tensor::Device;
use data::Task;
use model::cost;
use runs::{Backend, Config, ConfigError};

use super::report::{Finding, Outcome};
use crate::backend;

const CONFIG: (&str, &str) = ("config", "the config is complete, and its sizes divide as they must");
const ENVIRONMENT: (&str, &str) = ("environment", "the backend is in this build and finds a device");
const MEMORY: (&str, &str) = ("memory", "training fits into the memory that is free");

fn finding((check, meaning): (&'static str, &'static str), outcome: Outcome) -> Finding {
    Finding { check, meaning, outcome }
}

/// The finding where a config is refused: there is no model to go on with.
pub fn config_refused(error: &ConfigError) -> Finding {
    let fix = "correct the line that the message shows";
    finding(
        CONFIG,
        Outcome::failed(
            error.to_string(),
            "a key that is misspelt, of the wrong type or impossible beside others",
            fix,
        ),
    )
}

/// Config, environment and memory; with the device, where there is one.
pub fn before(config: &Config, threads: usize) -> (Vec<Finding>, Option<Device>) {
    let model = &config.model;
    let groups = match model.kv_heads() {
        g if g == model.heads => String::new(),
        g => format!(" in {g} groups"),
    };
    let width = match model.d_head {
        None => format!("d_model {} = {} heads · d_head {}{groups}", model.d_model, model.heads, model.d_head()),
        Some(d_head) => format!("d_model {}, {} heads of d_head {d_head}{groups}", model.d_model, model.heads),
    };
    let task = &config.task.task;
    let sizes =
        format!("{}: {} tokens, {} classes, length {}", task.kind(), task.vocab(), task.outputs(), task.seq_len());
    let mut findings = vec![finding(CONFIG, Outcome::ok(format!("{width}; {sizes}{}", source(task))))];
    let device = match backend::open(config.backend) {
        Ok(device) => device,
        Err(error) => {
            let (cause, fix) = match error {
                backend::BackendError::NotBuilt(..) => {
                    ("it was left out when the program was compiled", "build with its feature, or take --backend flex")
                }
                backend::BackendError::NoAdapter(..) => {
                    ("no driver is installed, or it sees no device", "install a driver, or take --backend flex")
                }
            };
            findings.push(finding(ENVIRONMENT, Outcome::failed(error.to_string(), cause, fix)));
            return (findings, None);
        }
    };
    let name = backend::describe(config.backend, &device);
    let threads = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
    findings.push(finding(ENVIRONMENT, Outcome::ok(format!("{} on {name}, {threads}", config.backend))));
    findings.push(finding(MEMORY, memory(config)));
    (findings, Some(device))
}

fn source(task: &Task) -> String {
    task.source().map_or(String::new(), |source| format!("; source: {} tokens, length {}", source.vocab, source.len))
}

fn memory(config: &Config) -> Outcome {
    let needed = needed_bytes(config);
    if !matches!(config.backend, Backend::Flex | Backend::Ndarray) {
        return Outcome::skipped(format!("about {} MiB needed; the device does not tell what it has", mib(needed)));
    }
    match available_bytes() {
        None => Outcome::skipped(format!("about {} MiB needed; this system does not tell what is free", mib(needed))),
        Some(available) => fits(needed, available),
    }
}

fn fits(needed: u64, available: u64) -> Outcome {
    if available < needed {
        return Outcome::failed(
            format!("training needs about {} MiB, {} MiB are free", mib(needed), mib(available)),
            "the batch, the model or its L × L maps are too large for this machine",
            "halve train.batch_size and double train.accumulate: the result is the same; or take a smaller model",
        );
    }
    Outcome::ok(format!("about {} MiB needed, {} MiB free", mib(needed), mib(available)))
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// What the program itself takes, with its backends.
const PROGRAM: u64 = 40 << 20;

/// An estimate of what a run holds at once, in bytes: the program, parameters with gradients, moments and what an update
/// makes of them, the nodes that a backward pass needs, and what the allocator keeps of the last evaluation. Within a
/// third of what `--dry-run` measures on the configs of this repository.
fn needed_bytes(config: &Config) -> u64 {
    /// Copies of the parameters: weights, gradients, two moments, four between.
    const COPIES: u64 = 8;
    /// Tensors of the width of the stream that a block keeps: norms, projections, heads, contexts, sums.
    const STREAM: u64 = 16;
    /// Tensors of the width of the MLP: before, within and after the GELU.
    const MLP: u64 = 6;
    /// Tensors of the size of the maps: scores, masked scores, softmax, its parts.
    const MAPS: u64 = 6;
    let (model, dims) = (&config.model, config.dims());
    let parameters = cost::total(&cost::parameters(model, dims));
    let batch = config.train.batch_size as u64;
    let (l, ls) = (dims.length as u64, dims.source.map_or(0, |source| source.length as u64));
    let (d, h, layers) = (model.d_model as u64, model.heads as u64, model.layers as u64);
    let mlp = if model.mlp { MLP * model.d_ff() as u64 } else { 0 };
    let stream = (STREAM * d.max(h * model.d_head() as u64) + mlp) * (l + ls);
    let maps = MAPS * h * (l * l + l * ls + ls * ls);
    let logits = 4 * l * dims.outputs as u64;
    let step = COPIES * parameters + batch * (layers * (stream + maps) + logits);
    // In evaluation a block's nodes are freed when the next one's are made.
    let evaluation = config.train.eval_batch as u64 * ((stream + maps) / 2 + logits);
    PROGRAM + 4 * (step + evaluation)
}

/// Memory that is free, within the limit of the process's group where there is one.
fn available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let free = line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10;
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(limit.map_or(free, |(most, now)| free.min(most.saturating_sub(now))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(&format!("[task]\nkind = \"registers\"\n{text}"), "test.toml").unwrap()
    }

    /// Long inputs cost their square, wide models theirs, large batches their multiple.
    #[test]
    fn memory_grows_with_what_it_is_for() {
        let needed = |text: &str| (needed_bytes(&config(text)) - PROGRAM) as f64;
        let base = needed("[model]\nmlp = false\n");
        assert!(needed("seq_len = 320\n[model]\nmlp = false\n") > 30.0 * base);
        assert!(needed("[model]\nmlp = false\nd_model = 6400\n") > 100.0 * base);
        assert!(needed("[train]\nbatch_size = 640\neval_batch = 2560\n") > 8.0 * needed(""));
    }

    #[test]
    fn what_does_not_fit_is_found_before_it_is_tried() {
        let outcome = fits(3 << 30, 2 << 30);
        assert!(
            matches!(&outcome, Outcome::Failed { seen, fix, .. } if seen.contains("3072 MiB") && fix.contains("accumulate"))
        );
        assert_eq!(fits(2 << 20, 3 << 20), Outcome::ok("about 2 MiB needed, 3 MiB free"));
    }

    #[test]
    fn a_refused_config_is_a_finding() {
        let error =
            Config::parse("[task]\nkind = \"registers\"\n[model]\nd_model = 30\nheads = 4\n", "c.toml").unwrap_err();
        let finding = config_refused(&error);
        let Outcome::Failed { seen, .. } = &finding.outcome else { panic!("{finding:?}") };
        assert!(seen.contains("d_model = 30") && seen.contains("heads = 4"), "{seen}");
    }
}
