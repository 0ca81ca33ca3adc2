//! Results of others: a table of one line a run, from wherever, becomes the same verdicts, answers and page.
//!
//! ```
//! use headcount_report::table::{Options, Table};
//!
//! let csv = "arm,seed,accuracy\nh1,0,0.59\nh1,1,0.60\nh8,0,0.99\nh8,1,0.99\n";
//! let table = Table::read(csv, &Options::new("heads", 0.02))?;
//! let results = table.results()?;
//! assert_eq!(results.arms.len(), 2);
//! assert!(results.answer.sentence.contains("only 2 of the 6 pairs that a verdict needs"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read;

use std::collections::BTreeMap;

use data::Split;
use runs::experiment::About;
use statistics::{
    ArmScores, MetricScale, Outcome,
    context::{Rates, Scope},
    looks::Looks,
    mean_curve,
    outcome::{Direction, steps_to_threshold},
    rules::MAX_FAILURE,
};

use crate::{
    ExperimentReport,
    page::{MetricInfo, PageContext, RunCurve, RunCurves, SourceFile},
    results::{
        ArmResult, Band, Contender, Curve, CurvePoint, DecidingMetric, Exploratory, Judged, Question, Results,
        ResultsError, RunProblem, RunResult, RunStatus, SCHEMA_VERSION, Stability, Summarised, Swept, answer,
    },
    text,
};

pub use read::TableError;

/// The name of the deciding metric's values in curves, whatever it is called.
const KEY: &str = "value";

/// What a table does not say of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// What the result is called.
    pub name: String,
    /// The column of the deciding metric; `None` for `metric`, `score`, `result`, or the only column left.
    pub metric: Option<String>,
    /// Which way it improves; `None` where its name leaves no doubt.
    pub direction: Option<Direction>,
    /// The smallest difference that matters.
    pub margin: f64,
    /// The arm that the others are held against; the first in the table unless set.
    pub baseline: Option<String>,
    /// A run at this value or better solved the task.
    pub threshold: Option<f64>,
    /// Numbers of pairs at which a decision was due; empty for one look, at all.
    pub looks: Vec<usize>,
    /// What a run that diverged enters with; needed where one did, but for accuracies.
    pub penalty: Option<f64>,
    /// What is swept, in one word such as "head": each arm's number is in a column `value` or of that name, or is the number in
    /// the arm's name.
    pub sweep: Option<String>,
    /// The command that makes the same again, for the page.
    pub command: String,
}

impl Options {
    /// With a name and a margin alone.
    pub fn new(name: impl Into<String>, margin: f64) -> Self {
        Self {
            name: name.into(),
            metric: None,
            direction: None,
            margin,
            baseline: None,
            threshold: None,
            looks: vec![],
            penalty: None,
            sweep: None,
            command: String::new(),
        }
    }
}

/// A table that was read and makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    options: Options,
    /// As the column has it.
    metric: String,
    scale: MetricScale,
    /// In the order in which they first come.
    arms: Vec<TableArm>,
    /// Pairs that are complete in every arm, in the order in which they first come.
    pairs: Vec<u64>,
    /// The others, with the arms that miss them.
    incomplete: Vec<(u64, Vec<String>)>,
    /// Whether there is a column of steps.
    has_steps: bool,
    text: String,
}

/// One arm.
#[derive(Clone, Debug, PartialEq)]
struct TableArm {
    name: String,
    /// Its number at what is swept.
    value: Option<f64>,
    /// By pair.
    runs: BTreeMap<u64, TableRun>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
struct TableRun {
    /// (step, value) with the steps rising; one point at step 0 without steps. Not finite: it had diverged.
    points: Vec<(u64, f64)>,
}

impl TableRun {
    fn outcome(&self) -> Outcome {
        match self.points.last() {
            Some((_, value)) if value.is_finite() => Outcome::Finished(*value),
            Some(_) => Outcome::Diverged,
            None => Outcome::Missing,
        }
    }
}

impl Table {
    /// Reads a table: CSV with a header, columns `arm`, `seed` (or `pair`), one of values and, where runs have curves,
    /// `step`. A run that diverged has `diverged`, `nan` or `inf` for a value.
    ///
    /// # Errors
    /// What is missing, unknown or impossible in it, with the line and the field; and options that don't fit it.
    pub fn read(text: &str, options: &Options) -> Result<Self, TableError> {
        read::table(text, options)
    }

    /// What the table comes to.
    ///
    /// # Errors
    /// A statistic that can't be computed.
    pub fn results(&self) -> Result<Results, ResultsError> {
        let arms: Vec<ArmResult> = self.arms.iter().map(|arm| self.arm(arm)).collect::<Result<_, _>>()?;
        let question = self.question(&arms)?;
        let Judged { decision, findings, beyond } = question.judge()?;
        Ok(Results {
            schema_version: SCHEMA_VERSION,
            answer: answer(&question, decision, &findings, None),
            decision,
            name: self.options.name.clone(),
            about: About::default(),
            predictions: vec![],
            registered: None,
            check: None,
            published: None,
            findings,
            exploratory: beyond.map(|(pairs, findings)| Exploratory { pairs, findings }),
            repetitions: None,
            regime: None,
            baseline: self.baseline().into(),
            metric: question.metric,
            seeds: self.pairs.clone(),
            why_seeds: None,
            sweep: question.sweep,
            arms,
            tuning: None,
            ledger: None,
            problems: self.problems(),
        })
    }

    /// All that is told of it: files, figures and page.
    ///
    /// # Errors
    /// As [`Table::results`].
    pub fn report(&self) -> Result<ExperimentReport, ResultsError> {
        Ok(ExperimentReport { results: self.results()?, timings: None, context: self.context(), heads: None })
    }

    fn baseline(&self) -> &str {
        let first = self.arms.first().map_or("", |arm| arm.name.as_str());
        self.options.baseline.as_deref().unwrap_or(first)
    }

    fn question(&self, arms: &[ArmResult]) -> Result<Question, ResultsError> {
        let contender = |(arm, result): (&TableArm, &ArmResult)| Contender {
            name: arm.name.clone(),
            scores: ArmScores::new(arm.name.clone(), self.outcomes(arm)),
            value: arm.value,
            level: Default::default(),
            condition: None,
            steps: Some(result.steps).filter(|steps| *steps > 0),
            first_steps: match self.options.threshold {
                Some(_) if self.has_steps => result.runs.iter().map(|run| run.first_step_at_threshold).collect(),
                _ => vec![],
            },
        };
        let looks = match self.options.looks.is_empty() {
            true => Looks::once(self.pairs.len()),
            false => Looks::new(self.options.looks.clone())?,
        };
        Ok(Question {
            metric: DecidingMetric {
                name: self.metric.clone(),
                key: KEY.into(),
                scale: self.scale.clone(),
                unit: String::new(),
                axis: self.metric.clone(),
                read: if self.has_steps { "at the last step of the table".into() } else { String::new() },
                margin: self.options.margin,
                threshold: self.options.threshold,
                failure_difference: None,
                max_failure: MAX_FAILURE,
            },
            looks,
            seeds: self.pairs.clone(),
            baseline: self.arms.iter().position(|arm| arm.name == self.baseline()).unwrap_or_default(),
            arms: self.arms.iter().zip(arms).map(contender).collect(),
            sweep: self.options.sweep.as_deref().map(text::unit).map(|unit| Swept {
                key: unit.many.clone(),
                axis: unit.many.clone(),
                unit,
            }),
            scope: Scope::Unknown,
            rates: Rates::Unknown,
        })
    }

    fn outcomes(&self, arm: &TableArm) -> Vec<Outcome> {
        let of = |pair: &u64| arm.runs.get(pair).map_or(Outcome::Missing, TableRun::outcome);
        self.pairs.iter().map(of).collect()
    }

    fn arm(&self, arm: &TableArm) -> Result<ArmResult, ResultsError> {
        let (threshold, direction) = (self.options.threshold, self.scale.direction);
        let outcomes = self.outcomes(arm);
        let Summarised { finished, diverged, missing, description, interval_of_mean, solve_rate } =
            Summarised::of(&outcomes, &self.scale, threshold)?;
        let points = |pair: &u64| arm.runs.get(pair).map(|run| run.points.as_slice()).unwrap_or_default();
        let curves: Vec<&[(u64, f64)]> = self.pairs.iter().map(points).collect();
        let reached = match threshold.filter(|_| self.has_steps) {
            Some(threshold) => Some(steps_to_threshold(&curves, threshold, direction)?),
            None => None,
        };
        let last = |points: &&[(u64, f64)]| points.last().map(|point| point.0);
        let lasts: Vec<u64> = curves.iter().filter_map(last).collect();
        let steps = lasts.first().copied().filter(|first| lasts.iter().all(|last| last == first)).unwrap_or_default();
        let run = |(place, pair): (usize, &u64)| RunResult {
            pair: *pair,
            seed: *pair,
            status: match outcomes[place] {
                Outcome::Finished(_) => RunStatus::Finished,
                Outcome::Diverged => RunStatus::Diverged,
                Outcome::Missing => RunStatus::Missing,
            },
            directory: String::new(),
            value: match outcomes[place] {
                Outcome::Finished(value) => Some(value),
                _ => None,
            },
            steps: curves[place].last().map(|point| point.0).filter(|_| self.has_steps),
            scores: Default::default(),
            best_step: None,
            best_validation_loss: None,
            first_step_at_threshold: reached.as_ref().and_then(|reached| reached.first_step[place]),
            spike_episodes: None,
            gradient_tail: None,
        };
        Ok(ArmResult {
            name: arm.name.clone(),
            label: arm.name.clone(),
            sweep_value: arm.value,
            level: Default::default(),
            settings: Default::default(),
            steps,
            lr: None,
            runs: self.pairs.iter().enumerate().map(run).collect(),
            finished,
            diverged,
            missing,
            description,
            interval_of_mean,
            solve_rate,
            steps_to_threshold: reached.clone(),
            stability: Stability::default(),
            curves: if self.has_steps { vec![self.curve(&curves, &outcomes)?] } else { vec![] },
        })
    }

    fn curve(&self, curves: &[&[(u64, f64)]], outcomes: &[Outcome]) -> Result<Curve, ResultsError> {
        let run = |(points, outcome): (&&[(u64, f64)], &Outcome)| mean_curve::RunCurve {
            points: points.to_vec(),
            diverged: *outcome == Outcome::Diverged,
        };
        let runs: Vec<mean_curve::RunCurve> = curves.iter().zip(outcomes).map(run).collect();
        let point = |at: mean_curve::StepValues| CurvePoint {
            step: at.step,
            runs: at.values.len(),
            diverged: at.at_penalty,
            bands: [(KEY.to_string(), Band::of(&at.values))].into(),
        };
        let points = mean_curve::values_by_step(&runs, &self.scale)?.into_iter().map(point).collect();
        Ok(Curve { split: Split::Test, averaged_steps: 1, points })
    }

    /// Pairs that some arm misses, and runs that diverged.
    fn problems(&self) -> Vec<RunProblem> {
        let problem = |arm: &str, pair: u64, reason: &str| RunProblem {
            arm: arm.into(),
            pair,
            directory: format!("{arm}, pair {pair}"),
            reason: reason.into(),
        };
        let missing = self.incomplete.iter().flat_map(|(pair, arms)| {
            arms.iter().map(|arm| problem(arm, *pair, "not in the table: its pair is left out"))
        });
        let diverged = self.arms.iter().flat_map(|arm| {
            let is_it = |pair: &&u64| arm.runs.get(pair).is_some_and(|run| run.outcome() == Outcome::Diverged);
            self.pairs.iter().filter(is_it).map(|pair| problem(&arm.name, *pair, "diverged"))
        });
        missing.chain(diverged).collect()
    }

    fn context(&self) -> PageContext {
        /// Longer tables are not shown on the page.
        const SHOWN: usize = 1 << 20;
        let run = |arm: &TableArm, pair: u64| {
            let points = arm.runs.get(&pair).map(|run| run.points.clone()).unwrap_or_default();
            let value = |value: f64| Some(value as f32).filter(|value| value.is_finite());
            let curve = RunCurve {
                split: Split::Test,
                step: points.iter().map(|point| point.0).collect(),
                tokens: vec![],
                columns: [(KEY.to_string(), points.iter().map(|point| value(point.1)).collect())].into(),
            };
            RunCurves { arm: arm.name.clone(), pair, curves: vec![curve] }
        };
        let pairs = || self.pairs.iter().copied().filter(|_| self.has_steps);
        let text = if self.text.len() <= SHOWN { self.text.clone() } else { String::new() };
        let best = match self.scale.direction {
            Direction::HigherIsBetter => "greatest",
            Direction::LowerIsBetter => "smallest",
        };
        PageContext {
            curves: self.arms.iter().flat_map(|arm| pairs().map(|pair| run(arm, pair))).collect(),
            machines: vec![],
            file: SourceFile { name: format!("{}.csv", self.options.name), text },
            command: self.options.command.clone(),
            tasks: vec![],
            metrics: vec![MetricInfo {
                key: KEY.into(),
                words: self.metric.clone(),
                unit: String::new(),
                axis: self.metric.clone(),
                digits: 4,
                best,
                about: "As it was given in a table; where it comes from, the table does not say.".into(),
            }],
            columns: vec![crate::page::Column { name: KEY.into(), words: self.metric.clone() }],
        }
    }
}

#[cfg(test)]
mod tests;
