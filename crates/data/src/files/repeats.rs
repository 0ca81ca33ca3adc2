//! Stretches that come again: how many of some windows stand, item for item, anywhere in other stretches.

use std::collections::{HashMap, HashSet};

/// The multiplier of the rolling hash; odd, and with its bits well mixed.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Windows that are looked for, all `width` long.
pub(super) struct Wanted {
    width: usize,
    /// The numbers of the windows with each hash.
    by_hash: HashMap<u64, Vec<usize>>,
    windows: usize,
    found: HashSet<usize>,
}

impl Wanted {
    pub fn new<I: IntoIterator<Item = u64>>(width: usize, windows: impl IntoIterator<Item = I>) -> Self {
        let mut wanted = Self { width, by_hash: HashMap::new(), windows: 0, found: HashSet::new() };
        for window in windows {
            let hash = window.into_iter().fold(0, step);
            wanted.by_hash.entry(hash).or_default().push(wanted.windows);
            wanted.windows += 1;
        }
        wanted
    }

    /// Looks through a stretch, given twice, since each item comes in and goes out; `is_same` compares a window with what stands at a
    /// place of the stretch, since hashes may be alike by chance.
    pub fn look_through(
        &mut self,
        coming: impl Iterator<Item = u64>,
        mut going: impl Iterator<Item = u64>,
        is_same: impl Fn(usize, usize) -> bool,
    ) {
        let leaves = (0..self.width).fold(1u64, |power, _| power.wrapping_mul(BASE));
        let mut hash = 0u64;
        for (read, item) in coming.enumerate() {
            hash = step(hash, item);
            if read >= self.width {
                let gone = going.next().unwrap_or(0);
                hash = hash.wrapping_sub(mix(gone).wrapping_mul(leaves));
            }
            let Some(start) = (read + 1).checked_sub(self.width) else { continue };
            if let Some(windows) = self.by_hash.get(&hash) {
                for &window in windows {
                    if !self.found.contains(&window) && is_same(window, start) {
                        self.found.insert(window);
                    }
                }
            }
        }
    }

    /// How many windows were found, and how many different hashes they have.
    pub fn counts(&self) -> (u64, u64) {
        (self.found.len() as u64, self.by_hash.len() as u64)
    }
}

fn step(hash: u64, item: u64) -> u64 {
    hash.wrapping_mul(BASE).wrapping_add(mix(item))
}

/// Spreads neighbouring numbers over all bits (the finaliser of SplitMix64).
fn mix(item: u64) -> u64 {
    let item = (item.wrapping_add(BASE) ^ item >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let item = (item ^ item >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    item ^ item >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_many_are_found_as_searching_finds(
            stretch in prop::collection::vec(0..3u64, 0..60),
            width in 1..5usize,
            starts in prop::collection::vec(prop::collection::vec(0..3u64, 5), 0..12),
        ) {
            let windows: Vec<Vec<u64>> = starts.into_iter().map(|window| window[..width].to_vec()).collect();
            let mut wanted = Wanted::new(width, windows.iter().map(|window| window.iter().copied()));
            let is_same = |window: usize, start: usize| stretch[start..start + width] == windows[window];
            wanted.look_through(stretch.iter().copied(), stretch.iter().copied(), is_same);
            let stands = |window: &&Vec<u64>| stretch.windows(width).any(|place| place == &window[..]);
            let distinct: HashSet<&Vec<u64>> = windows.iter().collect();
            prop_assert_eq!(wanted.counts(), (windows.iter().filter(stands).count() as u64, distinct.len() as u64));
        }
    }
}
