//! What the machine is, and what it has had to do.

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

/// Has the system list this process by the program's name, whatever the path that it was started by.
pub fn name_process() {
    #[cfg(target_os = "linux")]
    // SAFETY: the name is a C string that is copied.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"trainer".as_ptr());
    }
}

/// Largest memory that this process has held, in bytes; `None` where the system doesn't tell.
pub fn peak_memory() -> Option<u64> {
    kibibytes("/proc/self/status", "VmHWM:")
}

/// The number in the line of `path` that begins with `name`, in bytes.
fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_tells_is_plausible() {
        assert!(cores() >= 1);
        if cfg!(target_os = "linux") {
            assert!(peak_memory().unwrap() > 1 << 20);
            assert!(waited().is_none_or(|seconds| seconds >= 0.0));
        }
    }
}
