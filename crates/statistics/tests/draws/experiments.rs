//! Simulated experiments, decided by the functions that decide real ones.

use headcount_statistics::looks::Looks;
use headcount_statistics::outcome::{Direction, Outcome};
use headcount_statistics::pairs::{ArmScores, pair_scores};
use headcount_statistics::rules::Rules;
use headcount_statistics::scale::MetricScale;
use headcount_statistics::statement::{Statement, judge};
use headcount_statistics::sweep::{Step, Sweep, sweep};
use rand_chacha::ChaCha8Rng;

use super::generator;

pub const MARGIN: f64 = 0.02;

/// A metric without bounds, so that drawn numbers are what they are.
pub fn scale() -> MetricScale {
    MetricScale { name: "score".into(), direction: Direction::HigherIsBetter, best: None, penalty: -1e9 }
}

pub fn looks_of(pairs: &[usize]) -> Looks {
    Looks::try_from(pairs.to_vec()).expect("rising looks")
}

/// One look at 6, 10 and 20 pairs, and four looks.
pub fn plans() -> [Looks; 4] {
    [looks_of(&[6]), looks_of(&[10]), looks_of(&[20]), looks_of(&[6, 10, 15, 20])]
}

/// What experiments ended in: per cent that end in each statement: better, worse, equivalent.
pub struct Said {
    pub better: f64,
    pub worse: f64,
    pub equivalent: f64,
}

/// Ends so many experiments by `looks`, with pairs (arm, baseline) from `draw`.
pub fn said(looks: &Looks, simulations: usize, draw: impl Fn(&mut ChaCha8Rng) -> (f64, f64)) -> Said {
    let mut generator = generator(looks.planned() as u64);
    let seeds: Vec<u64> = (0..looks.planned() as u64).collect();
    let rules = Rules::new(MARGIN);
    let mut counts = [0_usize; 3];
    for _ in 0..simulations {
        let (arm, baseline): (Vec<Outcome>, Vec<Outcome>) = (0..looks.planned())
            .map(|_| draw(&mut generator))
            .map(|(arm, baseline)| (Outcome::Finished(arm), Outcome::Finished(baseline)))
            .unzip();
        let (arm, baseline) = (ArmScores::new("arm", arm), ArmScores::new("baseline", baseline));
        let look = |pairs: usize, rules: &Rules| {
            let paired = pair_scores(&seeds[..pairs], &arm.first(pairs), &baseline.first(pairs), &scale())?;
            Ok(judge(&paired, rules)?.statement)
        };
        let looked = looks.walk(seeds.len(), &rules, look, |said| said.is_decided()).expect("numbers in range");
        match looked.taken.expect("all pairs are there").result {
            Statement::Better => counts[0] += 1,
            Statement::Worse => counts[1] += 1,
            Statement::Equivalent => counts[2] += 1,
            Statement::NoDifferenceSeen | Statement::Undecided { .. } => {}
        }
    }
    let [better, worse, equivalent] = counts.map(|count| 100.0 * count as f64 / simulations as f64);
    Said { better, worse, equivalent }
}

/// Sweeps of `pairs` pairs, `draw` giving the values of all arms in one pair.
pub fn sweeps(
    pairs: usize,
    simulations: usize,
    values: &[f64],
    draw: impl Fn(&mut ChaCha8Rng) -> Vec<f64>,
) -> Vec<Sweep> {
    let mut generator = generator(pairs as u64);
    let seeds: Vec<u64> = (0..pairs as u64).collect();
    let rules = Rules::new(MARGIN);
    let one = |_| {
        let rows: Vec<Vec<f64>> = (0..pairs).map(|_| draw(&mut generator)).collect();
        let step = |(index, value): (usize, &f64)| {
            let outcomes = rows.iter().map(|row| Outcome::Finished(row[index])).collect();
            Step { value: *value, scores: ArmScores::new(value.to_string(), outcomes) }
        };
        let steps: Vec<Step> = values.iter().enumerate().map(step).collect();
        sweep(&seeds, &steps, &scale(), &rules).expect("numbers in range")
    };
    (0..simulations).map(one).collect()
}
