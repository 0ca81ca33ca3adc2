//! Backends, fixtures and comparisons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use architecture::{AttentionConfig, HostTensor, ModelConfig, Positions};
use burn::tensor::{Device, DeviceType, Int, Tensor, TensorData};
use headcount_model::parameters::{self, flat_gradients};
use headcount_model::{Attention, Decoder};
use safetensors::{Dtype, SafeTensors};

/// A backend under test.
pub struct Backend {
    pub name: &'static str,
    /// With autodiff.
    pub device: Device,
    /// Greatest deviation from PyTorch for one attention, as [`Worst`] measures it.
    pub tolerance: f64,
}

/// The backends that every machine has.
#[allow(deprecated)] // Device::ndarray: a second opinion as long as Burn has it
pub fn cpu() -> [Backend; 2] {
    [
        Backend { name: "flex", device: Device::flex().autodiff(), tolerance: 1e-5 },
        Backend { name: "ndarray", device: Device::ndarray().autodiff(), tolerance: 1e-5 },
    ]
}

/// The first Vulkan adapter; None if the environment says to do without.
pub fn wgpu() -> Option<Backend> {
    if std::env::var_os("HEADCOUNT_SKIP_WGPU").is_some() {
        println!("skipped: HEADCOUNT_SKIP_WGPU is set");
        return None;
    }
    let device = Device::enumerate(DeviceType::Wgpu).into_iter().next().expect(
        "no adapter for wgpu. Install a Vulkan driver (in software, on Debian or Ubuntu: apt-get install \
         mesa-vulkan-drivers) and set XDG_RUNTIME_DIR to a folder, or set HEADCOUNT_SKIP_WGPU=1 to leave these tests out",
    );
    Some(Backend { name: "wgpu", device: device.autodiff(), tolerance: 1e-4 })
}

/// Makes a test on the CPU backends of each check, and lists the checks for wgpu.
macro_rules! checks {
    ($($name:ident),+ $(,)?) => {
        mod on_cpu {
            $(#[test]
            fn $name() {
                for backend in $crate::support::cpu() {
                    super::$name(&backend);
                }
            })+
        }

        pub const ALL: &[(&str, fn(&$crate::support::Backend))] = &[$((stringify!($name), $name)),+];
    };
}

/// A file written by `scripts/attention_fixtures.py`: tensors by name, integers and booleans as numbers.
pub struct Fixture(BTreeMap<String, HostTensor>);

impl Fixture {
    pub fn load(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.tensors().into_iter().map(|(name, view)| {
            let values = match view.dtype() {
                Dtype::BOOL => view.data().iter().map(|&byte| f32::from(byte)).collect(),
                Dtype::I64 => chunks(view.data()).map(|bytes| i64::from_le_bytes(bytes) as f32).collect(),
                Dtype::F32 => chunks(view.data()).map(f32::from_le_bytes).collect(),
                other => panic!("{name} has dtype {other:?}"),
            };
            (name, HostTensor { shape: view.shape().to_vec(), values })
        });
        Self(tensors.collect())
    }

    pub fn get(&self, name: &str) -> &HostTensor {
        self.0.get(name).unwrap_or_else(|| panic!("the fixture has no tensor {name}"))
    }

    /// On a device, with a gradient to come.
    pub fn tensor<const N: usize>(&self, name: &str, backend: &Backend) -> Tensor<N> {
        let host = self.get(name);
        let shape: [usize; N] = host.shape.clone().try_into().unwrap();
        Tensor::from_data(TensorData::new(host.values.clone(), shape), &backend.device).require_grad()
    }

    /// Names under `prefix`, without it.
    pub fn names_under(&self, prefix: &str) -> Vec<String> {
        self.0.keys().filter_map(|name| name.strip_prefix(prefix)).map(str::to_string).collect()
    }

    pub fn bools(&self, name: &str) -> Vec<bool> {
        self.get(name).values.iter().map(|&value| value != 0.0).collect()
    }
}

fn chunks<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.chunks_exact(N).map(|chunk| chunk.try_into().unwrap())
}

/// The first rows and columns of a tensor of one or two dimensions.
pub fn corner(tensor: &HostTensor, shape: &[usize]) -> HostTensor {
    let (rows, columns, stride) = match (shape, &tensor.shape[..]) {
        ([n], [_]) => (1, *n, *n),
        ([rows, columns], [_, stride]) => (*rows, *columns, *stride),
        other => panic!("{other:?}"),
    };
    let values = (0..rows).flat_map(|row| tensor.values[row * stride..row * stride + columns].to_vec()).collect();
    HostTensor { shape: shape.to_vec(), values }
}

/// The greatest deviation met: |got − expected| / max(1, |expected|).
pub struct Worst {
    name: &'static str,
    tolerance: f64,
    greatest: f64,
    at: String,
}

impl Worst {
    pub fn new(name: &'static str, tolerance: f64) -> Self {
        Self { name, tolerance, greatest: 0.0, at: String::new() }
    }

    /// Compares shapes and values.
    pub fn compare<const N: usize>(&mut self, what: &str, got: Tensor<N>, expected: &HostTensor) {
        assert_eq!(got.dims().to_vec(), expected.shape, "{}: {what}", self.name);
        self.compare_values(what, &values(got), &expected.values);
    }

    /// Compares the gradient of `loss` in every parameter of `model` with those that the fixture has of `variant`.
    pub fn compare_gradients(&mut self, variant: &str, model: &Decoder, loss: Tensor<1>, fixture: &Fixture) {
        let mut gradients = loss.backward();
        let mut compared = BTreeSet::new();
        for (place, gradient) in parameters::of(model).into_iter().zip(flat_gradients(model, &mut gradients)) {
            let what = format!("{variant}/gradient.{}", place.path);
            assert_eq!(place.shape, fixture.get(&what).shape, "{what}");
            self.compare_values(&what, &values(gradient), &fixture.get(&what).values);
            compared.insert(place.path);
        }
        let made = fixture.names_under(&format!("{variant}/gradient."));
        assert_eq!(made.into_iter().collect::<BTreeSet<_>>(), compared, "{variant}: every gradient is compared");
    }

    /// Compares values.
    pub fn compare_values(&mut self, what: &str, got: &[f32], expected: &[f32]) {
        assert_eq!(got.len(), expected.len(), "{}: {what}", self.name);
        for (index, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            let deviation = f64::from(got - expected).abs() / f64::from(expected.abs()).max(1.0);
            // Not `>`: NaN must fail.
            assert!(
                deviation <= self.tolerance,
                "{}: {what}[{index}] is {got}, expected {expected} (deviation {deviation:.1e})",
                self.name
            );
            if deviation > self.greatest {
                (self.greatest, self.at) = (deviation, format!("{what}[{index}]"));
            }
        }
    }
}

impl Drop for Worst {
    fn drop(&mut self) {
        if !self.at.is_empty() {
            println!("{}: greatest deviation {:.1e} at {}", self.name, self.greatest, self.at);
        }
    }
}

/// A tensor's values, row-major.
pub fn values<const N: usize>(tensor: Tensor<N>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// A tensor of values that repeat nowhere in sight: not random, but without structure.
pub fn scrambled<const N: usize>(shape: [usize; N], salt: u32, backend: &Backend) -> Tensor<N> {
    Tensor::from_data(TensorData::new(scrambled_values(shape.iter().product(), salt), shape), &backend.device)
}

/// `count` values in −1..1.
pub fn scrambled_values(count: usize, salt: u32) -> Vec<f32> {
    let hash = |index: u32| {
        let mut bits = (index ^ salt.wrapping_mul(0x9e37_79b9)).wrapping_add(1).wrapping_mul(0x85eb_ca6b);
        bits = (bits ^ bits >> 13).wrapping_mul(0xc2b2_ae35);
        (bits ^ bits >> 16) >> 8
    };
    (0..count as u32).map(|index| hash(index) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// Tokens on a device, `[B, L]`.
pub fn tokens(rows: &[&[i32]], backend: &Backend) -> Tensor<2, Int> {
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_data(TensorData::new(rows.concat(), shape), &backend.device)
}

/// An attention without rotation, its weights drawn under seed 0.
pub fn attention(config: &ModelConfig, backend: &Backend) -> Attention {
    let config = AttentionConfig { positions: Positions::None, ..config.attention() };
    Attention::init(&config, 0, &backend.device).unwrap()
}
