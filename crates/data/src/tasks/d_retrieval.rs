//! `d_retrieval`: the sum of the greatest values in several directions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::definition::{Definition, Draw, Needed};
use crate::error::{TaskError, in_range};
use crate::explain::explain;
use crate::parameter::Parameter;
use crate::random::Stream;
use crate::sample::{NumberSizes, Numbers, Sample};

/// Parameters of `d_retrieval`: y = sum over i of max over t of a_i · x_t (Yu et al., arXiv 2510.06662, the synthetic task of
/// table 3).
///
/// T points x_t of R^d are standard normal. The D directions a_i are orthonormal: normal vectors, made so by Gram and Schmidt; the
/// paper does not say which it takes, and by the symmetry of x only the angles between them matter. The answer is one number
/// for the whole sample, at the last position.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DRetrieval {
    /// D, how many directions there are, 1 to `dim`.
    pub retrievals: usize,
    /// d, the numbers of a point, 1 to 256.
    pub dim: usize,
    /// T, the points of a sample, 1 to 65,536.
    pub seq_len: usize,
    /// Seed of the directions.
    pub direction_seed: u64,
}

impl Default for DRetrieval {
    fn default() -> Self {
        Self { retrievals: 4, dim: 4, seq_len: 128, direction_seed: 0 }
    }
}

impl DRetrieval {
    /// a, `[D, d]`: orthonormal.
    pub fn directions(&self) -> Vec<Vec<f64>> {
        let parameters = format!("retrievals={}\ndim={}\nseed={}\n", self.retrievals, self.dim, self.direction_seed);
        let mut stream = Stream::shared(&["d_retrieval directions", &parameters]);
        let mut directions: Vec<Vec<f64>> = vec![];
        while directions.len() < self.retrievals {
            let mut direction: Vec<f64> = (0..self.dim).map(|_| stream.normal()).collect();
            // Twice, since once leaves rounding errors that grow with what was taken away.
            for other in directions.iter().chain(&directions) {
                let along = dot(&direction, other);
                direction.iter_mut().zip(other).for_each(|(number, other)| *number -= along * other);
            }
            let length = dot(&direction, &direction).sqrt();
            // A shorter rest is mostly rounding errors; another vector takes its place.
            if length > 1e-6 {
                direction.iter_mut().for_each(|number| *number /= length);
                directions.push(direction);
            }
        }
        directions
    }

    /// Where a_i · x_t is greatest, and how great.
    fn greatest(&self, direction: &[f64], inputs: &[f32]) -> (usize, f64) {
        let along = |point: &[f32]| point.iter().zip(direction).map(|(&x, a)| f64::from(x) * a).sum::<f64>();
        let values = inputs.chunks(self.dim).map(along).enumerate();
        values.fold((0, f64::NEG_INFINITY), |most, next| if next.1 > most.1 { next } else { most })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Definition for DRetrieval {
    fn kind(&self) -> &'static str {
        "d_retrieval"
    }

    fn about(&self) -> &'static str {
        "Points of numbers; the model must say one number for all of them: in each of several directions the greatest \
        coordinate that any point has, added up (generalised D-retrieval, arXiv 2510.06662)."
    }

    fn prediction(&self) -> &'static str {
        "One layer needs a head for each direction: the error falls by orders of magnitude at heads = retrievals, 4 unless \
        set. With fewer heads a sample of length T has to be squeezed through them, which takes parameters exponential in T."
    }

    fn parameters(&self) -> Vec<(&'static str, Parameter)> {
        let Self { retrievals, dim, seq_len, direction_seed } = *self;
        vec![
            ("retrievals", retrievals.into()),
            ("dim", dim.into()),
            ("seq_len", seq_len.into()),
            ("direction_seed", direction_seed.into()),
        ]
    }

    fn instance_seeds(&self) -> &'static [&'static str] {
        &["direction_seed"]
    }

    fn check(&self) -> Result<(), TaskError> {
        let Self { retrievals, dim, seq_len, direction_seed } = *self;
        in_range("retrievals", retrievals, 1, 256)?;
        in_range("dim", dim, 1, 256)?;
        in_range("seq_len", seq_len, 1, 65_536)?;
        in_range("direction_seed", direction_seed, 0, i64::MAX as u64)?; // TOML has no larger integers
        if retrievals > dim {
            let message = format!("retrievals = {retrievals} orthogonal directions do not fit into dim = {dim}");
            return Err(TaskError::Impossible { keys: &["retrievals", "dim"], message });
        }
        Ok(())
    }

    fn vocab(&self) -> usize {
        0
    }

    fn outputs(&self) -> usize {
        0
    }

    fn seq_len(&self) -> usize {
        self.seq_len
    }

    fn numbers(&self) -> Option<NumberSizes> {
        Some(NumberSizes { inputs: self.dim, outputs: 1 })
    }

    fn one_answer(&self) -> bool {
        true
    }

    fn prepare(&self) -> Draw {
        let (task, directions) = (*self, self.directions());
        Arc::new(move |stream| {
            let len = task.seq_len;
            let inputs: Vec<f32> = (0..len * task.dim).map(|_| stream.normal() as f32).collect();
            let mut targets = vec![0.0; len];
            let answer: f64 = directions.iter().map(|direction| task.greatest(direction, &inputs).1).sum();
            targets[len - 1] = answer as f32;
            let scored = (1..=len).map(|position| position == len).collect();
            Sample::of_numbers(len, Numbers { inputs, targets, scored })
        })
    }

    fn explain(&self, sample: &Sample) -> String {
        explain(self, sample)
    }

    /// `direction i`: the point that goes furthest in it.
    fn needed(&self, sample: &Sample, position: usize) -> Vec<Needed> {
        let Some(numbers) = sample.numbers.as_ref().filter(|_| position + 1 == self.seq_len) else { return vec![] };
        let group = |(number, direction): (usize, Vec<f64>)| {
            Needed::own(format!("direction {number}"), vec![self.greatest(&direction, &numbers.inputs).0])
        };
        self.directions().into_iter().enumerate().map(group).collect()
    }
}
