//! Heads that are made up: every head reads one register, the more the longer it has trained.

use base64::{Engine, prelude::BASE64_STANDARD};
use data::metrics::{ACCURACY, LOSS, Scores};
use headcount_report::results::{Results, RunResult};
use runs::heads::{
    ArmHeads, AttentionAnalysis, AttentionSite, ExperimentHeads, Flag, HeadAnalysis, HeadMeasures, HeadPlace,
    HeadsUsed, MeasureInfo, MeasureValue, Nearest, OfRun, Pruning, PruningPoint, RunHeads, SCHEMA_VERSION, ShownMaps,
    ShownSample, ShownToken, StepAnalysis, Tells, Tolerance, Unit,
};

/// L, the length of a sample.
pub const LEN: usize = 32;
const REGISTERS: usize = 4;
const STEPS: [u64; 5] = [0, 100, 200, 400, 800];

/// An analysis of every run of `results`, with `heads(arm)` heads in each of `layers` layers; maps for the first pair.
pub fn heads(results: &Results, layers: usize, heads: impl Fn(&str) -> usize) -> ExperimentHeads {
    let arms = results.arms.iter().map(|arm| {
        let run = |(index, run): (usize, &RunResult)| RunHeads {
            pair: run.pair,
            directory: run.directory.clone(),
            analysis: Some(analysis(&arm.name, run.seed, layers, heads(&arm.name), index == 0)),
            problem: None,
        };
        ArmHeads {
            name: arm.name.clone(),
            label: arm.label.clone(),
            measures: described(),
            untrained: None,
            last: None,
            runs: arm.runs.iter().enumerate().map(run).collect(),
        }
    });
    ExperimentHeads { schema_version: SCHEMA_VERSION, name: results.name.clone(), arms: arms.collect() }
}

fn register(position: usize) -> usize {
    (position * 7 + position / 5) % REGISTERS
}

fn token(position: usize) -> ShownToken {
    let label = format!("r{}={}", register(position), position % 4);
    let target = (position > 5).then_some((position % 8) as i32);
    ShownToken { id: (register(position) * 4 + position % 4) as u32, label, padding: false, target }
}

fn analysis(name: &str, seed: u64, layers: usize, heads: usize, with_maps: bool) -> HeadAnalysis {
    let sample = |index| ShownSample { index, tokens: (0..LEN).map(token).collect(), source: vec![] };
    let steps = STEPS.into_iter().filter(|step| with_maps || [0, 800].contains(step));
    HeadAnalysis {
        schema_version: SCHEMA_VERSION,
        computed_from: "0".repeat(64),
        name: name.into(),
        seed,
        task: "registers".into(),
        layers,
        heads,
        kv_heads: heads,
        d_head: 64 / heads,
        causal: true,
        samples: 64,
        scored: 1500,
        measures: vec![],
        shown: if with_maps { (0..2).map(sample).collect() } else { vec![] },
        steps: steps.map(|step| analysed(step, layers, heads, with_maps)).collect(),
        pruning: with_maps.then(|| pruning(layers, heads)),
    }
}

/// Heads go from the last to the first; half of them are used, or as many as there are registers.
fn pruning(layers: usize, heads: usize) -> Pruning {
    let all = layers * heads;
    let point = |kept: usize| {
        let accuracy = 0.925 - 0.2 * (1.0 - kept as f64 / REGISTERS as f64).max(0.0) - 1e-4 * (all - kept) as f64;
        let gone = (kept < all).then_some(kept);
        let errors = Scores::default().with(&LOSS, 0.012_345).with(&ACCURACY, 0.004_321);
        PruningPoint {
            kept,
            removed: gone.map(|gone| HeadPlace {
                site: AttentionSite::Decoder,
                layer: gone / heads,
                head: gone % heads,
            }),
            validation: Scores::default().with(&LOSS, 0.2).with(&ACCURACY, accuracy + 0.01),
            test: Scores::default().with(&LOSS, 2.0 * (1.0 - accuracy)).with(&ACCURACY, accuracy),
            standard_error: errors,
            difference_standard_error: errors,
        }
    };
    let points: Vec<PruningPoint> = (0..=all).rev().map(point).collect();
    let used = HeadsUsed::of(&points, Tolerance { metric: &ACCURACY, margin: 0.02 });
    Pruning { validation_samples: 64, passes: 45, test_samples: 512, points, used }
}

fn analysed(step: u64, layers: usize, heads: usize, with_maps: bool) -> StepAnalysis {
    let trained = step as f64 / 800.0;
    let attention = |layer| AttentionAnalysis {
        site: AttentionSite::Decoder,
        layer,
        heads: (0..heads).map(|head| measures(head, heads, trained)).collect(),
        divergence: (0..heads).map(|a| (0..heads).map(|b| if a == b { 0.0 } else { 0.123_457 }).collect()).collect(),
        maps: with_maps.then(|| ShownMaps {
            causal: true,
            samples: 2,
            queries: LEN,
            keys: LEN,
            heads: (0..heads).map(|head| BASE64_STANDARD.encode(bytes(head, trained))).collect(),
        }),
    };
    StepAnalysis {
        step,
        scores: Scores::default().with(&LOSS, 2.2 - 2.0 * trained).with(&ACCURACY, 0.125 + 0.8 * trained),
        attentions: (0..layers).map(attention).collect(),
    }
}

fn measures(head: usize, heads: usize, trained: f64) -> HeadMeasures {
    let flags = match head {
        5 if trained == 1.0 => vec![Flag::Spare, Flag::Dead],
        6 if trained == 1.0 => vec![Flag::Sink],
        _ => vec![],
    };
    let needed = (0..REGISTERS).map(|r| if r == head % REGISTERS { 0.1 + 0.7 * trained } else { 0.1 }).collect();
    let numbers = [
        ("entropy", 0.95 - 0.512_345 * trained),
        ("distance", 8.25 - 3.0 * trained),
        ("first_position", if head == 6 { 0.05 + 0.4 * trained } else { 0.05 }),
        ("output_share", if head == 5 { 0.001 } else { 1.0 / heads as f64 }),
        ("removal", if head == 5 { 0.0031 } else { 0.212_345 * trained }),
        ("importance", 0.0123 * trained),
    ];
    let numbers = numbers.map(|(key, number)| (key.to_string(), MeasureValue::Number(number)));
    HeadMeasures {
        measures: numbers.into_iter().chain([("needed".into(), MeasureValue::Parts(needed))]).collect(),
        nearest: (heads > 1).then_some(Nearest { head: (head + 1) % heads, divergence: 0.123_457 }),
        flags,
    }
}

/// The measures of the heads: of every unit, one of several numbers.
fn described() -> Vec<MeasureInfo> {
    let measure = |key: &str, title: &str, range, unit, tells| MeasureInfo {
        key: key.into(),
        title: title.into(),
        glossary: format!("What {title} says of a head."),
        reads: None,
        range,
        unit,
        tells,
        across: OfRun::Mean,
        parts: vec![],
    };
    let share = Some([0.0, 1.0]);
    let needed = measure("needed", "weight on what the answer needs", share, Unit::Share, Tells::Reads);
    vec![
        measure("entropy", "entropy", share, Unit::Share, Tells::Reads),
        measure("distance", "mean distance", None, Unit::Positions, Tells::Reads),
        measure("first_position", "position 0", share, Unit::Share, Tells::Reads),
        MeasureInfo { parts: (0..REGISTERS).map(|register| format!("register {register}")).collect(), ..needed },
        measure("output_share", "output share", share, Unit::Share, Tells::Worth),
        measure("removal", "cost of removal", None, Unit::Nats, Tells::Worth),
        measure("importance", "importance", None, Unit::Slope, Tells::Worth),
    ]
}

/// Two samples of a causal map: `255 · trained` on the latest write of the head's register, the rest spread evenly.
fn bytes(head: usize, trained: f64) -> Vec<u8> {
    let row = |query: usize| {
        let latest = (0..=query).rev().find(|key| register(*key) == head % REGISTERS);
        (0..=query).map(move |key| {
            let even = (1.0 - if latest.is_some() { trained } else { 0.0 }) / (query + 1) as f64;
            let peak = if latest == Some(key) { trained } else { 0.0 };
            (255.0 * (even + peak)).round() as u8
        })
    };
    (0..2).flat_map(|_| (0..LEN).flat_map(row)).collect()
}
