//! The matching ledger: what the arms of an experiment share, in numbers, and whether that is what their regime
//! demands. Made before training from one manifest an arm, and again for the report from every run's. Runs are held against
//! each other pair by pair: what depends on the seed can differ between pairs, whichever of them are missing.

mod facts;
mod render;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use facts::{ArmDifference, ArmFacts};
pub use render::thousands;

use crate::{
    config::Config,
    experiment::{Experiment, Regime},
    manifest::{DataFile, Manifest, Program},
    seen::SeenInTraining,
};

/// A run as the ledger sees it.
#[derive(Clone, Copy, Debug)]
pub struct LedgerRun<'a> {
    /// Name of its arm.
    pub arm: &'a str,
    /// The pair it belongs to.
    pub pair: u64,
    /// Its resolved config.
    pub config: &'a Config,
    /// What it was.
    pub manifest: &'a Manifest,
}

/// What the arms share and where they differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ledger {
    /// The regime that the experiment declares.
    pub regime: Regime,
    /// Name of the arm that the others are held against.
    pub baseline: String,
    /// Learning rates were chosen for each arm, so that `train.lr` may differ.
    pub tuned: bool,
    /// Runs of several program versions or backends were allowed.
    pub mixed_ok: bool,
    /// Number of runs that were looked at.
    pub runs: usize,
    /// The arms, in the experiment's order; those without a run are left out.
    pub arms: Vec<ArmFacts>,
    /// Config keys in which an arm differs from the baseline.
    pub differences: Vec<ArmDifference>,
    /// Pairs whose two runs take another number of FLOPs a step.
    pub other_flops: Vec<FlopsMismatch>,
    /// Pairs whose two runs see other data.
    pub other_data: Vec<DataMismatch>,
    /// Pairs whose two runs start from other weights where shapes agree.
    pub other_weights: Vec<WeightsMismatch>,
    /// Pairs of runs that were held against each other for the three fields above.
    pub pairs_compared: usize,
    /// As many as the experiment has in all: before training only each arm's first run is looked at.
    #[serde(default)]
    pub pairs_planned: usize,
    /// Programs that ran, each once.
    pub programs: Vec<Program>,
    /// Backends that ran, each once, sorted.
    pub backends: Vec<String>,
    /// Vector instructions that ran, each once, sorted; see [`Manifest::simd`].
    #[serde(default)]
    pub simd: Vec<String>,
    /// Config keys that take the seed of the pair, the same for all arms.
    #[serde(default)]
    pub vary: Vec<String>,
    /// Test samples that training shows too, where there are more than a few; of one pair, as the others are much alike.
    #[serde(default)]
    pub seen: Vec<SeenInTraining>,
    /// Files that samples come from, each once, with their hashes; none where samples are generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataFile>,
}

/// Two runs of a pair with another cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlopsMismatch {
    pub arm: String,
    pub pair: u64,
    /// FLOPs of a step of the arm.
    pub found: u64,
    /// Those of the baseline.
    pub baseline: u64,
}

/// Two runs of a pair with other data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataMismatch {
    pub arm: String,
    pub pair: u64,
    /// Fingerprint of the arm's data.
    pub found: String,
    /// Fingerprint of the baseline's.
    pub baseline: String,
}

/// Two runs of a pair with other initial weights in tensors of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsMismatch {
    pub arm: String,
    pub pair: u64,
    /// Tensors that should be equal.
    pub shared: usize,
    /// Paths of those that are not.
    pub differing: Vec<String>,
}

/// Why arms don't match as their regime demands.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mismatch {
    /// A config key differs that may not.
    #[error(
        "{key} is {found} in `{arm}` and {baseline_value} in `{baseline}`: regime \"{}\" allows {}",
        .regime.name(), allowed(*.regime)
    )]
    Key { regime: Regime, arm: String, baseline: String, key: String, found: String, baseline_value: String },
    /// Too many or too few parameters.
    #[error(
        "`{arm}` has {found} parameters and `{baseline}` {expected}: {} apart, at most {most} allowed{advice}",
        .found.abs_diff(*.expected)
    )]
    Parameters { arm: String, baseline: String, found: u64, expected: u64, most: f64, advice: String },
    /// Another cost.
    #[error("pair {pair}: `{arm}` takes {found} FLOPs a step and `{baseline}` {expected}")]
    Flops { arm: String, baseline: String, pair: u64, found: u64, expected: u64 },
    /// Other data.
    #[error("pair {pair}: `{arm}` sees other data than `{baseline}`: {found} and {expected}")]
    Data { arm: String, baseline: String, pair: u64, found: String, expected: String },
    /// Other initial weights.
    #[error(
        "pair {pair}: {} of the {shared} initial tensors that `{arm}` shares with `{baseline}` differ, such as {}",
        .differing.len(), .differing.first().map_or("", String::as_str)
    )]
    Weights { arm: String, baseline: String, pair: u64, shared: usize, differing: Vec<String> },
    /// Runs of several programs.
    #[error("runs of different programs are not compared: {}", .programs.join("; "))]
    Programs { programs: Vec<String> },
    /// Runs of several backends.
    #[error("runs of different backends are not compared: {}", .backends.join(", "))]
    Backends { backends: Vec<String> },
    /// Runs on several kinds of vector instructions.
    #[error("runs of different vector instructions differ in last digits and are not compared, unless with --mixed: {}", .levels.join(", "))]
    Levels { levels: Vec<String> },
}

/// Mismatches as lines of text: keys that differ in several arms once, the first few, and what would let them be.
pub fn explain(regime: Regime, mismatches: &[Mismatch]) -> String {
    const MOST: usize = 6;
    let mut lines: Vec<String> = vec![];
    let mut keys: Vec<&str> = vec![];
    for mismatch in mismatches {
        match mismatch {
            Mismatch::Key { key, .. } if keys.contains(&key.as_str()) => {}
            Mismatch::Key { key, arm, .. } => {
                keys.push(key);
                let is_another =
                    |other: &&Mismatch| matches!(other, Mismatch::Key { key: k, arm: a, .. } if k == key && a != arm);
                let others = mismatches.iter().filter(is_another).count();
                let more = match others {
                    0 => String::new(),
                    1 => ", and in 1 other arm".into(),
                    others => format!(", and in {others} other arms"),
                };
                lines.push(format!("{mismatch}{more}"));
            }
            _ => lines.push(mismatch.to_string()),
        }
    }
    let left_out = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if left_out > 0 {
        lines.push(format!("and {left_out} more"));
    }
    let mut text = lines.iter().map(|line| format!("  - {line}")).collect::<Vec<_>>().join("\n");
    let of_machine = |mismatch: &Mismatch| {
        matches!(mismatch, Mismatch::Programs { .. } | Mismatch::Backends { .. } | Mismatch::Levels { .. })
    };
    if regime != Regime::Free && !mismatches.iter().all(of_machine) {
        text += "\n  `regime = \"free\"` in the experiment's file compares them all the same, and the report says what differs";
    }
    text
}

fn allowed(regime: Regime) -> &'static str {
    match regime {
        Regime::Split => "only model.heads and model.kv_heads to differ",
        Regime::Params => "only keys of [model] to differ",
        Regime::Free => "anything to differ",
    }
}

impl Ledger {
    /// Holds the runs of an experiment against each other: before training the first pair's, afterwards all. With
    /// `mixed_ok`, several program versions or backends are said rather than refused.
    pub fn new(experiment: &Experiment, runs: &[LedgerRun<'_>], mixed_ok: bool) -> Self {
        facts::ledger(experiment, runs, mixed_ok)
    }

    /// Whether the arms match as `regime` demands, or everything that speaks against it.
    ///
    /// # Errors
    /// Every mismatch, with its numbers.
    pub fn check(&self, regime: Regime) -> Result<(), Vec<Mismatch>> {
        let mut mismatches = vec![];
        if regime != Regime::Free {
            self.check_keys(regime, &mut mismatches);
            self.check_costs(regime, &mut mismatches);
            self.check_pairs(&mut mismatches);
        }
        if !self.mixed_ok {
            if self.programs.len() > 1 {
                mismatches
                    .push(Mismatch::Programs { programs: self.programs.iter().map(Program::to_string).collect() });
            }
            if self.backends.len() > 1 {
                mismatches.push(Mismatch::Backends { backends: self.backends.clone() });
            }
            if self.simd.len() > 1 {
                mismatches.push(Mismatch::Levels { levels: self.simd.clone() });
            }
        }
        if mismatches.is_empty() { Ok(()) } else { Err(mismatches) }
    }

    /// The baseline's facts, if it has a run.
    pub fn baseline(&self) -> Option<&ArmFacts> {
        self.arms.iter().find(|arm| arm.name == self.baseline)
    }

    fn check_keys(&self, regime: Regime, mismatches: &mut Vec<Mismatch>) {
        for difference in &self.differences {
            let key = difference.key.as_str();
            let may = match regime {
                Regime::Split => matches!(key, "model.heads" | "model.kv_heads"),
                Regime::Params | Regime::Free => key.starts_with("model."),
            };
            if may || key == "train.lr" && self.tuned || key == "backend" {
                continue;
            }
            let ArmDifference { arm, key, value, baseline_value } = difference.clone();
            let baseline = self.baseline.clone();
            mismatches.push(Mismatch::Key { regime, arm, baseline, key, found: value, baseline_value });
        }
    }

    fn check_costs(&self, regime: Regime, mismatches: &mut Vec<Mismatch>) {
        let Some(baseline) = self.baseline() else { return };
        let unit = (2 * baseline.d_model + 1) as f64;
        let most = if regime == Regime::Params { unit / 2.0 * baseline.layers as f64 } else { 0.0 };
        for arm in self.arms.iter().filter(|arm| arm.name != self.baseline) {
            let (found, expected) = (arm.parameters.total(), baseline.parameters.total());
            if found.abs_diff(expected) as f64 > most {
                let advice = match arm.nearest_d_ff.filter(|_| regime == Regime::Params) {
                    Some(d_ff) => format!("; model.d_ff = {d_ff} comes nearest"),
                    None => String::new(),
                };
                let (arm, baseline) = (arm.name.clone(), self.baseline.clone());
                mismatches.push(Mismatch::Parameters { arm, baseline, found, expected, most, advice });
            }
            // Pair by pair; the first says enough.
            let flops = self.other_flops.iter().find(|other| regime == Regime::Split && other.arm == arm.name);
            mismatches.extend(flops.map(|other| {
                let FlopsMismatch { arm, pair, found, baseline: expected } = other.clone();
                Mismatch::Flops { arm, baseline: self.baseline.clone(), pair, found, expected }
            }));
        }
    }

    fn check_pairs(&self, mismatches: &mut Vec<Mismatch>) {
        for other in &self.other_data {
            let DataMismatch { arm, pair, found, baseline: expected } = other.clone();
            mismatches.push(Mismatch::Data { arm, baseline: self.baseline.clone(), pair, found, expected });
        }
        for other in &self.other_weights {
            let WeightsMismatch { arm, pair, shared, differing } = other.clone();
            mismatches.push(Mismatch::Weights { arm, baseline: self.baseline.clone(), pair, shared, differing });
        }
    }
}

#[cfg(test)]
mod tests;
