//! The fastest that a device multiplies large matrices: what a training step is measured against.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Distribution, Tensor};

use super::measurement::BenchError;

/// The fastest of many products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// 10⁹ FLOPs a second, 2·n³ a product.
    pub gflops: f64,
    /// n, the rows and columns of the square matrices.
    pub size: usize,
}

/// Sizes go up to where one product takes this long.
const LONG: Duration = Duration::from_millis(60);
/// How long one size is tried.
const PATIENCE: Duration = Duration::from_millis(150);
/// The first and the last size.
const SIZES: [usize; 2] = [256, 8192];

/// The fastest product of square f32 matrices on `device`, over sizes that double until one takes long. `waits` where
/// the device computes behind the program's back.
///
/// # Errors
/// A device that fails.
pub fn peak(device: &Device, waits: bool) -> Result<Peak, BenchError> {
    let mut best = Peak { gflops: 0.0, size: SIZES[0] };
    let mut size = SIZES[0];
    while size <= SIZES[1] {
        let random = || Tensor::<2>::random([size, size], Distribution::Uniform(-1.0, 1.0), device);
        let (a, b) = (random(), random());
        let begun = Instant::now();
        let mut fastest = Duration::MAX;
        let mut products = 0;
        while products < 3 || begun.elapsed() < PATIENCE {
            let started = Instant::now();
            let product = a.clone().matmul(b.clone());
            if waits {
                device.sync().map_err(|error| BenchError::Device(error.to_string()))?;
            }
            fastest = fastest.min(started.elapsed());
            drop(product);
            products += 1;
        }
        let gflops = 2.0 * (size as f64).powi(3) / fastest.as_secs_f64() / 1e9;
        if gflops > best.gflops {
            best = Peak { gflops, size };
        }
        if fastest > LONG {
            break;
        }
        size *= 2;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_a_speed_of_one_of_the_sizes() {
        let peak = peak(&Device::flex(), false).unwrap();
        assert!(peak.gflops > 0.01 && peak.gflops < 1e6, "{peak:?}");
        assert!(peak.size.is_power_of_two() && (SIZES[0]..=SIZES[1]).contains(&peak.size), "{peak:?}");
    }
}
