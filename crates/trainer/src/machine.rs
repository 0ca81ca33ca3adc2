//! What the machine is, what memory it has, and what a run takes of it.

use model::{Dims, ModelConfig, cost};

/// Processor cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The vector extensions of the processor that matter for f32, the widest last.
pub fn vector_extensions() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let found = [
            ("avx", is_x86_feature_detected!("avx")),
            ("fma", is_x86_feature_detected!("fma")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
        ];
        found.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
    }
    #[cfg(target_arch = "aarch64")]
    {
        vec!["neon"] // every 64-bit ARM has it
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        vec![]
    }
}

/// Seconds that the calling thread has been ready to run and waited for a core; `None` where the system doesn't tell.
pub fn waited() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_whitespace().nth(1)?.parse().ok()?; // after those of running
    Some(nanoseconds as f64 / 1e9)
}

/// Largest memory that this process has held, in bytes; `None` where the system doesn't tell.
pub fn peak_memory() -> Option<u64> {
    kibibytes("/proc/self/status", "VmHWM:")
}

/// Memory that is free, in bytes, within the limit of the process's group where there is one.
pub fn available_memory() -> Option<u64> {
    let free = kibibytes("/proc/meminfo", "MemAvailable:")?;
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(limit.map_or(free, |(most, now)| free.min(most.saturating_sub(now))))
}

/// The number in the line of `path` that begins with `name`, in bytes.
fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// What the program itself takes, with its backends.
const PROGRAM: u64 = 40 << 20;

/// An estimate of what a run holds at once, in bytes: the program, parameters with gradients, moments and what an update
/// makes of them, the nodes that a backward pass needs, and what the allocator keeps of the last evaluation, of
/// `eval_batch` samples. Within a third of what `--dry-run` measures on the configs of this repository.
pub fn needed_memory(model: &ModelConfig, dims: Dims, batch: usize, eval_batch: usize) -> u64 {
    /// Copies of the parameters: weights, gradients, two moments, four between.
    const COPIES: u64 = 8;
    /// Tensors of the width of the stream that a block keeps: norms, projections, heads, contexts, sums.
    const STREAM: u64 = 16;
    /// Tensors of the width of the MLP: before, within and after the GELU.
    const MLP: u64 = 6;
    /// Tensors of the size of the maps: scores, masked scores, softmax, its parts.
    const MAPS: u64 = 6;
    let parameters = cost::total(&cost::parameters(model, dims));
    let (l, ls) = (dims.length as u64, dims.source.map_or(0, |source| source.length as u64));
    let (d, h, layers) = (model.d_model as u64, model.heads as u64, model.layers as u64);
    let mlp = if model.mlp { MLP * model.d_ff() as u64 } else { 0 };
    let stream = (STREAM * d.max(h * model.d_head() as u64) + mlp) * (l + ls);
    let maps = MAPS * h * (l * l + l * ls + ls * ls);
    let logits = 4 * l * dims.outputs as u64;
    let step = COPIES * parameters + batch as u64 * (layers * (stream + maps) + logits);
    // In evaluation a block's nodes are freed when the next one's are made.
    let evaluation = eval_batch as u64 * ((stream + maps) / 2 + logits);
    PROGRAM + 4 * (step + evaluation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use runs::Config;

    /// Long inputs cost their square, wide models theirs, large batches their multiple.
    #[test]
    fn memory_grows_with_what_it_is_for() {
        let needed = |text: &str| {
            let config = Config::parse(&format!("[task]\nkind = \"registers\"\n{text}"), "test.toml").unwrap();
            let (batch, eval_batch) = (config.train.batch_size, config.train.eval_batch);
            (needed_memory(&config.model, config.dims(), batch, eval_batch) - PROGRAM) as f64
        };
        let base = needed("[model]\nmlp = false\n");
        assert!(needed("seq_len = 320\n[model]\nmlp = false\n") > 30.0 * base);
        assert!(needed("[model]\nmlp = false\nd_model = 6400\n") > 100.0 * base);
        assert!(needed("[train]\nbatch_size = 640\neval_batch = 2560\n") > 8.0 * needed(""));
    }

    #[test]
    fn what_the_system_tells_is_plausible() {
        assert!(cores() >= 1);
        if cfg!(target_os = "linux") {
            let (peak, available) = (peak_memory().unwrap(), available_memory().unwrap());
            assert!(peak > 1 << 20 && available > 1 << 20, "{peak} {available}");
            assert!(waited().is_none_or(|seconds| seconds >= 0.0));
        }
    }
}
