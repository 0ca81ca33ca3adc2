//! One colour an arm, told apart by colour-blind eyes too.

use crate::results::Results;

/// Okabe and Ito 2008, "Color universal design", without yellow, which is too faint for lines on white.
const DISTINCT: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"];

/// Matplotlib's viridis (Smith and van der Walt 2015) from 0 to 0.85 in eighths: an order that reads as one.
const ORDERED: [&str; 9] =
    ["#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151"];

/// The colour and dash pattern of a figure of one arm alone.
pub(crate) const FIRST: (&str, &str) = (DISTINCT[0], "");

/// A colour and a dash pattern for each arm, in their order.
pub(crate) fn of_arms(results: &Results) -> Vec<(&'static str, &'static str)> {
    let count = results.arms.len();
    if results.sweep.is_some() && (3..=ORDERED.len()).contains(&count) {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| {
            let value = |index: usize| results.arms[index].sweep_value.unwrap_or_default();
            value(*a).total_cmp(&value(*b))
        });
        let mut colours = vec![("", ""); count];
        for (rank, index) in order.into_iter().enumerate() {
            colours[index] = (ORDERED[rank * (ORDERED.len() - 1) / (count - 1)], "");
        }
        return colours;
    }
    let dash = |index: usize| ["", "9 5", "3 4"].get(index / DISTINCT.len()).copied().unwrap_or("12 4 3 4");
    (0..count).map(|index| (DISTINCT[index % DISTINCT.len()], dash(index))).collect()
}
