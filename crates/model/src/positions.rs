//! Where a position's number comes from: fixed sines, or rotation of queries and keys.

use burn::tensor::{Device, Tensor, TensorData};

/// Sines and cosines of Vaswani 2017, section 3.5: column 2i holds sin(t / 10000^(2i/D)), column 2i+1 the cosine.
/// Shape `[L, D]`; D must be even.
pub fn sinusoidal(length: usize, d_model: usize, device: &Device) -> Tensor<2> {
    let mut table = Vec::with_capacity(length * d_model);
    for position in 0..length {
        for pair in 0..d_model / 2 {
            let (sin, cos) = (position as f64 * frequency(2 * pair, d_model)).sin_cos();
            table.extend([sin as f32, cos as f32]);
        }
    }
    Tensor::from_data(TensorData::new(table, [length, d_model]), device)
}

/// Rotates each query or key by an angle that grows with its position (Su 2021, equation 34): scores then depend on
/// the distance only.
///
/// `x` is `[B, H, L, K]` with K even, its first row at position `first`. Column i is paired with column i + K/2 (the
/// layout of GPT-NeoX and LLaMA), frequency 10000^(−2i/K).
pub fn rotate(x: Tensor<4>, first: usize) -> Tensor<4> {
    let [_, _, length, d_head] = x.dims();
    let half = d_head / 2;
    let (mut sines, mut cosines) = (Vec::with_capacity(length * half), Vec::with_capacity(length * half));
    for position in first..first + length {
        for pair in 0..half {
            let (sin, cos) = (position as f64 * frequency(2 * pair, d_head)).sin_cos();
            sines.push(sin as f32);
            cosines.push(cos as f32);
        }
    }
    let table = |values| Tensor::<4>::from_data(TensorData::new(values, [1, 1, length, half]), &x.device());
    let (sin, cos) = (table(sines), table(cosines));
    let left = x.clone().narrow(3, 0, half);
    let right = x.narrow(3, half, half);
    Tensor::cat(vec![left.clone() * cos.clone() - right.clone() * sin.clone(), right * cos + left * sin], 3)
}

fn frequency(column: usize, width: usize) -> f64 {
    10_000f64.powf(-(column as f64) / width as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers<const N: usize>(x: Tensor<N>) -> Vec<f32> {
        x.into_data().try_into_vec().unwrap()
    }

    #[test]
    fn sinusoidal_follows_the_paper() {
        let table = numbers(sinusoidal(3, 4, &Device::flex()));
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
        let (at_0, at_5) = (numbers(rotate(x.clone(), 0)), numbers(rotate(x, 5)));
        assert!(at_0.iter().zip(&at_5).any(|(a, b)| (a - b).abs() > 0.1));
    }

    /// Scores between rotated queries and keys depend on their distance alone.
    #[test]
    fn rotation_is_relative() {
        let device = Device::flex();
        let row = |values: [f32; 4]| Tensor::<4>::from_data(TensorData::new(values.to_vec(), [1, 1, 1, 4]), &device);
        let score = |i, j| {
            let q = rotate(row([0.3, -1.0, 2.0, 0.7]), i);
            let k = rotate(row([1.1, 0.2, -0.4, 0.9]), j);
            numbers((q * k).sum())[0]
        };
        assert!((score(2, 0) - score(9, 7)).abs() < 1e-5);
        assert!((score(2, 0) - score(3, 0)).abs() > 1e-2);
    }
}
