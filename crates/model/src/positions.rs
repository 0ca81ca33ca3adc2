//! Where a token stands, and what each kind of [`Positions`] makes of it: numbers added to embeddings, or rotation of queries
//! and keys. What is in the numbers is written beside the list of kinds.

use architecture::{Added, Positions};
use burn::module::{Module, Param};
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::initial::InitialWeights;

/// Where the L tokens of an input stand. Positions count from a sample's first real token, so that a prompt that is padded
/// on the left is the same prompt; padding before it stands at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    first: usize,
    length: usize,
    /// Padding before the first real token of each sample, `[B]`; empty where no sample has any.
    leading: Vec<usize>,
}

impl Span {
    /// L tokens of which the first stands at `first` in every sample.
    pub fn new(first: usize, length: usize) -> Self {
        Self { first, length, leading: vec![] }
    }

    /// L tokens, the first of them after `first` others. `leading` `[B]` says with how many tokens of padding each sample
    /// begins, counted from the first of those others on.
    pub fn after_padding(first: usize, length: usize, leading: &[usize]) -> Self {
        let has_any = leading.iter().any(|&count| count > 0);
        Self { first, length, leading: if has_any { leading.to_vec() } else { vec![] } }
    }

    /// The L tokens of a whole input, whose padding, if any, is `[B, L]`, row-major.
    pub(crate) fn of_input(length: usize, padding: Option<&[bool]>) -> Self {
        let count = |row: &[bool]| row.iter().take_while(|&&is_padding| is_padding).count();
        let leading: Vec<usize> =
            padding.map(|padding| padding.chunks(length.max(1)).map(count).collect()).unwrap_or_default();
        Self::after_padding(0, length, &leading)
    }

    /// The first position, where it is the same in every sample.
    pub(crate) fn common_first(&self) -> Option<usize> {
        self.leading.is_empty().then_some(self.first)
    }

    /// Rows of [`Span::positions`]: B, or 1 where every sample has the same.
    pub fn rows(&self) -> usize {
        self.leading.len().max(1)
    }

    /// Every token's position, `[rows, L]`, row-major.
    pub fn positions(&self) -> Vec<usize> {
        let row = |leading: usize| (self.first..self.first + self.length).map(move |t| t.saturating_sub(leading));
        if self.leading.is_empty() { row(0).collect() } else { self.leading.iter().copied().flat_map(row).collect() }
    }

    /// Positions that the longest sample takes up, those before this input included.
    pub fn end(&self) -> usize {
        (self.first + self.length).saturating_sub(self.leading.iter().copied().min().unwrap_or(0))
    }
}

/// What positions add to embeddings.
///
/// | parameter | shape |
/// |---|---|
/// | `weight` | `[length, D]`, where positions are trained |
#[derive(Module, Debug)]
pub struct PositionEmbedding {
    weight: Option<Param<Tensor<2>>>,
    #[module(skip)]
    positions: Positions,
}

impl PositionEmbedding {
    /// Positions of inputs of at most `length`, with initial weights under `path`.
    pub fn new(positions: Positions, path: &str, length: usize, d_model: usize, initial: &InitialWeights) -> Self {
        let weight = positions.trained(length, d_model).map(|[rows, columns]| initial.embedding(path, rows, columns));
        Self { weight, positions }
    }

    /// Positions that there are, where their number is limited.
    pub fn most(&self) -> Option<usize> {
        self.weight.as_ref().map(|weight| weight.dims()[0])
    }

    /// `x` `[B, L, D]` with its positions added.
    pub fn add(&self, x: Tensor<3>, span: &Span) -> Tensor<3> {
        let [_, l, d] = x.dims();
        match (self.positions.kind().added, &self.weight) {
            (Added::Fixed(pair), _) => {
                let table = fixed(pair, span, d, &x.device());
                x + table
            }
            (Added::Trained, Some(weight)) => {
                let rows = match span.common_first() {
                    Some(first) => weight.val().narrow(0, first, l).unsqueeze::<3>(),
                    None => {
                        let rows: Vec<i32> = span.positions().into_iter().map(|position| position as i32).collect();
                        let count = rows.len();
                        let rows = Tensor::<1, Int>::from_data(TensorData::new(rows, [count]), &x.device());
                        weight.val().select(0, rows).reshape([span.rows(), l, d])
                    }
                };
                x + rows
            }
            (Added::Nothing, _) | (Added::Trained, None) => x,
        }
    }
}

/// The numbers of `pair` at the positions of `span`, `[rows, L, D]`, see [`Span::rows`].
fn fixed(pair: fn(usize, usize, usize) -> [f64; 2], span: &Span, d_model: usize, device: &Device) -> Tensor<3> {
    let mut table = Vec::with_capacity(span.rows() * span.length * d_model);
    for position in span.positions() {
        for index in 0..d_model / 2 {
            table.extend(pair(position, index, d_model).map(|number| number as f32));
        }
    }
    Tensor::from_data(TensorData::new(table, [span.rows(), span.length, d_model]), device)
}

/// Queries or keys `x` `[B, H, L, K]` at the positions of `span`, each pair of columns i and i + K/2 turned by the angle of
/// its position; as they are where `positions` turn nothing.
pub fn rotate(positions: Positions, x: Tensor<4>, span: &Span) -> Tensor<4> {
    let Some(angle) = positions.kind().angle else { return x };
    let d_head = x.dims()[3];
    let half = d_head / 2;
    let (mut sines, mut cosines) = (Vec::new(), Vec::new());
    for position in span.positions() {
        for pair in 0..half {
            let (sin, cos) = angle(position, pair, d_head).sin_cos();
            sines.push(sin as f32);
            cosines.push(cos as f32);
        }
    }
    let shape = [span.rows(), 1, span.length, half];
    let table = |values| Tensor::<4>::from_data(TensorData::new(values, shape), &x.device());
    let (sin, cos) = (table(sines), table(cosines));
    let left = x.clone().narrow(3, 0, half);
    let right = x.narrow(3, half, half);
    Tensor::cat(vec![left.clone() * cos.clone() - right.clone() * sin.clone(), right * cos + left * sin], 3)
}

#[cfg(test)]
mod tests {
    use architecture::Init;

    use super::*;

    fn numbers<const N: usize>(x: Tensor<N>) -> Vec<f32> {
        x.into_data().try_into_vec().unwrap()
    }

    #[test]
    fn sinusoidal_follows_the_paper() {
        let device = Device::flex();
        let initial = InitialWeights::new(Init::Torch, 1, 0, &device);
        let positions = PositionEmbedding::new(Positions::Sinusoidal, "position", 3, 4, &initial);
        let table = numbers(positions.add(Tensor::zeros([1, 3, 4], &device), &Span::new(0, 3)));
        // [math.sin(2 / 10000**(0/4)), math.cos(2), math.sin(2 / 10000**(2/4)), math.cos(2/100)]
        let expected = [0.909_297_4, -0.416_146_84, 0.019_998_668, 0.999_8];
        for (got, want) in table[8..].iter().zip(expected) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
    }

    /// rotary-embedding-torch#11: an offset must change the rotation.
    #[test]
    fn rotary_embedding_torch_11_offsets_rotate_differently() {
        let x = Tensor::<4>::ones([1, 1, 3, 8], &Device::flex());
        let at = |first| numbers(rotate(Positions::Rope, x.clone(), &Span::new(first, 3)));
        let (at_0, at_5) = (at(0), at(5));
        assert!(at_0.iter().zip(&at_5).any(|(a, b)| (a - b).abs() > 0.1));
    }

    /// unslothai/unsloth#4100: what stands before the first real token takes up no position.
    #[test]
    fn unsloth_4100_positions_count_from_the_first_real_token() {
        let padding = [true, true, false, false, false, false, false, true, true, true, true, true];
        let span = Span::of_input(4, Some(&padding));
        assert_eq!(span.positions(), [0, 0, 0, 1, 0, 1, 2, 3, 0, 0, 0, 0]);
        assert_eq!((span.rows(), span.end(), span.common_first()), (3, 4, None));
        let next = Span::after_padding(4, 2, &[2, 1]);
        assert_eq!((next.positions(), next.end()), (vec![2, 3, 3, 4], 5));
        let same = Span::after_padding(4, 2, &[0, 0]);
        assert_eq!((same.positions(), same.rows(), same.common_first()), (vec![4, 5], 1, Some(4)));
        assert_eq!(same, Span::new(4, 2));
    }

    /// Scores between rotated queries and keys depend on their distance alone.
    #[test]
    fn rotation_is_relative() {
        let device = Device::flex();
        let row = |values: [f32; 4]| Tensor::<4>::from_data(TensorData::new(values.to_vec(), [1, 1, 1, 4]), &device);
        let score = |i, j| {
            let q = rotate(Positions::Rope, row([0.3, -1.0, 2.0, 0.7]), &Span::new(i, 1));
            let k = rotate(Positions::Rope, row([1.1, 0.2, -0.4, 0.9]), &Span::new(j, 1));
            numbers((q * k).sum())[0]
        };
        assert!((score(2, 0) - score(9, 7)).abs() < 1e-5);
        assert!((score(2, 0) - score(3, 0)).abs() > 1e-2);
    }
}
