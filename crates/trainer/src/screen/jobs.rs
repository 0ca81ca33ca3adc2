//! The live table of a comparison: a line a running run, and one for the whole.

use std::time::{Duration, Instant};

use data::metrics::{DECIDING, MetricKind};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use runs::{Status, Summary};

use super::output::{above_all, beside, is_live, tell};
use super::text::{duration, rate};
use crate::workers::job::{Job, JobEnd, JobProgress, Saved};

/// Shows jobs on standard error: live on a terminal, elsewhere a plain line when one ends and now and then in between.
pub struct JobTable {
    jobs: Vec<Row>,
    live: Option<Live>,
    started: Instant,
    /// Steps that had been done before this call.
    steps_before: u64,
    last_line: Instant,
}

struct Row {
    label: String,
    steps: u64,
    progress: JobProgress,
    /// The step that was told first: where an earlier call had come to.
    first_step: Option<u64>,
    ended: bool,
    is_elsewhere: bool,
    bar: Option<ProgressBar>,
}

struct Live {
    screen: MultiProgress,
    whole: ProgressBar,
}

/// How often a plain line tells of the whole.
const PLAIN_EVERY: Duration = Duration::from_secs(30);

impl JobTable {
    /// A table for `jobs`, in their order.
    pub fn new(jobs: &[Job]) -> Self {
        let rows = jobs.iter().map(|job| Row {
            label: job.label.clone(),
            steps: job.config.train.steps,
            progress: JobProgress::default(),
            first_step: None,
            ended: false,
            is_elsewhere: false,
            bar: None,
        });
        let live = is_live().then(|| {
            let screen = MultiProgress::new();
            let whole = screen.add(ProgressBar::new(jobs.len() as u64));
            style(&whole, "{bar:30} {pos}/{len} runs  {msg}");
            Live { screen, whole }
        });
        let now = Instant::now();
        Self { jobs: rows.collect(), live, started: now, steps_before: 0, last_line: now }
    }

    fn whole(&self) -> String {
        let done: u64 = self.jobs.iter().map(|row| if row.ended { row.steps } else { row.progress.step }).sum();
        let all: u64 = self.jobs.iter().map(|row| row.steps).sum();
        let mine = done.saturating_sub(self.steps_before);
        let left = (mine > 0).then(|| self.started.elapsed().mul_f64(all.saturating_sub(done) as f64 / mine as f64));
        format!("{} left for the whole", duration(left))
    }

    fn print(&self, line: &str) {
        match &self.live {
            Some(live) => above_all(&live.screen, line),
            None => tell(line),
        }
    }

    fn describe(&self, job: usize) -> String {
        let Row { label, steps, progress, .. } = &self.jobs[job];
        let told = |kind: &MetricKind, value: f64| match value.is_nan() {
            true => format!("{} -", kind.words),
            false => kind.brief(value),
        };
        // The last of them is what people are told first.
        let (usual, value) = progress.validation.iter().next_back().unwrap_or((DECIDING, f64::NAN));
        format!(
            "{label:16} step {:>6}/{steps}  {}  validation {}  {}",
            progress.step,
            told(progress.training.objective(), progress.training.goal()),
            told(usual, value),
            rate(progress.tokens_per_second),
        )
    }

    /// Another process does a job; said once.
    pub fn elsewhere(&mut self, job: usize, holder: &str) {
        if !std::mem::replace(&mut self.jobs[job].is_elsewhere, true) {
            self.print(&format!("{:16} is worked on by {holder}", self.jobs[job].label));
        }
        if let Some(bar) = self.jobs[job].bar.take() {
            bar.finish_and_clear();
        }
    }

    /// A job's process has been started.
    pub fn started(&mut self, job: usize) {
        let Some(live) = &self.live else { return };
        let bar = live.screen.insert_before(&live.whole, ProgressBar::new(self.jobs[job].steps));
        style(&bar, "{bar:30} {msg}");
        beside(&bar, &self.jobs[job].label);
        self.jobs[job].bar = Some(bar);
    }

    /// A job is so far.
    pub fn progressed(&mut self, job: usize, progress: JobProgress) {
        if self.jobs[job].first_step.is_none() {
            self.jobs[job].first_step = Some(progress.step);
            self.steps_before += progress.step.saturating_sub(1);
        }
        self.jobs[job].progress = progress;
        if let (Some(bar), Some(live)) = (&self.jobs[job].bar, &self.live) {
            bar.set_position(progress.step);
            beside(bar, self.describe(job));
            beside(&live.whole, self.whole());
        } else if self.last_line.elapsed() > PLAIN_EVERY {
            self.last_line = Instant::now();
            let running: Vec<String> = (0..self.jobs.len())
                .filter(|&job| self.jobs[job].first_step.is_some() && !self.jobs[job].ended)
                .map(|job| format!("{} step {}", self.jobs[job].label, self.jobs[job].progress.step))
                .collect();
            self.print(&format!("running: {}; {}", running.join(", "), self.whole()));
        }
    }

    /// A job has ended; `reused` if it was done before.
    pub fn ended(&mut self, job: usize, end: &JobEnd, reused: bool) {
        self.jobs[job].ended = true;
        if reused {
            self.steps_before += self.jobs[job].steps;
        }
        if let Some(bar) = self.jobs[job].bar.take() {
            bar.finish_and_clear();
        }
        let ended = self.jobs.iter().filter(|row| row.ended).count();
        let place = format!("[{ended}/{}]", self.jobs.len());
        let line = match end {
            JobEnd::Done(summary) => {
                let when = if reused { "done before".to_string() } else { self.whole() };
                format!("{place} {:16} {}  {when}", self.jobs[job].label, end_of(summary))
            }
            JobEnd::Stopped(Saved::NotBegun) => format!("{place} {:16} not begun", self.jobs[job].label),
            JobEnd::Stopped(saved) => format!("{place} {} {}", self.describe(job), stopped(*saved)),
            JobEnd::Failed(words) => format!("{place} {} FAILED: {words}", self.jobs[job].label),
        };
        self.print(&line);
        if let Some(live) = &self.live {
            live.whole.set_position(ended as u64);
            beside(&live.whole, self.whole());
            if ended == self.jobs.len() {
                live.whole.finish_and_clear();
            }
        }
    }
}

/// How a job was stopped, by what was found on disk.
fn stopped(saved: Saved) -> String {
    match saved {
        Saved::NotBegun => "not begun".to_string(),
        Saved::All { step } => format!("stopped and saved after step {step}"),
        Saved::UpTo { step } => format!("stopped; saved up to step {step}, what came after it is lost"),
        Saved::Nothing => "stopped before anything was saved".to_string(),
    }
}

/// How a run ended, as its summary tells.
fn end_of(summary: &Summary) -> String {
    match (summary.status, summary.test) {
        (Status::Diverged { step }, _) => format!("DIVERGED at step {step}, counts as a failure"),
        (Status::Finished, Some(test)) => {
            let told: Vec<String> = test.iter().rev().map(|(kind, value)| kind.brief(value)).collect();
            format!("{} steps  test {}", summary.steps, told.join(", "))
        }
        (Status::Finished, None) => format!("{} steps", summary.steps),
    }
}

/// The template is constant; where it did not parse, the bar would show indicatif's own.
fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
