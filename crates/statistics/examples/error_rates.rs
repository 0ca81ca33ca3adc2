//! How often what is said of two arms and of a sweep is wrong: the tables of `docs/statistics.md`, in Markdown.
//!
//! ```sh
//! cargo run -p headcount-statistics --example error_rates                     # 2,000 experiments a cell, about a minute
//! HEADCOUNT_LONG=1 cargo run -p headcount-statistics --example error_rates    # 20,000
//! ```
//!
//! Everywhere the margin is 0.02 and `max_failure` 0.3, and each cell is the per cent of experiments that end in a false
//! statement. Draws come from fixed seeds, so the tables are the same on every machine.

#[path = "../tests/draws/mod.rs"]
mod draws;

use draws::experiments::{MARGIN, Said, looks_of, said, sweeps};
use draws::spikes::flagged;
use draws::{exponential, gamma, happens, lognormal, normal, simulations};
use headcount_statistics::looks::Looks;
use headcount_statistics::sweep::Enough;
use rand_chacha::ChaCha8Rng;

/// One look at so many pairs, and the last: four looks, at 6, 10, 15 and 20.
const PLANS: [&[usize]; 5] = [&[6], &[10], &[20], &[30], &[6, 10, 15, 20]];

/// Noise of a run whose differences have half a margin of standard deviation.
const NOISE: f64 = 0.5 * MARGIN * std::f64::consts::FRAC_1_SQRT_2;

fn main() {
    let simulations = simulations(2_000);
    println!("{simulations} experiments a cell.\n");
    at_the_margin(simulations);
    alike(simulations);
    skewed_differences(simulations);
    rare_failures(simulations);
    failures_of_the_winner(simulations);
    failing_arms_of_a_sweep(simulations);
    spikes_of_noise();
}

/// The first value of a pair is that of the arm, the second that of the baseline.
type Pair<'a> = Box<dyn Fn(&mut ChaCha8Rng) -> (f64, f64) + 'a>;

/// A table of one row a case and one column a plan.
fn table(title: &str, simulations: usize, cases: Vec<(String, Pair)>, shown: fn(&Said) -> String) {
    println!("### {title}\n");
    println!("| | 6 pairs | 10 | 20 | 30 | looks at 6, 10, 15, 20 |\n|---|---|---|---|---|---|");
    for (name, draw) in cases {
        let looks: Vec<Looks> = PLANS.iter().map(|pairs| looks_of(pairs)).collect();
        let cells: Vec<String> = looks.iter().map(|looks| shown(&said(looks, simulations, &draw))).collect();
        println!("| {name} | {} |", cells.join(" | "));
    }
    println!();
}

/// What is claimed of noise: the true difference is the margin itself, so neither "better" nor "equivalent" is right.
fn at_the_margin(simulations: usize) {
    let shifted = |noise: f64, draw: draws::Draw| -> Pair<'static> {
        Box::new(move |generator| (MARGIN + noise * draw(generator), noise * draw(generator)))
    };
    let cases = vec![
        ("normal arms, sd of differences 0.5 m".into(), shifted(NOISE, normal)),
        ("normal arms, 2 m".into(), shifted(4.0 * NOISE, normal)),
        ("exponential arms, 0.5 m".into(), shifted(NOISE, exponential)),
        ("lognormal arms, 1.1 m".into(), shifted(NOISE, lognormal)),
    ];
    table("Claimed: true difference at the margin, false better / equivalent", simulations, cases, |said| {
        format!("{:.1} / {:.1}", said.better, said.equivalent)
    });
}

/// What is claimed of arms alike that solve the task or fail: neither is better.
fn alike(simulations: usize) {
    let case = |percent: f64| -> (String, Pair<'static>) {
        let rate = percent / 100.0;
        let draw = move |generator: &mut ChaCha8Rng| (happens(generator, rate), happens(generator, rate));
        (format!("both solve it in {percent} %"), Box::new(draw))
    };
    let cases = [10.0, 50.0, 90.0].map(case).into();
    table("Claimed: arms alike that solve or fail, false better / worse", simulations, cases, |said| {
        format!("{:.1} / {:.1}", said.better, said.worse)
    });
}

/// Not claimed: differences that are skewed themselves, with the true mean at the margin.
fn skewed_differences(simulations: usize) {
    let skewed = |noise: f64, draw: draws::Draw| -> Pair<'static> {
        Box::new(move |generator| (MARGIN + noise * draw(generator), 0.0))
    };
    let cases = vec![
        ("exponential, tail to better".into(), skewed(0.5 * MARGIN, exponential)),
        ("exponential, tail to worse".into(), skewed(-0.5 * MARGIN, exponential)),
        ("lognormal, tail to better".into(), skewed(0.25 * MARGIN, lognormal)),
        ("lognormal, tail to worse".into(), skewed(-0.25 * MARGIN, lognormal)),
    ];
    table("Not claimed: skewed differences, false better / equivalent", simulations, cases, |said| {
        format!("{:.1} / {:.1}", said.better, said.equivalent)
    });
}

/// Not claimed: an arm that fails rarely, by 1.0. Its mean lies beyond the margin, and nothing may show it.
fn rare_failures(simulations: usize) {
    let case = |percent: f64| -> (String, Pair<'static>) {
        let draw = move |generator: &mut ChaCha8Rng| {
            let fails = happens(generator, percent / 100.0);
            (0.99 - fails + NOISE * normal(generator), 0.99 + NOISE * normal(generator))
        };
        (format!("{percent} % of runs"), Box::new(draw))
    };
    let cases = [3.0, 5.0, 10.0, 20.0, 30.0, 31.0, 40.0].map(case).into();
    table("One arm fails by 1.0 (claimed above 30 %), false equivalent", simulations, cases, |said| {
        format!("{:.1}", said.equivalent)
    });
}

/// Not claimed: an arm that is better by five margins in each pair, but for runs that fail by so much that it is not.
fn failures_of_the_winner(simulations: usize) {
    let case = |percent: f64| -> (String, Pair<'static>) {
        let lead = MARGIN + percent / 100.0;
        let draw = move |generator: &mut ChaCha8Rng| {
            let fails = happens(generator, percent / 100.0);
            (lead - fails + NOISE * normal(generator), NOISE * normal(generator))
        };
        (format!("{percent} % of runs, lead {lead:.2} else"), Box::new(draw))
    };
    let cases = [3.0, 5.0, 10.0, 20.0, 30.0, 40.0].map(case).into();
    table("Not claimed: the winner fails by 1.0 in some runs, false better", simulations, cases, |said| {
        format!("{:.1}", said.better)
    });
}

/// A sweep of five arms of which four fail by 1.0, each by itself: how often any of them is called sufficient.
fn failing_arms_of_a_sweep(simulations: usize) {
    println!("### A sweep of five: four arms fail, any falsely sufficient\n");
    println!("| each fails in | 10 pairs | 13 | 20 | 30 |\n|---|---|---|---|---|");
    for percent in [10.0, 20.0, 30.0, 36.0, 50.0] {
        let cell = |pairs: usize| {
            let set = sweeps(pairs, simulations.min(2_000), &[1.0, 2.0, 4.0, 8.0, 16.0], |generator| {
                let mut row: Vec<f64> = (0..4).map(|_| 0.99 - happens(generator, percent / 100.0)).collect();
                row.push(0.99);
                row.iter().map(|value| value + NOISE * normal(generator)).collect()
            });
            let is_wrong = |steps: &[headcount_statistics::sweep::StepResult]| {
                steps[..4].iter().any(|step| step.enough == Enough::Sufficient)
            };
            let wrong = set.iter().filter(|sweep| is_wrong(&sweep.steps)).count();
            format!("{:.1}", 100.0 * wrong as f64 / set.len() as f64)
        };
        println!("| {percent} % of runs | {} |", [10, 13, 20, 30].map(cell).join(" | "));
    }
    println!();
}

/// Runs of 800 logged losses that are nothing but noise.
fn spikes_of_noise() {
    println!("### Runs of noise that have a loss spike\n");
    println!("| noise | single steps above 6 median deviations | the rule |\n|---|---|---|");
    for (name, noise) in [("normal", normal as draws::Draw), ("gamma, skewness 1", gamma), ("lognormal", lognormal)] {
        let [single, lasting] = flagged(noise);
        println!("| {name} | {single:.1} | {lasting:.1} |");
    }
}
