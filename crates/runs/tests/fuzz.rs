//! Files made by chance: each reader takes them or refuses them, without a panic, and without more memory than twice the
//! file and 64 MiB. 500 files for each reader, 100,000 with `HEADCOUNT_LONG=1`: noise, and valid files with bytes changed,
//! lost, repeated or put in.
//!
//! A file of its own, since it counts every allocation of its process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use architecture::HostTensor;
use data::metrics::{ACCURACY, LOSS, Scores};
use headcount_runs::{Checkpoint, Checkpoints, Config, Experiment, MetricLine, MetricsLog, Tensors, read_metrics};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The system's allocator, with what it has given out.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Old and new are there together while it is copied.
        more(size);
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test at a time: memory is counted for the whole process.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `read` and gives the most memory that it held at once, in bytes.
fn memory_of(read: impl FnOnce()) -> usize {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    read();
    MOST.load(Relaxed) - before
}

/// One change to a file.
#[derive(Clone, Debug)]
enum Change {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize, usize),
    Insert(prop::sample::Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    // What formats give a meaning to.
    const TOKENS: &[&str] = &[
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'''",
        "\\",
        "\n",
        "=",
        ",",
        ".",
        "-1",
        "1e999",
        "99999999999999999999",
        "nan",
        "null",
        "true",
        "[[",
        "a.b.c = 1\n",
        "\0",
        "\u{feff}",
        "[task]\n",
        "{\"step\":1}\n",
        "#",
        "\u{1f980}",
        "\"\"",
    ];
    let at = any::<prop::sample::Index>;
    let bytes = prop_oneof![
        3 => prop::sample::select(TOKENS).prop_map(|token| token.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..20),
    ];
    prop_oneof![
        4 => (at(), 1u8..).prop_map(|(at, flip)| Change::Flip(at, flip)),
        1 => at().prop_map(Change::Cut),
        2 => (at(), 1usize..60).prop_map(|(at, count)| Change::Remove(at, count)),
        2 => (at(), 1usize..60, 1usize..300).prop_map(|(at, count, times)| Change::Repeat(at, count, times)),
        4 => (at(), bytes).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
    ]
}

fn apply(mut file: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = file.len();
        if length == 0 {
            return file;
        }
        match change {
            Change::Flip(at, flip) => file[at.index(length)] ^= flip,
            Change::Cut(at) => file.truncate(at.index(length)),
            Change::Remove(at, count) => drop(file.drain(at.index(length)..(at.index(length) + count).min(length))),
            Change::Repeat(at, count, times) => {
                let (start, end) = (at.index(length), (at.index(length) + count).min(length));
                let part = file[start..end].repeat(*times);
                file.splice(end..end, part);
            }
            Change::Insert(at, bytes) => drop(file.splice(at.index(length)..at.index(length), bytes.iter().copied())),
        }
    }
    file
}

/// Noise, or one of the valid files with a few changes.
fn files(valid: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changed = (prop::sample::select(valid), prop::collection::vec(change(), 0..6));
    prop_oneof![
        6 => changed.prop_map(|(file, changes)| apply(file, &changes)),
        1 => prop::collection::vec(any::<u8>(), 0..2000),
        1 => any::<String>().prop_map(String::into_bytes),
    ]
}

/// Gives each file to `read`, which says whether it took it, and watches its memory.
fn fuzz(what: &str, valid: Vec<Vec<u8>>, read: impl Fn(&[u8]) -> bool) {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for file in &valid {
        assert!(read(file), "{what}: a valid file is refused");
    }
    let cases = if std::env::var_os("HEADCOUNT_LONG").is_some_and(|value| value == "1") { 100_000 } else { 500 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let (taken, largest) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let result = TestRunner::new(config).run(&files(valid), |file| {
        let held = memory_of(|| {
            taken.fetch_add(usize::from(read(&file)), Relaxed);
        });
        largest.fetch_max(held, Relaxed);
        prop_assert!(held <= 2 * file.len() + (64 << 20), "{} bytes of memory for a file of {}", held, file.len());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{what}: {error}");
    }
    let (taken, kibibytes) = (taken.into_inner(), largest.into_inner() >> 10);
    println!("{what}: {taken} of {cases} files taken, the others refused; at most {kibibytes} KiB of memory for one");
}

const CONFIG: &str = "name = \"h8\"\nseed = 3\n[task]\nkind = \"registers\"\nregisters = 4\n[model]\nheads = 8\n";

#[test]
fn configs() {
    let minimal = b"[task]\nkind = \"mqar\"\n".to_vec();
    let complete = Config::parse(CONFIG, "h8.toml").unwrap().to_toml().into_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h8.toml");
    fuzz("configs", vec![minimal, CONFIG.into(), complete], |file| {
        fs::write(&path, file).unwrap();
        match Config::load(&path, &[]) {
            Ok(config) => Config::parse(&config.to_toml(), "again.toml") == Ok(config),
            Err(error) => {
                assert!(error.to_string().lines().count() <= 40, "{error}");
                false
            }
        }
    });
}

#[test]
fn experiments() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("h8.toml"), CONFIG).unwrap();
    let path = folder.path().join("test.toml");
    let short =
        b"base = \"h8.toml\"\nbaseline = \"h1\"\nregime = \"split\"\nseeds = 10\n[about]\nquestion = \"?\"\n[metric]\n\
        margin = 0.02\n[arms.h1]\nmodel.heads = 1\n[arms.h8]\n"
            .to_vec();
    let grid = b"baseline = \"h1\"\nregime = \"split\"\nseeds = [3, 4]\nwhy_seeds = \"a test\"\n[metric]\nname = \
        \"test_loss\"\nmargin = 0.1\n[tuning]\nlr = [1e-3, 3e-3]\nseeds = [100]\n[base]\nconfig = \"h8.toml\"\n\
        train.steps = 40\n[grid]\n\"model.heads\" = [1, 2, 4]\n"
        .to_vec();
    let written = Experiment::parse(str::from_utf8(&short).unwrap(), &path).unwrap().to_toml().into_bytes();
    fuzz("experiments", vec![short, grid, written], |file| {
        fs::write(&path, file).unwrap();
        match Experiment::load(&path) {
            Ok(experiment) => {
                let runs = experiment.runs(Path::new("out"));
                // Wherever its runs are, they are in its own folder.
                let folder = experiment.folder(Path::new("out"));
                assert!(folder.parent() == Some(Path::new("out")), "{folder:?}");
                assert!(runs.iter().all(|run| run.directory.path().parent() == Some(&folder)));
                true
            }
            Err(error) => {
                assert!(error.to_string().lines().count() <= 60, "{error}");
                false
            }
        }
    });
}

fn tensors(count: usize) -> Tensors {
    let tensor = |index: usize| HostTensor { shape: vec![index + 1, 3], values: vec![index as f32; 3 * (index + 1)] };
    (0..count).map(|index| (format!("blocks.{index}.weight"), tensor(index))).collect()
}

/// An object with its hash as the last key.
fn sealed(text: &str) -> String {
    let open = text.strip_suffix('}').unwrap();
    format!("{open},\"blake3\":\"{}\"}}\n", blake3::hash(text.as_bytes()).to_hex())
}

/// Each file of a checkpoint in turn. Those of tensors come with the right checksums: whoever makes them can make those too.
#[test]
fn checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(folder.path().join("checkpoints"));
    let sound = Checkpoint { step: 7, model: tensors(5), optimiser: tensors(2), ..Default::default() };
    checkpoints.save(&sound).unwrap();
    let at = |name: &str| checkpoints.path(7).join(name);
    let read = |name: &str| fs::read(at(name)).unwrap();
    let (index, model, optimiser) = (read("checkpoint.json"), read("model.safetensors"), read("optimiser.safetensors"));
    fuzz("checkpoint.json", vec![index.clone()], |file| {
        fs::write(at("checkpoint.json"), file).unwrap();
        // Whatever else it may say, it is never about other weights.
        checkpoints.load(7).is_ok_and(|read| read.model == sound.model && read.optimiser == sound.optimiser)
    });
    let stamp = |file: &[u8]| format!("{{\"bytes\":{},\"blake3\":\"{}\"}}", file.len(), blake3::hash(file).to_hex());
    fuzz("model.safetensors", vec![model], |file| {
        let (model, optimiser) = (stamp(file), stamp(&optimiser));
        let files = format!("{{\"model.safetensors\":{model},\"optimiser.safetensors\":{optimiser}}}");
        let origin = "{\"config\":\"\",\"data\":\"\",\"weights\":\"\"}";
        let index = format!(
            "{{\"step\":7,\"validation\":null,\"best\":null,\"metrics\":\"\",\"origin\":{origin},\"files\":{files}}}"
        );
        fs::write(at("checkpoint.json"), sealed(&index)).unwrap();
        fs::write(at("model.safetensors"), file).unwrap();
        checkpoints.load(7).is_ok()
    });
}

#[test]
fn metrics() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.jsonl");
    let line = |step, split| MetricLine {
        step,
        split,
        scores: Scores::default().with(&LOSS, 0.5).with(&ACCURACY, 0.25),
        lr: Some(3e-3),
        grad_norm: None,
        tokens: 9,
    };
    let mut log = MetricsLog::open(&path).unwrap();
    for step in 1..=20 {
        log.append(&line(step, data::Split::Train)).unwrap();
    }
    log.append(&line(20, data::Split::Validation)).unwrap();
    log.flush().unwrap();
    let valid = fs::read(&path).unwrap();
    fuzz("metrics.jsonl", vec![valid], |file| {
        fs::write(&path, file).unwrap();
        let read = read_metrics(&path);
        // Resumed after step 10, nothing later is left, and what is left reads.
        let resumed = MetricsLog::open_until(&path, 10);
        if resumed.is_ok() {
            assert!(read_metrics(&path).unwrap().iter().all(|line| line.step <= 10));
        }
        read.is_ok()
    });
}
