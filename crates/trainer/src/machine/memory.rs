//! How much memory a run needs, and how much there is.

use architecture::{Dims, ModelConfig, cost};
use runs::{Backend, Config};
use thiserror::Error;

use super::control_groups::{self, number_after};
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

/// Runs at once that are certain not to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{jobs} runs at once need about {} MiB of memory, and {} MiB are free: take --jobs {fitting}",
    mib(*needed), mib(*available)
)]
pub struct NoRoomTogether {
    /// Runs at once.
    pub jobs: usize,
    /// Bytes that the largest of them need together.
    pub needed: u64,
    /// Bytes that are free.
    pub available: u64,
    /// As many as fit.
    pub fitting: usize,
}

/// As [`check`], of `jobs` of the runs at once, whichever those are.
///
/// # Errors
/// [`NoRoomTogether`] where the estimate, less the third by which it may be wrong, is more than there is.
pub fn check_together<'a>(configs: impl Iterator<Item = &'a Config>, jobs: usize) -> Result<(), NoRoomTogether> {
    let on_cpu = configs.filter(|config| matches!(config.backend, Backend::Flex | Backend::Ndarray));
    available_bytes().map_or(Ok(()), |available| fit_together(on_cpu.map(needed_bytes).collect(), jobs, available))
}

fn fit_together(mut needed: Vec<u64>, jobs: usize, available: u64) -> Result<(), NoRoomTogether> {
    needed.sort_unstable_by(|a, b| b.cmp(a));
    let sums = needed.iter().scan(0u64, |sum, needed| {
        *sum = sum.saturating_add(*needed);
        Some(*sum)
    });
    let sums: Vec<u64> = sums.take(jobs).collect();
    let fitting = sums.iter().take_while(|sum| **sum / 3 * 2 <= available).count();
    match sums.last() {
        Some(all) if fitting < sums.len() => {
            Err(NoRoomTogether { jobs: sums.len(), needed: *all, available, fitting: fitting.max(1) })
        }
        _ => Ok(()),
    }
}

/// What the program itself takes, with its backends.
const PROGRAM: u64 = 40 << 20;
/// Copies of the parameters: weights, gradients, two moments, four between.
const COPIES: u64 = 8;

/// An estimate of what a run holds at once, in bytes; see [`needed`].
pub fn needed_bytes(config: &Config) -> u64 {
    let files = config.task.task.stored().map_or(0, |stored| stored.files().iter().map(|file| file.bytes).sum());
    let model = needed(config.backend, &config.model, config.dims(), config.train.batch_size, config.train.eval_batch);
    model.saturating_add(files)
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
    let stream = stream + if model.input_layers == 2 && dims.inputs > 0 { 2 * l * model.d_ff() as u64 } else { 0 };
    let step = COPIES * parameters + batch as u64 * (layers * (stream + maps) + logits);
    // A mask is of bytes, and made anew for each pass from a copy or two.
    let mask = 4 * (l * l + l * ls + ls * ls);
    // In evaluation a block's nodes are freed when the next one's are made.
    let evaluation = eval_batch as u64 * ((stream + maps) / 2 + logits);
    PROGRAM + mask + 4 * (step + evaluation)
}

/// Memory that this process can still get: what is free, swap included, within the limits of its groups, of every group that
/// those are in, and its own. `None` where the system doesn't tell.
pub fn available_bytes() -> Option<u64> {
    available(&|path| std::fs::read_to_string(path).ok())
}

/// [`available_bytes`] by the files that `read` gives.
fn available(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let info = read("/proc/meminfo")?;
    let kibibytes = |key: &str| number_after(&info, key).map(|number| number << 10);
    let free = kibibytes("MemAvailable:")?.saturating_add(kibibytes("SwapFree:").unwrap_or(0));
    let limits = read("/proc/self/limits").unwrap_or_default();
    let own = ["Max address space", "Max data size"].map(|limit| number_after(&limits, limit));
    let groups = control_groups::available(read);
    Some(own.into_iter().flatten().chain(groups).fold(free, u64::min))
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

    /// kin#1095: 64 runs of 4 GiB on 23 GiB began without a word.
    #[test]
    fn kin_1095_runs_at_once_share_the_memory() {
        let gib = |size: u64| size << 30;
        let error = fit_together(vec![gib(4); 100], 64, gib(23)).unwrap_err();
        assert_eq!((error.jobs, error.needed, error.fitting), (64, gib(256), 8));
        assert!(error.to_string().contains("64 runs") && error.to_string().contains("--jobs 8"), "{error}");
        assert_eq!(fit_together(vec![gib(4); 100], 8, gib(23)), Ok(()));
        assert_eq!(fit_together(vec![gib(4); 3], 64, gib(23)), Ok(()), "three runs are never 64 at once");
        let mixed = [vec![gib(1); 50], vec![gib(30)]].concat();
        assert_eq!(fit_together(mixed, 2, gib(20)).unwrap_err().fitting, 1);
        assert_eq!(fit_together(vec![], 64, 0), Ok(()));
    }

    /// The limit of the process itself, as `ulimit -v` and `ulimit -d` set it.
    #[test]
    fn own_limits_count() {
        let with = |limits: &'static str| {
            available(&move |path| match path {
                "/proc/meminfo" => Some("MemAvailable: 8192 kB\nSwapFree: 1024 kB\n".into()),
                "/proc/self/limits" => Some(limits.into()),
                _ => None,
            })
        };
        assert_eq!(with(""), Some(9216 << 10));
        assert_eq!(with("Max address space         1048576   unlimited  bytes\n"), Some(1 << 20));
        assert_eq!(with("Max data size             2097152   unlimited  bytes\n"), Some(2 << 20));
        assert_eq!(available(&|_| None), None);
    }

    #[test]
    fn numbers_are_found_by_their_words() {
        let text = "MemFree: 5 kB\nMemAvailable:   12 kB\nMax address space         unlimited            unlimited\n";
        assert_eq!((number_after(text, "MemAvailable:"), number_after(text, "Max address space")), (Some(12), None));
    }
}
