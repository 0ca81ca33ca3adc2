//! The same run on other backends: the same first loss, close curves.

use data::metrics::LOSS;
use runs::{Manifest, RunDirectory};

use crate::support::*;

/// A step of at most some 50 ms on a software GPU.
const ARGUMENTS: &str = "--config small.toml --set task.train_examples=64 --set task.validation_examples=8 \
    --set task.test_examples=8 --set train.steps=20 --set train.eval_every=10 --set train.eval_batch=8 \
    --set train.batch_size=4 --set train.warmup=5 --set model.attention_dropout=0.1 --quiet";

fn assert_close(one: &RunDirectory, other: &RunDirectory) {
    let (first, second) = (metrics(one), metrics(other));
    assert_eq!(first.len(), second.len());
    for (left, right) in first.iter().zip(&second) {
        assert_eq!((left.step, left.split, left.tokens), (right.step, right.split, right.tokens));
        assert_eq!(left.lr, right.lr);
        let tolerance = if left.step <= 1 { 1e-5 } else { 1e-3 };
        assert!((left.scores.number(&LOSS) - right.scores.number(&LOSS)).abs() < tolerance, "{left:?}\n{right:?}");
        if let (Some(left), Some(right)) = (left.grad_norm, right.grad_norm) {
            assert!((left - right).abs() < 1e-2 * left, "gradient norms {left} and {right}");
        }
    }
    let [first, second] = [one, other].map(|run| Manifest::read(&run.manifest_path()).unwrap());
    assert_eq!(first.fingerprints, second.fingerprints);
    assert_ne!(first.backend, second.backend);
}

#[test]
fn ndarray_follows_flex_at_full_size() {
    let place = Workplace::new();
    for backend in ["flex", "ndarray"] {
        let config = format!("{}/h8.toml", configs().display());
        let arguments = "--set train.steps=20 --set train.eval_every=20 --set task.validation_examples=64 \
            --set task.test_examples=8 --quiet";
        place.run(&format!("--config {config} {arguments} --backend {backend} --out {backend}")).expect(0);
    }
    assert_close(&place.only_run("flex"), &place.only_run("ndarray"));
}

#[test]
fn wgpu_follows_flex() {
    if skips_wgpu() {
        return;
    }
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    place.run(&format!("{ARGUMENTS} --backend flex --out flex")).expect(0);
    let ran = place.run(&format!("{ARGUMENTS} --backend wgpu --out wgpu"));
    assert!(
        !ran.stderr.contains("no adapter"),
        "{}\nThese tests run wgpu on any Vulkan driver; Mesa's software one will do: \
         sudo apt-get install mesa-vulkan-drivers (or HEADCOUNT_SKIP_WGPU=1 leaves them out)",
        ran.stderr
    );
    ran.expect(0);
    assert_close(&place.only_run("flex"), &place.only_run("wgpu"));
}

/// Without any driver: one line that names the fix, and no run directory.
#[cfg(target_os = "linux")]
#[test]
fn no_adapter_is_one_line() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    let mut command = place.command("--config small.toml --backend wgpu");
    // Neither Vulkan nor OpenGL finds a driver.
    for variable in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES", "__EGL_VENDOR_LIBRARY_FILENAMES"] {
        command.env(variable, "/nonexistent");
    }
    let ran = Ran::of(command.output().unwrap()).expect(2);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("wgpu finds no adapter") && ran.stderr.contains("mesa-vulkan-drivers"), "{ran:?}");
    assert!(!place.path().join("runs").exists());
}

#[cfg(not(feature = "cuda"))]
#[test]
fn a_backend_that_is_not_built_is_one_line() {
    let place = Workplace::new();
    place.file("small.toml", SMALL);
    for arguments in ["--config small.toml --backend cuda", "--config small.toml --set backend=cuda --dry-run"] {
        let ran = place.run(arguments).expect(2);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("--features cuda"), "{ran:?}");
    }
    assert!(!place.path().join("runs").exists());
}
