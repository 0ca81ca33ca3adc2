//! Run directories whose numbers follow from a formula, written by the crate that writes the real ones.

use std::{f64::consts::TAU, fs, path::PathBuf};

use architecture::Parts;
use data::{
    Split,
    metrics::{ACCURACY, LOSS, Scores},
};
use runs::{
    Best, Experiment, Fingerprints, Manifest, MetricLine, PlannedRun, Program, Status, Summary, TensorFingerprint,
    TimingLine,
};

/// How a run goes.
#[derive(Clone, Copy)]
pub enum Kind {
    /// To a final accuracy near `at`.
    Learns {
        at: f64,
    },
    Diverges {
        at: u64,
    },
    Stopped {
        after: u64,
    },
    /// Finished, with a line of its metrics destroyed.
    Damaged,
    Absent,
}

/// An experiment with its runs.
pub struct Made {
    pub experiment: Experiment,
    pub folder: PathBuf,
    _parent: tempfile::TempDir,
}

/// An experiment on `registers` with `head` at its top, and a run of each kind.
pub fn make(name: &str, head: &str, arms: &str, kind: impl Fn(&PlannedRun) -> Kind) -> Made {
    let made = declare(name, head, arms);
    for run in made.experiment.runs_in(&made.folder) {
        write(&run, kind(&run));
    }
    made
}

/// The experiment, without a run.
pub fn declare(name: &str, head: &str, arms: &str) -> Made {
    let parent = tempfile::tempdir().unwrap();
    let baseline = if head.contains("baseline") { "" } else { "baseline = \"h1\"\n" };
    let metric = if head.contains("[metric]") { "" } else { "[metric]\nmargin = 0.02\n" };
    let text = format!(
        "{baseline}{head}\n{metric}[about]\nquestion = \"Is it so?\"\n[base.task]\nkind = \"registers\"\n{arms}"
    );
    let experiment = Experiment::parse(&text, &parent.path().join("x.toml")).unwrap_or_else(|error| panic!("{error}"));
    let experiment = Experiment { name: name.into(), ..experiment };
    Made { experiment, folder: parent.path().join("experiment"), _parent: parent }
}

/// A number in 0..1 that looks random.
fn noise(seed: u64, step: u64, what: u64) -> f64 {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ what;
    for _ in 0..3 {
        x = (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 29;
    }
    (x >> 11) as f64 / (1u64 << 53) as f64
}

/// Normal, by Box and Muller.
fn normal(seed: u64, step: u64, what: u64) -> f64 {
    let (u, v) = (noise(seed, step, 2 * what).max(1e-12), noise(seed, step, 2 * what + 1));
    (-2.0 * u.ln()).sqrt() * (TAU * v).cos()
}

fn scores(loss: f64, accuracy: f64) -> Scores {
    Scores::default().with(&LOSS, loss).with(&ACCURACY, accuracy)
}

fn score(run: &PlannedRun, at: f64, step: u64) -> Scores {
    let seed = run.config.seed * 31 + run.config.model.heads as u64;
    let middle = 220.0 + 40.0 * normal(seed, 0, 1);
    let rise = 1.0 / (1.0 + (-(step as f64 - middle) / 60.0).exp());
    let end = (at + 0.15 * (1.0 - at) * normal(seed, 0, 2)).clamp(0.0, 1.0);
    let accuracy = (0.125 + (end - 0.125) * rise + 0.004 * normal(seed, step, 3)).clamp(0.0, 1.0);
    scores((2.08 * (1.0 - accuracy) + 0.004).max(1e-3), accuracy)
}

/// Writes the directory of a run of that kind.
pub fn write(run: &PlannedRun, kind: Kind) {
    let (at, last, status) = match kind {
        Kind::Absent => return,
        Kind::Learns { at } => (at, run.config.train.steps, Some(Status::Finished)),
        Kind::Damaged => (0.9, 800, Some(Status::Finished)),
        Kind::Diverges { at } => (0.3, at, Some(Status::Diverged { step: at })),
        Kind::Stopped { after } => (0.9, after, None),
    };
    let lock = run.directory.create(&run.config).unwrap();
    let manifest = manifest(run);
    manifest.write(&run.directory.manifest_path()).unwrap();
    let origin = manifest.origin();
    let (mut metrics, mut timings) = run.directory.logs_after(None).unwrap();
    let mut best = None;
    for step in 0..=last {
        let exact = score(run, at, step);
        let line = |split, scores| MetricLine {
            step,
            split,
            scores,
            lr: (split == Split::Train).then_some(run.config.train.lr),
            grad_norm: (split == Split::Train).then_some(1.0 + noise(run.config.seed, step, 9)),
            tokens: step * 2048,
        };
        if step > 0 {
            let noisy = exact.number(&ACCURACY) + 0.02 * normal(run.config.seed, step, 5);
            let diverged = matches!(kind, Kind::Diverges { at } if at == step);
            let loss =
                if diverged { f64::NAN } else { exact.number(&LOSS) * (1.0 + 0.1 * normal(run.config.seed, step, 4)) };
            metrics.append(&line(Split::Train, scores(loss, noisy.clamp(0.0, 1.0)))).unwrap();
        }
        if step.is_multiple_of(50) {
            metrics.append(&line(Split::Validation, exact)).unwrap();
            timings
                .append(&TimingLine { step, seconds: step as f64 / 16.0, tokens_per_second: 32768.0, run: origin.id() })
                .unwrap();
            best = Best::of(best, step, exact);
        }
    }
    metrics.flush().unwrap();
    timings.flush().unwrap();
    if let Some(status) = status {
        let finished = (status == Status::Finished).then(|| score(run, at, last));
        let (validation, test) = (finished, finished);
        let metrics = run.directory.metrics_hash().unwrap();
        let best_test = test;
        let summary =
            Summary { status, steps: last, tokens: last * 2048, validation, test, best, best_test, metrics, origin };
        summary.write(&run.directory.summary_path()).unwrap();
    }
    if matches!(kind, Kind::Damaged) {
        fs::write(run.directory.metrics_path(), "{\"step\":oops}\n").unwrap();
    }
    drop(lock);
}

fn manifest(run: &PlannedRun) -> Manifest {
    let config = &run.config;
    let blake3 = format!("token {}", config.seed);
    Manifest {
        config: config.to_toml(),
        program: Program {
            version: "0.1.0".into(),
            commit: Some("0123456789abcdef".into()),
            dirty: Some(false),
            build: None,
        },
        backend: config.backend.to_string(),
        device: "CPU".into(),
        threads: 1,
        parameters: Parts::from_iter([("attention", 16_576), ("mlp", 33_088)]),
        flops_per_step: Parts::from_iter([("attention", 250_000_000), ("mlp", 500_000_000)]),
        tokens_per_step: 2048,
        resumed: vec![],
        files: vec![],
        simd: None,
        fingerprints: Fingerprints {
            data: format!("data {}", config.seed),
            weights: format!("weights {}", config.seed),
            tensors: [("token.weight".to_string(), TensorFingerprint { shape: vec![16, 64], blake3 })].into(),
        },
    }
}
