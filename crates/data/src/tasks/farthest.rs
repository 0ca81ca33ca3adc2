//! `farthest`: for each point of a sphere, the one furthest from it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::explain::explain;
use crate::parameter::Parameter;
use crate::sample::{NumberSizes, Numbers, Sample};

/// Parameters of `farthest`: N points, uniform on the unit sphere of R^d; each position must say the point furthest from its own
/// (Amsel, Yehudai and Bruna, arXiv 2407.16153).
///
/// Furthest is the smallest inner product; of equal ones, the first. With unit points the sum of squared errors over a point's d
/// numbers is what the paper plots, and its value for an answer of 0 everywhere is 1: it is `nmse` up to the square of the mean.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Farthest {
    /// d, the numbers of a point, 2 to 1,024.
    pub dim: usize,
    /// N, the points of a sample, 2 to 4,096.
    pub points: usize,
}

impl Default for Farthest {
    fn default() -> Self {
        Self { dim: 16, points: 3 }
    }
}

impl Farthest {
    /// The place of the point furthest from point `from`.
    fn furthest(&self, inputs: &[f32], from: usize) -> usize {
        let point = |place: usize| &inputs[place * self.dim..(place + 1) * self.dim];
        let along = |place: usize| {
            let products = point(place).iter().zip(point(from)).map(|(&a, &b)| f64::from(a) * f64::from(b));
            products.sum::<f64>()
        };
        let nearer = |least: (usize, f64), next: (usize, f64)| if next.1 < least.1 { next } else { least };
        (0..self.points).map(|place| (place, along(place))).fold((0, f64::INFINITY), nearer).0
    }
}

impl Definition for Farthest {
    fn kind(&self) -> &'static str {
        "farthest"
    }

    fn about(&self) -> &'static str {
        "Points of a sphere; at each of them the model must say the coordinates of the one furthest from it (arXiv \
        2407.16153). All points are compared with all, so attention has to look both ways."
    }

    fn prediction(&self) -> &'static str {
        "One head is best: a single one of full rank compares points exactly, and heads of less than the points' dimension \
        can't, however many there are. The opposite of registers."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { dim, points } = *self;
        vec![("dim", dim.into()), ("points", points.into())]
    }

    fn check(&self) -> Result<(), TaskError> {
        in_range("dim", self.dim, 2, 1024)?;
        in_range("points", self.points, 2, 4096)
    }

    fn vocab(&self) -> usize {
        0
    }

    fn outputs(&self) -> usize {
        0
    }

    fn seq_len(&self) -> usize {
        self.points
    }

    fn numbers(&self) -> Option<NumberSizes> {
        Some(NumberSizes { inputs: self.dim, outputs: self.dim })
    }

    fn both_ways(&self) -> bool {
        true
    }

    fn prepare(&self) -> Draw {
        let task = *self;
        Arc::new(move |stream| {
            let Self { dim, points } = task;
            let mut inputs = Vec::with_capacity(points * dim);
            while inputs.len() < points * dim {
                let point: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
                let length = point.iter().map(|number| number * number).sum::<f64>().sqrt();
                if length > 0.0 {
                    inputs.extend(point.into_iter().map(|number| (number / length) as f32));
                }
            }
            let target = |from| {
                let furthest = task.furthest(&inputs, from);
                inputs[furthest * dim..(furthest + 1) * dim].to_vec()
            };
            let targets = (0..points).flat_map(target).collect();
            Sample::of_numbers(points, Numbers { inputs, targets, scored: vec![true; points] })
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        explain(self, sample)
    }

    /// `farthest point`.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let inputs = sample.numbers.as_ref().map_or(&[][..], |numbers| &numbers.inputs);
        vec![Needed::own("farthest point", vec![self.furthest(inputs, position)])]
    }
}
