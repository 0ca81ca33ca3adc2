//! How much memory a run needs, and how much there is.

use architecture::{Dims, ModelConfig, cost};
use runs::{Backend, Config};
use thiserror::Error;

use crate::screen::text::mib;

/// A run that this machine can't hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "training needs about {} MiB of memory ({} MiB of them for {parameters} parameters, the rest for batches), and {} MiB are \
     free: take a smaller train.batch_size and a larger train.accumulate, which gives the same result, a smaller \
     train.eval_batch or a smaller model",
    mib(*needed), mib(*of_parameters), mib(*available)
)]
pub struct NoRoom {
    /// Bytes that the run needs, by [`needed_bytes`].
    pub needed: u64,
    /// Those of parameters, gradients and moments.
    pub of_parameters: u64,
    /// Parameters.
    pub parameters: u64,
    /// Bytes that are free.
    pub available: u64,
}

/// Refuses a run that is certain not to fit into the memory of this machine, before anything of it is made. Nothing is
/// refused where the memory is a GPU's, or the system doesn't tell what is free.
///
/// # Errors
/// [`NoRoom`] where the estimate, less the third by which it may be wrong, is more than there is.
pub fn check(config: &Config) -> Result<(), NoRoom> {
    match available_bytes() {
        Some(available) if matches!(config.backend, Backend::Flex | Backend::Ndarray) => fits(config, available),
        _ => Ok(()),
    }
}

fn fits(config: &Config, available: u64) -> Result<(), NoRoom> {
    let needed = needed_bytes(config);
    if needed / 3 * 2 <= available {
        return Ok(());
    }
    let parameters = cost::parameters(&config.model, config.dims()).total();
    let of_parameters = parameters.saturating_mul(4 * COPIES);
    Err(NoRoom { needed, of_parameters, parameters, available })
}

/// What the program itself takes, with its backends.
const PROGRAM: u64 = 40 << 20;
/// Copies of the parameters: weights, gradients, two moments, four between.
const COPIES: u64 = 8;

/// An estimate of what a run holds at once, in bytes; see [`needed`].
pub fn needed_bytes(config: &Config) -> u64 {
    needed(config.backend, &config.model, config.dims(), config.train.batch_size, config.train.eval_batch)
}

/// Tensors that a block keeps for its backward pass, where the kernels of [`kernels`] make them, and where Burn's operations
/// do.
struct Kept {
    /// Of the width of the stream: norms, projections, heads, contexts, sums.
    stream: u64,
    /// Of the width of the MLP: within the GELU and around it.
    mlp: u64,
    /// Of the size of the maps: scores, masked scores, softmax, its parts.
    maps: u64,
}

const BY_KERNELS: Kept = Kept { stream: 8, mlp: 2, maps: 0 };
const BY_OPERATIONS: Kept = Kept { stream: 16, mlp: 6, maps: 6 };

/// An estimate of what training of a model on batches of `batch` samples holds at once, in bytes: the program, parameters
/// with gradients, moments and what an update makes of them, the nodes that a backward pass needs, and what the allocator
/// keeps of the last evaluation, of `eval_batch` samples. Within a third of what `--dry-run` measures on the configs of this
/// repository.
pub fn needed(backend: Backend, model: &ModelConfig, dims: Dims, batch: usize, eval_batch: usize) -> u64 {
    let kept = if backend == Backend::Flex { BY_KERNELS } else { BY_OPERATIONS };
    let parameters = cost::parameters(model, dims).total();
    let (l, ls) = (dims.length as u64, dims.source.map_or(0, |source| source.length as u64));
    let (d, h, layers) = (model.d_model as u64, model.heads as u64, model.layers as u64);
    let mlp = if model.mlp { kept.mlp * model.d_ff() as u64 } else { 0 };
    let stream = (kept.stream * d.max(h * model.d_head() as u64) + mlp) * (l + ls);
    let maps = kept.maps * h * (l * l + l * ls + ls * ls);
    let logits = 4 * l * dims.outputs as u64;
    let step = COPIES * parameters + batch as u64 * (layers * (stream + maps) + logits);
    // A mask is of bytes, and made anew for each pass from a copy or two.
    let mask = 4 * (l * l + l * ls + ls * ls);
    // In evaluation a block's nodes are freed when the next one's are made.
    let evaluation = eval_batch as u64 * ((stream + maps) / 2 + logits);
    PROGRAM + mask + 4 * (step + evaluation)
}

/// Memory that this process can still get: what is free, swap included, within the limit of its group and its own.
pub fn available_bytes() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let info = read("/proc/meminfo")?;
    let kibibytes = |key: &str| number_after(&info, key).map(|number| number << 10);
    let free = kibibytes("MemAvailable:")?.saturating_add(kibibytes("SwapFree:").unwrap_or(0));
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    // What a group's files take of its memory is given back when it is needed.
    let files = read("/sys/fs/cgroup/memory.stat").and_then(|text| {
        Some(number_after(&text, "inactive_file")?.saturating_add(number_after(&text, "active_file")?))
    });
    let limit = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let of_group = limit.map(|(most, now)| most.saturating_sub(now).saturating_add(files.unwrap_or(0)));
    let own = read("/proc/self/limits").and_then(|text| number_after(&text, "Max address space"));
    Some([of_group, own].into_iter().flatten().fold(free, u64::min))
}

/// The number that follows a line's first words.
fn number_after(text: &str, words: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(words))?;
    rest.split_whitespace().next()?.parse().ok()
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
        // The kernels keep no maps.
        assert!(needed("seq_len = 320\n[model]\nmlp = false\n") < 11.0 * base);
        let on_ndarray = |text: &str| {
            let config = Config { backend: Backend::Ndarray, ..config(text) };
            (needed_bytes(&config) - PROGRAM) as f64
        };
        assert!(on_ndarray("seq_len = 320\n[model]\nmlp = false\n") > 30.0 * on_ndarray("[model]\nmlp = false\n"));
        assert!(needed("[model]\nmlp = false\nd_model = 6400\n") > 100.0 * base);
        assert!(needed("[train]\nbatch_size = 640\neval_batch = 2560\n") > 8.0 * needed(""));
    }

    #[test]
    fn what_can_never_fit_is_refused_with_the_numbers() {
        let huge = config(
            "seq_len = 512\n[model]\nlayers = 1000\nd_model = 256\n[train]\nbatch_size = 128\neval_batch = 128\n",
        );
        let error = fits(&huge, 64 << 30).unwrap_err();
        assert!(error.needed > 1 << 40, "a terabyte: {error:?}");
        let text = error.to_string();
        for part in [&mib(error.needed).to_string(), "65536 MiB are free", "train.batch_size"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let small = config("");
        assert_eq!(fits(&small, needed_bytes(&small)), Ok(()));
        assert!(fits(&small, needed_bytes(&small) / 2).is_err());
        assert_eq!(check(&small), Ok(()));
        assert!(check(&huge).is_err() || available_bytes().is_none());
        assert_eq!(check(&Config { backend: Backend::Wgpu, ..huge }), Ok(()), "a GPU's memory is its own");
    }

    #[test]
    fn numbers_are_found_by_their_words() {
        let text = "MemFree: 5 kB\nMemAvailable:   12 kB\nMax address space         unlimited            unlimited\n";
        assert_eq!((number_after(text, "MemAvailable:"), number_after(text, "Max address space")), (Some(12), None));
    }
}
