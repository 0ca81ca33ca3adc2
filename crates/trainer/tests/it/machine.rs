//! What the machine does to a run: another build, other vectors, folders that can't be written to, limits of memory.

use std::fs;
use std::process::Command;

use runs::{Manifest, RunDirectory};

use crate::durable::{TINY, tiny};
use crate::support::*;

const EXPERIMENT: &str = "baseline = \"h1\"\nregime = \"split\"\nseeds = 3\nwhy_seeds = \"it is a test\"\n[metric]\n\
    margin = 0.02\n[base]\nconfig = \"tiny.toml\"\ntrain.steps = 40\ntrain.eval_every = 20\n\
    [grid]\n\"model.heads\" = [1, 2]\n";

/// The program from a file of its own, which may be replaced.
#[cfg(unix)]
fn copied(place: &Workplace, arguments: &str) -> Command {
    let program = place.path().join("trainer");
    fs::copy(env!("CARGO_BIN_EXE_trainer"), &program).unwrap();
    let mut command = Command::new(program);
    command.current_dir(place.path()).args(arguments.split_whitespace()).env_remove("RUST_BACKTRACE");
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    command
}

/// deno#36176: workers were started from the program's path, where another build or nothing stood by then.
#[cfg(target_os = "linux")]
#[test]
fn deno_36176_the_program_is_replaced_while_it_runs() {
    use std::os::unix::fs::PermissionsExt;
    for with in [None, Some("#!/bin/sh\necho another build >&2\nexit 9\n")] {
        let place = tiny();
        place.file("test.toml", EXPERIMENT);
        let child = copied(&place, "compare test.toml --jobs 1").spawn().unwrap();
        let runs = place.path().join("runs/test");
        wait_until("the first run", || fs::read_dir(&runs).is_ok_and(|entries| entries.count() >= 2));
        let program = place.path().join("trainer");
        fs::remove_file(&program).unwrap();
        if let Some(script) = with {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let ran = finish(child).expect(0);
        assert!(ran.stdout.contains("3 pairs") || ran.stdout.contains("h2"), "{ran:?}");
    }
}

/// deno#36176: a worker of another build refuses rather than mixes.
#[test]
fn deno_36176_a_worker_of_another_build_refuses() {
    let place = tiny();
    let ran = place.run("train --worker --build 0123 --config tiny.toml").expect(1);
    assert!(ran.stderr.contains("replaced by another build"), "{ran:?}");
    assert!(!place.path().join("runs").exists());
}

/// pytorch#155423: gone on with on another processor, a run's numbers differ and nothing said why.
#[test]
fn pytorch_155423_resuming_with_other_vectors_says_so() {
    if kernels::level().unwrap().name() == "portable" {
        println!("this processor has one level: nothing was tested");
        return;
    }
    let place = tiny();
    let config = runs::Config::parse(TINY, "tiny.toml").unwrap();
    let (run, _) = train_until(&config, &place.path().join("runs"), 40);
    let before = Manifest::read(&run.manifest_path()).unwrap();
    assert_eq!(before.simd.as_deref(), Some(kernels::level().unwrap().name()));
    let mut command = place.command("--config tiny.toml --quiet --threads 1");
    let ran = Ran::of(command.env("HEADCOUNT_SIMD", "portable").output().unwrap()).expect(0);
    assert!(ran.stderr.contains("these are portable vector instructions"), "{ran:?}");
    let after = Manifest::read(&run.manifest_path()).unwrap();
    assert_eq!(after.resumed.len(), 1, "{after:?}");
    assert_eq!((after.resumed[0].after_step, after.resumed[0].simd.as_deref()), (40, Some("portable")));
    assert_eq!(Manifest { resumed: vec![], ..after }, before);
}

/// pytorch#155423: half a comparison on each of two levels.
#[test]
fn pytorch_155423_half_a_comparison_with_other_vectors_says_so() {
    if kernels::level().unwrap().name() == "portable" {
        println!("this processor has one level: nothing was tested");
        return;
    }
    let place = tiny();
    place.file("test.toml", EXPERIMENT);
    Ran::of(place.command("compare test.toml").env("HEADCOUNT_SIMD", "portable").output().unwrap()).expect(0);
    let runs = fs::read_dir(place.path().join("runs/test")).unwrap().map(|entry| entry.unwrap().path());
    let one = runs.filter(|path| path.join("summary.json").exists()).min().unwrap();
    fs::remove_dir_all(&one).unwrap();
    // Asked for others they are refused; not asked, the experiment goes on as it was begun.
    let own = kernels::level().unwrap().name();
    let ran = Ran::of(place.command("compare test.toml").env("HEADCOUNT_SIMD", own).output().unwrap()).expect(1);
    assert!(ran.stderr.contains("vector instructions") && ran.stderr.contains("portable"), "{ran:?}");
    let ran = place.run("compare test.toml").expect(0);
    assert!(ran.stderr.contains("computing with portable vector instructions, as the experiment was begun"), "{ran:?}");
    fs::remove_dir_all(&one).unwrap();
    let ran = place.run("compare test.toml --mixed").expect(0);
    let line = ran.stdout.lines().find(|line| line.trim_start().starts_with("vectors")).unwrap_or_default();
    assert!(line.contains("portable") && line.ends_with("(mixed!)"), "{ran:?}");
}

/// pytorch#155423: a level that is none was taken for the widest.
#[test]
fn pytorch_155423_an_unknown_level_is_refused() {
    let place = tiny();
    for arguments in ["--config tiny.toml", "doctor --config tiny.toml", "bench --config tiny.toml"] {
        let ran = Ran::of(place.command(arguments).env("HEADCOUNT_SIMD", "avx3").output().unwrap()).expect(2);
        assert!(ran.stderr.contains("HEADCOUNT_SIMD is `avx3`") && ran.stderr.contains("portable"), "{ran:?}");
    }
    let ran = place.run("doctor --config tiny.toml");
    assert!(ran.stdout.contains(&format!("with {} vectors", kernels::level().unwrap().name())), "{ran:?}");
}

/// The program without root's right to write anywhere.
#[cfg(target_os = "linux")]
fn without_privilege(place: &Workplace, arguments: &str) -> Ran {
    let mut command = place.command(arguments);
    // SAFETY: a call that is allowed between fork and exec.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            const CAP_DAC_OVERRIDE: libc::c_ulong = 1;
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0); // who isn't root has none to drop
            Ok(())
        });
    }
    Ran::of(command.output().unwrap())
}

/// Takes away, or gives back, the right to write to every folder below.
#[cfg(unix)]
fn set_writable(folder: &std::path::Path, is_writable: bool) {
    use std::os::unix::fs::PermissionsExt;
    if is_writable {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            set_writable(&path, is_writable);
        }
    }
    if !is_writable {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
    }
}

/// datasets#2837: on a read-only mount, or for another user, nothing was shown.
#[cfg(target_os = "linux")]
#[test]
fn datasets_2837_what_can_only_be_read_is_shown() {
    let place = tiny();
    place.file("test.toml", EXPERIMENT);
    place.run("compare test.toml").expect(0);
    let experiment = place.path().join("runs/test");
    let runs = fs::read_dir(&experiment).unwrap().map(|entry| entry.unwrap().path());
    let run: Vec<_> = runs.filter(|path| path.join("summary.json").exists()).collect();
    for run in &run {
        fs::remove_file(run.join("heads.json")).unwrap(); // so that there is something to write
    }
    let run = format!("runs/test/{}", run[0].file_name().unwrap().to_str().unwrap());
    set_writable(&place.path().join("runs"), false);
    let shown = [
        (format!("heads {run}"), "head"),
        (format!("report {run}"), "One run: "),
        ("report runs/test".to_string(), "test accuracy"),
        ("compare test.toml".to_string(), "test accuracy"),
    ]
    .map(|(arguments, expected)| (without_privilege(&place, &arguments), arguments, expected));
    set_writable(&place.path().join("runs"), true);
    for (ran, arguments, expected) in shown {
        let ran = ran.expect(0);
        assert!(ran.stdout.contains(expected), "{arguments}: {ran:?}");
        assert!(
            ran.stderr.contains("not kept: can't ") && ran.stderr.contains("ermission denied"),
            "{arguments}: {ran:?}"
        );
        assert!(!ran.stdout.contains("report.html"), "{arguments}: {ran:?}");
    }
    let directory = RunDirectory::at(place.path().join(&run));
    assert!(!directory.heads_path().exists(), "the test itself could write");
}

/// datasets#2837: a run that is not done can't go on there, which is an error that names the folder.
#[cfg(target_os = "linux")]
#[test]
fn datasets_2837_what_is_not_done_says_that_it_cant_begin() {
    let place = tiny();
    place.file("test.toml", EXPERIMENT);
    fs::create_dir(place.path().join("runs")).unwrap();
    set_writable(&place.path().join("runs"), false);
    let ran = without_privilege(&place, "compare test.toml");
    set_writable(&place.path().join("runs"), true);
    let ran = ran.expect(1);
    assert!(ran.stderr.contains("error: can't create runs/test"), "{ran:?}");
}

/// The program with a call of the system that answers `error`: a filter of the kernel's, seccomp(2).
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn with_refused(place: &Workplace, arguments: &str, call: libc::c_long, error: i32) -> Ran {
    let mut command = place.command(arguments);
    refuse(&mut command, call, error);
    Ran::of(command.output().unwrap())
}

/// Lets a call of the system answer `error` in a program and in those that it starts.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn refuse(command: &mut Command, call: libc::c_long, error: i32) {
    const fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt, jf, k }
    }
    // SAFETY: calls that are allowed between fork and exec; the filter lives until the last of them.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(command, move || {
            let mut filter = [
                instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0), // the number of the call
                instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call as u32),
                instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | error as u32),
                instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            let is_set = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0;
            if is_set { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        });
    }
}

/// BOINC#1563: where flock is not to be had, no run could begin.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn boinc_1563_a_file_system_without_locks() {
    const RUN: &str = "--config tiny.toml --quiet --threads 1 --set train.steps=20 --set train.eval_every=10";
    let place = tiny();
    place.file("test.toml", EXPERIMENT);
    for (error, out) in [(libc::ENOSYS, "nosys"), (libc::ENOLCK, "nolck"), (libc::EOPNOTSUPP, "notsupp")] {
        let ran = with_refused(&place, &format!("{RUN} --out {out}"), libc::SYS_flock, error).expect(0);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert!(ran.stderr.contains("this file system has no locks"), "{ran:?}");
        assert!(ran.stderr.contains("two processes"), "{ran:?}");
    }
    let ran = with_refused(&place, "compare test.toml", libc::SYS_flock, libc::ENOLCK).expect(0);
    assert!(!ran.stderr.contains("no locks"), "the processes of a comparison do without: {ran:?}");
    // What is no such answer is an error.
    let ran = with_refused(&place, &format!("{RUN} --out failed"), libc::SYS_flock, libc::EIO).expect(1);
    assert!(ran.stderr.contains("can't lock"), "{ran:?}");
}

/// rocksdb#2929: folders are one thing, files and disks that fail another.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[test]
fn rocksdb_2929_files_must_be_synced() {
    let place = tiny();
    for error in [libc::EINVAL, libc::EIO] {
        let ran = with_refused(&place, "--config tiny.toml --quiet --threads 1", libc::SYS_fsync, error).expect(1);
        assert!(ran.stderr.starts_with("error: can't write"), "{ran:?}");
    }
}

/// From use: in a fresh folder there was only "os error 2".
#[test]
fn runs_in_a_fresh_folder() {
    let place = Workplace::new();
    assert_eq!(place.run("runs").expect(0).stdout, "0 runs; 0 B\n");
    let ran = place.run("runs elsewhere").expect(2);
    assert!(ran.stderr.contains("elsewhere: there is no such folder"), "{ran:?}");
}

/// From use: wgpu on an adapter in software was a hundred times slower without a word.
#[test]
fn a_gpu_backend_on_a_cpu_says_so() {
    if skips_wgpu() {
        return;
    }
    let place = tiny();
    let ran = place
        .run("--config tiny.toml --backend wgpu --set train.steps=2 --set train.warmup=0 --set train.eval_every=2");
    let ran = ran.expect(0);
    let is_software = ["llvmpipe", "SwiftShader", "lavapipe"].iter().any(|name| ran.stderr.contains(name));
    assert!(!ran.stderr.contains("wgpu on 2 threads") && ran.stderr.contains("wgpu on "), "{ran:?}");
    assert_eq!(ran.stderr.contains("wgpu found no GPU and computes on the CPU"), is_software, "{ran:?}");
}

/// click#3832: text of files that others wrote, on its way to a terminal.
#[test]
fn click_3832_text_of_files_is_shown_escaped() {
    let place = tiny();
    let text = EXPERIMENT.replace("[metric]", "[about]\nquestion = \"is \\u001b[31mthis\\u202E red?\"\n[metric]");
    let text = text.replace("it is a test", "\\u001b]0;owned\\u0007");
    place.file("test.toml", text);
    let ran = place.run("compare test.toml --dry-run").expect(0);
    assert!(ran.stderr.contains(r"is \u{1b}[31mthis\u{202e} red?"), "{ran:?}");
    place.file("bad\u{1b}[31m\u{202e}.toml", "x = 1");
    let ran = Ran::of(place.command("").args(["--config", "bad\u{1b}[31m\u{202e}.toml"]).output().unwrap()).expect(2);
    assert!(ran.stderr.contains(r"bad\u{1b}[31m\u{202e}.toml"), "{ran:?}");
    // What clap says of arguments, which a shell may have made from names of files.
    let ran = Ran::of(place.command("").args(["report", "a", "b\u{1b}[31m\u{202e}"]).output().unwrap()).expect(2);
    for text in [&ran.stderr, &ran.stdout] {
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{ran:?}");
    }
    assert!(ran.stderr.contains(r"\u{202e}"), "clap leaves colours out itself: {ran:?}");
}
