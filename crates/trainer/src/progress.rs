//! The progress line: live on a terminal, a plain line at each evaluation elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::batch::Tally;
use crate::observer::{Observer, Plan, Stepped};

/// Shows step, loss, accuracy, tokens per second and time left on standard error.
pub struct ProgressLine {
    live: Option<ProgressBar>,
    plan: Plan,
    meter: Meter,
    loss: f64,
    accuracy: f64,
}

impl ProgressLine {
    /// Live where standard error is a terminal.
    pub fn new() -> Self {
        let live = std::io::stderr().is_terminal().then(ProgressBar::no_length);
        let plan = Plan::default();
        Self { live, plan, meter: Meter::start(0), loss: f64::NAN, accuracy: f64::NAN }
    }

    fn print(&self, line: &str) {
        match &self.live {
            Some(bar) => bar.println(line),
            // A closed pipe is no reason to stop training.
            None => drop(writeln!(std::io::stderr(), "{line}")),
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
        self.loss = stepped.loss;
        self.accuracy = stepped.accuracy;
        if let Some(bar) = &self.live {
            bar.set_position(stepped.step);
            bar.set_message(format!(
                "{}  {}  {} left",
                measured(self.loss, self.accuracy),
                rate(self.meter.tokens_per_second()),
                duration(self.meter.time_left(self.plan.steps)),
            ));
        }
    }

    fn validated(&mut self, step: u64, tally: &Tally) {
        let width = self.plan.steps.to_string().len();
        let validation = format!("validation loss {:.4} accuracy {:.3}", tally.mean_loss(), tally.accuracy());
        let line = if step == self.plan.first_step {
            format!("step {step:width$}/{}  {:32}{validation}", self.plan.steps, "untrained")
        } else {
            format!(
                "step {step:width$}/{}  train {}  {validation}  {}  {} left",
                self.plan.steps,
                measured(self.loss, self.accuracy),
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

/// What a step's batch showed; a batch without a scored position shows nothing.
pub fn measured(loss: f64, accuracy: f64) -> String {
    if accuracy.is_nan() { "nothing scored".into() } else { format!("loss {loss:.4} accuracy {accuracy:.3}") }
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

/// Such as `35.1k tokens/s`.
pub fn rate(tokens_per_second: f64) -> String {
    match tokens_per_second {
        fast if fast >= 1e6 => format!("{:.1}M tokens/s", fast / 1e6),
        fast if fast >= 1e3 => format!("{:.1}k tokens/s", fast / 1e3),
        slow => format!("{slow:.0} tokens/s"),
    }
}

/// Such as `1:05`, `2:03:04`, or `?` where nothing is known.
pub fn duration(duration: Option<Duration>) -> String {
    let Some(seconds) = duration.map(|duration| duration.as_secs_f64().round() as u64) else { return "?".into() };
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, seconds) => format!("{minutes}:{seconds:02}"),
        (hours, minutes, seconds) => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_rates_read_well() {
        let of = |seconds| duration(Some(Duration::from_secs(seconds)));
        assert_eq!([of(5), of(65), of(7384)], ["0:05", "1:05", "2:03:04"]);
        assert_eq!(duration(None), "?");
        assert_eq!(measured(f64::NAN, f64::NAN), "nothing scored");
        assert_eq!(measured(f64::INFINITY, 0.25), "loss inf accuracy 0.250", "a run that diverges is seen");
        assert_eq!([rate(12.4), rate(35_120.0), rate(2.5e6)], ["12 tokens/s", "35.1k tokens/s", "2.5M tokens/s"]);
    }
}
