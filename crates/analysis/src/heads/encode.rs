//! Maps as small text: a byte a weight, in base64, within a budget.

use super::{SHOWN_POSITIONS, maps::Maps, record::ShownMaps};

/// Most characters that the maps of one file may take.
const MOST_CHARACTERS: usize = 512 << 10;
/// Most samples that are shown.
const MOST_SAMPLES: usize = 4;

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
        let fit = MOST_CHARACTERS / characters.max(1); // of pairs of a sample and a step
        let samples = (fit / steps.clamp(1, 4)).min(MOST_SAMPLES).min(available).max(fit.min(1));
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
        base64(&places.flat_map(|(b, i)| row(b, h, i)).collect::<Vec<u8>>())
    };
    ShownMaps { causal: is_causal, samples, queries, keys, heads: (0..maps.heads).map(head).collect() }
}

fn base64_length(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(base64_length(bytes.len()));
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 63;
            text.push(if place <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::maps::Readable;

    #[test]
    fn base64_is_that_of_the_rfc() {
        // RFC 4648, section 10.
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(base64_length(bytes.len()), text.len());
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn causal_maps_list_what_may_be_read() {
        let readable = Readable::new(1, &[false; 3], &[false; 3], true);
        let weights = [1.0, 0.0, 0.0, 0.25, 0.75, 0.0, 0.2, 0.3, 0.5];
        let maps = shown(Maps::new(1, &weights, &readable), 4, true);
        assert_eq!((maps.samples, maps.queries, maps.keys), (1, 3, 3));
        assert_eq!(maps.heads, [base64(&[255, 64, 191, 51, 77, 128])]);
        assert!(maps.heads[0].len() <= characters(1, 3, 3, true));
        // Not causal, and the second sample's last key is padding, on both sides.
        let padding = [false, false, false, true];
        let readable = Readable::new(2, &padding, &padding, false);
        let weights = [0.5, 0.5, 1.0, 0.0, /* sample 1 */ 1.0, 0.0, 0.4, 0.6];
        let maps = shown(Maps::new(1, &weights, &readable), 4, false);
        assert_eq!(maps.heads, [base64(&[128, 128, 255, 0, 255, 0, 0, 0])]);
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
            assert!(samples * shown * characters <= MOST_CHARACTERS && samples <= available, "{samples} {is_shown:?}");
            assert_eq!(shown > 0 && samples > 0, characters <= MOST_CHARACTERS);
            assert!(shown == 0 || is_shown[steps - 1], "{is_shown:?}");
            assert!(shown < 2 || is_shown[0], "{is_shown:?}");
        }
    }
}
