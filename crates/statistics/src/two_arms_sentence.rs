//! The statement about two arms as one plain sentence, and what is said of solving beside it.

use crate::context::Context;
use crate::power::{FurtherPairs, MOST_PAIRS, Target};
use crate::solving::Solving;
use crate::statement::{Because, Statement};
use crate::two_arms::{Limits, Side, TwoArms};
use crate::words::{count, decimals_of, fixed, percent, whole_percent};

impl TwoArms {
    /// The statement in one sentence without a full stop:
    /// "with one layer, after 800 steps, 8 heads beat 1 head by 0.400 in test accuracy, 0.993 against 0.593 (95 %
    /// interval 0.391 to 0.409; 10 pairs over 10 instances, at one learning rate)".
    ///
    /// Verbs are in the past tense, so that "8 heads" and "h8" both read well.
    pub fn sentence(&self, context: &Context) -> String {
        let behind = [self.told_interval(), Some(context.told(self.pairs.len()))];
        let behind: Vec<String> = behind.into_iter().flatten().collect();
        format!(
            "{}{} ({}){}{}{}{}",
            context.opening(),
            self.told(),
            behind.join("; "),
            self.told_failures(),
            self.told_further(),
            self.told_diverged(),
            self.told_incomplete()
        )
    }

    /// The sentence without what stands behind it, for a title: "with one layer, after 800 steps, 8 heads beat 1 head by
    /// 0.400 in test accuracy, 0.993 against 0.593".
    pub fn headline(&self, context: &Context) -> String {
        format!("{}{}", context.opening(), self.told())
    }

    /// What is said of the two.
    fn told(&self) -> String {
        let (arm, baseline, metric) = (&self.arm.name, &self.baseline.name, &self.scale.name);
        let against = self.values().map(|values| format!(", {values}")).unwrap_or_default();
        match self.statement {
            Statement::Better => format!("{arm} beat {baseline}{} in {metric}{against}", self.lead()),
            Statement::Worse => format!("{arm} lost to {baseline}{} in {metric}{against}", self.lead()),
            Statement::Equivalent => {
                format!("{arm} and {baseline} differed by no more than {} in {metric}{against}", self.rules.margin)
            }
            Statement::NoDifferenceSeen => format!(
                "no difference seen between {arm} and {baseline} in {metric}{against}; pairs like these do not exclude \
                 one that differs in up to {} % of runs",
                whole_percent(self.failures.bound)
            ),
            Statement::Undecided { because } => {
                format!("undecided between {arm} and {baseline} in {metric}{against}{}", self.told_because(because))
            }
        }
    }

    /// "0.993 against 0.593": the means of arm and baseline; `None` without pairs.
    pub fn values(&self) -> Option<String> {
        let (arm, baseline) = (self.arm.description.as_ref()?, self.baseline.description.as_ref()?);
        let digits = self.digits();
        Some(format!("{} against {}", fixed(arm.mean, digits), fixed(baseline.mean, digits)))
    }

    /// Decimals that show two digits of the margin; without one, two digits of the interval's half width, at most 6.
    fn digits(&self) -> usize {
        let half_width = self.interval.map_or(0.0, |interval| (interval.high - interval.low) / 2.0);
        let width = if self.rules.margin > 0.0 { self.rules.margin } else { half_width };
        decimals_of(width).min(6)
    }

    /// " by 0.400": the winner's lead, above 0.
    fn lead(&self) -> String {
        let lead = |mean: f64| format!(" by {}", fixed(mean.abs(), self.digits()));
        self.estimate.map(|estimate| lead(estimate.mean)).unwrap_or_default()
    }

    /// "95 % interval 0.391 to 0.409", of the advantage of the winner, or of the arm where there is none; for
    /// "equivalent" the interval that decided it.
    fn told_interval(&self) -> Option<String> {
        let digits = self.digits();
        let limits: Limits = match self.statement {
            Statement::Equivalent | Statement::NoDifferenceSeen => self.equivalence?,
            _ => self.interval?,
        };
        let ends =
            if self.statement == Statement::Worse { [-limits.high, -limits.low] } else { [limits.low, limits.high] };
        let [low, high] = ends.map(|end| fixed(end, digits));
        Some(format!("{} % interval {low} to {high}", percent(limits.level)))
    }

    fn told_because(&self, because: Because) -> String {
        let margin = self.rules.margin;
        match because {
            Because::TooFewPairs { pairs, needed } => {
                format!(": only {pairs} of the {needed} pairs that a verdict needs")
            }
            Because::TooFewFinished { pairs, needed } => {
                format!(": only {} in which a run finished, of the {needed} that a verdict needs", count(pairs, "pair"))
            }
            Because::IntervalCrossesMargin => {
                format!(": the interval lies neither beyond nor within the margin of {margin}")
            }
        }
    }

    /// What a winner's runs may hide, where it is more than allowed.
    fn told_failures(&self) -> String {
        let is_verdict = matches!(self.statement, Statement::Better | Statement::Worse);
        if !is_verdict || self.failures.bound <= self.rules.max_failure {
            return String::new();
        }
        let bound = whole_percent(self.failures.bound);
        match self.failures.seeds.len() {
            0 => format!("; pairs like these do not exclude another outcome in up to {bound} % of runs"),
            failed => format!(
                "; {failed} of {} went unlike the others, which up to {bound} % of pairs may do",
                count(self.failures.pairs, "pair")
            ),
        }
    }

    fn told_further(&self) -> String {
        let Some(FurtherPairs { target, further }) = self.further else { return String::new() };
        let shown = match target {
            Target::Better => "a difference beyond the margin",
            Target::Equivalent => "that there is none beyond the margin",
        };
        match further {
            Some(further) => format!("; about {} would probably show {shown}", further_pairs(further)),
            None => format!("; not even {MOST_PAIRS} pairs would probably show {shown}"),
        }
    }

    fn told_diverged(&self) -> String {
        let told = |side: &Side| {
            let runs = side.finished + side.diverged;
            (side.diverged > 0).then(|| format!("{} of {} of {}", side.diverged, count(runs, "run"), side.name))
        };
        let sides: Vec<String> = [&self.arm, &self.baseline].into_iter().filter_map(told).collect();
        if sides.is_empty() {
            return String::new();
        }
        format!("; diverged (entered as {}): {}", self.scale.penalty, sides.join(", "))
    }

    fn told_incomplete(&self) -> String {
        if self.incomplete.is_empty() {
            return String::new();
        }
        let seeds: Vec<String> = self.incomplete.iter().map(u64::to_string).collect();
        let of = if seeds.len() == 1 { "seed" } else { "seeds" };
        format!("; left out, as a run is missing: {of} {}", seeds.join(", "))
    }

    /// What is said of solving, beside the verdict: "8 heads solved it more often than 1 head: 4 of 6 against 0 of 6,
    /// p = 0.125, not decided"; `None` where nothing was asked.
    pub fn solving_sentence(&self) -> Option<String> {
        let Solving { pairs, arm_solved, baseline_solved, p_value, decided, .. } = self.solving.as_ref()?;
        let (arm, baseline) = (&self.arm.name, &self.baseline.name);
        let often = match arm_solved.cmp(baseline_solved) {
            std::cmp::Ordering::Greater => format!("{arm} solved it more often than {baseline}"),
            std::cmp::Ordering::Less => format!("{arm} solved it less often than {baseline}"),
            std::cmp::Ordering::Equal => format!("{arm} and {baseline} solved it as often"),
        };
        let decided = if *decided { "" } else { ", not decided" };
        let p_value = if *p_value < 0.0005 { "p < 0.001".into() } else { format!("p = {}", fixed(*p_value, 3)) };
        Some(format!("{often}: {arm_solved} of {pairs} against {baseline_solved} of {pairs}, {p_value}{decided}"))
    }
}

fn further_pairs(further: usize) -> String {
    if further == 1 { "1 further pair".into() } else { format!("{further} further pairs") }
}
