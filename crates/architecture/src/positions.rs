//! How a position tells the model where it stands: the one list of kinds, and what each does in numbers.
//!
//! A new kind is an entry of the list below, and where it does something that no other does, a few lines here and in
//! `positions.rs` of `headcount-model`, which does the same with tensors. All else asks: config files for names, costs for
//! trained numbers, checks for what must be even, the doctor for what to expect.

use serde::{Deserialize, Serialize};

/// What a kind of positions does.
#[derive(Clone, Copy, Debug)]
pub struct PositionKind {
    /// What is added to the embedding at a position.
    pub added: Added,
    /// The angle by which a pair of columns of queries and keys is turned, from (position, pair, K). Pair i is column i and
    /// column i + K/2 (the layout of GPT-NeoX and LLaMA), so K must be even.
    pub angle: Option<fn(usize, usize, usize) -> f64>,
}

/// What is added to the embedding at a position.
#[derive(Clone, Copy, Debug)]
pub enum Added {
    /// Nothing.
    Nothing,
    /// Fixed numbers: those of columns 2i and 2i + 1 from (position, i, D), so D must be even.
    Fixed(fn(usize, usize, usize) -> [f64; 2]),
    /// The position's row of a trained tensor `position.weight`, `[L, D]`.
    Trained,
}

/// Writes the enum, the list and what is asked of each kind from one entry a kind.
macro_rules! kinds {
    ($($(#[$doc:meta])+ $kind:ident = $name:literal => $does:expr,)+) => {
        /// How a position tells the model where it stands.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Positions {
            $($(#[$doc])+ #[serde(rename = $name)] $kind,)+
        }

        impl Positions {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The name in config files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What it does.
            pub fn kind(self) -> PositionKind {
                match self { $(Self::$kind => $does,)+ }
            }
        }
    };
}

kinds! {
    /// Not at all: order is seen through the causal mask only.
    None = "none" => PositionKind { added: Added::Nothing, angle: None },
    /// Fixed sines and cosines added to the token embedding (Vaswani 2017, section 3.5).
    Sinusoidal = "sinusoidal" => PositionKind { added: Added::Fixed(sine_and_cosine), angle: None },
    /// A trained vector for each position, added to the token embedding.
    Learned = "learned" => PositionKind { added: Added::Trained, angle: None },
    /// Queries and keys are rotated by an angle that grows with the position (Su 2021, RoFormer, equation 34): scores then
    /// depend on the distance only.
    Rope = "rope" => PositionKind { added: Added::Nothing, angle: Some(angle) },
}

impl Positions {
    /// Whether queries and keys are turned.
    pub fn rotates(self) -> bool {
        self.kind().angle.is_some()
    }

    /// Shape of the trained tensor `position.weight`, where there is one.
    pub fn trained(self, length: usize, d_model: usize) -> Option<[usize; 2]> {
        matches!(self.kind().added, Added::Trained).then_some([length, d_model])
    }

    /// The number added at a position to one of D columns; `trained` gives the entry of `position.weight` there.
    pub fn added(self, position: usize, column: usize, d_model: usize, trained: impl FnOnce() -> f64) -> f64 {
        match self.kind().added {
            Added::Nothing => 0.0,
            Added::Fixed(pair) => pair(position, column / 2, d_model)[column % 2],
            Added::Trained => trained(),
        }
    }
}

/// `position / 10000^(2·pair/width)`.
fn angle(position: usize, pair: usize, width: usize) -> f64 {
    position as f64 * 10_000f64.powf(-((2 * pair) as f64) / width as f64)
}

fn sine_and_cosine(position: usize, pair: usize, d_model: usize) -> [f64; 2] {
    let (sin, cos) = angle(position, pair, d_model).sin_cos();
    [sin, cos]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinusoidal_follows_the_paper() {
        // [math.sin(2 / 10000**(0/4)), math.cos(2), math.sin(2 / 10000**(2/4)), math.cos(2/100)]
        let expected =
            [0.909_297_426_825_681_7, -0.416_146_836_547_142_4, 0.019_998_666_693_333_08, 0.999_800_006_666_577_8];
        for (column, want) in expected.into_iter().enumerate() {
            let got = Positions::Sinusoidal.added(2, column, 4, || unreachable!());
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
    }

    #[test]
    fn names_go_both_ways() {
        for &positions in Positions::ALL {
            let text = serde_json::to_string(&positions).unwrap();
            assert_eq!(text, format!("\"{}\"", positions.name()));
            assert_eq!(serde_json::from_str::<Positions>(&text).unwrap(), positions);
        }
    }
}
