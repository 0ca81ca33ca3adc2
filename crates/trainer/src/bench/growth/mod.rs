//! How a step's time and memory grow when one size grows and the others stay.
//!
//! Each point is measured by a process of its own, so that its peak memory is its own.

mod sweep;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::process::Command;

use architecture::ModelError;
use report::figures::{Growth, GrowthPoint};
use runs::Backend;
use serde::Serialize;
use thiserror::Error;

pub use sweep::{Axis, Sweep};

use super::measurement::Measurement;
use super::workload::{Sizes, Workload};
use crate::machine::memory;
use crate::screen::text::count;

/// Growth that can't be measured.
#[derive(Debug, Error)]
pub enum GrowthError {
    /// A point whose model can't be built.
    #[error("{axis} = {value}: {error}", axis = axis.name())]
    Model { axis: Axis, value: usize, error: ModelError },
    /// This program's own file is gone, or the system refuses another process.
    #[error("can't start a process to measure {axis} = {value}: {error}", axis = axis.name())]
    Start { axis: Axis, value: usize, error: std::io::Error },
}

/// One point of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// The value of the size that grows.
    pub value: usize,
    /// What was measured; `None` where `missing` says why not.
    pub measured: Option<Measurement>,
    /// Why nothing was measured.
    pub missing: Option<String>,
}

/// What lies between two neighbours that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    /// The value on the left.
    pub from: usize,
    /// The value on the right.
    pub to: usize,
    /// ln(time ratio) / ln(value ratio): 1 where time grows in proportion, 2 with the square.
    pub time: f64,
    /// The same for analytic FLOPs.
    pub flops: f64,
    /// The same for peak memory beyond what the process held before; `None` where the system doesn't tell.
    pub memory: Option<f64>,
    /// Time grew by so much more than FLOPs: a ratio of ratios.
    pub excess: f64,
}

/// Time that grows by this much more than FLOPs from one point to the next is a cliff.
const CLIFF: f64 = 1.25;

impl Slope {
    /// Whether time grows more steeply than the analytic FLOPs explain.
    pub fn is_cliff(&self) -> bool {
        self.excess > CLIFF
    }
}

/// A sweep with its points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Swept {
    /// The size that grew.
    pub axis: Axis,
    /// Ascending.
    pub points: Vec<Point>,
    /// Between neighbours.
    pub slopes: Vec<Slope>,
}

impl Swept {
    /// The points in order, with the slopes between them.
    pub fn new(axis: Axis, points: Vec<Point>) -> Self {
        let measured: Vec<(usize, &Measurement)> =
            points.iter().filter_map(|point| Some((point.value, point.measured.as_ref()?))).collect();
        let slopes = measured.windows(2).map(|pair| slope(pair[0], pair[1])).collect();
        Self { axis, points, slopes }
    }

    /// What a figure shows of it.
    pub fn growth(&self) -> Growth {
        let point = |point: &Point| {
            let measured = point.measured.as_ref()?;
            Some(GrowthPoint {
                value: point.value as f64,
                milliseconds: measured.ms_per_step,
                quartiles: measured.ms_quartiles,
                flops: measured.flops_per_step as f64,
                memory: measured.peak_memory.map(|bytes| bytes as f64),
            })
        };
        let points: Vec<GrowthPoint> = self.points.iter().filter_map(point).collect();
        let label = self.axis.label().to_string();
        Growth { name: self.axis.figure(), label, note: self.conditions(), points }
    }

    /// What the other sizes were, and where.
    fn conditions(&self) -> String {
        let Some(one) = self.points.iter().find_map(|point| point.measured.as_ref()) else { return String::new() };
        let sizes = [
            (Axis::DModel, "d_model", one.d_model as u64),
            (Axis::Heads, "heads", one.heads as u64),
            (Axis::Batch, "batch", one.batch),
            (Axis::Length, "length", one.seq as u64),
            (Axis::Vocabulary, "vocabulary", one.vocab as u64),
        ];
        let others: Vec<String> = sizes
            .iter()
            .filter(|(axis, ..)| *axis != self.axis)
            .map(|(_, name, value)| format!("{name} {value}"))
            .chain([format!("layers {}", one.layers)])
            .collect();
        let threads = count(one.threads, "thread");
        format!("At {}; {} on {threads} of {}.", others.join(", "), one.backend, one.device)
    }
}

fn slope(left: (usize, &Measurement), right: (usize, &Measurement)) -> Slope {
    let ((from, left), (to, right)) = (left, right);
    let steps = (to as f64 / from as f64).ln();
    let of = |left: f64, right: f64| (right / left).ln() / steps;
    let beyond = |one: &Measurement| Some(one.peak_memory?.saturating_sub(one.memory_before?) as f64);
    let memory = beyond(left).zip(beyond(right)).filter(|(left, right)| *left > 0.0 && *right > 0.0);
    let (time, flops) =
        (right.ms_per_step / left.ms_per_step, right.flops_per_step as f64 / left.flops_per_step as f64);
    Slope {
        from,
        to,
        time: of(left.ms_per_step, right.ms_per_step),
        flops: of(left.flops_per_step as f64, right.flops_per_step as f64),
        memory: memory.map(|(left, right)| of(left, right)),
        excess: time / flops,
    }
}

/// How each point is measured.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where to compute.
    pub backend: Backend,
    /// CPU threads.
    pub threads: usize,
    /// Most steps of a point.
    pub steps: usize,
    /// Most seconds of a point's steps, beyond the fewest steps that are taken.
    pub seconds: f64,
}

/// Refuses sweeps around `base` of which a point can't be built.
///
/// # Errors
/// Names the point.
pub fn check(base: Sizes, sweeps: &[Sweep]) -> Result<(), GrowthError> {
    points(sweeps).try_for_each(|(axis, value)| match Workload::of_sizes(axis.at(base, value)) {
        Ok(_) => Ok(()),
        Err(error) => Err(GrowthError::Model { axis, value, error }),
    })
}

fn points(sweeps: &[Sweep]) -> impl Iterator<Item = (Axis, usize)> {
    sweeps.iter().flat_map(|sweep| sweep.values.iter().map(|value| (sweep.axis, *value)))
}

/// Measures every sweep around `base`, telling `tell` before each point.
///
/// # Errors
/// What [`check`] refuses, before anything is measured; a process that can't be started.
pub fn measure(
    base: Sizes,
    sweeps: &[Sweep],
    settings: Settings,
    tell: &mut dyn FnMut(Axis, usize),
) -> Result<Vec<Swept>, GrowthError> {
    check(base, sweeps)?;
    let mut done: BTreeMap<Sizes, (Option<Measurement>, Option<String>)> = BTreeMap::new();
    for (axis, value) in points(sweeps) {
        let sizes = axis.at(base, value);
        let Entry::Vacant(entry) = done.entry(sizes) else { continue };
        tell(axis, value);
        entry.insert(match point(sizes, settings).map_err(|error| GrowthError::Start { axis, value, error })? {
            Ok(measured) => (Some(measured), None),
            Err(missing) => (None, Some(missing)),
        });
    }
    let swept = |sweep: &Sweep| {
        let point = |value: &usize| {
            let (measured, missing) = done.get(&sweep.axis.at(base, *value)).cloned().unwrap_or_default();
            Point { value: *value, measured, missing }
        };
        Swept::new(sweep.axis, sweep.values.iter().map(point).collect())
    };
    Ok(sweeps.iter().map(swept).collect())
}

/// One point in a process of its own, or why there is none.
fn point(sizes: Sizes, settings: Settings) -> std::io::Result<Result<Measurement, String>> {
    // A process that the system ends for want of memory could take others with it.
    if let Some(missing) = too_large(sizes, settings.backend) {
        return Ok(Err(missing));
    }
    let Sizes { d_model, layers, heads, batch, seq, vocab } = sizes;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench", "--json", "--backend", settings.backend.name()]);
    command.args(["--threads", &settings.threads.to_string(), "--steps", &settings.steps.to_string()]);
    command.args(["--seconds", &settings.seconds.to_string()]);
    for (flag, size) in [
        ("--d-model", d_model),
        ("--layers", layers),
        ("--heads", heads),
        ("--batch", batch),
        ("--seq", seq),
        ("--vocab", vocab),
    ] {
        command.args([flag, &size.to_string()]);
    }
    let output = command.output()?;
    let measured = serde_json::from_slice(&output.stdout);
    Ok(match (output.status.success(), measured) {
        (true, Ok(measured)) => Ok(measured),
        (true, Err(error)) => Err(format!("its figures can't be read: {error}")),
        (false, _) => Err(match String::from_utf8_lossy(&output.stderr).trim() {
            "" => output.status.to_string(),
            words => format!("{words} ({})", output.status),
        }),
    })
}

fn too_large(sizes: Sizes, backend: Backend) -> Option<String> {
    if !matches!(backend, Backend::Flex | Backend::Ndarray) {
        return None;
    }
    let workload = Workload::of_sizes(sizes).ok()?;
    let needed = memory::needed(backend, &workload.model, workload.dims, sizes.batch, sizes.batch);
    let available = memory::available_bytes()?;
    (needed > available).then(|| format!("it needs about {} MiB, and {} MiB are free", needed >> 20, available >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured, but for what slopes are made of.
    fn measured(ms: f64, flops: u64, memory: u64) -> Measurement {
        let numbers = serde_json::json!({
            "program": "headcount 0", "commit": null, "backend": "flex", "device": "a processor", "cores": 2,
            "vector_extensions": [], "threads": 1, "share_waiting": 0.0, "name": "decoder", "d_model": 64, "layers": 2,
            "heads": 8, "batch": 32, "seq": 64, "vocab": 64, "parameters": 1, "tokens_per_step": 2048,
            "flops_per_step": flops, "steps": 30, "warm_up_steps": 10, "ms_per_step": ms, "ms_quartiles": [ms, ms],
            "ms_parts": {"data": 0.1, "forward": 0.1, "backward": 0.1, "optimiser": 0.1, "rest": 0.1},
            "ms_evaluation": 1.0, "evaluation_samples": 32, "tokens_per_s": 1.0, "gflops": 1.0, "matmul_gflops": 2.0,
            "matmul_size": 512, "share_of_peak": 0.5, "peak_memory": memory, "memory_before": 100,
        });
        serde_json::from_value(numbers).unwrap()
    }

    fn point(value: usize, measured: Option<Measurement>) -> Point {
        let missing = measured.is_none().then(|| "too large".to_string());
        Point { value, measured, missing }
    }

    #[test]
    fn slopes_are_powers_and_a_cliff_is_what_flops_do_not_explain() {
        let points = vec![
            point(32, Some(measured(10.0, 100, 1100))),
            point(64, Some(measured(40.0, 400, 2100))), // the square, as the FLOPs
            point(128, Some(measured(320.0, 1600, 4100))), // the cube
            point(256, None),
            point(512, Some(measured(320.0, 1600, 4100))),
        ];
        let swept = Swept::new(Axis::Length, points);
        let [square, cube, flat] = &swept.slopes[..] else { panic!("{:?}", swept.slopes) };
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(near(square.time, 2.0) && near(square.flops, 2.0) && near(square.memory.unwrap(), 1.0), "{square:?}");
        assert!(near(cube.time, 3.0) && near(cube.excess, 2.0), "{cube:?}");
        assert_eq!([square.is_cliff(), cube.is_cliff(), flat.is_cliff()], [false, true, false]);
        assert_eq!((flat.from, flat.to), (128, 512), "neighbours among what was measured");
        assert_eq!(swept.growth().points.len(), 4);
        assert_eq!(
            swept.growth().note,
            "At d_model 64, heads 8, batch 32, vocabulary 64, layers 2; flex on 1 thread of a processor."
        );
    }

    #[test]
    fn the_usual_sweeps_can_be_built() {
        assert_eq!(check(Sizes::default(), &Sweep::usual()).map_err(|error| error.to_string()), Ok(()));
    }
}
