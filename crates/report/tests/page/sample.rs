//! Heads that are made up: every head reads one register, the more the longer it has trained.

use base64::{Engine, prelude::BASE64_STANDARD};
use data::metrics::{ACCURACY, LOSS, Scores};
use headcount_report::results::{Results, RunResult};
use runs::forward::{ForwardPass, MaskKind, MaskedPass, Numbers, TracedAttention};
use runs::heads::{
    ArmHeads, AttentionAnalysis, AttentionSite, ExperimentHeads, Flag, HeadAnalysis, HeadMeasures, HeadPlace,
    HeadsUsed, MeasureInfo, MeasureValue, Nearest, OfRun, Pruning, PruningPoint, Role, RoleInfo, RunHeads,
    SCHEMA_VERSION, ShownAnswers, ShownMaps, ShownSample, ShownToken, StepAnalysis, Tells, Tolerance, Unit,
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
            roles: roles(),
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
        roles: vec![],
        alike: vec![],
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
        answers: with_maps.then(|| (0..2).map(|sample| answers(sample, trained)).collect()),
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
        roles: if trained == 1.0 { vec![lookup(head)] } else { vec![] },
    }
}

fn lookup(head: usize) -> Role {
    let words = format!("looks up register {}", head % REGISTERS);
    Role { role: "lookup".into(), words, measure: "needed".into(), value: 0.8, untrained: Some(0.1) }
}

fn roles() -> Vec<RoleInfo> {
    vec![RoleInfo { key: "lookup".into(), title: "lookup".into(), rule: "what is needed at least 0.4".into() }]
}

/// What is said of sample `sample`, wrong at every fourth scored position of the first, and at every eighth of the other.
fn answers(sample: usize, trained: f64) -> ShownAnswers {
    let scored = (0..LEN).filter_map(|position| token(position).target);
    let answer = |(place, target): (usize, i32)| {
        let is_wrong = place % (4 * (sample + 1)) == 0;
        let (said, sure) = (if is_wrong { (target + 1) % 8 } else { target }, 0.2 + 0.7 * trained);
        let other = if is_wrong { target } else { (target + 2) % 8 };
        vec![(said, (1000.0 * sure).round() / 1000.0), (other, 0.05)]
    };
    scored.enumerate().map(answer).collect()
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

/// A pass of two heads over eight positions, with the numbers that its formulas give, as it is and without its causal mask.
pub fn forward() -> ForwardPass {
    const L: usize = 8;
    const K: usize = 4;
    let noise = |place: usize| ((place * 2_654_435_761 % 1000) as f32 / 500.0 - 1.0) * 1.5;
    let made = |from: usize, count: usize| (0..count).map(|place| noise(from + place)).collect::<Vec<f32>>();
    let numbers = |shape: &[usize], values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Numbers { shape: shape.to_vec(), values: BASE64_STANDARD.encode(bytes) }
    };
    let (query, key, value) = (made(1, 2 * L * K), made(1000, 2 * L * K), made(2000, 2 * L * K));
    let vector = |of: &[f32], head: usize, at: usize| of[(head * L + at) * K..][..K].to_vec();
    let score = |head: usize, i: usize, j: usize| {
        vector(&query, head, i).iter().zip(vector(&key, head, j)).map(|(a, b)| a * b).sum::<f32>() * 0.5
    };
    let rows = || (0..2).flat_map(|head| (0..L).map(move |i| (head, i)));
    let scores: Vec<f32> =
        rows().flat_map(|(head, i)| (0..L).map(move |j| score(head, i, j)).collect::<Vec<_>>()).collect();
    let pass = |is_masked: bool| {
        let map = |head: usize, i: usize| {
            let row: Vec<f32> =
                (0..L).map(|j| if is_masked && j > i { 0.0 } else { score(head, i, j).exp() }).collect();
            let sum: f32 = row.iter().sum();
            row.into_iter().map(|weight| weight / sum).collect::<Vec<f32>>()
        };
        let maps: Vec<f32> = rows().flat_map(|(head, i)| map(head, i)).collect();
        let read = |head: usize, i: usize, c: usize| {
            map(head, i).iter().enumerate().map(|(j, weight)| weight * vector(&value, head, j)[c]).sum::<f32>()
        };
        let context: Vec<f32> =
            rows().flat_map(|(head, i)| (0..K).map(move |c| read(head, i, c)).collect::<Vec<_>>()).collect();
        let output: Vec<f32> = (0..L)
            .flat_map(|i| (0..2).flat_map(move |head| (0..K).map(move |c| read(head, i, c)).collect::<Vec<_>>()))
            .collect();
        let attention = TracedAttention {
            site: AttentionSite::Decoder,
            layer: 0,
            input: numbers(&[L, 2 * K], &made(3000, L * 2 * K)),
            query: numbers(&[2, L, K], &query),
            key: numbers(&[2, L, K], &key),
            value: numbers(&[2, L, K], &value),
            scores: numbers(&[2, L, L], &scores),
            maps: numbers(&[2, L, L], &maps),
            context: numbers(&[2, L, K], &context),
            output: numbers(&[L, 2 * K], &output),
        };
        let answers = vec![
            vec![(6, 0.9), (1, 0.05)],
            vec![(if is_masked { 7 } else { 2 }, 0.8), (if is_masked { 2 } else { 7 }, 0.1)],
        ];
        MaskedPass {
            without: if is_masked { vec![] } else { vec![MaskKind::Causal] },
            attentions: vec![attention],
            answers,
        }
    };
    ForwardPass {
        name: "h2".into(),
        task: "registers".into(),
        step: 800,
        sample: 0,
        tokens: (0..L).map(token).collect(),
        source: vec![],
        d_model: 2 * K,
        heads: 2,
        kv_heads: 2,
        d_head: K,
        scale: 0.5,
        masks: vec![MaskKind::Causal],
        passes: vec![pass(true), pass(false)],
    }
}
