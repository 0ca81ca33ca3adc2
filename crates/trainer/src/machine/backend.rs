//! Opening the backend that a config asks for.

use burn::tensor::Device;
use runs::Backend;
use thiserror::Error;

/// A backend that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BackendError {
    /// Left out when the program was compiled.
    #[error(
        "backend {0} isn't in this build; add it with: cargo run -p trainer --features {0} -- ...   (in this build: {1})"
    )]
    NotBuilt(Backend, String),
    /// In the build, but nothing to run on.
    #[error("backend {0} finds no adapter on this machine. {1}, or take a CPU backend: --backend flex")]
    NoAdapter(Backend, &'static str),
}

/// The backends of this build.
pub fn built() -> Vec<Backend> {
    let built = [
        (cfg!(feature = "flex"), Backend::Flex),
        (cfg!(feature = "ndarray"), Backend::Ndarray),
        (cfg!(feature = "wgpu"), Backend::Wgpu),
        (cfg!(feature = "cuda"), Backend::Cuda),
        (cfg!(feature = "metal"), Backend::Metal),
        (cfg!(feature = "rocm"), Backend::Rocm),
        (cfg!(feature = "vulkan"), Backend::Vulkan),
    ];
    built.into_iter().filter_map(|(is_built, backend)| is_built.then_some(backend)).collect()
}

/// The device of `backend`, without autodiff.
///
/// # Errors
/// A backend that isn't in this build, or that finds no adapter.
pub fn open(backend: Backend) -> Result<Device, BackendError> {
    match backend {
        #[cfg(feature = "flex")]
        Backend::Flex => Ok(Device::flex()),
        // Deprecated in Burn 0.22 in favour of flex; kept as the second opinion that it is.
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        Backend::Ndarray => Ok(Device::ndarray()),
        #[cfg(feature = "wgpu")]
        Backend::Wgpu => first_of(burn::tensor::DeviceType::Wgpu, backend),
        #[cfg(feature = "cuda")]
        Backend::Cuda => first_of(burn::tensor::DeviceType::Cuda, backend),
        #[cfg(feature = "metal")]
        Backend::Metal => first_of(burn::tensor::DeviceType::Metal, backend),
        #[cfg(feature = "rocm")]
        Backend::Rocm => first_of(burn::tensor::DeviceType::Rocm, backend),
        #[cfg(feature = "vulkan")]
        Backend::Vulkan => first_of(burn::tensor::DeviceType::Vulkan, backend),
        #[allow(unreachable_patterns)]
        missing => {
            let built: Vec<String> = built().iter().map(Backend::to_string).collect();
            Err(BackendError::NotBuilt(missing, built.join(", ")))
        }
    }
}

/// The first device that the runtime lists: discrete before integrated, virtual and software ones.
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "metal", feature = "rocm", feature = "vulkan"))]
fn first_of(kind: burn::tensor::DeviceType, backend: Backend) -> Result<Device, BackendError> {
    let fix = match backend {
        Backend::Cuda => "Install NVIDIA's driver and the CUDA toolkit",
        Backend::Rocm => "Install AMD's ROCm",
        Backend::Metal => "Metal needs macOS",
        _ => "Install a Vulkan driver (in software, on Debian or Ubuntu: sudo apt-get install mesa-vulkan-drivers)",
    };
    Device::enumerate(kind).into_iter().next().ok_or(BackendError::NoAdapter(backend, fix))
}

/// What the device is, for a manifest.
pub fn describe(backend: Backend, device: &Device) -> String {
    #[cfg(any(feature = "wgpu", feature = "cuda", feature = "metal", feature = "rocm", feature = "vulkan"))]
    if let Some(identity) = device.identity() {
        return identity.name;
    }
    let _ = device;
    match backend {
        Backend::Flex | Backend::Ndarray => processor().unwrap_or_else(|| std::env::consts::ARCH.to_string()),
        other => other.to_string(),
    }
}

/// What to know of a device before a run on it begins: that a GPU's backend got none.
pub fn warning(backend: Backend, device: &Device) -> Option<String> {
    #[cfg(any(feature = "wgpu", feature = "cuda", feature = "metal", feature = "rocm", feature = "vulkan"))]
    // A device that is no card is a processor that draws in software.
    if let Some(identity) = device.identity().filter(|identity| identity.physical.is_none()) {
        return Some(format!(
            "warning: {backend} found no GPU and computes on the CPU ({}), up to a hundred times slower than --backend flex",
            identity.name
        ));
    }
    let _ = (backend, device);
    None
}

/// The vector instructions of what `backend` runs on the CPU; `None` on a GPU. That `HEADCOUNT_SIMD` names none is said before.
pub fn simd(backend: Backend) -> Option<String> {
    match backend {
        Backend::Flex => kernels::level().ok().map(|level| level.name().to_string()),
        _ => None,
    }
}

/// The processor's name where the system tells it.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Sets the number of CPU threads of every backend, and what graphics drivers want of the environment. Must run before any
/// backend is opened.
///
/// # Safety
/// No other thread may be running: the environment is changed.
pub unsafe fn set_threads(threads: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        std::env::set_var("RAYON_NUM_THREADS", threads.to_string());
        std::env::set_var("MATMUL_NUM_THREADS", threads.min(4).to_string()); // matrixmultiply knows 1 to 4
        if cfg!(target_os = "linux") && std::env::var_os("XDG_RUNTIME_DIR").is_none() {
            std::env::set_var("XDG_RUNTIME_DIR", std::env::temp_dir()); // Mesa complains where there is none
        }
    }
}
