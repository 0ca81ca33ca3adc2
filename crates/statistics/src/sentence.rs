//! The verdict as one plain sentence.

use crate::comparison::{ArmSummary, Comparison};
use crate::interval::PairedInterval;
use crate::verdict::{Undecided, Verdict};
use crate::words::{count, decimals_of, fixed, percent};

impl Comparison {
    /// The verdict in one sentence without a full stop, `steps` being the optimiser steps of the runs:
    /// "after 800 steps, 8 heads beat 1 by 0.412 (95 % interval 0.402 to 0.422) in test accuracy, 10 pairs".
    ///
    /// Diverged runs and incomplete pairs are named behind it. Verbs are in the past tense, so that "8 heads" and "h8"
    /// both read well.
    pub fn sentence(&self, steps: u64) -> String {
        let (arm, baseline, metric) = (&self.arm.name, &self.baseline.name, &self.metric.name);
        let pairs = count(self.pairs.len(), "pair");
        let difference = self.difference();
        let told = match (&self.verdict, &self.interval) {
            (Verdict::Better, Some(interval)) => {
                format!("{arm} beat {baseline} by {} in {metric}, {pairs}", lead(interval))
            }
            (Verdict::Worse, Some(interval)) => {
                format!("{arm} lost to {baseline} by {} in {metric}, {pairs}", lead(interval))
            }
            (Verdict::Equivalent, _) => format!(
                "{arm} and {baseline} differed by no more than {} in {metric}: {difference}, {pairs}",
                self.margin
            ),
            (Verdict::Undecided { reason }, _) => {
                let reason = self.told_reason(reason, &difference, &pairs);
                format!("undecided between {arm} and {baseline} in {metric}: {reason}")
            }
            // No verdict of this kind comes without an interval; a file edited by hand might.
            (Verdict::Better, None) => format!("{arm} beat {baseline} in {metric}, {pairs}"),
            (Verdict::Worse, None) => format!("{arm} lost to {baseline} in {metric}, {pairs}"),
        };
        format!("after {steps} steps, {told}{}{}", self.told_diverged(), self.told_incomplete())
    }

    /// "difference 0.002 (95 % interval -0.001 to 0.005)", arm − baseline.
    fn difference(&self) -> String {
        match &self.interval {
            Some(interval) => format!("difference {}", with_interval(interval, 1.0)),
            None => "no interval".to_owned(),
        }
    }

    fn told_reason(&self, reason: &Undecided, difference: &str, pairs: &str) -> String {
        match reason {
            Undecided::IntervalCrossesMargin { margin, .. } => {
                format!("{difference}, neither beyond nor within the margin of {margin}, {pairs}")
            }
            Undecided::TooFewPairs { .. } | Undecided::TooFewFinished { .. } => {
                format!("{reason}; {difference}")
            }
        }
    }

    fn told_diverged(&self) -> String {
        let told = |side: &ArmSummary| {
            let runs = side.finished + side.diverged;
            (side.diverged > 0).then(|| format!("{} of {runs} runs of {}", side.diverged, side.name))
        };
        let sides: Vec<String> = [&self.arm, &self.baseline].into_iter().filter_map(told).collect();
        if sides.is_empty() {
            return String::new();
        }
        let entered = match self.diverged_entered_as {
            Some(value) => format!(" (entered as {value})"),
            None => String::new(),
        };
        format!("; diverged{entered}: {}", sides.join(", "))
    }

    fn told_incomplete(&self) -> String {
        if self.incomplete.is_empty() {
            return String::new();
        }
        let seeds: Vec<String> = self.incomplete.iter().map(|pair| pair.seed.to_string()).collect();
        let of = if seeds.len() == 1 { "seed" } else { "seeds" };
        format!("; left out, as a run is missing: {of} {}", seeds.join(", "))
    }
}

/// The winner's lead, above 0 whatever the direction of the metric.
fn lead(interval: &PairedInterval) -> String {
    with_interval(interval, interval.mean_difference.signum())
}

/// "0.412 (95 % interval 0.402 to 0.422)", all times `sign`.
fn with_interval(interval: &PairedInterval, sign: f64) -> String {
    let ends = [sign * interval.low, sign * interval.high];
    let digits = decimals(interval);
    let show = |value: f64| fixed(value, digits);
    format!(
        "{} ({} % interval {} to {})",
        show(sign * interval.mean_difference),
        percent(interval.level),
        show(ends[0].min(ends[1])),
        show(ends[0].max(ends[1])),
    )
}

/// Decimal places that show two digits of the interval's half width, at most 9.
fn decimals(interval: &PairedInterval) -> usize {
    let half_width = (interval.high - interval.low) / 2.0;
    let shown = if half_width > 0.0 { half_width } else { interval.mean_difference.abs() / 100.0 };
    decimals_of(shown)
}
