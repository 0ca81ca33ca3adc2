//! A folder of one's own, the program, and what a run leaves behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use burn::tensor::Device;
use burn::train::Interrupter;
use data::metrics::{LOSS, Scores};
use runs::{Config, MetricLine, RunDirectory};
use tempfile::TempDir;
use trainer::training::observer::{Observer, Plan, Silent, Stepped};
use trainer::training::train::{Ending, train};

/// A model and task of a few milliseconds a step that still has everything: two heads, a fixed set that is passed more
/// than once, evaluations between.
pub const SMALL: &str = r#"
[task]
kind = "registers"
registers = 2
values = 3
seq_len = 12
train_examples = 200
validation_examples = 40
test_examples = 40
[model]
d_model = 16
heads = 2
[train]
steps = 120
batch_size = 8
warmup = 10
eval_every = 20
eval_batch = 16
"#;

/// The folder of the configs that the repository ships.
pub fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").canonicalize().unwrap()
}

/// A temporary folder in which the program runs.
pub struct Workplace {
    folder: TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file in it and returns its name.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path().join(name), content).unwrap();
        name.to_string()
    }

    /// The program with arguments that are words, run in the folder.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
        command.current_dir(self.path()).args(arguments.split_whitespace());
        // A backtrace would hide what a user without it would see.
        command.env_remove("RUST_BACKTRACE").env_remove("BURN_DEVICE").stdin(Stdio::null());
        // Tests that run in a background job ignore Ctrl-C, and what they start would, too.
        #[cfg(unix)]
        // SAFETY: a call that is allowed between fork and exec.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, || {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        if std::env::var_os("XDG_RUNTIME_DIR").is_none() {
            command.env("XDG_RUNTIME_DIR", self.path()); // Mesa's drivers want one
        }
        command
    }

    pub fn run(&self, arguments: &str) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Starts the program; its output is kept for [`finish`].
    pub fn start(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The only run under `out`.
    pub fn only_run(&self, out: &str) -> RunDirectory {
        let entries: Vec<PathBuf> =
            fs::read_dir(self.path().join(out)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1, "{entries:?}");
        RunDirectory::at(&entries[0])
    }
}

/// What the program said, and its exit code (none where a signal ended it).
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Panics with everything that was said unless the exit code is `code` and nothing reads like a crash.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.stdout, self.stderr);
        for text in [&self.stdout, &self.stderr] {
            assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
        }
        self
    }
}

/// Every run in a folder, also those that are worked on at this moment.
pub fn runs_below(folder: &Path) -> Vec<RunDirectory> {
    runs::inspection::find(folder).unwrap_or_default()
}

/// Waits for a program of [`Workplace::start`].
pub fn finish(child: Child) -> Ran {
    Ran::of(child.wait_with_output().unwrap())
}

/// Sends a signal by its name, such as `INT`.
pub fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Waits until `happened`, at most a minute.
#[track_caller]
pub fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let started = Instant::now();
    while !happened() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Every file of a run that must not depend on when and where it was made, by its name.
#[track_caller]
pub fn result_files(run: &RunDirectory) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for path in [run.metrics_path(), run.summary_path()] {
        files.insert(path.file_name().unwrap().to_str().unwrap().to_string(), fs::read(&path).unwrap());
    }
    let steps = run.checkpoints().steps().unwrap();
    assert!(!steps.is_empty());
    for step in steps {
        for entry in fs::read_dir(run.checkpoints().path(step)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("step-{step}/{}", path.file_name().unwrap().to_str().unwrap());
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    let snapshots = run.snapshots();
    for step in snapshots.steps().unwrap() {
        files.insert(format!("snapshots/{step}"), fs::read(snapshots.path(step)).unwrap());
    }
    files
}

/// Panics with the names of the files that differ.
#[track_caller]
pub fn assert_same_files(left: &RunDirectory, right: &RunDirectory) {
    let (left, right) = (result_files(left), result_files(right));
    let names: Vec<&String> = left.keys().collect();
    assert_eq!(names, right.keys().collect::<Vec<_>>());
    let different: Vec<&&String> = names.iter().filter(|name| left[**name] != right[**name]).collect();
    assert!(different.is_empty(), "these files differ: {different:?}");
}

pub fn metrics(run: &RunDirectory) -> Vec<MetricLine> {
    runs::read_metrics(&run.metrics_path()).unwrap()
}

/// Training losses by step.
pub fn losses(run: &RunDirectory) -> Vec<f64> {
    metrics(run).iter().filter(|line| line.split == data::Split::Train).map(|line| line.scores.number(&LOSS)).collect()
}

/// Trains in this process, on flex, as the program does.
pub fn train_here(config: &Config, out: &Path) -> (RunDirectory, Ending) {
    train_until(config, out, u64::MAX)
}

/// As [`train_here`], but an interrupt arrives during step `stop`; with 0 it has arrived before the first.
pub fn train_until(config: &Config, out: &Path, stop: u64) -> (RunDirectory, Ending) {
    struct Stopping(u64, Interrupter);
    impl Observer for Stopping {
        fn start(&mut self, _plan: &Plan) {}
        fn stepped(&mut self, stepped: &Stepped) {
            if stepped.step >= self.0 {
                self.1.stop(None);
            }
        }
        fn validated(&mut self, _step: u64, _scores: &Scores) {}
        fn end(&mut self) {}
    }
    let directory = RunDirectory::of(out, config);
    let _lock = directory.create(config).unwrap();
    trainer::training::manifest::manifest(config, &Device::flex(), 1)
        .unwrap()
        .write(&directory.manifest_path())
        .unwrap();
    let interrupter = Interrupter::new();
    let mut observer: Box<dyn Observer> = match stop {
        u64::MAX => Box::new(Silent),
        _ => Box::new(Stopping(stop, interrupter.clone())),
    };
    if stop == 0 {
        interrupter.stop(None);
    }
    let ending = train(config, &directory, &Device::flex(), observer.as_mut(), &interrupter).unwrap();
    (directory, ending)
}

/// A config of [`SMALL`] with overrides.
pub fn small(overrides: &[&str]) -> Config {
    let overrides: Vec<String> = overrides.iter().map(|pair| pair.to_string()).collect();
    Config::parse_with(SMALL, "small.toml", &overrides).unwrap()
}

/// Whether wgpu is to be left out; says so where it is.
pub fn skips_wgpu() -> bool {
    let skips = std::env::var_os("HEADCOUNT_SKIP_WGPU").is_some();
    if skips {
        println!("HEADCOUNT_SKIP_WGPU is set: nothing is tested on wgpu");
    }
    skips
}
