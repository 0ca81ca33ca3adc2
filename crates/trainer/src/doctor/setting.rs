//! What is checked before a model exists: its config, the backend, memory.

use std::cell::OnceCell;

use burn::tensor::Device;
use data::Task;
use runs::{Backend, Config, ConfigError};

use super::finding::Checked;
use crate::machine::backend::{self, BackendError};
use crate::machine::memory::{available_bytes, needed_bytes};
use crate::screen::text::{count, mib, task_sizes};

/// A config, as it was read, and where it is to be trained.
pub struct Setting {
    config: Result<Config, ConfigError>,
    threads: usize,
    device: OnceCell<Result<Device, BackendError>>,
}

impl Setting {
    /// The setting of training `config` with so many CPU threads.
    pub fn new(config: Result<Config, ConfigError>, threads: usize) -> Self {
        Self { config, threads, device: OnceCell::new() }
    }

    /// The config, unless it was refused.
    pub fn config(&self) -> Option<&Config> {
        self.config.as_ref().ok()
    }

    /// The device that the config asks for, opened once; none where either is refused.
    pub fn device(&self) -> Option<&Device> {
        self.opened(self.config()?).as_ref().ok()
    }

    fn opened(&self, config: &Config) -> &Result<Device, BackendError> {
        self.device.get_or_init(|| backend::open(config.backend))
    }
}

/// There is nothing to say of a config that was refused.
fn refused() -> Checked {
    Checked::skipped("the config is refused")
}

pub fn config(setting: &Setting) -> Checked {
    let config = match &setting.config {
        Ok(config) => config,
        Err(error) => {
            return Checked::failed(
                error.to_string(),
                "a key that is misspelt, of the wrong type or impossible beside others",
                "correct the line that the message shows",
            );
        }
    };
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
    let sizes = format!("{}: {}", task.kind(), task_sizes(task));
    Checked::ok(format!("{width}; {sizes}{}", source(task)))
}

pub fn environment(setting: &Setting) -> Checked {
    let Some(config) = setting.config() else { return refused() };
    match setting.opened(config) {
        Ok(device) => {
            let name = backend::describe(config.backend, device);
            let simd = backend::simd(config.backend).map_or(String::new(), |level| format!(" with {level} vectors"));
            Checked::ok(format!("{} on {name}{simd}, {}", config.backend, count(setting.threads, "thread")))
        }
        Err(error) => {
            let (cause, fix) = match error {
                BackendError::NotBuilt(..) => {
                    ("it was left out when the program was compiled", "build with its feature, or take --backend flex")
                }
                BackendError::NoAdapter(..) => {
                    ("no driver is installed, or it sees no device", "install a driver, or take --backend flex")
                }
            };
            Checked::failed(error.to_string(), cause, fix)
        }
    }
}

fn source(task: &Task) -> String {
    task.source().map_or(String::new(), |source| format!("; source: {} tokens, length {}", source.vocab, source.len))
}

pub fn test_samples(setting: &Setting) -> Checked {
    let Some(config) = setting.config() else { return refused() };
    match runs::seen_in_training(config) {
        None => Checked::ok("hardly any of the test samples are among those that training shows"),
        Some(found) => Checked::warned(
            found.to_string(),
            "a score on them may be memory, not what the model has understood",
            "make the task larger (longer samples, more values), the training shorter, or read the score as one of memory",
        ),
    }
}

pub fn memory(setting: &Setting) -> Checked {
    let Some(config) = setting.config() else { return refused() };
    let needed = needed_bytes(config);
    if !matches!(config.backend, Backend::Flex | Backend::Ndarray) {
        return Checked::skipped(format!("about {} MiB needed; the device does not tell what it has", mib(needed)));
    }
    match available_bytes() {
        None => Checked::skipped(format!("about {} MiB needed; this system does not tell what is free", mib(needed))),
        Some(available) => fits(needed, available),
    }
}

fn fits(needed: u64, available: u64) -> Checked {
    if available < needed {
        return Checked::failed(
            format!("training needs about {} MiB, {} MiB are free", mib(needed), mib(available)),
            "the batch, the model or its L × L maps are too large for this machine",
            "halve train.batch_size and double train.accumulate: the result is the same; or take a smaller model",
        );
    }
    Checked::ok(format!("about {} MiB needed, {} MiB free", mib(needed), mib(available)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_found_before_it_is_tried() {
        let outcome = fits(3 << 30, 2 << 30);
        assert!(
            matches!(&outcome, Checked::Failed { seen, fix, .. } if seen.contains("3072 MiB") && fix.contains("accumulate"))
        );
        assert_eq!(fits(2 << 20, 3 << 20), Checked::ok("about 2 MiB needed, 3 MiB free"));
    }

    #[test]
    fn a_refused_config_is_a_finding() {
        let refused = Config::parse("[task]\nkind = \"registers\"\n[model]\nd_model = 30\nheads = 4\n", "c.toml");
        let setting = Setting::new(refused, 1);
        let Checked::Failed { seen, .. } = config(&setting) else { panic!("a refused config is ill") };
        assert!(seen.contains("d_model = 30") && seen.contains("heads = 4"), "{seen}");
        assert!(setting.config().is_none() && setting.device().is_none());
    }
}
