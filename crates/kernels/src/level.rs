//! Which vector instructions the kernels use: the widest of the processor, unless `HEADCOUNT_SIMD` holds them back.
//!
//! Sums over wider vectors are added in another order, so results of two levels differ in last bits.

use thiserror::Error;

/// Environment variable that holds the kernels back to narrower instructions, to test what other machines run.
pub const LEVEL_VARIABLE: &str = "HEADCOUNT_SIMD";

/// Vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 4 numbers at a time, which every processor has.
    Portable,
    /// 8 numbers at a time, with fused multiply-add (x86-64-v3).
    Avx2,
    /// 16 numbers at a time (x86-64-v4).
    Avx512,
}

/// `HEADCOUNT_SIMD` names no level that this processor has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{LEVEL_VARIABLE} is `{found}`: this processor has {}", .known.join(", "))]
pub struct LevelError {
    /// The variable's value.
    pub found: String,
    /// The levels that it may name.
    pub known: Vec<&'static str>,
}

impl Level {
    const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// As `HEADCOUNT_SIMD` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The level that `wanted` asks of a processor whose widest is `best`.
    fn chosen(wanted: Option<&str>, best: Self) -> Result<Self, LevelError> {
        let Some(wanted) = wanted else { return Ok(best) };
        let known = Self::ALL.into_iter().filter(|level| *level <= best);
        known
            .clone()
            .find(|level| level.name() == wanted)
            .ok_or_else(|| LevelError { found: wanted.into(), known: known.map(Self::name).collect() })
    }
}

/// The level that the kernels use in this process.
///
/// # Errors
/// A `HEADCOUNT_SIMD` that names none which this processor has.
pub fn level() -> Result<Level, LevelError> {
    let wanted = std::env::var_os(LEVEL_VARIABLE).map(|value| value.to_string_lossy().into_owned());
    Level::chosen(wanted.as_deref(), best())
}

#[cfg(all(feature = "flex", target_arch = "x86_64"))]
fn best() -> Level {
    if pulp::x86::V4::is_available() {
        Level::Avx512
    } else if pulp::x86::V3::is_available() {
        Level::Avx2
    } else {
        Level::Portable
    }
}

#[cfg(not(all(feature = "flex", target_arch = "x86_64")))]
fn best() -> Level {
    Level::Portable
}

#[cfg(test)]
mod tests {
    use super::*;

    /// pytorch#155423: a level that the processor lacks, or that is none, was taken for the widest.
    #[test]
    fn pytorch_155423_an_unknown_level_is_refused() {
        for level in Level::ALL {
            assert_eq!(Level::chosen(None, level), Ok(level));
            assert_eq!(Level::chosen(Some("portable"), level), Ok(Level::Portable));
            for wanted in ["avx3", "", "AVX2 ", "native"] {
                let error = Level::chosen(Some(wanted), level).unwrap_err().to_string();
                assert!(error.contains(&format!("`{wanted}`")) && error.contains(level.name()), "{error}");
            }
        }
        assert_eq!(Level::chosen(Some("avx2"), Level::Avx512), Ok(Level::Avx2));
        assert!(Level::chosen(Some("avx512"), Level::Avx2).is_err());
    }
}
