//! What is asked of the runs, wherever they come from, and what the looks at them show: the one place that decides, for
//! experiments as for tables of others.

use serde::{Deserialize, Serialize};
use statistics::{
    ArmScores, Beside, Outcome, StatisticsError, TwoArms, compare_two_arms,
    context::{Context, Rates, Scope, Unit},
    grid::{Interaction, Level, interaction},
    looks::{Looks, complete_in_order},
    rules::Rules,
    steps::{StepsCompared, compare_steps},
    sweep::{Step, Sweep, sweep},
};

use super::metric::DecidingMetric;
use crate::text;

/// What is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub metric: DecidingMetric,
    pub looks: Looks,
    /// The pairs in their order, those beyond the last look included.
    pub seeds: Vec<u64>,
    /// The place of the baseline among the arms.
    pub baseline: usize,
    pub arms: Vec<Contender>,
    /// What is swept, where something is.
    pub sweep: Option<Swept>,
    /// Over what the pairs vary; the number of instances is that of the pairs.
    pub scope: Scope,
    pub rates: Rates,
}

/// One arm.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub name: String,
    /// Its outcomes by pair; the name in it is as it reads in a sentence.
    pub scores: ArmScores,
    /// Its number at what is swept.
    pub value: Option<f64>,
    /// Its values at the other keys in which arms differ.
    pub level: Level,
    /// What it holds fixed, as a sentence begins: "with one layer".
    pub condition: Option<String>,
    /// Optimiser steps of a run, where known.
    pub steps: Option<u64>,
    /// First step at the threshold by pair, `None` for a run that never got there; empty where no curve is known.
    pub first_steps: Vec<Option<u64>>,
}

/// What is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// The config key, such as `model.heads`.
    pub key: String,
    /// As it reads on an axis.
    pub axis: String,
    /// What is counted.
    pub unit: Unit,
}

/// An arm against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmVerdict {
    /// In one sentence.
    pub sentence: String,
    /// The same without what it rests on.
    pub title: String,
    /// Who solved the task more often, where a threshold is set.
    pub solving: Option<String>,
    /// Who reached the threshold sooner, where that is shown.
    pub sooner: Option<String>,
    /// Name of the arm.
    pub arm: String,
    /// Name of the arm that it is held against.
    pub against: String,
    /// Where both are, in a grid of several keys.
    pub level: Level,
    /// The numbers.
    pub found: TwoArms,
    /// How soon each reached the threshold, pair by pair, where curves are known.
    pub steps: Option<StepsCompared>,
}

/// The sweep at one level of the other keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepAtLevel {
    /// In one sentence.
    pub sentence: String,
    /// The same without what it rests on.
    pub title: String,
    /// The answer in a few words: "4", "2 to 8".
    pub words: String,
    /// Where it is, in a grid of several keys.
    pub level: Level,
    /// The level as it reads: "with one layer"; `None` where it is the only one.
    pub at: Option<String>,
    /// The numbers.
    pub found: Sweep,
}

/// Whether the change from one end of the sweep to the other is worth more at one level of another key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InteractionFound {
    /// In one sentence.
    pub sentence: String,
    /// Names of the arms: neither change, the first alone, the second alone, both.
    pub arms: [String; 4],
    /// The numbers.
    pub found: Interaction,
}

/// What some pairs show.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The answer of the sweep at every level; empty where nothing is swept.
    pub sweeps: Vec<SweepAtLevel>,
    /// Every arm against its baseline.
    pub verdicts: Vec<ArmVerdict>,
    /// Contrasts of two keys.
    pub interactions: Vec<InteractionFound>,
}

impl Findings {
    /// Whether the question is settled: each number found, or, without a sweep, each arm told from its baseline.
    pub(crate) fn is_decided(&self) -> bool {
        if self.sweeps.is_empty() {
            return self.verdicts.iter().all(|verdict| verdict.found.statement.is_decided());
        }
        self.sweeps.iter().all(|sweep| sweep.found.answer.is_decided())
    }
}

/// Whether a decision is due, and whether it has come: the one thing that terminal, page, files and whoever watches ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Decision {
    /// Not due: no verdict and no interval may be shown before `pairs` pairs are complete in every arm, in their order.
    NotBefore { pairs: usize, complete: usize },
    /// A look was taken and has left the question open. With `next` the experiment goes on to that many pairs; without, it
    /// has ended.
    Open { pairs: usize, next: Option<usize> },
    /// Decided, over the first `pairs` pairs: no further ones are needed.
    Decided { pairs: usize },
}

impl Decision {
    /// Whether something may be shown.
    pub fn is_due(self) -> bool {
        !matches!(self, Self::NotBefore { .. })
    }
}

/// What the looks show.
pub(crate) struct Judged {
    pub decision: Decision,
    /// At the look that counts; nothing before the first is due.
    pub findings: Findings,
    /// Over all complete pairs, where there are more than the look that counts saw, and the experiment has ended.
    pub beyond: Option<(usize, Findings)>,
}

impl Question {
    /// Looks in their order, and stops at the first that decides.
    pub fn judge(&self) -> Result<Judged, StatisticsError> {
        let outcomes: Vec<&[Outcome]> = self.arms.iter().map(|arm| arm.scores.outcomes.as_slice()).collect();
        let complete = complete_in_order(&outcomes);
        let rules = self.metric.rules();
        let looked =
            self.looks.walk(complete, &rules, |pairs, rules| self.findings(pairs, rules), Findings::is_decided)?;
        let Some(taken) = looked.taken else {
            let pairs = self.looks.next_after(0).unwrap_or_default();
            let decision = Decision::NotBefore { pairs, complete };
            return Ok(Judged { decision, findings: Findings::default(), beyond: None });
        };
        let pairs = taken.pairs;
        let decision =
            if taken.decided { Decision::Decided { pairs } } else { Decision::Open { pairs, next: looked.next } };
        let beyond = if looked.next.is_none() && taken.further_pairs > 0 {
            Some((complete, self.findings(complete, &rules.for_looks(self.looks.count()))?))
        } else {
            None
        };
        Ok(Judged { decision, findings: taken.result, beyond })
    }

    /// What the first so many pairs show.
    fn findings(&self, pairs: usize, rules: &Rules) -> Result<Findings, StatisticsError> {
        let seeds: Vec<u64> = self.seeds.iter().copied().take(pairs).collect();
        let arms: Vec<Contender> = self.arms.iter().map(|arm| arm.first(pairs)).collect();
        self.over(&seeds, &arms, rules)
    }

    /// Every arm against its baseline over some of the pairs, as a repetition has them.
    pub fn verdicts_over(&self, chosen: &[u64]) -> Result<Vec<ArmVerdict>, StatisticsError> {
        let at: Vec<usize> =
            chosen.iter().filter_map(|seed| self.seeds.iter().position(|other| other == seed)).collect();
        let arms: Vec<Contender> = self.arms.iter().map(|arm| arm.of_pairs(&at)).collect();
        Ok(self.over(chosen, &arms, &self.metric.rules())?.verdicts)
    }

    fn over(&self, seeds: &[u64], arms: &[Contender], rules: &Rules) -> Result<Findings, StatisticsError> {
        let groups = self.groups(arms);
        let mut found = Findings::default();
        for group in &groups {
            found.verdicts.extend(self.verdicts(seeds, arms, group, rules)?);
            found.sweeps.extend(self.sweep_of(seeds, arms, group, groups.len() > 1, rules)?);
        }
        // In the order of the arms, whatever their levels.
        let place = |verdict: &ArmVerdict| arms.iter().position(|arm| arm.name == verdict.arm);
        found.verdicts.sort_by_key(place);
        found.interactions = self.interactions(seeds, arms, rules)?;
        Ok(found)
    }

    /// The arms of each level, by their places; all of them where nothing is swept.
    fn groups(&self, arms: &[Contender]) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = vec![];
        for place in 0..arms.len() {
            let is_same = |group: &&mut Vec<usize>| {
                self.sweep.is_none() || group.first().is_some_and(|first| arms[*first].level == arms[place].level)
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.push(place),
                None => groups.push(vec![place]),
            }
        }
        groups
    }

    /// The arm of a group that the others are held against: the baseline, or what stands for it at another level, the arm with
    /// its number or else the one with the smallest.
    fn baseline_of(&self, arms: &[Contender], group: &[usize]) -> Option<usize> {
        if group.contains(&self.baseline) {
            return Some(self.baseline);
        }
        let value = arms.get(self.baseline).and_then(|arm| arm.value);
        let same = group.iter().copied().find(|place| arms[*place].value == value);
        let of = |place: &usize| arms[*place].value.unwrap_or(f64::MAX);
        same.or_else(|| group.iter().copied().min_by(|a, b| of(a).total_cmp(&of(b))))
    }

    fn verdicts(
        &self,
        seeds: &[u64],
        arms: &[Contender],
        group: &[usize],
        rules: &Rules,
    ) -> Result<Vec<ArmVerdict>, StatisticsError> {
        let Some(baseline) = self.baseline_of(arms, group).filter(|_| group.len() > 1) else { return Ok(vec![]) };
        let rules = rules.for_arms(group.len());
        let beside = Beside { solved_at: self.metric.threshold, ..Beside::default() };
        let mut verdicts = vec![];
        for place in group.iter().copied().filter(|place| *place != baseline) {
            let (arm, against) = (&arms[place], &arms[baseline]);
            let [own, theirs] = labelled(arm, against);
            let found = compare_two_arms(seeds, &own, &theirs, &self.metric.scale, &rules, &beside)?;
            let context = self.context(&[arm, against], seeds.len());
            let steps = steps(arm, against, &rules)?;
            verdicts.push(ArmVerdict {
                sooner: steps.as_ref().and_then(|steps| told_sooner(steps, &found, self.metric.threshold)),
                steps,
                sentence: found.sentence(&context),
                title: found.headline(&context),
                solving: found.solving_sentence(),
                arm: arm.name.clone(),
                against: against.name.clone(),
                level: arm.level.clone(),
                found,
            });
        }
        Ok(verdicts)
    }

    /// The sweep over a group, where all of its arms have a number and two arms would not be said better.
    fn sweep_of(
        &self,
        seeds: &[u64],
        arms: &[Contender],
        group: &[usize],
        is_one_of_several: bool,
        rules: &Rules,
    ) -> Result<Option<SweepAtLevel>, StatisticsError> {
        let Some(swept) = &self.sweep else { return Ok(None) };
        let step = |place: &usize| Some(Step { value: arms[*place].value?, scores: arms[*place].scores.clone() });
        let steps: Vec<Step> = group.iter().filter_map(step).collect();
        if steps.len() < group.len() || steps.len() < 2 || arms.len() < 3 {
            return Ok(None);
        }
        let found = sweep(seeds, &steps, &self.metric.scale, rules)?;
        let members: Vec<&Contender> = group.iter().map(|place| &arms[*place]).collect();
        let context = self.context(&members, seeds.len());
        Ok(Some(SweepAtLevel {
            sentence: found.sentence(&swept.unit, &context),
            title: found.headline(&swept.unit, &context),
            words: found.answer.words(),
            level: members.first().map(|arm| arm.level.clone()).unwrap_or_default(),
            at: context.condition.filter(|_| is_one_of_several),
            found,
        }))
    }

    /// Of the sweep with each other key, the rest of them as the baseline has it: from the smallest to the largest of both.
    fn interactions(
        &self,
        seeds: &[u64],
        arms: &[Contender],
        rules: &Rules,
    ) -> Result<Vec<InteractionFound>, StatisticsError> {
        let (Some(swept), Some(baseline)) = (&self.sweep, arms.get(self.baseline)) else { return Ok(vec![]) };
        let mut found = vec![];
        for key in baseline.level.keys() {
            let alike = |arm: &&Contender| {
                arm.level.iter().all(|(other, value)| other == key || baseline.level.get(other) == Some(value))
            };
            let arms: Vec<&Contender> = arms.iter().filter(alike).collect();
            let mut values: Vec<f64> = arms.iter().filter_map(|arm| arm.value).collect();
            values.sort_by(f64::total_cmp);
            let mut levels: Vec<&str> = arms.iter().filter_map(|arm| arm.level.get(key).map(String::as_str)).collect();
            levels.sort_by(|a, b| text::by_number(a, b));
            let corner = |value: Option<&f64>, level: Option<&&str>| {
                arms.iter().find(|arm| {
                    arm.value.is_some()
                        && arm.value.as_ref() == value
                        && arm.level.get(key).map(String::as_str) == level.copied()
                })
            };
            if values.first() == values.last() || levels.first() == levels.last() {
                continue;
            }
            let corners = [
                corner(values.first(), levels.first()),
                corner(values.first(), levels.last()),
                corner(values.last(), levels.first()),
                corner(values.last(), levels.last()),
            ];
            let [Some(neither), Some(second), Some(first), Some(both)] = corners else { continue };
            let square = [[&neither.scores, &second.scores], [&first.scores, &both.scores]];
            let contrast = interaction(seeds, square, &self.metric.scale, rules)?;
            let (low, high) = (values[0], values[values.len() - 1]);
            let of = |level: Option<&&str>| text::level(key, level.copied().unwrap_or_default());
            let change = format!("going from {low} to {}", swept.unit.counted(high));
            let sentence = told_interaction(&contrast, &change, &of(levels.last()), &of(levels.first()), self);
            let arms = [neither, first, second, both].map(|arm| arm.name.clone());
            found.push(InteractionFound { sentence, arms, found: contrast });
        }
        Ok(found)
    }

    /// What a sentence about some arms says beside the numbers.
    fn context(&self, arms: &[&Contender], pairs: usize) -> Context {
        let scope = match self.scope {
            Scope::Instances { .. } => Scope::Instances { instances: pairs },
            other => other,
        };
        let first = arms.first();
        let condition = first.and_then(|first| first.condition.clone());
        let steps = first.and_then(|first| first.steps);
        Context {
            condition: condition.filter(|_| arms.iter().all(|arm| Some(&arm.condition) == first.map(|f| &f.condition))),
            steps: steps.filter(|steps| arms.iter().all(|arm| arm.steps == Some(*steps))),
            scope,
            rates: self.rates,
        }
    }
}

/// The scores of two arms; where they train for different numbers of steps, each name says its own.
fn labelled(arm: &Contender, against: &Contender) -> [ArmScores; 2] {
    let is_same = arm.steps == against.steps;
    [arm, against].map(|one| {
        let mut scores = one.scores.clone();
        if let Some(steps) = one.steps.filter(|_| !is_same) {
            scores.name += &format!(" (after {steps} steps)");
        }
        scores
    })
}

fn steps(arm: &Contender, against: &Contender, rules: &Rules) -> Result<Option<StepsCompared>, StatisticsError> {
    if arm.first_steps.is_empty() || against.first_steps.is_empty() {
        return Ok(None);
    }
    let ended =
        |arm: &Contender, pair: usize| arm.scores.outcomes.get(pair).is_some_and(|one| *one != Outcome::Missing);
    let both = arm.first_steps.iter().zip(&against.first_steps).enumerate();
    let pairs: Vec<(Option<u64>, Option<u64>)> =
        both.filter(|(pair, _)| ended(arm, *pair) && ended(against, *pair)).map(|(_, (a, b))| (*a, *b)).collect();
    compare_steps(&pairs, rules).map(Some)
}

/// "8 heads reached 0.95 sooner than 4 heads, by 120 steps (95 % interval 100 to 140)": with its interval or not at all.
fn told_sooner(steps: &StepsCompared, found: &TwoArms, threshold: Option<f64>) -> Option<String> {
    let difference = steps.difference.filter(|difference| difference.differs)?;
    let (word, sign) = if difference.mean < 0.0 { ("sooner", -1.0) } else { ("later", 1.0) };
    let mut ends = [sign * difference.low, sign * difference.high];
    ends.sort_by(f64::total_cmp);
    let [mean, low, high] = [sign * difference.mean, ends[0], ends[1]].map(|steps| format!("{steps:.0}"));
    let level = text::percent(difference.level);
    let (arm, baseline, threshold) = (&found.arm.name, &found.baseline.name, threshold?);
    Some(format!(
        "{arm} reached {threshold} {word} than {baseline}, by {mean} steps ({level} % interval {low} to {high})"
    ))
}

fn told_interaction(found: &Interaction, change: &str, here: &str, there: &str, question: &Question) -> String {
    let (Some(mean), Some([low, high])) = (found.mean, found.interval) else {
        return format!("whether {change} is worth more {here} than {there} can't be told: too few pairs");
    };
    let digits = text::decimals(question.metric.margin);
    let (what, sign) = if low > 0.0 {
        (format!("{change} is worth more {here} than {there}"), 1.0)
    } else if high < 0.0 {
        (format!("{change} is worth less {here} than {there}"), -1.0)
    } else {
        (format!("whether {change} is worth more {here} than {there} is not decided"), 1.0)
    };
    let mut ends = [sign * low, sign * high];
    ends.sort_by(f64::total_cmp);
    let [mean, low, high] = [sign * mean, ends[0], ends[1]].map(|value| format!("{value:.digits$}"));
    let level = text::percent(found.level);
    format!("{what}: by {mean} in {} ({level} % interval {low} to {high})", question.metric.words())
}

impl Contender {
    /// With only its first pairs.
    fn first(&self, pairs: usize) -> Self {
        let first_steps = self.first_steps.iter().copied().take(pairs).collect();
        Self { scores: self.scores.first(pairs), first_steps, ..self.clone() }
    }

    /// With only these pairs, by their places.
    fn of_pairs(&self, at: &[usize]) -> Self {
        let scores = ArmScores {
            name: self.scores.name.clone(),
            outcomes: at.iter().filter_map(|place| self.scores.outcomes.get(*place).copied()).collect(),
            sample_scores: at.iter().filter_map(|place| self.scores.sample_scores.get(*place).cloned()).collect(),
        };
        let first_steps = at.iter().filter_map(|place| self.first_steps.get(*place).copied()).collect();
        Self { scores, first_steps, ..self.clone() }
    }
}
