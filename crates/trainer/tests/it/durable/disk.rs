//! A full disk, and files that may not grow: a clean message, and what was complete is intact.

use std::process::{Command, Stdio};

use super::*;

const ARGUMENTS: &str = "--config tiny.toml --quiet --threads 1 --set train.steps=60 --set train.eval_every=20";

/// After a failure: what there is loads, and nothing half-written takes space.
#[track_caller]
fn assert_intact(run: &RunDirectory) -> Option<u64> {
    let latest = run.checkpoints().latest().unwrap();
    if let Some(latest) = &latest {
        assert!(latest.damaged.is_empty(), "{latest:?}");
    }
    assert!(!is_writing(&run.path().join("checkpoints")), "something half-written stayed");
    latest.map(|latest| latest.checkpoint.step)
}

/// One message, of the file and of what helps.
#[track_caller]
fn assert_told(ran: Ran, what: &str) {
    let ran = ran.expect(1);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    assert!(ran.stderr.starts_with("error: can't ") && ran.stderr.contains(what), "{ran:?}");
    assert!(ran.stderr.contains("the same command goes on from it"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn files_that_may_not_grow() {
    let place = tiny();
    place.run(&format!("{ARGUMENTS} --out whole")).expect(0);
    let whole = place.only_run("whole");
    let largest = result_files(&whole).values().map(Vec::len).max().unwrap();
    let sizes = times(4, 20);
    let mut refused = 0;
    for size in 1..=sizes {
        // In blocks of 512 bytes.
        let blocks = size * largest / sizes / 512;
        let out = format!("limited{size}");
        // Where the program did not see to it, the system would end it by a signal.
        let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.current_dir(place.path()).arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_trainer"));
        command.args(format!("{ARGUMENTS} --out {out}").split(' ')).env_remove("RUST_BACKTRACE").stdin(Stdio::null());
        let ran = Ran::of(command.output().unwrap());
        if ran.code != Some(0) {
            assert_told(ran, "no larger files");
            refused += 1;
        }
        let run = place.only_run(&out);
        assert_intact(&run);
        place.run(&format!("{ARGUMENTS} --out {out}")).expect(0);
        assert_same_files(&whole, &run);
    }
    assert!(refused >= sizes / 2, "{refused}");
    println!("{refused} of {sizes} sizes of a file were too small");
}

/// A small file system in memory, until dropped.
#[cfg(target_os = "linux")]
struct Disk<'a>(&'a Path);

#[cfg(target_os = "linux")]
impl<'a> Disk<'a> {
    /// None where mounting isn't allowed.
    fn mount(path: &'a Path, kibibytes: usize) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kibibytes}k"), "headcount-test"])
            .arg(path)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then_some(Self(path))
    }

    fn resize(&self, kibibytes: usize) {
        let options = format!("remount,size={kibibytes}k");
        let status = Command::new("mount").args(["-o", &options]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

#[cfg(target_os = "linux")]
impl Drop for Disk<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0).status());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let place = tiny();
    place.run(&format!("{ARGUMENTS} --out whole")).expect(0);
    let whole = place.only_run("whole");
    let sizes = times(4, 20);
    let (mut refused, mut with_checkpoint) = (0, 0);
    for size in 1..=sizes {
        let out = format!("disk{size}");
        let path = place.path().join(&out);
        // From what a config takes to more than the whole run.
        let Some(disk) = Disk::mount(&path, 8 + size * 232 / sizes) else {
            println!("mounting isn't allowed here: nothing was tested");
            return;
        };
        let ran = place.run(&format!("{ARGUMENTS} --out {out}"));
        if ran.code != Some(0) {
            assert_told(ran, "No space left on device");
            refused += 1;
        }
        if let Some(run) = run_in(&place, &out) {
            with_checkpoint += usize::from(assert_intact(&run).is_some());
        }
        // With more room the same command goes on, and ends as if nothing had happened.
        disk.resize(4096);
        place.run(&format!("{ARGUMENTS} --out {out}")).expect(0);
        assert_same_files(&whole, &place.only_run(&out));
    }
    assert!(refused >= sizes / 4 && refused < sizes && with_checkpoint > 0, "{refused} {with_checkpoint}");
    println!("{refused} of {sizes} disks were full, {with_checkpoint} held a checkpoint by then");
}
