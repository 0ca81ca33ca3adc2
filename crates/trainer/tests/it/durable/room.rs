//! Too little memory: refused before anything is made, or ended with a plain word; what was saved is intact.

use std::process::{Command, Stdio};

use super::*;

/// Terabytes, which no machine has: refused in an instant, with the numbers.
#[cfg(target_os = "linux")]
#[test]
fn a_config_of_terabytes_is_refused_with_the_numbers() {
    let place = tiny();
    let huge = "--set task.seq_len=512 --set model.layers=1000 --set model.d_model=64 \
        --set train.batch_size=512";
    for more in ["", "--dry-run"] {
        let ran = place.run(&format!("--config tiny.toml {huge} {more}")).expect(1);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        for part in ["training needs about ", " MiB are free", "train.batch_size"] {
            assert!(ran.stderr.contains(part), "{part}\n{ran:?}");
        }
    }
    assert!(!place.path().join("runs").exists());
    let experiment = "baseline = \"h1\"\nregime = \"split\"\n[metric]\nmargin = 0.02\n[base]\nconfig = \"tiny.toml\"\n\
        task.seq_len = 512\nmodel.layers = 1000\nmodel.d_model = 64\ntrain.batch_size = 512\n[grid]\n\"model.heads\" = [1, 2]\n";
    place.file("test.toml", experiment);
    let ran = place.run("compare test.toml").expect(1);
    assert!(ran.stderr.contains("arm h1: training needs about "), "{ran:?}");
}

/// With less and less address space: done, refused with the numbers, or ended with one message. Then, with enough of it, the
/// run goes on and ends as if nothing had happened.
#[cfg(target_os = "linux")]
#[test]
fn limits_of_memory_end_cleanly() {
    let place = tiny();
    // Large enough to outgrow a limit that the program itself still starts under.
    let arguments = "--config tiny.toml --quiet --threads 1 --set train.steps=4 --set train.eval_every=2 --set train.snapshots=0 \
        --set task.seq_len=64 --set train.batch_size=96 --set train.accumulate=1 --set model.d_model=128";
    place.run(&format!("{arguments} --out whole")).expect(0);
    let whole = place.only_run("whole");
    let (mut refused, mut ended, mut done) = (0, 0, 0);
    let sizes = times(3, 20);
    // What it takes to load the program at all, in MiB: less is the system's error, not the program's.
    let program = fs::metadata(env!("CARGO_BIN_EXE_trainer")).unwrap().len() as usize / (1 << 20) + 60;
    for size in 0..sizes {
        let kibibytes = (program + 600 * size / sizes) << 10;
        let out = format!("limited{size}");
        let script = format!("ulimit -v {kibibytes}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.current_dir(place.path()).arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_trainer"));
        command.args(format!("{arguments} --out {out}").split_whitespace());
        command.env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        let ran = Ran::of(command.output().unwrap());
        if ran.code == Some(0) {
            done += 1;
        } else {
            let ran = ran.expect(1);
            assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
            match ran.stderr.contains("training needs about ") {
                true => refused += 1,
                false => {
                    assert!(ran.stderr.contains("out of memory"), "{kibibytes} KiB: {ran:?}");
                    ended += 1;
                }
            }
        }
        if let Some(run) = run_in(&place, &out) {
            run.checkpoints().latest().unwrap();
        }
        place.run(&format!("{arguments} --out {out}")).expect(0);
        assert_same_files(&whole, &place.only_run(&out));
    }
    println!("of {sizes} limits {refused} were refused, {ended} ended for want of memory, {done} were enough");
    assert!(ended > 0);
}
