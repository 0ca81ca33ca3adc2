//! The content of an experiment's `heads.json`: every run's heads, and what can be said across seeds.
//!
//! Heads have no identity across seeds: head 3 of one run is not head 3 of another. So nothing here averages over a head's
//! number. What is averaged are means over all heads of a run, counts of flagged heads, values sorted within a run, and for
//! `registers` the best head of each register.

use serde::{Deserialize, Serialize};

use statistics::describe::mean_of_checked;

use super::record::{Flag, HeadAnalysis, HeadMeasures, StepAnalysis};

/// The content of an experiment's `heads.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentHeads {
    /// [`super::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the experiment.
    pub name: String,
    /// Every arm, in the order of the experiment.
    pub arms: Vec<ArmHeads>,
}

/// One arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmHeads {
    /// Such as `h8`.
    pub name: String,
    /// Such as "8 heads".
    pub label: String,
    /// Across the runs that finished, before training; `null` if none did.
    pub untrained: Option<AcrossRuns>,
    /// The same at the end.
    pub last: Option<AcrossRuns>,
    /// Its runs, in the order of the pairs. The first one that finished has every analysed step, with maps; the others the
    /// untrained model and the last, without maps.
    pub runs: Vec<RunHeads>,
}

/// One run of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeads {
    /// The pair it belongs to.
    pub pair: u64,
    /// Its directory within the experiment's.
    pub directory: String,
    /// What its heads do; `null` where `problem` says why not.
    pub analysis: Option<HeadAnalysis>,
    /// Such as "diverged at step 12".
    pub problem: Option<String>,
}

/// The decoder's heads of one arm across its runs, all layers together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcrossRuns {
    /// How many runs.
    pub runs: usize,
    /// Heads of a run: layers times H.
    pub heads: usize,
    /// Heads of a run that are flagged dead; spread over the runs, as everything below.
    pub dead: Spread,
    /// Heads of a run that have a duplicate.
    pub duplicates: Spread,
    /// Heads of a run that are sinks.
    pub sinks: Spread,
    /// Mean over the heads of a run of [`super::HeadMeasures::entropy`]; `null` where it has no meaning, as below.
    pub entropy: Option<Spread>,
    /// Mean over heads of the weight on the previous token.
    pub previous_token: Option<Spread>,
    /// The greatest induction score of a run's heads.
    pub induction: Option<Spread>,
    /// Mean over heads of the weight on position 0.
    pub first_position: Option<Spread>,
    /// Mean over pairs of heads of a layer of their divergence, in nats: 0 where all do the same.
    pub divergence: Option<Spread>,
    /// What removing a head costs, in nats: the costliest of each run, the second, and so on.
    pub removal_by_rank: Vec<Spread>,
    /// In `registers`: for each register, the weight that the head which reads it most puts on its latest write.
    pub best_of_register: Option<Vec<Spread>>,
}

/// A number of each run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    pub minimum: f64,
    pub maximum: f64,
}

impl Spread {
    /// Of at least one finite value.
    fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            mean: (!values.is_empty()).then(|| mean_of_checked(values))?,
            minimum: values.iter().copied().min_by(f64::total_cmp)?,
            maximum: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }

    /// Of the runs in which there is such a number; `None` where there is none.
    fn of_some(values: impl Iterator<Item = Option<f64>>) -> Option<Self> {
        Self::of(&values.flatten().collect::<Vec<_>>())
    }
}

impl AcrossRuns {
    /// Across one step of each run, all of the same arm; `None` without runs, or where a model has no layer.
    pub fn of(runs: &[&StepAnalysis]) -> Option<Self> {
        let runs: Vec<Run> = runs.iter().map(|step| Run(step)).collect();
        let heads = runs.first()?.heads().count();
        let count = |flag| Spread::of_some(runs.iter().map(|run| Some(run.flagged(flag) as f64)));
        let mean = |of: fn(&HeadMeasures) -> Option<f64>| Spread::of_some(runs.iter().map(|run| run.mean(of)));
        let by_rank: Vec<Vec<f64>> = runs.iter().map(Run::removals).collect();
        let rank = |rank: usize| Spread::of_some(by_rank.iter().map(|removals| removals.get(rank).copied()));
        let best: Vec<Vec<f64>> = runs.iter().filter_map(Run::best_of_register).collect();
        let register = |r: usize| Spread::of_some(best.iter().map(|best| best.get(r).copied()));
        Some(Self {
            runs: runs.len(),
            heads,
            dead: count(Flag::Dead)?,
            duplicates: count(Flag::Duplicate)?,
            sinks: count(Flag::Sink)?,
            entropy: mean(|head| head.entropy),
            previous_token: mean(|head| head.previous_token),
            induction: Spread::of_some(runs.iter().map(|run| run.greatest(|head| head.induction))),
            first_position: mean(|head| head.first_position),
            divergence: Spread::of_some(runs.iter().map(Run::divergence)),
            removal_by_rank: (0..heads).filter_map(rank).collect(),
            best_of_register: best.first().map(|first| (0..first.len()).filter_map(register).collect()),
        })
    }
}

/// The decoder's heads of one run at one step.
struct Run<'a>(&'a StepAnalysis);

impl Run<'_> {
    fn heads(&self) -> impl Iterator<Item = &HeadMeasures> {
        self.0.decoder().flat_map(|attention| &attention.heads)
    }

    fn flagged(&self, flag: Flag) -> usize {
        self.heads().filter(|head| head.flags.contains(&flag)).count()
    }

    fn mean(&self, of: impl Fn(&HeadMeasures) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.heads().filter_map(of).collect();
        (!values.is_empty()).then(|| mean_of_checked(&values))
    }

    fn greatest(&self, of: impl Fn(&HeadMeasures) -> Option<f64>) -> Option<f64> {
        self.heads().filter_map(of).max_by(f64::total_cmp)
    }

    /// What each head's removal costs, the costliest first.
    fn removals(&self) -> Vec<f64> {
        let mut removals: Vec<f64> = self.heads().filter_map(|head| head.removal).collect();
        removals.sort_by(|a, b| b.total_cmp(a));
        removals
    }

    /// Mean divergence over the pairs of heads of a layer.
    fn divergence(&self) -> Option<f64> {
        let above_diagonal = self
            .0
            .decoder()
            .flat_map(|attention| attention.divergence.iter().enumerate().flat_map(|(h, row)| row.iter().skip(h + 1)));
        let values: Vec<f64> = above_diagonal.copied().collect();
        (!values.is_empty()).then(|| mean_of_checked(&values))
    }

    /// For each register the greatest weight that a head puts on its latest write.
    fn best_of_register(&self) -> Option<Vec<f64>> {
        let heads: Vec<&Vec<f64>> = self.heads().filter_map(|head| head.registers.as_ref()).collect();
        let best = |r: usize| heads.iter().filter_map(|head| head.get(r)).copied().fold(0.0, f64::max);
        heads.first().map(|first| (0..first.len()).map(best).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::record::{AttentionAnalysis, Place};

    fn step(removals: [f64; 2], registers: [[f64; 2]; 2], divergence: f64) -> StepAnalysis {
        let head = |h: usize| HeadMeasures {
            removal: Some(removals[h]),
            entropy: Some(removals[h] / 2.0),
            registers: Some(registers[h].to_vec()),
            flags: if removals[h] < 0.01 { vec![Flag::Dead] } else { vec![] },
            ..Default::default()
        };
        let divergence = vec![vec![0.0, divergence], vec![divergence, 0.0]];
        let attention = AttentionAnalysis {
            place: Place::Decoder,
            layer: 0,
            heads: vec![head(0), head(1)],
            divergence,
            maps: None,
        };
        let encoder = AttentionAnalysis { place: Place::Encoder, ..attention.clone() };
        StepAnalysis { step: 5, loss: 1.0, accuracy: 0.5, attentions: vec![attention, encoder] }
    }

    /// Which head is which does not matter, and encoders do not count.
    #[test]
    fn runs_are_compared_by_rank_and_register() {
        let one = step([0.0, 0.4], [[0.9, 0.1], [0.2, 0.3]], 0.2);
        let other = step([0.6, 0.2], [[0.1, 0.7], [0.8, 0.1]], 0.4);
        let across = AcrossRuns::of(&[&one, &other]).unwrap();
        let spread = |mean, minimum, maximum| Spread { mean, minimum, maximum };
        assert_eq!((across.runs, across.heads), (2, 2));
        assert_eq!((across.dead, across.sinks), (spread(0.5, 0.0, 1.0), spread(0.0, 0.0, 0.0)));
        assert_eq!(across.removal_by_rank, [spread(0.5, 0.4, 0.6), spread(0.1, 0.0, 0.2)]);
        let near =
            |a: Spread, b: Spread| (a.mean - b.mean).abs() < 1e-12 && a.minimum == b.minimum && a.maximum == b.maximum;
        let best = across.best_of_register.unwrap();
        assert!(near(best[0], spread(0.85, 0.8, 0.9)) && near(best[1], spread(0.5, 0.3, 0.7)), "{best:?}");
        assert!(near(across.divergence.unwrap(), spread(0.3, 0.2, 0.4)));
        assert!(near(across.entropy.unwrap(), spread(0.15, 0.1, 0.2)));
        assert_eq!((across.induction, AcrossRuns::of(&[])), (None, None));
    }
}
