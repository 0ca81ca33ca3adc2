//! Who watches a run: the training loop tells, an observer shows.

use data::metrics::Scores;

/// What is about to be run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The run's name and seed, such as `h8 seed 0`.
    pub title: String,
    /// Optimiser steps in all.
    pub steps: u64,
    /// Steps that an earlier call has done.
    pub first_step: u64,
    /// What its user should know before, a line each.
    pub notes: Vec<String>,
}

/// One optimiser step, done.
#[derive(Clone, Copy, Debug)]
pub struct Stepped {
    /// Counted from 1.
    pub step: u64,
    /// Of the step's batch before the update; NaN where nothing in it is scored.
    pub scores: Scores,
    /// Tokens that went through the model in this step.
    pub tokens: u64,
}

/// Shows how a run goes. Nothing that it does changes a result.
pub trait Observer: Send {
    /// Before the first step.
    fn start(&mut self, plan: &Plan);
    /// After each optimiser step.
    fn stepped(&mut self, stepped: &Stepped);
    /// After each evaluation on the validation set, also of the untrained model (step 0).
    fn validated(&mut self, step: u64, scores: &Scores);
    /// After the last step, whatever ended the run.
    fn end(&mut self);
}

/// Shows nothing.
pub struct Silent;

impl Observer for Silent {
    fn start(&mut self, _plan: &Plan) {}
    fn stepped(&mut self, _stepped: &Stepped) {}
    fn validated(&mut self, _step: u64, _scores: &Scores) {}
    fn end(&mut self) {}
}
