//! Maps as small text: a byte a weight, in base64, within a budget.

use base64::{Engine, prelude::BASE64_STANDARD};
use runs::heads::{SHOWN_POSITIONS, ShownMaps};

use crate::{
    limits::{MAP_CHARACTERS, SHOWN_SAMPLES},
    maps::Maps,
};

/// How many samples, and at which of the analysed steps, are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Samples of each such step, 0 to 4.
    pub samples: usize,
    /// Whether a step's maps are kept.
    pub is_shown: Vec<bool>,
}

impl Plan {
    /// For `steps` analysed steps, where the maps of one sample at one step take `characters`: four samples if they leave room
    /// for four steps (or for all, if there are fewer), else as many as do; then as many steps as there is room for, spread
    /// evenly, the first and the last among them. None where not even one fits.
    pub fn new(steps: usize, available: usize, characters: usize) -> Self {
        let fit = MAP_CHARACTERS / characters.max(1); // of pairs of a sample and a step
        let samples = (fit / steps.clamp(1, 4)).min(SHOWN_SAMPLES).min(available).max(fit.min(1));
        let shown = (fit / samples.max(1)).min(steps);
        let is_shown = |step: usize| match shown {
            0 => false,
            1 => step + 1 == steps,
            _ => (0..shown).any(|place| (place * (steps - 1) + (shown - 1) / 2) / (shown - 1) == step),
        };
        Self { samples, is_shown: (0..steps).map(is_shown).collect() }
    }
}

/// Characters that the maps of one sample take in [`shown`], for `heads` heads.
pub fn characters(heads: usize, queries: usize, keys: usize, is_causal: bool) -> usize {
    let (queries, keys) = (queries.min(SHOWN_POSITIONS), keys.min(SHOWN_POSITIONS));
    let entries = if is_causal { queries * (queries + 1) / 2 } else { queries * keys };
    heads * base64_length(entries)
}

/// The first `samples` samples of a layer's maps; see [`ShownMaps`].
pub fn shown(maps: Maps, samples: usize, is_causal: bool) -> ShownMaps {
    let (queries, keys) = (maps.queries().min(SHOWN_POSITIONS), maps.keys().min(SHOWN_POSITIONS));
    let samples = samples.min(maps.batch());
    let row = |b: usize, h: usize, i: usize| {
        let listed = if is_causal { i + 1 } else { keys };
        let weights = maps.row(b, h, i).iter().zip(maps.readable.row(b, i)).take(listed);
        weights.map(|(&weight, &readable)| if readable { (weight.clamp(0.0, 1.0) * 255.0).round() as u8 } else { 0 })
    };
    let head = |h: usize| {
        let places = (0..samples).flat_map(|b| (0..queries).map(move |i| (b, i)));
        BASE64_STANDARD.encode(places.flat_map(|(b, i)| row(b, h, i)).collect::<Vec<u8>>())
    };
    ShownMaps { causal: is_causal, samples, queries, keys, heads: (0..maps.heads).map(head).collect() }
}

/// The same maps of the first `samples` samples alone.
pub fn cut(maps: &ShownMaps, samples: usize) -> Option<ShownMaps> {
    let heads = maps.heads.iter().map(|head| {
        let bytes = BASE64_STANDARD.decode(head).ok()?;
        let of_sample = bytes.len() / maps.samples.max(1);
        Some(BASE64_STANDARD.encode(bytes.get(..samples * of_sample)?))
    });
    Some(ShownMaps { samples, heads: heads.collect::<Option<_>>()?, ..maps.clone() })
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Readable;

    #[test]
    fn causal_maps_list_what_may_be_read() {
        let readable = Readable::new(1, &[false; 3], &[false; 3], true);
        let weights = [1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 0.2, 0.3, 0.5];
        let maps = shown(Maps::new(1, &weights, &readable), 4, true);
        assert_eq!((maps.samples, maps.queries, maps.keys), (1, 3, 3));
        assert_eq!(maps.heads, [BASE64_STANDARD.encode([255, 64, 191, 51, 77, 128])]);
        assert_eq!(maps.heads[0].len(), characters(1, 3, 3, true));
        // Not causal, and the second sample's last key is padding, on both sides.
        let padding = [false, false, false, true];
        let readable = Readable::new(2, &padding, &padding, false);
        let weights = [0.5, 0.5, 1.0, 0.0, /* sample 1 */ 1.0, 0.0, 0.4, 0.6];
        let maps = shown(Maps::new(1, &weights, &readable), 4, false);
        assert_eq!(maps.heads, [BASE64_STANDARD.encode([128, 128, 255, 0, 255, 0, 0, 0])]);
    }

    #[test]
    fn files_stay_small_and_show_both_ends() {
        // 8 heads of registers: all fits.
        let characters = characters(8, 32, 32, true);
        assert_eq!(characters, 8 * 704);
        assert_eq!(Plan::new(9, 64, characters), Plan { samples: 4, is_shown: vec![true; 9] });
        // 4 layers of 16 heads: two samples at five of the nine steps.
        let plan = Plan::new(9, 64, 64 * 704);
        let expected = [true, false, true, false, true, false, true, false, true];
        assert_eq!(plan, Plan { samples: 2, is_shown: expected.to_vec() });
        for (steps, available, characters) in
            [(1, 64, 1), (2, 1, 1000), (9, 64, 200_000), (9, 64, 600_000), (9, 64, 300_000)]
        {
            let Plan { samples, is_shown } = Plan::new(steps, available, characters);
            let shown = is_shown.iter().filter(|&&shown| shown).count();
            assert!(samples * shown * characters <= MAP_CHARACTERS && samples <= available, "{samples} {is_shown:?}");
            assert_eq!(shown > 0 && samples > 0, characters <= MAP_CHARACTERS);
            assert!(shown == 0 || is_shown[steps - 1], "{is_shown:?}");
            assert!(shown < 2 || is_shown[0], "{is_shown:?}");
        }
    }
}
