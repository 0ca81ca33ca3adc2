//! The progress line: live on a terminal, a plain line at each evaluation elsewhere.

use std::time::{Duration, Instant};

use data::metrics::Scores;
use indicatif::{ProgressBar, ProgressStyle};

use super::output::{above, beside, is_live, tell};
use super::text::{duration, measured, rate};
use crate::training::observer::{Observer, Plan, Stepped};

/// Shows step, metrics, tokens per second and time left on standard error.
pub struct ProgressLine {
    live: Option<ProgressBar>,
    plan: Plan,
    meter: Meter,
    scores: Scores,
}

impl ProgressLine {
    /// Live where standard error is a terminal.
    pub fn new() -> Self {
        let live = is_live().then(ProgressBar::no_length);
        let plan = Plan::default();
        Self { live, plan, meter: Meter::start(0), scores: Scores::default() }
    }

    fn print(&self, line: &str) {
        match &self.live {
            Some(bar) => above(bar, line),
            None => tell(line),
        }
    }
}

impl Default for ProgressLine {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for ProgressLine {
    fn start(&mut self, plan: &Plan) {
        self.meter = Meter::start(plan.first_step);
        self.plan = plan.clone();
        if let Some(bar) = &self.live {
            bar.set_length(plan.steps);
            bar.set_position(plan.first_step);
            // The template is constant; without it the bar shows indicatif's own.
            if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
                bar.set_style(style);
            }
        }
        plan.notes.iter().for_each(|note| self.print(note));
        if plan.first_step > 0 {
            self.print(&format!("{}: going on after step {}", plan.title, plan.first_step));
        }
    }

    fn stepped(&mut self, stepped: &Stepped) {
        self.meter.add(stepped);
        self.scores = stepped.scores;
        if let Some(bar) = &self.live {
            bar.set_position(stepped.step);
            let (speed, left) = (self.meter.tokens_per_second(), self.meter.time_left(self.plan.steps));
            beside(bar, format!("{}  {}  {} left", measured(&self.scores), rate(speed), duration(left)));
        }
    }

    fn validated(&mut self, step: u64, scores: &Scores) {
        let width = self.plan.steps.to_string().len();
        let validation = format!("validation {}", measured(scores));
        let line = if step == self.plan.first_step {
            format!("step {step:width$}/{}  {:32}{validation}", self.plan.steps, "untrained")
        } else {
            format!(
                "step {step:width$}/{}  train {}  {validation}  {}  {} left",
                self.plan.steps,
                measured(&self.scores),
                rate(self.meter.tokens_per_second()),
                duration(self.meter.time_left(self.plan.steps)),
            )
        };
        self.print(&line);
    }

    fn end(&mut self) {
        if let Some(bar) = &self.live {
            bar.finish_and_clear();
        }
    }
}

/// Measures how fast steps go by.
struct Meter {
    started: Instant,
    first_step: u64,
    step: u64,
    tokens: u64,
}

impl Meter {
    fn start(first_step: u64) -> Self {
        Self { started: Instant::now(), first_step, step: first_step, tokens: 0 }
    }

    fn add(&mut self, stepped: &Stepped) {
        self.step = stepped.step;
        self.tokens += stepped.tokens;
    }

    fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.started.elapsed().as_secs_f64().max(1e-9)
    }

    fn time_left(&self, steps: u64) -> Option<Duration> {
        let done = self.step.checked_sub(self.first_step).filter(|&done| done > 0)?;
        Some(self.started.elapsed().mul_f64(steps.saturating_sub(self.step) as f64 / done as f64))
    }
}
