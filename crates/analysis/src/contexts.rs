//! What the heads of a layer have read, and how much of what the layer writes comes from each.

/// Contexts of one layer on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct Contexts {
    /// `[B, H, L, K]`.
    pub shape: [usize; 4],
    /// Row-major.
    pub values: Vec<f32>,
}

impl Contexts {
    /// The context of head `h` at position `i` of sample `b`, `[K]`.
    pub fn at(&self, b: usize, h: usize, i: usize) -> &[f32] {
        let [_, heads, l, k] = self.shape;
        &self.values[((b * heads + h) * l + i) * k..][..k]
    }

    /// `[H][L][K]`: the mean over the samples that hold no padding at the position; 0 where all do. `padding` is `[B][L]`.
    pub fn mean(&self, padding: &[bool]) -> Vec<f32> {
        let [b, heads, l, k] = self.shape;
        let mut means = Vec::with_capacity(heads * l * k);
        for (h, i) in (0..heads).flat_map(|h| (0..l).map(move |i| (h, i))) {
            let real: Vec<&[f32]> = (0..b).filter(|b| !padding[b * l + i]).map(|b| self.at(b, h, i)).collect();
            let sum = |c: usize| real.iter().map(|context| f64::from(context[c])).sum::<f64>();
            means.extend((0..k).map(|c| (sum(c) / real.len().max(1) as f64) as f32));
        }
        means
    }

    /// `[H]`: each head's mean of `‖context · W_h‖` over the positions without padding, over the sum of these means, so that
    /// the shares sum to 1; all 0 where nothing is written. `output` is the projection `[H·K][D]`, or `[K][D]` where heads are
    /// averaged. Its bias belongs to no head.
    pub fn output_shares(&self, output: &[f32], d_model: usize, padding: &[bool]) -> Vec<f64> {
        let [b, heads, l, k] = self.shape;
        let is_averaged = output.len() == k * d_model; // by 1/H, which no share shows
        let norms = |h: usize| {
            let first = if is_averaged { 0 } else { h * k };
            let gram = gram(&output[first * d_model..(first + k) * d_model], d_model);
            let places = (0..b).flat_map(|b| (0..l).map(move |i| (b, i))).filter(|(b, i)| !padding[b * l + i]);
            places.map(|(b, i)| norm(self.at(b, h, i), &gram)).sum::<f64>()
        };
        let sums: Vec<f64> = (0..heads).map(norms).collect();
        let total: f64 = sums.iter().sum();
        sums.into_iter().map(|sum| if total > 0.0 { sum / total } else { 0.0 }).collect()
    }
}

/// `W Wᵀ` of `rows` `[K][D]`, `[K][K]`.
fn gram(rows: &[f32], d_model: usize) -> Vec<f64> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    let rows = || rows.chunks(d_model);
    rows().flat_map(|a| rows().map(move |b| dot(a, b))).collect()
}

/// `‖c W‖`, from `‖c W‖² = c (W Wᵀ) cᵀ`: W has D columns, `W Wᵀ` only K.
fn norm(context: &[f32], gram: &[f64]) -> f64 {
    let k = context.len();
    let product = |row: &[f64]| row.iter().zip(context).map(|(&g, &c)| g * f64::from(c)).sum::<f64>();
    gram.chunks(k).zip(context).map(|(row, &c)| f64::from(c) * product(row)).sum::<f64>().max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two samples, two heads, two positions, K = 2; position 1 of sample 1 is padding.
    fn contexts() -> (Contexts, [bool; 4]) {
        let values = vec![
            1.0, 0.0, 0.0, 2.0, /* head 1 */ 3.0, 4.0, 0.0, 0.0, // sample 0
            3.0, 0.0, 9.0, 9.0, /* head 1 */ 0.0, 5.0, 9.0, 9.0, // sample 1
        ];
        (Contexts { shape: [2, 2, 2, 2], values }, [false, false, false, true])
    }

    #[test]
    fn means_leave_padding_out() {
        let (contexts, padding) = contexts();
        assert_eq!(contexts.mean(&padding), [2.0, 0.0, 0.0, 2.0, 1.5, 4.5, 0.0, 0.0]);
        assert_eq!(contexts.mean(&[true; 4]), [0.0; 8]);
    }

    #[test]
    fn shares_follow_the_projection() {
        let (contexts, padding) = contexts();
        // D = 3; head 0 keeps its length, head 1 keeps a tenth of its first column.
        let output = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, /* head 1 */ 0.0, 0.1, 0.0, 0.0, 0.0, 0.0];
        let shares = contexts.output_shares(&output, 3, &padding);
        // Head 0: 1 + 2 + 3. Head 1: 0.3 + 0 + 0.
        assert!((shares[0] - 6.0 / 6.3).abs() < 1e-7 && (shares[1] - 0.3 / 6.3).abs() < 1e-7, "{shares:?}");
        // One projection for all heads, as where they are averaged: 6 and 5 + 0 + 5.
        let shares = contexts.output_shares(&output[..6], 3, &padding);
        assert!((shares[0] - 6.0 / 16.0).abs() < 1e-12, "{shares:?}");
        assert_eq!(contexts.output_shares(&[0.0; 12], 3, &padding), [0.0, 0.0]);
    }
}
