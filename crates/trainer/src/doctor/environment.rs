//! What is checked before a model exists: its config, the backend, memory.

use burn::tensor::Device;
use data::Task;
use runs::{Backend, Config, ConfigError};

use super::report::{Finding, Outcome};
use crate::backend;
use crate::memory::{available_bytes, mib, needed_bytes};

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

#[cfg(test)]
mod tests {
    use super::*;

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
