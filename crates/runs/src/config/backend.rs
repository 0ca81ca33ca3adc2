//! Which of Burn's backends computes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::nearest::{list, nearest};

/// Where a run computes. All names are known in every build; the program says which of them it was built with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// The CPU, Burn's fastest there; the same bytes whatever the number of threads.
    #[default]
    Flex,
    /// The CPU, on the `ndarray` crate.
    Ndarray,
    /// Any GPU, through WebGPU.
    Wgpu,
    /// NVIDIA GPUs.
    Cuda,
    /// Apple GPUs.
    Metal,
    /// AMD GPUs.
    Rocm,
    /// Any GPU, through Vulkan.
    Vulkan,
}

impl Backend {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Flex, Self::Ndarray, Self::Wgpu, Self::Cuda, Self::Metal, Self::Rocm, Self::Vulkan];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flex => "flex",
            Self::Ndarray => "ndarray",
            Self::Wgpu => "wgpu",
            Self::Cuda => "cuda",
            Self::Metal => "metal",
            Self::Rocm => "rocm",
            Self::Vulkan => "vulkan",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    /// The error is a sentence with the nearest name, or all of them.
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|backend| backend.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name);
            match nearest(name, names) {
                Some(near) => format!("unknown backend `{name}`: did you mean `{near}`?"),
                None => format!("unknown backend `{name}`: there are {}", list(names)),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for backend in Backend::ALL {
            assert_eq!(backend.to_string().parse(), Ok(backend));
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.name());
        }
        assert_eq!("wpgu".parse::<Backend>().unwrap_err(), "unknown backend `wpgu`: did you mean `wgpu`?");
        assert!("tpu9".parse::<Backend>().unwrap_err().contains("`flex`, `ndarray`"));
    }
}
