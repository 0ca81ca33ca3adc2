//! `trainer plan`: what an experiment costs, and how many pairs it will need.

use std::time::Duration;

use ::report::pilot::{ArmPlan, plans};
use burn::tensor::Device;
use clap::Args;
use runs::experiment::{About, Arm, Experiment, USUAL_PAIRS};
use runs::{Config, ledger};
use statistics::plan::{PlanRow, looks_for};
use statistics::power::Target;

use super::compare::arguments::{ExperimentArguments, Workers};
use super::compare::{Share, Stages, Trained, planned_ledger};
use super::dry_run::Times;
use super::files::refuse_linked;
use crate::machine::backend;
use crate::machine::exit::{Failure, Success};
use crate::machine::stop::Stop;
use crate::screen::output::{print, tell};
use crate::screen::text::{count, duration, short, thousands};
use crate::training::arm::Arm as Costs;

/// Arguments of `plan`.
#[derive(Args, Clone, Debug)]
pub struct PlanArguments {
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Train so many pairs, on seeds of their own in a folder of their own, and say from them how many pairs which statement
    /// will need.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub pilot: Option<u16>,
}

pub fn run(arguments: &PlanArguments) -> Result<Success, Failure> {
    let experiment = arguments.experiment.load()?;
    let workers = arguments.experiment.workers(&experiment)?;
    // SAFETY: nothing has started another thread yet.
    unsafe { backend::set_threads(workers.threads) };
    let ledger = planned_ledger(&experiment, workers.threads, false)?;
    if let Err(mismatches) = ledger.check(experiment.regime) {
        let (regime, why) = (experiment.regime.name(), ledger::explain(experiment.regime, &mismatches));
        return Err(Failure::usage(format!("the arms don't match in regime `{regime}`:\n{why}")));
    }
    print(cost(&experiment, workers)?);
    let Some(pairs) = arguments.pilot else { return Ok(Success::Done) };

    let pilot = pilot(&experiment, u64::from(pairs));
    let folder = pilot.folder(&arguments.experiment.out);
    refuse_linked(&folder)?;
    pilot.save(&folder).map_err(Failure::failed)?;
    if experiment.tuning.is_some() {
        tell("the pilot trains each arm at the learning rate of its config: none is chosen");
    }
    let stop = Stop::listen_for_workers().map_err(Failure::failed)?;
    let stages = Stages { folder: &folder, workers, mixed: false, share: Share::All, stop: &stop };
    let (tuned, failed, runs) = match stages.train(pilot)? {
        Trained::Ended { experiment, failed, runs } => (*experiment, failed, runs),
        Trained::Stopped(success) => return Ok(success),
        Trained::Shared { stage, .. } => return Err(Failure::failed(format!("{stage}: not all runs are done"))),
    };
    stop.end_at_once();
    if failed > 0 {
        return Err(Failure::failed(format!("{failed} of {runs} runs failed; the same command tries them again")));
    }
    let looks = experiment.looks.len().max(1);
    let pilot = tuned.read_runs();
    let plans = plans(&pilot, looks).map_err(Failure::failed)?;
    print(needed(&experiment, &plans, usize::from(pairs)));
    print(format!("\n  {}  the pilot's runs, not registered and not part of the experiment", folder.display()));
    Ok(Success::Done)
}

/// What each arm and the whole cost, measured on a few steps of each.
fn cost(experiment: &Experiment, workers: Workers) -> Result<String, Failure> {
    let mut rows = vec![["arm", "steps", "FLOPs a run", "ms a step", "time a run"].map(str::to_string).to_vec()];
    // Seconds and FLOPs of all reported runs of a pair, of the check's, and of a tuning run of each arm.
    let mut pair = Cost::default();
    let mut longer = Cost::default();
    for arm in &experiment.arms {
        let config = &arm.config;
        let device: Device = backend::open(config.backend).map_err(Failure::usage)?;
        let times = Times::measure(config, &device)?;
        let own = Cost::of(config, times);
        rows.push(vec![
            arm.label.clone(),
            thousands(config.train.steps),
            scaled(own.flops),
            format!("{:.1}", times.step * 1e3),
            duration(Some(Duration::from_secs_f64(own.seconds))),
        ]);
        pair.add(own, 1);
        if let Some(check) = experiment.check {
            longer.add(Cost::of(&check.config(config.clone()), times), check.pairs as u64);
        }
    }
    let mut lines = vec![format!("{}: what it costs, measured here on a few steps of each arm", experiment.name)];
    lines.push(String::new());
    lines.push(::report::text::aligned(&rows));
    lines.push(String::new());
    let told = |cost: Cost| {
        // Runs of one thread each have a core to themselves.
        let seconds = cost.seconds / workers.at_once.max(1) as f64;
        let time = duration(Some(Duration::from_secs_f64(seconds)));
        format!("{}, {} FLOPs, about {time}", count(cost.runs as usize, "run"), scaled(cost.flops))
    };
    let mut all = Cost::default();
    if let Some(tuning) = &experiment.tuning {
        let mut choice = Cost::default();
        choice.add(pair, (tuning.lr.len() * tuning.seeds.len()) as u64);
        lines.push(format!("learning rates  {} (more where the best is at an end of the grid)", told(choice)));
        all.add(choice, 1);
    }
    let looks = if experiment.looks.is_empty() { vec![experiment.seeds.len()] } else { experiment.looks.clone() };
    for look in &looks {
        let mut part = Cost::default();
        part.add(pair, *look as u64);
        let is_last = *look == experiment.seeds.len();
        let if_decided = if is_last { "" } else { ", if that decides" };
        lines.push(format!("{:14}  {}{if_decided}", count(*look, "pair"), told(part)));
        if is_last {
            all.add(part, 1);
        }
    }
    if experiment.check.is_some() {
        lines.push(format!("check           {}", told(longer)));
        all.add(longer, 1);
    }
    lines.push(format!("in all          {}, {} at once", told(all), count(workers.at_once, "run")));
    Ok(lines.join("\n"))
}

/// What runs cost together.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    runs: u64,
    seconds: f64,
    flops: f64,
}

impl Cost {
    /// One run.
    fn of(config: &Config, times: Times) -> Self {
        let flops = Costs::new(config).flops_per_step().total() as f64 * config.train.steps as f64;
        Self { runs: 1, seconds: times.of_run(config), flops }
    }

    fn add(&mut self, other: Self, times: u64) {
        self.runs += other.runs * times;
        self.seconds += other.seconds * times as f64;
        self.flops += other.flops * times as f64;
    }
}

/// Such as `527 G`.
fn scaled(number: f64) -> String {
    const UNITS: [(&str, f64); 5] = [("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)];
    match UNITS.into_iter().find(|(_, unit)| number >= *unit) {
        Some((name, unit)) => format!("{} {name}", short(number / unit)),
        None => format!("{number:.0}"),
    }
}

/// The experiment of a pilot: the same arms on seeds that neither the reported runs nor those that choose learning rates
/// have, so that what is planned with is not what decides.
fn pilot(experiment: &Experiment, pairs: u64) -> Experiment {
    /// Seeds that are not a person's choice.
    const BLOCK: u64 = 1_000_000;
    let offsets = || experiment.arms.iter().map(|arm| arm.seed_offset);
    let used = experiment.seeds.iter().chain(experiment.tuning.iter().flat_map(|tuning| &tuning.seeds));
    let largest = used.flat_map(|seed| offsets().map(move |offset| seed.saturating_add(offset))).max();
    let first = (largest.unwrap_or_default() / BLOCK + 1).saturating_mul(BLOCK);
    let seeds: Vec<u64> = (first..).take(pairs as usize).collect();
    // An arm of other seeds has none of the others' here either.
    let apart = |arm: &Arm| {
        if arm.seed_offset > 0 { Arm { seed_offset: arm.seed_offset.max(pairs), ..arm.clone() } } else { arm.clone() }
    };
    Experiment {
        name: format!("{}-pilot", experiment.name),
        about: About::default(),
        seeds,
        why_seeds: Some("a pilot, which decides nothing".into()),
        repetitions: 1,
        tuning: None,
        looks: vec![],
        predict: vec![],
        check: None,
        published: None,
        arms: experiment.arms.iter().map(apart).collect(),
        ..experiment.clone()
    }
}

/// How many pairs which statement will need.
fn needed(experiment: &Experiment, plans: &[ArmPlan], pairs: usize) -> String {
    let metric = &experiment.metric;
    let looks = experiment.looks.len().max(1);
    let mut lines = vec![format!(
        "\nfrom a pilot of {}: pairs with which a statement about {} comes with a chance of 90 %, margin {}, {}",
        count(pairs, "pair"),
        metric.name.words(),
        metric.margin,
        count(looks, "look"),
    )];
    let mut most = None;
    for ArmPlan { arm, against, plan } in plans {
        let Some(plan) = plan else {
            lines.push(format!("\n{arm} against {against}: fewer than two complete pairs say nothing"));
            continue;
        };
        lines.push(format!(
            "\n{arm} against {against}: mean advantage {:.4}, standard deviation {:.4}, planned with {:.4}",
            plan.mean, plan.standard_deviation, plan.planned_deviation
        ));
        for row in &plan.rows {
            lines.push(format!("  {}", told(row)));
            if row.seen {
                most = most.max(row.pairs);
            }
        }
    }
    // Fewer than usual would need a reason.
    if let Some(looks) = most.and_then(|most| looks_for(most.max(USUAL_PAIRS)).ok()) {
        let looks: Vec<String> = Vec::from(looks).iter().map(usize::to_string).collect();
        let last = looks.last().cloned().unwrap_or_default();
        lines.push(format!("\nif it is as the pilot saw: seeds = {last}, looks = [{}]", looks.join(", ")));
    }
    lines.join("\n")
}

fn told(row: &PlanRow) -> String {
    let statement = match row.target {
        Target::Better => "better",
        Target::Equivalent => "equivalent",
    };
    let supposed = match (row.target, row.seen) {
        (_, true) => format!("if the difference is the one seen, {:.4}", row.difference),
        (Target::Equivalent, false) => "if there is no difference".into(),
        (Target::Better, false) => format!("if the difference is {:.4}", row.difference),
    };
    let pairs = row.pairs.map_or("more than 10,000 pairs".into(), |pairs| count(pairs, "pair"));
    format!("{statement:10} {supposed:42} {pairs}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_pilot_has_seeds_of_its_own() {
        let text = "baseline = \"a\"\nregime = \"free\"\nseeds = [3, 2000000]\nwhy_seeds = \"a test\"\n[metric]\nmargin = 0.02\n\
                    [tuning]\nlr = [1e-3]\nseeds = [5]\n[base.task]\nkind = \"registers\"\n[arms.a]\n[arms.b]\nseed_offset = 7\n";
        let experiment = Experiment::parse(text, Path::new("test.toml")).unwrap();
        let pilot = pilot(&experiment, 30);
        assert_eq!((pilot.seeds.len(), pilot.seeds[0]), (30, 3_000_000));
        // It stands alone, and no run of it is one of the experiment's, or of two pairs.
        assert_eq!(Experiment::parse(&pilot.to_toml(), Path::new("alone.toml")).unwrap(), pilot);
        let seeds = |experiment: &Experiment| -> Vec<u64> {
            experiment.runs(Path::new("runs")).iter().map(|run| run.config.seed).collect()
        };
        assert!(seeds(&pilot).iter().all(|seed| *seed > 2_000_007));
        assert_eq!(pilot.name, "test-pilot");
    }

    #[test]
    fn numbers_are_told_in_units() {
        assert_eq!(scaled(527_435_200_000.0), "527 G");
        assert_eq!(scaled(1.05e12), "1.05 T");
        assert_eq!(scaled(12.0), "12");
    }
}
